# SPDX-License-Identifier: Apache-2.0
"""MultiHeadAttention: masks, pasts, buffers, packed rows and scores."""

import numpy

from domains.case import covers, floats, node_case, random_of, trimmed


def keys_mask(lengths, keys):
    return (numpy.arange(keys)[None] < numpy.array(lengths)[:, None]).astype("int32")


@covers("MultiHeadAttention")
def multi_head():
    batch, sequence, heads, size = 2, 5, 3, 8
    hidden = heads * size
    for kind in (
        "plain",
        "bias",
        "cross",
        "cross_bias",
        "mask_lengths",
        "mask_keys",
        "mask_whole",
        "score_bias",
        "past",
        "past_mask",
        "causal",
        "causal_past",
        "scale",
        "heads_apart",
        "wide_values",
        "packed",
        "packed_pairs",
        "float16",
    ):
        for symbolic in (False, True):
            if symbolic and kind not in ("plain", "mask_keys", "past", "causal_past", "mask_lengths"):
                continue
            name = "multiheadattention_" + kind + ("_symbolic" if symbolic else "")
            random = random_of(name)
            dtype = "float16" if kind == "float16" else "float32"
            keys = 7 if kind.startswith(("cross", "heads")) else sequence
            values = 2 * hidden if kind == "wide_values" else hidden
            query, key = floats(random, (batch, sequence, hidden), dtype), floats(
                random, (batch, keys, hidden), dtype
            )
            value = floats(random, (batch, keys, values), dtype)
            inputs = [query, key, value] + [None] * 5
            attributes = {"num_heads": heads}
            if kind in ("bias", "cross_bias", "past"):
                inputs[3] = floats(random, (3 * hidden,), dtype)
            past = 4 if "past" in kind else 0
            total = past + keys
            if past:
                inputs[6], inputs[7] = (floats(random, (batch, heads, past, size), dtype) for _ in range(2))
            if kind == "mask_lengths":
                inputs[4] = numpy.array([3, 5], "int32")
            if kind in ("mask_keys", "past_mask"):
                inputs[4] = keys_mask([total, total - 2], total)
                attributes["mask_filter_value"] = -50.0 if kind == "mask_keys" else -10000.0
            if kind == "mask_whole":
                inputs[4] = random.integers(0, 2, (batch, sequence, total)).astype("int32")
            if kind in ("score_bias", "past_mask"):
                inputs[5] = floats(random, (1, heads, sequence, total), dtype)
            if kind.startswith("causal"):
                attributes["unidirectional"] = 1
            if kind == "scale":
                attributes["scale"] = 0.2
            if kind == "heads_apart":
                inputs[1], inputs[2] = (floats(random, (batch, heads, keys, size), dtype) for _ in range(2))
            if kind == "packed":
                inputs[:3] = [floats(random, (batch, sequence, heads, 3, size), dtype), None, None]
            if kind == "packed_pairs":
                inputs[1:3] = [floats(random, (batch, keys, heads, 2, size), dtype), None]
            inputs = trimmed(inputs)
            oracle = _packed_oracle if kind.startswith("packed") else None
            yield node_case(
                name,
                "MultiHeadAttention",
                inputs,
                attributes=attributes,
                outputs=3 if past else 1,
                symbolic=symbolic,
                constant=(3,),
                oracle=oracle,
            )
    yield from _multi_head_in_buffer()
    yield from _multi_head_with_scores()
    yield from _multi_head_of_beams()


