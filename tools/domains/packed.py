# SPDX-License-Identifier: Apache-2.0
"""Sequences without their padding, and biases by distance. ONNX Runtime has them on GPUs alone: the
oracles are float64, after the documentation and, for attention, ONNX Runtime's on the padded sequences."""

import numpy

from domains.case import covers, floats, node_case, random_of

_COUNTS = (1, 4, 2)


def _places(counts, length):
    """The places of tokens in [batch * length], then those of padding, as [batch, length]."""
    is_token = (numpy.arange(length) < numpy.array(counts)[:, None]).ravel()
    order = numpy.concatenate([numpy.flatnonzero(is_token), numpy.flatnonzero(~is_token)])
    return order.reshape(len(counts), length).astype("int32")


def _sums(counts):
    return numpy.cumsum([0, *counts]).astype("int32")


def _padded(rows, places):
    padded = numpy.zeros((places.size, *rows.shape[1:]), rows.dtype)
    padded[places.ravel()[: len(rows)]] = rows
    return padded.reshape(*places.shape, *rows.shape[1:])


@covers("RemovePadding", "RestorePadding")
def padding():
    for dtype in ("float32", "float16"):
        for kind, counts in (("", _COUNTS), ("_none", (4, 4, 4)), ("_empty", (0, 3, 1))):
            name = f"removepadding_{dtype}{kind}"
            x = floats(random_of(name), (3, 4, 5), dtype)
            places, total = _places(counts, 4), sum(counts)
            tokens = x.reshape(12, 5)[places.ravel()[:total]]
            answers = [tokens, places, _sums(counts), numpy.array([max(counts)], "int32")]
            yield node_case(
                name,
                "RemovePadding",
                [x, numpy.array(counts, "int32")],
                outputs=4,
                symbolic=kind == "_empty",
                oracle=lambda *_, answers=answers: answers,
            )
            yield node_case(
                name.replace("remove", "restore"),
                "RestorePadding",
                [tokens, places],
                symbolic=kind == "_empty",
                oracle=lambda rows, places: [_padded(rows, places)],
            )


def _attend(q, k, v, places, counts, bias, heads, scale=None):
    """Of [tokens, hidden] each, in float64."""
    split = lambda rows: _padded(rows.astype("float64"), places).reshape(*places.shape, heads, -1)
    q, k, v = split(q), split(k), split(v)
    scores = numpy.einsum("bqhd,bkhd->bhqk", q, k) * (scale or q.shape[-1] ** -0.5)
    if bias is not None:
        scores = scores + bias
    is_there = numpy.arange(places.shape[1]) < numpy.array(counts)[:, None]
    scores = numpy.where(is_there[:, None, None], scores, -numpy.inf)
    shares = numpy.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    merged = numpy.einsum("bhqk,bkhd->bqhd", shares, v).reshape(places.size, -1)
    return merged[places.ravel()[: sum(counts)]]


@covers("PackedAttention")
def packed_attention():
    heads, hidden, length = 2, 8, 4
    for kind in ("", "bias", "scale", "sizes", "float16", "symbolic"):
        name = f"packedattention_{kind}"
        random = random_of(name)
        dtype = "float16" if kind == "float16" else "float32"
        values = 12 if kind == "sizes" else hidden
        columns = 2 * hidden + values
        bias = floats(random, (1, heads, length, length), dtype) if kind in ("bias", "symbolic") else None
        inputs = [
            floats(random, (sum(_COUNTS), 6), dtype),
            floats(random, (6, columns), dtype, 0.4),
            floats(random, (columns,), dtype),
            _places(_COUNTS, length),
            _sums(_COUNTS),
            *([] if bias is None else [bias]),
        ]
        attributes = {"num_heads": heads}
        if kind == "scale":
            attributes["scale"] = 0.6
        if kind == "sizes":
            attributes["qkv_hidden_sizes"] = [hidden, hidden, values]

        def oracle(x, weights, added, places, sums, bias=None, *, num_heads, scale=None, qkv_hidden_sizes=None):
            rows = x.astype("float64") @ weights + added
            parts = numpy.split(rows, [hidden, 2 * hidden], 1)
            return [_attend(*parts, places, numpy.diff(sums), bias, num_heads, scale).astype(x.dtype)]

        yield node_case(
            name,
            "PackedAttention",
            inputs,
            attributes=attributes,
            constant=(1, 2),
            symbolic=kind == "symbolic",
            oracle=oracle,
        )


