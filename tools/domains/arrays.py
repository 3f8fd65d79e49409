# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements, quantize them or look them up."""

import ml_dtypes
import numpy

from domains.case import covers, floats, integers, node_case, random_of, trimmed


@covers("ExpandDims", "GatherND", "Pad", "Range", "Trilu", "Unique")
def moves():
    random = random_of("moves")
    x = floats(random, (3, 4, 5))
    for axis in (0, 2, -1):
        yield node_case(
            f"expanddims_{axis}".replace("-", "m"),
            "ExpandDims",
            [x, numpy.array(axis, "int32")],
            constant=(1,),
        )
    for dtype in ("int32", "int64"):
        indices = numpy.array([[0, 1], [2, -1], [1, 3]], dtype)
        yield node_case(f"gathernd_{dtype}", "GatherND", [x, numpy.abs(indices)])
    for mode in ("constant", "edge", "reflect"):
        pads = numpy.array([0, 1, 2, 1, 0, 1], "int64")
        inputs = [x, pads, *([numpy.array([1.5], "float32")] if mode == "constant" else [])]
        yield node_case(f"pad_{mode}", "Pad", inputs, attributes={"mode": mode}, constant=True)
        yield node_case(f"pad_{mode}_row", "Pad", [x, pads[None]], attributes={"mode": mode}, constant=(1,))
    yield node_case("pad_run_time", "Pad", [x, pads], symbolic=(0,))
    for dtype, numbers in (
        ("int64", (2, 17, 3)),
        ("float32", (1.0, 5.5, 0.75)),
        ("int32", (9, -4, -2)),
        ("int16", (0, 5, None)),
    ):
        inputs = [None if each is None else numpy.array(each, dtype) for each in numbers]
        yield node_case(f"range_{dtype}", "Range", inputs[: 2 if inputs[2] is None else 3], constant=range(3))
    yield node_case("range_run_time", "Range", [numpy.array([2], "int64"), numpy.array([11], "int64")])
    for upper in (0, 1):
        for k in (None, -1, 2):
            inputs = [x] + ([] if k is None else [numpy.array(k, "int64")])
            name = f"trilu_{upper}_{k}".replace("-", "m").lower()
            yield node_case(name, "Trilu", inputs, attributes={"upper": upper}, constant=(1,))
    yield node_case("unique", "Unique", [numpy.array([2, 1, 1, 3, 4, 3, 2], "float32")], outputs=3)


@covers("UnfoldTensor")
def windows():
    for kind, axis, size, step in (("last", -1, 3, 1), ("steps", 1, 2, 3), ("first", 0, 3, 2), ("whole", 2, 9, 4)):
        for dtype in ("float32", "int64") if kind == "steps" else ("float32",):
            name = f"unfoldtensor_{kind}_{dtype}"
            x = floats(random_of(name), (5, 7, 9), scale=9).astype(dtype)
            attributes = {"dim": axis, "size": size, "step": step}
            yield node_case(name, "UnfoldTensor", [x], attributes=attributes, symbolic=kind == "last")


@covers("Inverse")
def inverse():
    for dtype in ("float32", "float64", "float16"):
        for shape in ((3, 3), (2, 3, 4, 4), (5, 1, 1), (2, 2), (3, 6, 6), (1, 8, 8), (2, 13, 13)):
            name = f"inverse_{dtype}_{'x'.join(map(str, shape))}"
            x = floats(random_of(name), shape) + 2 * numpy.eye(shape[-1], dtype="float32")
            exact = numpy.linalg.inv(x.astype(dtype).astype("float64")).astype(dtype)
            close = {} if dtype == "float16" else {"rtol": 2e-4, "atol": 2e-4}
            yield node_case(
                name, "Inverse", [x.astype(dtype)], oracle=lambda *_, exact=exact: [exact], **close
            )
    yield node_case(
        "inverse_symbolic_batch", "Inverse", [floats(random_of("inverse"), (4, 3, 3))], rtol=1e-3, atol=1e-3
    )


