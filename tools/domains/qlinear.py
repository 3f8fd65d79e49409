# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on quantized tensors.

Scales are numbers whose quotients do not lie half a step between two results, where the order of the arithmetic
would decide.
"""

import functools

import numpy

from domains.case import covers, integers, node_case, quantized, random_of


def _widen(x, scale, zero):
    return (x.astype("int64") - int(zero if zero is not None else 0)) * float(scale)


def _narrow(x, scale, zero, dtype):
    bounds = numpy.iinfo(dtype)
    rounded = numpy.rint(x / float(scale)) + int(zero if zero is not None else 0)
    return numpy.clip(rounded, bounds.min, bounds.max).astype(dtype)


def _binary(function, a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero):
    result = function(_widen(a, a_scale, a_zero), _widen(b, b_scale, b_zero))
    return [_narrow(result, c_scale, c_zero, a.dtype)]


@covers("QLinearAdd", "QLinearMul")
def binary():
    for op_type in ("QLinearAdd", "QLinearMul"):
        label = op_type.lower()
        for dtype, zeros in (("uint8", (128, 7, 120)), ("int8", (0, -5, 9))):
            for kind, shapes in (
                ("plain", ((3, 5, 37), (3, 5, 37))),
                ("broadcast", ((2, 1, 33), (7, 1))),
                ("scalar", ((4, 19), ())),
            ):
                name = f"{label}_{dtype}_{kind}"
                random = random_of(name)
                a, b = (integers(random, shape, dtype) for shape in shapes)
                inputs = [a, *quantized(dtype, 0.02031, zeros[0]), b, *quantized(dtype, 0.03479, zeros[1])]
                inputs += quantized(dtype, 0.05173, zeros[2])
                yield node_case(name, op_type, inputs, constant=(1, 2, 4, 5, 6, 7))
                if kind == "broadcast":
                    yield node_case(name + "_symbolic", op_type, inputs, symbolic=True)
        random = random_of(label)
        a, b = (integers(random, (5, 9), "uint8") for _ in range(2))
        scale = [numpy.array(each, "float32") for each in (0.02031, 0.03479, 0.07193)]
        inputs = [a, scale[0], None, b, scale[1], None, scale[2], None]
        # ONNX Runtime's inference refuses the node that its schema allows.
        oracle = functools.partial(_binary, numpy.add if op_type == "QLinearAdd" else numpy.multiply)
        yield node_case(label + "_no_zero_points", op_type, inputs, oracle=oracle)
        inputs[3] = integers(random, (9,), "uint8")
        yield node_case(label + "_constant_operand", op_type, inputs, constant=True, oracle=oracle)


@covers("QLinearSigmoid", "QLinearLeakyRelu")
def unary():
    for op_type, attributes in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.3})):
        for dtype, zeros in (("uint8", (130, 3)), ("int8", (-3, -128))):
            name = f"{op_type.lower()}_{dtype}"
            random = random_of(name)
            x = integers(random, (3, 71), dtype)
            inputs = [x, *quantized(dtype, 0.05173, zeros[0]), *quantized(dtype, 1 / 256, zeros[1])]
            yield node_case(name, op_type, inputs, attributes=attributes, constant=True)
            yield node_case(name + "_run_time_scales", op_type, inputs, symbolic=True)
        inputs[0] = integers(random, (2, 9), "uint8")
        inputs[2] = inputs[4] = None
        yield node_case(f"{op_type.lower()}_no_zero_points", op_type, inputs, constant=True)


@covers("QLinearConcat")
def concat():
    for dtype in ("uint8", "int8"):
        for axis, rest in ((1, 3), (-1, 4), (0, 2)):
            name = f"qlinearconcat_{dtype}_axis{axis}".replace("-", "m")
            random = random_of(name)
            inputs = quantized(dtype, 0.04139, 11)
            for k in range(rest):
                shape = [4, 5, 6]
                shape[axis] = 3 + 2 * k
                inputs += [integers(random, shape, dtype), *quantized(dtype, 0.03067 + 0.01 * k, 5 - k)]
            constant = [k for k in range(len(inputs)) if k < 2 or (k - 2) % 3 != 0]
            for kind, extra in (("", {"constant": constant}), ("_symbolic", {"symbolic": True})):
                yield node_case(name + kind, "QLinearConcat", inputs, attributes={"axis": axis}, **extra)


@covers("QLinearWhere")
def where():
    for dtype in ("uint8", "int8"):
        name = f"qlinearwhere_{dtype}"
        random = random_of(name)
        inputs = [random.integers(0, 2, (3, 1, 7)).astype(bool), integers(random, (5, 7), dtype)]
        inputs += [
            *quantized(dtype, 0.03067, 4),
            integers(random, (3, 5, 1), dtype),
            *quantized(dtype, 0.02031, 9),
        ]
        inputs += quantized(dtype, 0.04523, 17)
        yield node_case(name, "QLinearWhere", inputs, constant=(2, 3, 5, 6, 7, 8))
        yield node_case(name + "_symbolic", "QLinearWhere", inputs, symbolic=True)


@covers("QLinearSoftmax")
def softmax():
    for dtype, zero in (("uint8", 0), ("int8", -128)):
        for opset, axis in ((13, -1), (13, 1), (12, 1), (12, 2)):
            name = f"qlinearsoftmax_{dtype}_opset{opset}_axis{axis}".replace("-", "m")
            random = random_of(name)
            inputs = [
                integers(random, (3, 5, 19), dtype),
                *quantized(dtype, 0.06101, 3),
                *quantized(dtype, 1 / 256, zero),
            ]
            attributes = {"axis": axis, "opset": opset}
            yield node_case(name, "QLinearSoftmax", inputs, attributes=attributes, constant=True)


@covers("QLinearReduceMean")
def reduce_mean():
    # ONNX Runtime has the schema and no kernel.
    def oracle(data, scale, zero, out_scale, out_zero, axes, keepdims):
        mean = _widen(data, scale, zero).mean(tuple(axes), keepdims=bool(keepdims))
        return [_narrow(mean, out_scale, out_zero, data.dtype)]

    for dtype in ("uint8", "int8"):
        for axes, keepdims in (([1], 0), ([-1, 0], 1)):
            name = f"qlinearreducemean_{dtype}_{len(axes)}"
            inputs = [
                integers(random_of(name), (4, 5, 7), dtype),
                *quantized(dtype, 0.05173, 6),
                *quantized(dtype, 0.03067, 2),
            ]
            attributes = {"axes": axes, "keepdims": keepdims}
            yield node_case(
                name, "QLinearReduceMean", inputs, attributes=attributes, constant=True, oracle=oracle
            )
