# SPDX-License-Identifier: Apache-2.0
"""Attention and QAttention: one product for queries, keys and values."""

import functools

import numpy

from domains.case import covers, floats, integers, node_case, random_of, trimmed, weights
from domains.multi_head import keys_mask


def _answers_of(other_inputs, *_, **attributes):
    return node_case("other", "Attention", other_inputs, attributes=attributes).outputs


def _rotated(heads, dimension, start):
    """Elements n and n + dimension / 2 of each head, turned by position / 10000^(2 n / dimension)."""
    half = dimension // 2
    angles = (start + numpy.arange(heads.shape[2]))[:, None] * 10000.0 ** -(numpy.arange(half) / half)
    low, high = heads[..., :half], heads[..., half:dimension]
    cosines, sines = numpy.cos(angles), numpy.sin(angles)
    turned = [low * cosines - high * sines, high * cosines + low * sines]
    return numpy.concatenate([*turned, heads[..., dimension:]], -1)


def _merged_oracle(projections, past, num_heads, dimension=0, unidirectional=0):
    """Attention in float64 from the projections of queries, keys and values."""
    batch, sequence, width = projections.shape
    q, k, v = (
        each.reshape(batch, sequence, num_heads, -1).transpose(0, 2, 1, 3)
        for each in numpy.split(projections.astype("float64"), 3, -1)
    )
    start = 0 if past is None else past.shape[3]
    q, k = (_rotated(each, dimension or q.shape[-1], start) for each in (q, k))
    if past is not None:
        k, v = (numpy.concatenate([old, new], 2) for old, new in zip(past, (k, v)))
    scores = q @ k.transpose(0, 1, 3, 2) / numpy.sqrt(q.shape[-1])
    if unidirectional:
        scores[..., ~numpy.tri(sequence, start + sequence, start, dtype=bool)] = -numpy.inf
    exps = numpy.exp(scores - scores.max(-1, keepdims=True))
    result = (exps / exps.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(batch, sequence, -1)
    return [result, numpy.stack([k, v])]


def _rotary():
    """Rotations in the operator itself, which ONNX Runtime has on GPUs alone."""
    batch, heads, width = 2, 3, 16
    for kind, past, sequence, size, attributes in (
        ("first", 0, 5, 8, {}),
        ("next", 6, 1, 8, {}),
        ("several", 4, 3, 8, {"unidirectional": 1}),
        ("part", 5, 2, 48, {"rotary_embedding_dim": 32}),
        ("float16", 3, 2, 8, {}),
    ):
        dtype = "float16" if kind == "float16" else "float32"
        name = "attention_rotary_" + kind
        random = random_of(name)
        columns = 3 * heads * size
        inputs = [
            floats(random, (batch, sequence, width), dtype),
            floats(random, (width, columns), dtype, 0.3),
            floats(random, (columns,), dtype),
            None,
        ]
        inputs.append(floats(random, (2, batch, heads, past, size), dtype) if past else None)
        if not past:
            inputs = inputs[:3]

        def oracle(x, weights_, bias, mask=None, past=None, *, num_heads, do_rotary, **rest):
            projections = x.astype("float64") @ weights_.astype("float64") + bias.astype("float64")
            dimension, unidirectional = (rest.get(n, 0) for n in ("rotary_embedding_dim", "unidirectional"))
            answers = _merged_oracle(projections, past, num_heads, dimension, unidirectional)
            return [each.astype(x.dtype) for each in answers[: 2 if past is not None else 1]]

        attributes = {"num_heads": heads, "do_rotary": 1, **attributes}
        yield node_case(
            name,
            "Attention",
            inputs,
            attributes=attributes,
            outputs=2 if past else 1,
            constant=(1, 2),
            oracle=oracle,
        )
        if kind != "several":
            continue
        name = "qattention_rotary"
        inputs = [
            integers(random, (batch, sequence, width)),
            weights(random, (width, columns), "int8"),
            inputs[2],
            numpy.array(0.01, "float32"),
            numpy.array(0.007, "float32"),
            None,
            numpy.array(127, "uint8"),
            numpy.array(3, "int8"),
            inputs[4],
        ]

        def of_integers(x, weights_, bias, x_scale, scale, mask, zero, weight_zero, past, **rest):
            sums = (x.astype("int64") - zero) @ (weights_.astype("int64") - weight_zero)
            projections = sums * (x_scale.astype("float64") * scale) + bias
            answers = _merged_oracle(projections, past, rest["num_heads"], 0, rest["unidirectional"])
            return [each.astype("float32") for each in answers]

        yield node_case(
            name,
            "QAttention",
            inputs,
            attributes=attributes,
            outputs=2,
            constant=(1, 2, 3, 4, 6, 7),
            rtol=1e-4,
            atol=1e-4,
            oracle=of_integers,
        )


def _merged_in_buffer():
    """A past that is a buffer: ONNX Runtime's answers for the past alone, put into the buffer."""
    batch, heads, size, width, room = 2, 3, 8, 16, 12
    columns = 3 * heads * size
    for kind, past, sequence, symbolic in (
        ("first", 0, 5, False),
        ("next", 6, 1, False),
        ("several", 4, 3, False),
        ("full", 9, 3, False),
        ("symbolic", 5, 2, True),
    ):
        name = "attention_buffer_" + kind
        random = random_of(name)
        inputs = [floats(random, (batch, sequence, width)), floats(random, (width, columns), scale=0.3)]
        inputs += [floats(random, (columns,)), None, floats(random, (2, batch, heads, room, size)), None]
        inputs.append(numpy.array([past], "int32"))

        def oracle(x, weights_, bias, mask, buffer, score_bias, length, *, past_present_share_buffer, **rest):
            old = buffer[:, :, :, : int(length[0])].copy() if length[0] else None
            given = [x, weights_, bias, None, old] if old is not None else [x, weights_, bias]
            output, present = node_case("other", "Attention", given, attributes=rest, outputs=2).outputs
            buffer = buffer.copy()
            buffer[:, :, :, : present.shape[3]] = present
            return [output, buffer]

        yield node_case(
            name,
            "Attention",
            inputs,
            attributes={"num_heads": heads, "unidirectional": 1, "past_present_share_buffer": 1},
            outputs=2,
            constant=(1, 2),
            symbolic=symbolic,
            oracle=oracle,
        )


@covers("Attention", "QAttention")
def merged():
    yield from _rotary()
    yield from _merged_in_buffer()
    batch, sequence, heads, size, width = 2, 5, 3, 8, 16
    hidden = heads * size
    for kind in (
        "plain",
        "no_bias",
        "ends",
        "starts",
        "keys",
        "whole",
        "square",
        "past",
        "past_keys",
        "causal",
        "score_bias",
        "scale",
        "sizes",
        "float16",
    ):
        for symbolic in (False, True):
            if symbolic and kind not in ("plain", "ends", "starts", "keys", "past_keys"):
                continue
            name = "attention_" + kind + ("_symbolic" if symbolic else "")
            random = random_of(name)
            dtype = "float16" if kind == "float16" else "float32"
            sizes = [hidden, hidden, 2 * hidden if kind == "sizes" else hidden]
            inputs = [
                floats(random, (batch, sequence, width), dtype),
                floats(random, (width, sum(sizes)), dtype, 0.3),
            ]
            inputs += [None if kind == "no_bias" else floats(random, (sum(sizes),), dtype), None, None, None]
            attributes = {"num_heads": heads}
            past = 4 if "past" in kind else 0
            total = past + sequence
            if past:
                inputs[4] = floats(random, (2, batch, heads, past, size), dtype)
            if kind == "sizes":
                attributes["qkv_hidden_sizes"] = sizes
            if kind == "ends":
                inputs[3] = numpy.array([3, 5], "int32")
            if kind == "starts":
                inputs[3] = numpy.array([5, 5, 1, 3], "int32")
            if kind in ("keys", "past_keys"):
                inputs[3] = keys_mask([total, total - 2], total)
                attributes["mask_filter_value"] = -30.0
            if kind == "whole":
                inputs[3] = random.integers(0, 2, (batch, sequence, total)).astype("int32")
            if kind == "square":
                inputs[3] = numpy.tril(numpy.ones((batch, 1, 9, 9), "int32"))
            if kind in ("causal", "past"):
                attributes["unidirectional"] = 1
            if kind == "score_bias":
                inputs[5] = floats(random, (batch, heads, sequence, total), dtype)
            if kind == "scale":
                attributes["scale"] = 0.2
            inputs = trimmed(inputs)
            oracle = None
            if kind == "square":  # as GPT-2 writes it; ONNX Runtime has it on GPUs alone
                rows = [*inputs[:3], inputs[3][:, 0, total - sequence : total, :total]]
                oracle = functools.partial(_answers_of, rows)
            if kind == "no_bias":  # ONNX Runtime's kernel reads a bias, whether it is there or not.
                with_zeros = [*inputs, numpy.zeros(sum(sizes), dtype)]
                oracle = functools.partial(_answers_of, with_zeros)
            yield node_case(
                name,
                "Attention",
                inputs,
                attributes=attributes,
                outputs=2 if past else 1,
                constant=(1, 2),
                symbolic=symbolic,
                oracle=oracle,
            )
    for kind, dtypes in (
        ("plain", ("uint8", "int8")),
        ("signed", ("uint8", "int8")),
        ("unsigned", ("uint8", "uint8")),
        ("mask", ("uint8", "int8")),
        ("past", ("uint8", "int8")),
        ("columns", ("uint8", "int8")),
        ("keys", ("uint8", "int8")),
        ("scale", ("uint8", "int8")),
    ):
        name = "qattention_" + kind
        random = random_of(name)
        columns = (3 * hidden,) if kind == "columns" else ()
        inputs = [
            random.integers(0, 256, (batch, sequence, width)).astype(dtypes[0]),
            weights(random, (width, 3 * hidden), dtypes[1]),
            floats(random, (3 * hidden,)),
            numpy.array(0.01, "float32"),
            (random.random(columns) * 0.005 + 0.005).astype("float32"),
            None,
            numpy.array(127, dtypes[0]),
            (random.integers(-9, 9, columns) + (128 if dtypes[1] == "uint8" else 0)).astype(dtypes[1]),
            None,
        ]
        attributes = {"num_heads": heads}
        if kind == "mask":
            inputs[5] = numpy.array([3, 5], "int32")
        if kind == "keys":
            inputs[5], attributes["mask_filter_value"] = keys_mask([5, 3], 5), -2.0
        if kind == "scale":
            attributes["scale"] = 0.2
        if kind == "past":
            inputs[8] = floats(random, (2, batch, heads, 4, size))
            attributes["unidirectional"] = 1
        inputs = trimmed(inputs)
        yield node_case(
            name,
            "QAttention",
            inputs,
            attributes=attributes,
            outputs=2 if kind == "past" else 1,
            constant=(1, 2, 3, 4, 6, 7),
            rtol=1e-4,
            atol=1e-4,
        )