def _multi_head_of_beams():
    """Buffers that beams share: read for one new token; several, or a past without a length, know no beams."""
    rows, heads, size, room = 6, 2, 8, 9
    for kind, past, sequence in (
        ("next", 5, 1), ("next_bias", 5, 1), ("next_mask", 5, 1), ("next_scores", 5, 1), ("next_symbolic", 5, 1),
        ("first", 0, 1), ("one_beam", 5, 1), ("several", 4, 3), ("several_symbolic", 4, 3), ("no_length", 9, 1),
    ):  # fmt: skip
        name = f"multiheadattention_beams_{kind}"
        random = random_of(name)
        inputs = [floats(random, (rows, sequence, heads * size)) for _ in range(3)] + [None] * 3
        if kind == "next_bias":
            inputs[3] = floats(random, (3 * heads * size,))
        total = past + sequence
        if kind == "next_mask":
            inputs[4] = keys_mask([total, 3, 4, total, 5, 2], total)
        if kind == "next_scores":
            inputs[5] = floats(random, (1, heads, sequence, total))
        inputs += [floats(random, (rows, heads, room, size)) for _ in range(2)]
        inputs.append(None if kind == "no_length" else numpy.array([past], "int32"))
        width = 1 if kind == "one_beam" else 3
        inputs.append(random.integers(0, width, (rows // width, width, room)).astype("int32"))
        yield node_case(
            name,
            "MultiHeadAttention",
            inputs,
            attributes={"num_heads": heads},
            outputs=3,
            symbolic=kind.endswith("symbolic"),
        )


def _multi_head_with_scores():
    """Output 3, with which ONNX Runtime loads no model for the processor."""
    batch, heads, size = 2, 3, 8

    def oracle(query, key, value, bias=None, mask=None, added=None, *, num_heads, mask_filter_value=-10000.0):
        split = lambda rows: rows.reshape(*rows.shape[:2], num_heads, -1).transpose(0, 2, 1, 3).astype("float64")
        if bias is not None:
            query, key, value = (x + part for x, part in zip((query, key, value), numpy.split(bias, 3)))
        scores = split(query) @ split(key).transpose(0, 1, 3, 2) / numpy.sqrt(query.shape[2] / num_heads)
        if mask is not None:
            scores = scores + numpy.where(mask, 0, mask_filter_value)[:, None, None]
        if added is not None:
            scores = scores + added
        exps = numpy.exp(scores - scores.max(-1, keepdims=True))
        rows = (exps / exps.sum(-1, keepdims=True) @ split(value)).transpose(0, 2, 1, 3)
        return [each.astype(query.dtype) for each in (rows.reshape(query.shape), scores)]

    for kind in ("plain", "bias", "mask", "score_bias", "float16", "symbolic"):
        name = f"multiheadattention_scores_{kind}"
        random, dtype = random_of(name), "float16" if kind == "float16" else "float32"
        shapes = [(batch, length, heads * size) for length in (4, 6, 6)]
        inputs = [*(floats(random, shape, dtype) for shape in shapes), None, None, None]
        attributes = {"num_heads": heads}
        if kind == "bias":
            inputs[3] = floats(random, (3 * heads * size,))
        if kind == "mask":
            inputs[4], attributes["mask_filter_value"] = keys_mask([6, 4], 6), -5.0
        if kind == "score_bias":
            inputs[5] = floats(random, (1, heads, 4, 6))
        inputs = trimmed(inputs)
        wanted = [True, False, False, True]
        yield node_case(
            name,
            "MultiHeadAttention",
            inputs,
            attributes=attributes,
            outputs=wanted,
            symbolic=kind == "symbolic",
            oracle=oracle,
        )


def _multi_head_in_buffer():
    batch, heads, size, room = 2, 3, 8, 12
    hidden = heads * size
    for kind, past, sequence, symbolic in (
        ("first", 0, 5, False),
        ("next", 6, 1, False),
        ("several", 4, 3, False),
        ("full", 9, 3, False),
        ("symbolic", 5, 2, True),
    ):
        for unidirectional in (0, 1):
            name = f"multiheadattention_buffer_{kind}" + ("_causal" if unidirectional else "")
            random = random_of(name)
            inputs = [floats(random, (batch, sequence, hidden)) for _ in range(3)]
            inputs += [floats(random, (3 * hidden,)) if kind == "several" else None, None, None]
            # What lies behind the past is never read.
            inputs += [floats(random, (batch, heads, room, size)) for _ in range(2)]
            inputs.append(numpy.array([past] if kind == "next" else past, "int32"))
            yield node_case(
                name,
                "MultiHeadAttention",
                inputs,
                attributes={"num_heads": heads, "unidirectional": unidirectional},
                outputs=3,
                symbolic=symbolic,
            )


def _packed_oracle(query, key=None, value=None, *, num_heads):
    """Forms that ONNX Runtime has on GPUs alone."""
    if key is None:
        q, k, v = (query[:, :, :, part] for part in range(3))
    else:
        q = query.reshape(*query.shape[:2], num_heads, -1)
        k, v = (key[:, :, :, part] for part in range(2))
    q, k, v = (each.astype("float64").transpose(0, 2, 1, 3) for each in (q, k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / numpy.sqrt(q.shape[-1])
    exps = numpy.exp(scores - scores.max(-1, keepdims=True))
    result = exps / exps.sum(-1, keepdims=True) @ v
    return [result.transpose(0, 2, 1, 3).reshape(*query.shape[:2], -1).astype(query.dtype)]
