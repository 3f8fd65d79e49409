# SPDX-License-Identifier: Apache-2.0
"""Attention of decoders that search with beams or see blocks of the past, and rotations by three positions."""

import numpy

from domains.case import covers, floats, node_case, random_of


@covers("MRotaryEmbedding")
def rotations():
    for kind, given in {
        "interleaved_sections": {"sections": (2, 1, 1), "mrope_layout": 1},
        "long_interleaved_sections": {"sections": (3, 3, 2), "size": 16, "mrope_layout": 1},
        "no_width": {"sections": (3, 1, 0)},
        "text": {"sections": (4, 0, 0)},
        "pairs": {"sections": (1, 2, 1), "interleaved": 1},
        "heads_apart": {"sections": (2, 1, 1), "apart": True},
        "part": {"sections": (1, 1, 0), "rotary_embedding_dim": 4},
        "heads": {"sections": (2, 1, 1)},
        "symbolic": {"sections": (2, 1, 1), "symbolic": (0, 1)},
        "scale": {"sections": (2, 1, 1), "scale": 0.4, "is_packed_batching": 1},
        "part_scale": {"sections": (1, 1, 0), "rotary_embedding_dim": 4, "scale": -3.0},
        "scale_of_0": {"sections": (2, 1, 1), "scale": 0.0},
    }.items():
        for dtype in ("float32", "float16"):
            name = f"mrotaryembedding_{kind}_{dtype}"
            random, given_now = random_of(name), dict(given)
            sections, size = given_now.pop("sections"), given_now.pop("size", 8)
            symbolic, apart = given_now.pop("symbolic", False), given_now.pop("apart", False)
            x = floats(random, (2, 3, 5, size) if apart else (2, 5, 3 * size), dtype)
            positions = random.integers(0, 20, (3, 2, 5)).astype("int64")
            angles = numpy.arange(20)[:, None] * 100.0 ** -(numpy.arange(sum(sections)) / 4)[None]
            tables = [numpy.cos(angles).astype(dtype), numpy.sin(angles).astype(dtype)]
            attributes = {"mrope_section": list(sections), "num_heads": 3, **given_now}
            yield node_case(
                name,
                "MRotaryEmbedding",
                [x, positions, *tables],
                attributes=attributes,
                constant=(2, 3),
                symbolic=symbolic,
            )


def _rows_of_blocks(layouts):
    """The blocks [layouts, rows, columns] as rows and columns of nonzero ones, padded with -1."""
    rows, columns = [], []
    for layout in layouts:
        found = [numpy.flatnonzero(row) for row in layout]
        rows.append(numpy.cumsum([0] + [len(each) for each in found]))
        columns.append(numpy.concatenate(found))
    most = max(map(len, columns))
    columns = [numpy.pad(each, (0, most - len(each)), constant_values=-1) for each in columns]
    return numpy.array(rows, "int32"), numpy.array(columns, "int32")


_ONE = [[[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]]]
_TWO = [*_ONE, [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 0, 1]]]