@covers("CropAndResize")
def crop_and_resize():
    for mode in ("bilinear", "nearest"):
        for kind, crop in (("small", (2, 3)), ("large", (7, 5)), ("one", (1, 4))):
            for is_constant in (True, False):
                name = f"cropandresize_{mode}_{kind}_{'constant' if is_constant else 'run_time'}"
                random = random_of(name)
                rois = numpy.array(
                    [[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], [0.9, 0.7, 0.2, 0.1], [-0.3, 0.1, 0.6, 1.4]],
                    "float32",
                )
                inputs = [
                    floats(random, (2, 3, 6, 9)),
                    rois,
                    numpy.array([0, 1, 1, 0], "int32"),
                    numpy.array(crop, "int32"),
                ]
                attributes = {"mode": mode, "extrapolation_value": 1.5}
                yield node_case(
                    name, "CropAndResize", inputs, attributes=attributes, constant=(3,) if is_constant else ()
                )


@covers("QuantizeLinear", "DequantizeLinear")
def linear():
    for dtype in ("uint8", "int8", "uint16", "int16"):
        zero = 3 if dtype[0] == "i" else 100
        name = f"quantizelinear_{dtype}"
        random = random_of(name)
        x = floats(random, (3, 4, 7), scale=2)
        scalar = [numpy.array(0.03067, "float32"), numpy.array(zero, dtype)]
        yield node_case("ms_" + name, "QuantizeLinear", [x, *scalar], constant=True)
        columns = [(random.random(4) * 0.02 + 0.01).astype("float32"), integers(random, (4,), dtype, 0, 9)]
        yield node_case("ms_" + name + "_axis", "QuantizeLinear", [x, *columns], attributes={"axis": 1})
        y = integers(random, (3, 4, 7), dtype)
        yield node_case("ms_de" + name, "DequantizeLinear", [y, *scalar], constant=True)
        yield node_case(
            "ms_de" + name + "_axis",
            "DequantizeLinear",
            [y, *columns],
            attributes={"axis": -2},
            symbolic=True,
        )
        yield node_case("ms_de" + name + "_no_zero", "DequantizeLinear", [y, scalar[0]])
    y = integers(random, (3, 7), "int32", -999, 999)
    yield node_case("ms_dequantizelinear_int32", "DequantizeLinear", [y, numpy.array(0.01, "float32")])
    # The first quotient is 68.514, and as float16 the tie 68.5.
    halves = numpy.array([69.25, 91.5, -72.25, 3.5], "float16")
    half_scale = numpy.array(1.0107421875, "float16")
    yield node_case("ms_quantizelinear_float16", "QuantizeLinear", [halves, half_scale, numpy.int8(0)])
    for dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        name = f"ms_dequantizelinear_{numpy.dtype(dtype).name}"
        y = random.integers(0, 8, (4, 6)).astype(dtype)
        scale, zero = numpy.array(0.5, "float32"), numpy.array(2, dtype)
        oracle = lambda y, scale, zero: [((y.astype("int32") - int(zero)) * scale).astype("float32")]
        yield node_case(name, "DequantizeLinear", [y, scale, zero], oracle=oracle)


