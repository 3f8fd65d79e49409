# SPDX-License-Identifier: Apache-2.0
"""Products of bytes, and sums of bytes."""

import numpy

from domains.case import covers, floats, integers, node_case, quantized, random_of, weights


@covers("DynamicQuantizeMatMul")
def dynamic_quantize_matmul():
    for dtype in ("uint8", "int8"):
        for kind, shape, columns in (("plain", (5, 33), 17), ("batch", (2, 3, 16), 9)):
            for by_column in (False, True):
                name = f"dynamicquantizematmul_{dtype}_{kind}_{'columns' if by_column else 'whole'}"
                random = random_of(name)
                b = weights(random, (shape[-1], columns), dtype)
                extents = (columns,) if by_column else ()
                scale = (random.random(extents) * 0.02 + 0.01).astype("float32")
                zero = integers(random, extents, dtype, 0, 9)
                inputs = [floats(random, shape), b, scale, zero, floats(random, (columns,))]
                # Values between two steps of the dynamic quantization may take the other one.
                close = {"rtol": 1e-4, "atol": 0.02}
                yield node_case(name, "DynamicQuantizeMatMul", inputs, constant=True, **close)
                if kind == "plain":
                    inputs = inputs[:3]
                    yield node_case(
                        name + "_no_zero",
                        "DynamicQuantizeMatMul",
                        inputs,
                        constant=(2,),
                        symbolic=True,
                        **close,
                    )


def _integer_to_float(a, b, a_scale, b_scale, a_zero=None, b_zero=None, bias=None):
    wide = [
        each.astype("float64") - (0 if zero is None else zero) for each, zero in ((a, a_zero), (b, b_zero))
    ]
    result = wide[0] @ wide[1] * a_scale * b_scale
    return [(result if bias is None else result + bias).astype("float32")]


@covers("MatMulIntegerToFloat")
def matmul_integer_to_float():
    for a_dtype in ("uint8", "int8"):
        for b_dtype in ("uint8", "int8"):
            for by_column in (False, True):
                name = f"matmulintegertofloat_{a_dtype}_{b_dtype}_{'columns' if by_column else 'whole'}"
                random = random_of(name)
                extents = (13,) if by_column else ()
                inputs = [
                    integers(random, (3, 21), a_dtype),
                    weights(random, (21, 13), b_dtype),
                    numpy.float32(0.03),
                ]
                inputs = [numpy.asarray(each) for each in inputs]
                inputs += [
                    (random.random(extents) * 0.02 + 0.01).astype("float32"),
                    integers(random, (), a_dtype, 3, 9),
                ]
                inputs += [integers(random, extents, b_dtype, 0, 9), floats(random, (13,))]
                # ONNX Runtime has no kernel for int8 by uint8.
                oracle = _integer_to_float if (a_dtype, b_dtype) == ("int8", "uint8") else None
                yield node_case(
                    name, "MatMulIntegerToFloat", inputs, constant=(1, 2, 3, 4, 5, 6), oracle=oracle
                )
                inputs[4:] = [None, inputs[5]]
                yield node_case(
                    name + "_no_bias", "MatMulIntegerToFloat", inputs, symbolic=True, oracle=oracle
                )
    random = random_of("matmulintegertofloat_batch")
    inputs = [
        integers(random, (2, 4, 9)),
        weights(random, (9, 7), "int8"),
        numpy.array(0.5, "float32"),
        numpy.array(0.25, "float32"),
    ]
    yield node_case("matmulintegertofloat_batch", "MatMulIntegerToFloat", inputs)


@covers("QGemm")
def qgemm():
    for a_dtype, b_dtype in (("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")):
        for kind, attributes, shapes in (
            ("plain", {}, ((5, 19), (19, 11))),
            ("trans_a", {"transA": 1, "alpha": 0.5}, ((19, 5), (19, 11))),
            ("trans_b", {"transB": 1}, ((5, 19), (11, 19))),
        ):
            for result in ("bytes", "floats"):
                name = f"qgemm_{a_dtype}_{b_dtype}_{kind}_{result}"
                random = random_of(name)
                by_column = kind == "trans_b" and result == "floats"
                b_scale = (random.random((11,) if by_column else ()) * 0.01 + 0.01).astype("float32")
                b_zero = integers(random, (11,) if by_column else (), b_dtype, 0, 5)
                inputs = [integers(random, shapes[0], a_dtype), *quantized(a_dtype, 0.02031, 5)]
                inputs += [
                    weights(random, shapes[1], b_dtype),
                    b_scale,
                    b_zero,
                    integers(random, (11,), "int32", -900, 900),
                ]
                if result == "bytes":
                    inputs += quantized(a_dtype, 0.90123, 11)
                yield node_case(name, "QGemm", inputs, attributes=attributes, constant=True)
    random = random_of("qgemm_no_c")
    inputs = [
        integers(random, (4, 8)),
        *quantized("uint8", 0.02, 5),
        integers(random, (8, 6)),
        *quantized("uint8", 0.1, 120),
    ]
    yield node_case("qgemm_no_c", "QGemm", inputs, symbolic=True)
    inputs += [integers(random, (4, 6), "int32", -99, 99)]
    yield node_case("qgemm_whole_c", "QGemm", inputs)


@covers("MulInteger", "ReduceSumInteger")
def sums():
    def multiply(a, a_zero, b, b_zero=None):
        wide = [
            each.astype("int32") - (0 if zero is None else int(zero))
            for each, zero in ((a, a_zero), (b, b_zero))
        ]
        return [wide[0] * wide[1]]

    def add_up(data, axes, keepdims):
        wide = "int32" if data.dtype == numpy.int8 else "uint32"
        return [data.astype(wide).sum(tuple(axes), keepdims=bool(keepdims), dtype=wide)]

    for dtype in ("uint8", "int8"):
        random = random_of(dtype)
        a, b = integers(random, (3, 7), dtype), integers(random, (7,), dtype)
        zero = numpy.array(3, dtype)
        yield node_case(f"mulinteger_{dtype}", "MulInteger", [a, zero, b, zero], oracle=multiply)
        yield node_case(f"mulinteger_{dtype}_no_zero", "MulInteger", [a, None, b], oracle=multiply)
        attributes = {"axes": [0, 2], "keepdims": 1}
        yield node_case(
            f"reducesuminteger_{dtype}",
            "ReduceSumInteger",
            [integers(random, (3, 5, 7), dtype)],
            attributes=attributes,
            oracle=add_up,
        )


@covers("MatMulInteger16")
def products_of_16_bits():
    for kind, shapes in (("", ((5, 7), (7, 3))), ("_batch", ((2, 5, 7), (7, 3))), ("_row", ((7,), (7, 3)))):
        name = f"matmulinteger16{kind}"
        random = random_of(name)
        inputs = [integers(random, shape, "int16") for shape in shapes]
        yield node_case(name, "MatMulInteger16", inputs, symbolic=kind == "_batch", constant=(1,))
    for dtypes in (("uint16", "uint16"), ("uint16", "int16")):
        name = f"matmulinteger16_{'_'.join(dtypes)}"
        random = random_of(name)
        inputs = [integers(random, shape, dtype, None, 9000) for shape, dtype in zip(((5, 7), (7, 3)), dtypes)]
        result = "uint32" if dtypes[1] == "uint16" else "int32"
        oracle = lambda a, b, result=result: [(a.astype("int64") @ b.astype("int64")).astype(result)]
        yield node_case(name, "MatMulInteger16", inputs, oracle=oracle)