def _by_blocks(query, key, value, past_k, past_v, rows, columns, total, lengths, **attributes):
    heads, kv, block = (attributes[each] for each in ("num_heads", "kv_num_heads", "sparse_block_size"))
    batch, size = len(query), past_k.shape[3]
    caches = [past_k.copy(), past_v.copy()]
    output = numpy.zeros((batch, 1, heads, size))
    for sample, last in enumerate(lengths - 1):
        for cache, fresh in zip(caches, (key, value)):
            cache[sample, :, last] = fresh[sample, 0].reshape(kv, size)
        for head in range(heads):
            layout, row = head % len(rows), last // block
            blocks = columns[layout, rows[layout, row] : rows[layout, row + 1]]
            seen = [token for token in range(last + 1) if token // block in blocks]
            k, v = (cache[sample, head // (heads // kv), seen].astype("float64") for cache in caches)
            shares = numpy.exp(k @ query[sample, 0].reshape(heads, size)[head] / size**0.5)
            output[sample, 0, head] = shares @ v / shares.sum()
    return [each.astype(query.dtype) for each in (output.reshape(query.shape), *caches)]


@covers("SparseAttention")
def sparse_attention():
    for kind, given in {
        "first": {"length": 50},
        "first_two_layouts": {"length": 50, "layouts": _TWO},
        "next": {"past": 49},
        "next_two_layouts": {"past": 60, "layouts": _TWO},
        "next_in_room": {"past": 33, "room": 64},
        "ragged": {"past": 49, "lengths": (50, 35), "layouts": _TWO},
        "unspecified": {"past": 49, "room": 64, "lengths": (50, 35), "layouts": _TWO, "behind": numpy.nan},
        "unspecified_symbolic": {
            "past": 49, "room": 64, "lengths": (34, 50), "symbolic": (0, 1, 2, 3, 4), "behind": numpy.inf
        },
        "packed": {"past": 49, "packed": True},
        "rotary": {"past": 49, "do_rotary": 1, "layouts": _TWO},
        "rotary_first": {"length": 40, "do_rotary": 1, "rotary_interleaved": 1},
        "scale": {"length": 50, "scale": 0.3},
        "symbolic": {"past": 49, "symbolic": (0, 1, 2, 3, 4), "layouts": _TWO},
    }.items():
        for dtype in ("float32", "float16"):
            name = f"sparseattention_{kind}_{dtype}"
            random, more = random_of(name), dict(given)
            batch, heads, kv, size = 2, 4, 2, 16
            length, past = more.pop("length", 1), more.pop("past", 0)
            total = length + past
            lengths = more.pop("lengths", (total,) * batch)
            room, symbolic = more.pop("room", total), more.pop("symbolic", False)
            shapes = [(batch, length, count * size) for count in (heads, kv, kv)]
            if more.pop("packed", False):
                query, key, value = floats(random, (batch, length, (heads + 2 * kv) * size), dtype), None, None
            else:
                query, key, value = (floats(random, each, dtype) for each in shapes)
            caches = [floats(random, (batch, kv, room, size), dtype) for _ in range(2)]
            if not past:
                caches = [numpy.zeros_like(each) for each in caches]
            if "behind" in more:
                behind = more.pop("behind")
                for cache in caches:
                    for sample, each in enumerate(lengths):
                        cache[sample, :, each - length :] = behind
            blocks = _rows_of_blocks(more.pop("layouts", _ONE))
            inputs = [query, key, value, *caches, *blocks, numpy.array([total], "int32")]
            inputs.append(numpy.array(lengths, "int32"))
            if "do_rotary" in more:
                angles = numpy.arange(64)[:, None] * 100.0 ** -(numpy.arange(8) / 8)[None]
                inputs += [numpy.cos(angles).astype(dtype), numpy.sin(angles).astype(dtype)]
            yield node_case(
                name,
                "SparseAttention",
                inputs,
                attributes={"num_heads": heads, "kv_num_heads": kv, "sparse_block_size": 16, **more},
                outputs=3,
                constant=(5, 6, 9, 10),
                symbolic=symbolic,
                shared=((3, 1), (4, 2)),
                # ONNX Runtime's kernel reads past the scores of the shorter of the samples.
                oracle=_by_blocks if min(lengths) != total else None,
            )


def _by_documentation(
    query, key, value, mask, bias, past_k=None, past_v=None, length=None, _=None, beams=None, parts=None, **attributes
):
    heads = attributes["num_heads"]
    if key is None:
        query, key, value = numpy.split(query, 3, 2)
    rows, _, hidden = query.shape
    split = lambda each: each.reshape(rows, heads, -1).astype("float64")
    part_of = lambda part: 0 if parts is None else parts[part * hidden : (part + 1) * hidden]
    q = split(query + part_of(0))
    caches = []
    seen = [key.astype("float64"), value.astype("float64")]
    if past_k is not None:
        past = int(length[0])
        caches = [past_k.copy(), past_v.copy()]
        for part, (cache, fresh) in enumerate(zip(caches, (key, value))):
            cache[:, :, past] = split(fresh + part_of(part + 1))
            seen[part] = cache[:, :, : past + 1].astype("float64")
            for row, token in numpy.ndindex(rows, past if beams is not None else 0):
                sample, beam = divmod(row, beams.shape[1])
                source = sample * beams.shape[1] + beams[sample, beam, token]
                seen[part][row, :, token] = cache[source, :, token]
    scores = numpy.einsum("bhd,bhtd->bht", q, seen[0]) * attributes.get("scale", q.shape[-1] ** -0.5)
    if mask is not None:
        scores = scores + numpy.where(mask, 0, attributes.get("mask_filter_value", -10000.0))[:, None]
    if bias is not None:
        scores = scores + bias[:, :, 0]
    shares = numpy.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    output = numpy.einsum("bht,bhtd->bhd", shares, seen[1]).reshape(rows, 1, hidden)
    kinds = [output, *caches, *([scores[:, :, None]] if attributes.get("output_qk") else [])]
    return [each.astype(query.dtype) for each in kinds]


@covers("DecoderMaskedMultiHeadAttention")
def decoder_attention():
    rows, heads, size, past, room = 4, 3, 8, 5, 9
    hidden = heads * size
    for kind in (
        "plain", "packed", "mask", "score_bias", "bias", "scale", "qk", "symbolic", "first", "beams", "beams_mask",
        "beams_float16", "beams_bias", "beams_symbolic",
        "encoder", "encoder_mask", "encoder_bias", "encoder_qk", "encoder_symbolic",
    ):  # fmt: skip
        name = f"decodermaskedmultiheadattention_{kind}"
        random = random_of(name)
        dtype = "float16" if kind.endswith("float16") else "float32"
        is_encoder, is_beams = kind.startswith("encoder"), kind.startswith("beams")
        inputs = [floats(random, (rows, 1, hidden), dtype) for _ in range(3)] + [None] * 8
        old = 0 if kind == "first" else past
        total = 7 if is_encoder else old + 1
        if is_encoder:
            inputs[1:3] = [floats(random, (rows, heads, total, size), dtype) for _ in range(2)]
        else:
            inputs[5:7] = [floats(random, (rows, heads, room, size), dtype) for _ in range(2)]
            inputs[7] = numpy.array([old], "int32")
        if kind == "packed":
            inputs[:3] = [floats(random, (rows, 1, 3 * hidden), dtype), None, None]
        if kind.endswith("mask"):
            inputs[3] = (random.random((rows, total)) < 0.7).astype("int32")
            inputs[3][:, -1] = 1
        if kind == "score_bias":
            inputs[4] = floats(random, (rows, heads, 1, total), dtype)
        if is_beams:
            inputs[8] = numpy.array([2], "int32")
            inputs[9] = random.integers(0, 2, (rows // 2, 2, room)).astype("int32")
        if kind.endswith("_bias") and kind != "score_bias" or kind == "bias":
            inputs[10] = floats(random, (3 * hidden,), dtype)
        while inputs[-1] is None and len(inputs) > 5:
            inputs.pop()
        attributes = {"num_heads": heads}
        if not is_encoder:
            attributes["past_present_share_buffer"] = 1
        if kind.endswith("mask"):
            attributes["mask_filter_value"] = -3.0
        if kind == "scale":
            attributes["scale"] = 0.5
        if kind.endswith("qk"):
            attributes["output_qk"] = 1
        wanted = [True, not is_encoder, not is_encoder, kind.endswith("qk")]
        yield node_case(
            name,
            "DecoderMaskedMultiHeadAttention",
            inputs,
            attributes=attributes,
            outputs=wanted if kind.endswith("qk") else wanted[: 1 if is_encoder else 3],
            symbolic=kind.endswith("symbolic"),
            # ONNX Runtime's kernel for the processor takes no notice of beams, and no packed input; with
            # the scores it loads no model.
            oracle=_by_documentation if is_beams or kind == "packed" or kind.endswith("qk") else None,
        )