@covers("GatherBlockQuantized")
def gather():
    def oracle(data, indices, scales, zero=None, *, bits, block_size, quantize_axis, gather_axis):
        unpack = lambda packed: numpy.stack(
            [(packed >> shift) & (2**bits - 1) for shift in range(0, 8, bits)], -1
        ).reshape(*packed.shape[:-1], -1)
        wide = unpack(data).astype("int32") if data.dtype == numpy.uint8 else data.astype("int32")
        if zero is None:
            zero = numpy.full(scales.shape, 2 ** (bits - 1) if data.dtype == numpy.uint8 else 0, "int32")
        elif data.dtype == numpy.uint8:
            zero = unpack(zero)[..., : scales.shape[-1]].astype("int32")
        else:
            zero = zero.astype("int32")
        spread = lambda each: numpy.take(
            numpy.repeat(each, block_size, quantize_axis), range(wide.shape[quantize_axis]), quantize_axis
        )
        table = (wide - spread(zero)) * spread(scales.astype("float32"))
        return [numpy.take(table, indices, gather_axis).astype(scales.dtype)]

    for bits in (4, 8, 2):
        for kind, with_zero, dtype in (
            ("", True, "float32"),
            ("_no_zero", False, "float32"),
            ("_float16", True, "float16"),
        ):
            name = f"gatherblockquantized_{bits}{kind}"
            random = random_of(name)
            blocks = 3
            data = integers(random, (11, blocks * 16 * bits // 8))
            scales = (random.random((11, blocks)) + 0.1).astype(dtype)
            indices = random.integers(0, 11, (2, 3)).astype("int64")
            inputs = [data, indices, scales]
            if with_zero:
                inputs.append(integers(random, (11, -(-blocks * bits // 8))))
            attributes = {"bits": bits, "block_size": 16, "quantize_axis": 1, "gather_axis": 0}
            own = bits != 2 and dtype == "float32"
            yield node_case(
                name,
                "GatherBlockQuantized",
                inputs,
                attributes=attributes,
                constant=(0, 2, 3),
                oracle=None if own else oracle,
            )
    for dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        for gathered, quantized in ((0, 2), (1, 0), (1, 1)):
            name = f"gatherblockquantized_{numpy.dtype(dtype).name}_{gathered}_{quantized}"
            random = random_of(name)
            shape = [5, 4, 6]
            shape[quantized] = 37
            blocks = list(shape)
            blocks[quantized] = 3
            low = -8 if dtype is ml_dtypes.int4 else 0
            data, zero = (random.integers(low, low + 16, each).astype(dtype) for each in (shape, blocks))
            scales = (random.random(blocks) + 0.1).astype("float32")
            indices = random.integers(0, shape[gathered], (4,)).astype("int32")
            attributes = {"bits": 4, "block_size": 16, "quantize_axis": quantized, "gather_axis": gathered}
            yield node_case(
                name,
                "GatherBlockQuantized",
                [data, indices, scales, zero],
                attributes=attributes,
                constant=(0, 2, 3),
                oracle=oracle,
            )


@covers("GridSample")
def grid_sample():
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (0, 1):
                name = f"ms_gridsample_{mode}_{padding}_{align}"
                random = random_of(name)
                inputs = [floats(random, (2, 3, 5, 6)), floats(random, (2, 4, 3, 2), scale=0.8)]
                attributes = {"mode": mode, "padding_mode": padding, "align_corners": align}
                yield node_case(name, "GridSample", inputs, attributes=attributes, symbolic=align == 1)


@covers("SampleOp", "TorchEmbedding", "IsAllFinite")
def plain():
    random = random_of("plain")
    x = floats(random, (3, 4, 5))
    yield node_case("sampleop", "SampleOp", [x], symbolic=True)
    for dtype in ("float32", "float16", "int64"):
        table = floats(random, (7, 5), scale=9).astype(dtype)
        indices = random.integers(0, 7, (2, 3)).astype("int64")
        inputs = [table, indices, numpy.array(2, "int64"), numpy.array(True)]
        oracle = lambda table, indices, *_: [table[indices]]
        for count in (2, 3, 4):
            name = f"torchembedding_{dtype}_{count}"
            yield node_case(name, "TorchEmbedding", inputs[:count], constant=(2, 3), oracle=oracle)

    def is_all_finite(*inputs, isinf_only=0, isnan_only=0):
        found = any(
            (not isinf_only and numpy.isnan(each).any()) or (not isnan_only and numpy.isinf(each).any())
            for each in inputs
        )
        return [numpy.array(not found)]

    for dtype in ("float32", "float64", "float16"):
        for kind, number in (("finite", 1.5), ("inf", -numpy.inf), ("nan", numpy.nan)):
            for only in ("", "isinf_only", "isnan_only"):
                other = x.astype(dtype).copy()
                other[1, 2, 3] = number
                yield node_case(
                    f"isallfinite_{dtype}_{kind}_{only or 'all'}",
                    "IsAllFinite",
                    [x[0].astype(dtype), other],
                    attributes={only: 1} if only else {},
                    symbolic=dtype == "float32",
                    oracle=is_all_finite,
                )


@covers("NGramRepeatBlock")
def repeats():
    for size, length in ((1, 6), (2, 9), (3, 12), (3, 3), (4, 2)):
        for symbolic in (False, True):
            name = f"ngramrepeatblock_{size}_{length}{'_symbolic' * symbolic}"
            random = random_of(name)
            inputs = [random.integers(0, 3, (4, length)).astype("int64"), floats(random, (4, 5))]
            yield node_case(
                name, "NGramRepeatBlock", inputs, attributes={"ngram_size": size}, symbolic=symbolic
            )


@covers("ComplexMul", "ComplexMulConj")
def complex_products():
    def oracle(op_type):
        def answer(a, b):
            a, b = (each.astype("float64") @ [1, 1j] for each in (a, b))
            product = a * (b.conj() if op_type == "ComplexMulConj" else b)
            return [numpy.stack([product.real, product.imag], -1).astype(dtype)]

        return answer

    for op_type in ("ComplexMul", "ComplexMulConj"):
        for dtype in ("float32", "float64", "float16"):
            for kind, other in (("", (3, 4, 2)), ("_broadcast", (4, 2))):
                name = f"{op_type.lower()}_{dtype}{kind}"
                inputs = [floats(random_of(name + each), shape, dtype) for each, shape in (("a", (3, 4, 2)), ("b", other))]
                yield node_case(name, op_type, inputs, symbolic=bool(kind), oracle=oracle(op_type))


@covers("MurmurHash3")
def hashes():
    for dtype in ("int32", "uint32", "int64", "uint64", "float32", "float64"):
        for positive, seed in ((1, 0), (0, 2**32 - 1), (0, 42)):
            name = f"murmurhash3_{dtype}_{positive}_{seed}"
            random = random_of(name)
            x = random.integers(0, 256, (3, 7 * numpy.dtype(dtype).itemsize)).astype("uint8").view(dtype)
            if dtype[0] == "f":
                x = floats(random, (3, 7), dtype)
            attributes = {"positive": positive, "seed": seed}
            yield node_case(name, "MurmurHash3", [x], attributes=attributes, symbolic=seed == 42)


@covers("NGramHashMapping")
def hashes_of_tokens():
    for dtype in ("int32", "int64"):
        for kind, given in (
            ("plain", ()),
            ("past", ("past", "offsets")),
            ("end", ("past", "end")),
            ("end_without_reset", ("end", "offsets")),
            ("segments", ("past", "segments")),
            ("all", ("past", "offsets", "end", "segments")),
        ):
            name = f"ngramhashmapping_{dtype}_{kind}"
            random = random_of(name)
            size, heads = {"plain": (2, 3), "all": (4, 2)}.get(kind, (3, 2))
            count = (size - 1) * heads
            wide = 2**62 if dtype == "int64" else 2**30
            inputs = [
                random.integers(0, 6, (3, 9)).astype(dtype),
                random.integers(-wide, wide, size + (kind == "past")).astype(dtype),
                random.integers(50, 200, count).astype(dtype),
                random.integers(0, 6, (3, size - 1)).astype(dtype) if "past" in given else None,
                random.integers(0, 999, count).astype(dtype) if "offsets" in given else None,
                numpy.array(4, dtype) if "end" in given else None,
                numpy.sort(random.integers(0, 3, (3, 9)).astype("int32"), 1) if "segments" in given else None,
            ]
            attributes = {"max_ngram_size": size, "n_head_per_ngram": heads, "pad_id": 5}
            if kind in ("end", "all"):
                attributes["reset_on_eos"] = 1
            yield node_case(
                name,
                "NGramHashMapping",
                trimmed(inputs),
                attributes=attributes,
                outputs=1 if kind == "plain" else 2,
                constant=(1, 2),
                symbolic=kind == "all" or kind == "plain",
            )


@covers("WordConvEmbedding")
def words_by_characters():
    for kind, width in (("narrow", 1), ("plain", 3), ("whole", 7)):
        for symbolic in (False, True):
            name = f"wordconvembedding_{kind}{'_symbolic' * symbolic}"
            random = random_of(name)
            words = random.integers(1, 20, (5, 7)).astype("int32")
            for word, length in enumerate((7, 1, 4, 2, 6)):
                words[word, length:] = 0
            words[2, 1] = 0  # within a word, too: it does not count
            inputs = [words, floats(random, (6, 1, width, 4), scale=0.4), floats(random, (6,)), floats(random, (20, 4))]
            attributes = {"embedding_size": 6, "conv_window_size": width, "char_embedding_size": 4}
            yield node_case(
                name,
                "WordConvEmbedding",
                inputs,
                attributes=attributes if symbolic else {},
                constant=True,
                symbolic=symbolic,
            )