@covers("PackedMultiHeadAttention")
def packed_multi_head_attention():
    heads, size, length = 2, 4, 4
    hidden, tokens = heads * size, sum(_COUNTS)
    for kind in ("", "packed", "projection_bias", "packed_bias", "bias", "scale", "float16", "symbolic"):
        name = f"packedmultiheadattention_{kind}"
        random = random_of(name)
        dtype = "float16" if kind == "float16" else "float32"
        is_packed = kind.startswith("packed")
        inputs = [floats(random, (tokens, hidden), dtype) for _ in range(3)]
        if is_packed:
            inputs = [floats(random, (tokens, heads, 3, size), dtype), None, None]
        inputs += [
            floats(random, (3 * hidden,), dtype) if kind in ("projection_bias", "packed_bias") else None,
            _places(_COUNTS, length),
            _sums(_COUNTS),
        ]
        if kind == "bias":
            inputs.append(floats(random, (3, 1, length, length), dtype))
        attributes = {"num_heads": heads, **({"scale": 0.6} if kind == "scale" else {})}

        def oracle(query, key, value, added, places, sums, bias=None, *, num_heads, scale=None):
            parts = [query, key, value]
            if key is None:
                parts = [query[:, :, part].reshape(len(query), -1) for part in range(3)]
            if added is not None:
                parts = [rows + each for rows, each in zip(parts, numpy.split(added, 3))]
            return [_attend(*parts, places, numpy.diff(sums), bias, num_heads, scale).astype(query.dtype)]

        yield node_case(
            name,
            "PackedMultiHeadAttention",
            inputs,
            attributes=attributes,
            symbolic=kind == "symbolic",
            oracle=oracle,
        )


def _bias_of_distances(table, queries, keys, *, max_distance, is_bidirectional=0):
    """As PyTorch's T5 has it, but for queries before their key in one direction, which count alike. Logarithms are
    rounded to float32 once."""
    log = lambda x: numpy.log(x.astype("float64")).astype("float32")
    buckets, heads = table.shape
    offset = numpy.arange(int(keys[0]))[None] - numpy.arange(int(queries[0]))[:, None]
    of_side = buckets // 2 if is_bidirectional else buckets
    exact, distance = of_side // 2, abs(offset)
    ratio = log(numpy.maximum(distance, 1).astype("float32") / numpy.float32(exact))
    beyond = ratio / log(numpy.float32(max_distance) / numpy.float32(exact)) * numpy.float32(of_side - exact)
    bucket = numpy.where(
        distance < exact, distance, numpy.minimum(exact + beyond.astype("int64"), of_side - 1)
    )
    if is_bidirectional:
        bucket = bucket + of_side * (offset > 0)
    return [table.reshape(heads, buckets)[:, bucket][None]]


@covers("RelativePositionBias")
def distances():
    yield from _far_distances()
    for dtype in ("float32", "float16"):
        for kind, buckets, most, is_bidirectional in (
            ("encoder", 32, 128, 1),
            ("decoder", 32, 128, 0),
            ("few", 8, 20, 1),
        ):
            for given in ("", "_run_time", "_symbolic"):
                is_constant = given == ""
                name = f"relativepositionbias_{dtype}_{kind}{given}"
                length = numpy.array([150 if kind == "encoder" else 33], "int64")
                table = floats(random_of(name), (buckets, 3), dtype)
                yield node_case(
                    name,
                    "RelativePositionBias",
                    [table, length, length],
                    attributes={"max_distance": most, "is_bidirectional": is_bidirectional},
                    constant=()
                    if given == "_symbolic"
                    else (0,)
                    if not is_constant
                    else (0, 1)
                    if kind == "few"
                    else (0, 1, 2),
                    symbolic=(0,) if given == "_symbolic" else False,
                    oracle=_bias_of_distances,
                )


def _far_distances():
    """So many distances that the roundings of their logarithms decide for some."""
    most, keys = 1 << 20, 180_000
    for kind in ("known", "symbolic"):
        name = f"relativepositionbias_far_{kind}"
        inputs = [floats(random_of(name), (32, 1)), numpy.array([1], "int64"), numpy.array([keys], "int64")]
        yield node_case(
            name,
            "RelativePositionBias",
            inputs,
            attributes={"max_distance": most},
            constant=(0, 1, 2) if kind == "known" else (),
            symbolic=(0,) if kind == "symbolic" else False,
            oracle=_bias_of_distances,
        )


def _gated(x, added, distances, weight, bias, eco, *, num_heads):
    wide = (x + added).astype("float64")
    q = numpy.moveaxis(wide.reshape(*x.shape[:2], num_heads, -1), 2, 1)
    halves = (q @ weight + bias).reshape(*q.shape[:3], 2, -1).sum(-1)
    u, r = numpy.split(1 / (1 + numpy.exp(-halves)), 2, -1)
    return [((u * (r * eco - 1) + 2) * distances).astype(x.dtype)]


@covers("GatedRelativePositionBias")
def gated_distances():
    for dtype in ("float32", "float16"):
        for symbolic in (False, True):
            name = f"gatedrelativepositionbias_{dtype}{'_symbolic' * symbolic}"
            random = random_of(name)
            shapes = [(2, 5, 12), (12,), (1, 3, 5, 5), (4, 8), (8,), (1, 3, 1, 1)]
            yield node_case(
                name,
                "GatedRelativePositionBias",
                [floats(random, each, dtype) for each in shapes],
                attributes={"num_heads": 3},
                constant=(1, 3, 4, 5),
                symbolic=symbolic,
                oracle=_gated,
            )
