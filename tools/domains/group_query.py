# SPDX-License-Identifier: Apache-2.0
"""GroupQueryAttention: rotations, masks, scores, and caches of floats."""

import numpy

from domains.case import covers, floats, node_case, random_of, trimmed
from domains.group_query_caches import of_integers, of_windows, output_alone
from domains.rotations import tables


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
    turns = tables(random, 64, half or size // 2, dtype) if rotary else [None, None]
    at = None
    if positions:
        # Of the first run ONNX Runtime reads the first position alone.
        at = (random.integers(0, 40, (batch, 1)) + numpy.arange(sequence)).astype("int64")
    more = [
        *turns,
        at,
        floats(random, (1, heads, sequence, total), dtype) if bias else None,
        floats(random, (heads,), dtype) if sink else None,
    ]
    inputs += more
    if normalized:
        inputs += [None] * (14 - len(inputs)) + [
            random.uniform(0.5, 1.5, (size,)).astype(dtype) for _ in range(2)
        ]
    inputs = trimmed(inputs)
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
            given = trimmed(given[:13])
            return node_case("other", "GroupQueryAttention", given, attributes=rest, outputs=3).outputs

    outputs = 4 if "qk_output" in attributes else 3
    if behind is not None:
        oracle, outputs = output_alone, 1
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


def _of_padding(name, symbolic=False, lengths=(6, 4), **attributes):
    """A first run whose last sample is padded with keys of no share, even to queries of padding, and NaN."""
    random, batch, (sequence, heads, kv, size) = random_of(name), len(lengths), (6, 4, 2, 16)
    query = abs(floats(random, (batch, sequence, heads * size)))
    key, value = (floats(random, (batch, sequence, kv * size)) for _ in "kv")
    key[-1, lengths[-1] :], value[-1, lengths[-1] :] = -200, numpy.nan
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


@covers("GroupQueryAttention")
def group_query():
    yield from of_windows()
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
    yield _group_query(prefix + "not_causal", batch=2, sequence=5, causal=0)
    yield _group_query(prefix + "not_causal_next", sequence=2, past=6, causal=0)
    yield _group_query(prefix + "known_total", sequence=1, past=9, constant=(5, 6))
    yield _group_query(prefix + "symbolic", batch=2, sequence=5, rotary=True, size=16, constant=(7, 8))
    yield _group_query(prefix + "float16", sequence=5, past=0, dtype="float16", rotary=True, size=16)
    yield _group_query(
        prefix + "float16_next", sequence=1, past=7, dtype="float16", packed=True, rotary=True, size=16
    )
    yield from of_integers()
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
    for kind, given in {
        "": {},
        "_window": {"local_window_size": 3},
        "_symbolic": {"symbolic": True},
        "_of_one": {"lengths": (4,)},
    }.items():
        yield _of_padding(f"{prefix}padding_unspecified{kind}", scale=0.25, **given)
