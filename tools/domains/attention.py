# SPDX-License-Identifier: Apache-2.0
"""Attention with a cache, rotations and masks."""

import functools

import numpy

from domains.case import covers, floats, integers, node_case, random_of, weights


def _tables(random, positions, half, dtype="float32"):
    angles = numpy.arange(positions)[:, None] * 10000.0 ** -(numpy.arange(half) / half)[None]
    return [numpy.cos(angles).astype(dtype), numpy.sin(angles).astype(dtype)]


def _group_query(
    name,
    *,
    batch=1,
    sequence,
    past=0,
    buffer=None,
    heads=4,
    kv=2,
    size=8,
    lengths=None,
    packed=False,
    rotary=False,
    half=None,
    bias=False,
    sink=False,
    positions=False,
    normalized=False,
    constant=(),
    dtype="float32",
    symbolic=False,
    behind=None,
    **attributes,
):
    """`behind`: what stands in a cache behind the tokens of a sample, in place of zeros; of the output alone."""
    random = random_of(name)
    if packed:
        query, key, value = floats(random, (batch, sequence, (heads + 2 * kv) * size), dtype), None, None
    else:
        query = floats(random, (batch, sequence, heads * size), dtype)
        key, value = (floats(random, (batch, sequence, kv * size), dtype) for _ in range(2))
    total = past + sequence if lengths is None else max(lengths)
    lengths = [total] * batch if lengths is None else lengths
    caches = [None, None]
    if past or buffer:
        caches = [numpy.full((batch, kv, buffer or past, size), behind or 0, dtype) for _ in range(2)]
        for cache in caches:
            for sample, length in enumerate(lengths):
                old = length - sequence if total != sequence else 0
                cache[sample, :, :old] = floats(random, (kv, old, size), dtype)
    inputs = [query, key, value, *caches, numpy.array(lengths, "int32") - 1, numpy.array(total, "int32")]
    tables = _tables(random, 64, half or size // 2, dtype) if rotary else [None, None]
    at = None
    if positions:
        # Of the first run ONNX Runtime reads the first position alone.
        at = (random.integers(0, 40, (batch, 1)) + numpy.arange(sequence)).astype("int64")
    more = [
        *tables,
        at,
        floats(random, (1, heads, sequence, total), dtype) if bias else None,
        floats(random, (heads,), dtype) if sink else None,
    ]
    inputs += more
    if normalized:
        inputs += [None] * (14 - len(inputs)) + [
            random.uniform(0.5, 1.5, (size,)).astype(dtype) for _ in range(2)
        ]
    while inputs[-1] is None:
        inputs.pop()
    attributes = {"num_heads": heads, "kv_num_heads": kv, **attributes}
    if rotary:
        attributes["do_rotary"] = 1
    oracle = None
    if normalized:  # ONNX Runtime has it on GPUs alone

        def oracle(*given, qk_norm_epsilon, **rest):
            given = list(given)
            for position, weight, count in ((0, given[14], heads), (1, given[15], kv)):
                split = given[position].reshape(batch, sequence, count, size)
                root = numpy.sqrt((split**2).mean(-1, keepdims=True) + qk_norm_epsilon)
                given[position] = (split / root * weight).reshape(given[position].shape)
            while given[13:] or given[-1] is None:
                given.pop()
            return node_case("other", "GroupQueryAttention", given, attributes=rest, outputs=3).outputs

    outputs = 4 if "qk_output" in attributes else 3
    if behind is not None:
        oracle, outputs = _group_query_output, 1
    return node_case(
        name,
        "GroupQueryAttention",
        inputs,
        attributes=attributes,
        outputs=outputs,
        constant=constant,
        symbolic=symbolic,
        oracle=oracle,
    )


def _group_query_of_integers():
    """Caches of int8, and of two integers of four bits in a uint8."""
    batch, heads, kv, size = 2, 4, 2, 16
    kinds = {
        "first": {"sequence": 5},
        "next": {"past": 6},
        "next_in_buffer": {"past": 6, "buffer": 12},
        "window_next": {"past": 6, "local_window_size": 3},
        "ragged_next": {"past": 6, "buffer": 9, "lengths": [4, 7]},
        "rotary_next": {"past": 6, "do_rotary": 1},
        "float16_next": {"past": 6, "dtype": "float16"},
        "symbolic": {"past": 6, "symbolic": True},
    }
    for bits, held in ((8, "int8"), (4, "uint8")):
        for scales in ("per_tensor", "per_channel"):
            for kind, given in kinds.items():
                name = f"groupqueryattention_{bits}_bits_{scales}_{kind}"
                random = random_of(name)
                given = dict(given)
                sequence, past = given.pop("sequence", 1), given.pop("past", 0)
                dtype, symbolic = given.pop("dtype", "float32"), given.pop("symbolic", False)
                lengths = given.pop("lengths", [past + sequence] * batch)
                tokens = given.pop("buffer", past)
                shape = (batch, kv, tokens, size * bits // 8)
                extents = (1,) if scales == "per_tensor" else (1, kv, 1, size)
                rows = [floats(random, (batch, sequence, each * size), dtype) for each in (heads, kv, kv)]
                caches = [integers(random, shape, held) for _ in "kv"]
                for cache in caches:  # ONNX Runtime clears what lies behind the tokens
                    for sample, length in enumerate(lengths):
                        cache[sample, :, length - sequence :] = 0
                inputs = [*rows, *caches]
                inputs += [numpy.array(lengths, "int32") - 1, numpy.array(max(lengths), "int32")]
                rotary = "do_rotary" in given
                inputs += [*(_tables(random, 64, size // 2, dtype) if rotary else [None] * 2), *[None] * 3]
                inputs += [
                    ((random.random(extents) + 0.5) * 2.0 ** (2 - bits)).astype("float32") for _ in "kv"
                ]
                yield node_case(
                    name,
                    "GroupQueryAttention",
                    inputs,
                    attributes={
                        "num_heads": heads,
                        "kv_num_heads": kv,
                        "k_quant_type": scales.upper(),
                        "v_quant_type": scales.upper(),
                        "kv_cache_bit_width": bits,
                        **given,
                    },
                    outputs=3,
                    constant=(12, 13),
                    symbolic=symbolic,
                )


def _kept(tokens, room, window):
    step = room - window + 1
    return tokens - step * -(-max(tokens - room, 0) // step)


def _group_query_output(*given, **attributes):
    """The output alone, of ONNX Runtime, which wants to write the caches, too, and has zeros in rows without a token."""
    given = [*given[:3], *(numpy.nan_to_num(each, posinf=0, neginf=0) for each in given[3:5]), *given[5:]]
    return node_case("other", "GroupQueryAttention", given, attributes=attributes, outputs=3).outputs[:1]


def _group_query_of_padding(name, symbolic=False, **attributes):
    """A first run whose shorter sample is padded with keys of no share, even to queries of padding, and NaN."""
    random, (batch, sequence, heads, kv, size), lengths = random_of(name), (2, 6, 4, 2, 16), (6, 4)
    query = abs(floats(random, (batch, sequence, heads * size)))
    key, value = (floats(random, (batch, sequence, kv * size)) for _ in "kv")
    key[1, lengths[1] :], value[1, lengths[1] :] = -200, numpy.nan
    inputs = [query, key, value, None, None, numpy.array(lengths, "int32") - 1, numpy.array(sequence, "int32")]
    attributes = {"num_heads": heads, "kv_num_heads": kv, **attributes}

    def oracle(query, key, value, *_, local_window_size=sequence, **__):
        """In float64. ONNX Runtime's queries of padding see scores of one another."""
        split = lambda each, count: each.reshape(batch, sequence, count, size).astype("float64")
        k, v = (split(each, kv).repeat(heads // kv, 2) for each in (key, numpy.nan_to_num(value)))
        scores = numpy.einsum("bqhd,bkhd->bhqk", split(query, heads), k) / size**0.5
        back = numpy.subtract.outer(numpy.arange(sequence), numpy.arange(sequence))
        scores[:, :, (back < 0) | (back >= local_window_size)] = -numpy.inf
        shares = numpy.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return [numpy.einsum("bhqk,bkhd->bqhd", shares, v).reshape(query.shape).astype(query.dtype)]

    return node_case(
        name,
        "GroupQueryAttention",
        inputs,
        attributes=attributes,
        symbolic=symbolic,
        oracle=oracle,
    )


def _group_query_of_windows():
    """Caches of the last tokens alone. Of a cache with rows that hold none only the output is told."""
    heads, kv, size = 4, 2, 32
    for kind, given in {
        "next": {"room": 6, "window": 6, "lengths": (10, 10)},
        "next_of_few": {"room": 6, "window": 6, "lengths": (4, 4)},
        "last_that_fits": {"room": 6, "window": 6, "lengths": (6, 6)},
        "ragged": {"room": 4, "window": 4, "lengths": (5, 9)},
        "slack": {"room": 7, "window": 4, "lengths": (11, 15)},
        "slack_evicts": {"room": 7, "window": 4, "lengths": (12, 10)},
        "many": {"room": 6, "window": 3, "lengths": (10,), "sequence": 4},
        "more_than_room": {"room": 6, "window": 6, "lengths": (20,), "sequence": 9},
        "first": {"room": 8, "window": 5, "lengths": (6, 6), "sequence": 6},
        "first_longer": {"room": 5, "window": 5, "lengths": (9, 9), "sequence": 9},
        "rotary": {"room": 6, "window": 6, "lengths": (10, 10), "do_rotary": 1},
        "sink": {"room": 6, "window": 6, "lengths": (10, 10), "smooth_softmax": 1},
        "float16": {"room": 6, "window": 6, "lengths": (10, 10), "dtype": "float16"},
        "8_bits": {"room": 6, "window": 6, "lengths": (10, 10), "bits": 8},
        "4_bits": {"room": 6, "window": 6, "lengths": (10, 10), "bits": 4},
        "symbolic": {"room": 7, "window": 4, "lengths": (11, 15), "symbolic": True},
        "unspecified": {"room": 6, "window": 4, "lengths": (1, 4, 6), "behind": numpy.nan},
        "unspecified_first": {"room": 6, "window": 3, "lengths": (1, 1), "behind": numpy.nan},
        "unspecified_many": {"room": 8, "window": 3, "lengths": (10,), "sequence": 3, "behind": numpy.inf},
        "unspecified_rotary": {"room": 6, "window": 4, "lengths": (3, 7), "do_rotary": 1, "behind": -numpy.inf},
        "unspecified_sink": {"room": 6, "window": 4, "lengths": (3, 7), "smooth_softmax": 1, "behind": numpy.nan},
        "unspecified_float16": {
            "room": 6, "window": 4, "lengths": (3, 7), "dtype": "float16", "behind": numpy.nan
        },
        "unspecified_symbolic": {"room": 7, "window": 4, "lengths": (4, 9), "symbolic": True, "behind": numpy.nan},
    }.items():  # fmt: skip
        name = f"groupqueryattention_sliding_{kind}"
        random, given = random_of(name), dict(given)
        room, window, lengths = given.pop("room"), given.pop("window"), given.pop("lengths")
        sequence, dtype, bits = given.pop("sequence", 1), given.pop("dtype", "float32"), given.pop("bits", 0)
        symbolic, batch, behind = given.pop("symbolic", False), len(lengths), given.pop("behind", 0)
        rows = [floats(random, (batch, sequence, each * size), dtype) for each in (heads, kv, kv)]
        if bits:
            held = "int8" if bits == 8 else "uint8"
            caches = [integers(random, (batch, kv, room, size * bits // 8), held) for _ in "kv"]
            kinds = dict.fromkeys(("k_quant_type", "v_quant_type"), "PER_TENSOR")
            given.update(kinds, kv_cache_bit_width=bits)
        else:
            caches = [floats(random, (batch, kv, room, size), dtype) for _ in "kv"]
        for cache in caches:
            for sample, length in enumerate(lengths):
                cache[sample, :, _kept(length - sequence, room, window) :] = behind
        inputs = [*rows, *caches, numpy.array(lengths, "int32") - 1, numpy.array(max(lengths), "int32")]
        inputs += [*(_tables(random, 64, size // 2, dtype) if "do_rotary" in given else [None] * 2), *[None] * 3]
        inputs += [numpy.array([2.0 ** (2 - bits)], "float32") for _ in "kv"] if bits else []
        while inputs[-1] is None:
            inputs.pop()
        oracle = None
        if behind or any(_kept(length, room, window) != room for length in lengths):
            oracle = _group_query_output
        yield node_case(
            name,
            "GroupQueryAttention",
            inputs,
            attributes={
                "num_heads": heads,
                "kv_num_heads": kv,
                "sliding_window_cache": 1,
                "local_window_size": window,
                **given,
            },
            outputs=1 if oracle else 3,
            constant=(12, 13) if bits else (),
            symbolic=symbolic,
            oracle=oracle,
        )


@covers("GroupQueryAttention")
def group_query():
    yield from _group_query_of_windows()
    prefix = "groupqueryattention_"
    yield _group_query(prefix + "first", sequence=7, buffer=None, past=0)
    yield _group_query(prefix + "first_with_buffer", sequence=7, buffer=16)
    yield _group_query(prefix + "next", sequence=1, past=9)
    yield _group_query(prefix + "next_in_buffer", sequence=1, past=9, buffer=24)
    yield _group_query(prefix + "packed", sequence=5, packed=True, buffer=12)
    yield _group_query(prefix + "packed_next", sequence=1, past=5, packed=True, heads=6, kv=3, size=16)
    yield _group_query(prefix + "many_query_heads", sequence=3, heads=8, kv=1)
    yield _group_query(prefix + "as_many_heads", sequence=3, heads=3, kv=3, past=0)
    yield _group_query(prefix + "rotary", sequence=6, rotary=True, size=16)
    yield _group_query(prefix + "rotary_next", sequence=1, past=11, rotary=True, size=16)
    yield _group_query(
        prefix + "rotary_packed_next", sequence=1, past=11, buffer=32, rotary=True, packed=True, size=16
    )
    yield _group_query(prefix + "rotary_interleaved", sequence=6, rotary=True, size=16, rotary_interleaved=1)
    yield _group_query(prefix + "rotary_of_a_part", sequence=6, rotary=True, size=32, half=8)
    yield _group_query(prefix + "rotary_positions", sequence=4, rotary=True, size=16, positions=True)
    yield _group_query(
        prefix + "rotary_positions_next", sequence=1, past=5, rotary=True, size=16, positions=True
    )
    yield _group_query(
        prefix + "normalized", sequence=5, normalized=True, rotary=True, size=16, qk_norm_epsilon=1e-3
    )
    yield _group_query(prefix + "scale", sequence=5, scale=0.11)
    yield _group_query(prefix + "softcap", sequence=5, softcap=3.0)
    yield _group_query(prefix + "window", sequence=11, local_window_size=4)
    yield _group_query(prefix + "window_next", sequence=1, past=11, local_window_size=4)
    yield _group_query(prefix + "window_of_one", sequence=5, local_window_size=1)
    yield _group_query(prefix + "bias", sequence=5, bias=True)
    yield _group_query(prefix + "bias_next", sequence=1, past=6, bias=True, softcap=2.0)
    yield _group_query(prefix + "smooth", sequence=5, smooth_softmax=1)
    yield _group_query(prefix + "sink", sequence=5, sink=True, past=0)
    yield _group_query(prefix + "sink_next", sequence=1, past=4, sink=True, local_window_size=3)
    yield _group_query(
        prefix + "batch_next", batch=3, sequence=1, past=0, buffer=20, lengths=[5, 9, 3], rotary=True, size=16
    )
    yield _group_query(prefix + "several_next", sequence=4, past=6, buffer=16, rotary=True, size=16)
    for shown, word in ((1, "scores"), (2, "shares")):
        kinds = {
            "": {"sequence": 5},
            "_next": {"sequence": 1, "past": 9, "buffer": 16},
            "_window": {"sequence": 5, "local_window_size": 2, "softcap": 3.0},
            "_bias": {"sequence": 5, "bias": True},
            "_sink": {"sequence": 5, "sink": True},
            "_float16": {"sequence": 5, "dtype": "float16"},
            "_symbolic": {"sequence": 5, "batch": 2, "symbolic": True},
        }
        for kind, given in kinds.items():
            yield _group_query(f"{prefix}{word}{kind}", qk_output=shown, **given)
    yield _group_query(prefix + "known_total", sequence=1, past=9, constant=(5, 6))
    yield _group_query(prefix + "symbolic", batch=2, sequence=5, rotary=True, size=16, constant=(7, 8))
    yield _group_query(prefix + "float16", sequence=5, past=0, dtype="float16", rotary=True, size=16)
    yield _group_query(
        prefix + "float16_next", sequence=1, past=7, dtype="float16", packed=True, rotary=True, size=16
    )
    yield from _group_query_of_integers()
    ragged = {"batch": 3, "sequence": 1, "buffer": 20, "lengths": [5, 9, 3], "size": 16}
    for kind, given in {
        "": {"behind": numpy.nan},
        "_infinite": {"behind": numpy.inf},
        "_window": {"behind": numpy.nan, "local_window_size": 2},
        "_rotary": {"behind": numpy.nan, "rotary": True, "packed": True},
        "_sink": {"behind": numpy.nan, "sink": True},
        "_bias": {"behind": numpy.nan, "batch": 2, "lengths": [9, 4], "bias": True, "softcap": 2.0},
        "_float16": {"behind": -numpy.inf, "dtype": "float16"},
        "_symbolic": {"behind": numpy.nan, "symbolic": True},
        "_of_one": {"behind": numpy.nan, "batch": 1, "lengths": [7], "past": 6},
        "_growing": {"behind": numpy.nan, "buffer": 8},
    }.items():
        yield _group_query(f"{prefix}unspecified{kind}", **{**ragged, **given})
    # Without a scale and a size, as with symbols, the keys of padding are zeros to its queries, whose results
    # nothing says.
    for kind, given in {"": {}, "_window": {"local_window_size": 3}, "_symbolic": {"symbolic": True}}.items():
        yield _group_query_of_padding(f"{prefix}padding_unspecified{kind}", scale=0.25, **given)


@covers("RotaryEmbedding")
def rotary():
    for interleaved in (0, 1):
        for kind, shape, more in (
            ("rows", (2, 5, 32), {"num_heads": 0}),
            ("heads", (2, 4, 5, 8), {}),
            ("part", (2, 5, 48), {"num_heads": 3, "rotary_embedding_dim": 8}),
        ):
            for offset in (False, True):
                name = f"rotaryembedding_{kind}_{interleaved}_{'offset' if offset else 'positions'}"
                random = random_of(name)
                at = numpy.array([3], "int64") if offset else random.integers(0, 20, (2, 5)).astype("int64")
                half = 4
                inputs = [floats(random, shape), at, *_tables(random, 20, half)]
                attributes = {"interleaved": interleaved, **more}
                yield node_case(
                    "ms_" + name, "RotaryEmbedding", inputs, attributes=attributes, constant=(2, 3)
                )
    inputs = [floats(random, (2, 5, 16), "float16"), at, *_tables(random, 20, 4, "float16")]
    yield node_case("ms_rotaryembedding_float16", "RotaryEmbedding", inputs, attributes={"num_heads": 2})


def _lengths_mask(lengths, keys):
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
                inputs[4] = _lengths_mask([total, total - 2], total)
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
            while inputs[-1] is None:
                inputs.pop()
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
            inputs[4], attributes["mask_filter_value"] = _lengths_mask([6, 4], 6), -5.0
        if kind == "score_bias":
            inputs[5] = floats(random, (1, heads, 4, 6))
        while inputs[-1] is None:
            inputs.pop()
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
                inputs[3] = _lengths_mask([total, total - 2], total)
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
            while inputs[-1] is None:
                inputs.pop()
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
        if kind == "past":
            inputs[8] = floats(random, (2, batch, heads, 4, size))
            attributes["unidirectional"] = 1
        while inputs[-1] is None:
            inputs.pop()
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
