# SPDX-License-Identifier: Apache-2.0
"""Quantisation. Scales are powers of two, so that nothing but the last step rounds."""

import numpy

from opsets.case import bounds_of, covers, dtype_of, is_float, narrow, number_of, widen


def _quantize(quotient, zero, name):
    """Rounded to even, then moved, then limited."""
    if is_float(name):
        largest = {
            "float8e4m3fn": 448,
            "float8e4m3fnuz": 240,
            "float4e2m1": 6,
            "float6e2m3": 7.5,
            "float6e3m2": 28,
        }.get(name, 57344)
        return narrow(numpy.clip(quotient, -largest, largest), name)
    bounds = bounds_of(name)
    return narrow(numpy.clip(numpy.rint(quotient) + zero, int(bounds.min), int(bounds.max)), name)


def _spread(numbers, axis, rank):
    return widen(numbers).reshape([-1 if k == axis else 1 for k in range(rank)])


def _scales(request, shape, name):
    return (2.0 ** request.random.integers(-3, 2, shape)).astype(dtype_of(name))


def _zero_points(request, name, shape):
    """Those of floating-point types must be 0."""
    if is_float(name) or name == "int32":
        return numpy.zeros(shape, dtype_of(name))
    bounds = bounds_of(name)
    return request.values(name, shape, max(int(bounds.min), -9), min(int(bounds.max), 9))


def _layouts(request):
    """Suffix, shape of scales, their axis, how an element finds its scale, attributes."""
    yield "tensor", (), None, {}
    if request.version >= 13:
        yield "axis", (5,), 2, {"axis": 2}
        yield "default_axis", (37,), 1, {}
    if request.version >= 21:
        yield "blocks", (3, 8, 5), None, {"axis": 1, "block_size": 5}


def _expand(numbers, layout, axis):
    """Scales or zero points at each element of [3, 37, 5]."""
    if layout == "blocks":
        return widen(numbers).repeat(5, axis=1)[:, :37]
    return widen(numbers) if axis is None else _spread(numbers, axis, 3)


def _type_of_result(request):
    return "T2" if request.version < 23 else "T3"


@covers("QuantizeLinear")
def make_quantize(request):
    for name in request.types(_type_of_result(request)):
        for layout, shape, axis, attributes in _layouts(request):
            x = request.values("float", (3, 37, 5), -9, 9)
            scale, zero = _scales(request, shape, "float"), _zero_points(request, name, shape)
            quotient = widen(x) / _expand(scale, layout, axis)
            outputs = [_quantize(quotient, _expand(zero, layout, axis), name)]
            yield request.case(f"{name}_{layout}", [x, scale, zero], outputs, **attributes)
            if request.version >= 21:
                outputs = [_quantize(quotient, 0, name)]
                suffix = f"{name}_{layout}_output_dtype"
                attributes = attributes | {"output_dtype": number_of(name)}
                yield request.case(suffix, [x, scale], outputs, **attributes)
    names = request.types("T1", but=("float",))
    if request.version >= 19 and "int32" not in names:  # Its scale is of int32 from then on.
        names.append("int32")
    for name in names:
        x, zero = request.values(name, (3, 37, 5), -9, 9), numpy.uint8(9).reshape(())
        scale = numpy.array(
            0.5, dtype_of("float" if request.version < 19 or name == "int32" else name)
        )
        if request.version >= 19 and name == "int32":
            scale = numpy.array(2, numpy.int32)
        outputs = [_quantize(widen(x) / widen(scale), 9, "uint8")]
        yield request.case(f"from_{name}", [x, scale, zero], outputs, constants=[1, 2])
    if request.version >= 24:
        x, scale = request.values("float", (3, 37, 5), -9, 9), _scales(
            request, (3, 8, 5), "float8e8m0"
        )
        outputs = [_quantize(widen(x) / _expand(scale, "blocks", None), 0, "int8")]
        attributes = {"axis": 1, "block_size": 5, "output_dtype": number_of("int8")}
        yield request.case("scale_float8e8m0", [x, scale], outputs, **attributes)


@covers("DequantizeLinear")
def make_dequantize(request):
    for name in request.types("T" if request.version < 19 else "T1"):
        for layout, shape, axis, attributes in _layouts(request):
            x = request.values(name, (3, 37, 5), -99, 99) if not is_float(name) else None
            x = request.values(name, (3, 37, 5)) if x is None else x
            scale, zero = _scales(request, shape, "float"), _zero_points(request, name, shape)
            spread = _expand(scale, layout, axis)
            outputs = [narrow((widen(x) - _expand(zero, layout, axis)) * spread, "float")]
            yield request.case(f"{name}_{layout}", [x, scale, zero], outputs, **attributes)
            outputs = [narrow(widen(x) * spread, "float")]
            yield request.case(f"{name}_{layout}_no_zero", [x, scale], outputs, **attributes)
    if request.version >= 19:
        for name in ("float16", "bfloat16"):
            x, scale = request.values("int8", (3, 37, 5), -99, 99), _scales(request, (), name)
            outputs = [narrow(widen(x) * widen(scale), name)]
            yield request.case(f"to_{name}", [x, scale], outputs)
    if request.version >= 23:
        x, scale = request.values("int8", (3, 37, 5), -99, 99), _scales(request, (), "float")
        outputs = [narrow(widen(x) * widen(scale), "float16")]
        attributes = {"output_dtype": number_of("float16")}
        yield request.case("output_dtype", [x, scale], outputs, **attributes)
    if request.version >= 24:
        x, scale = request.values("int8", (3, 37, 5), -99, 99), _scales(
            request, (3, 8, 5), "float8e8m0"
        )
        outputs = [narrow(widen(x) * _expand(scale, "blocks", None), "float")]
        attributes = {"axis": 1, "block_size": 5, "output_dtype": number_of("float")}
        yield request.case("scale_float8e8m0", [x, scale], outputs, **attributes)


@covers("QLinearMatMul")
def make_qlinear_matmul(request):
    scales = request.types("TS") if request.version >= 21 else ["float"]
    for scale_type in scales:
        for left, right in (("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")):
            a, b = request.values(left, (2, 7, 19), -99, 99), request.values(
                right, (19, 5), -99, 99
            )
            points = [_zero_points(request, each, ()) for each in (left, right, left)]
            scale = [numpy.array(each, dtype_of(scale_type)) for each in (0.25, 0.5, 16)]
            product = (widen(a) - widen(points[0])) @ (widen(b) - widen(points[1]))
            outputs = [_quantize(product / 128, widen(points[2]), left)]
            inputs = [a, scale[0], points[0], b, scale[1], points[1], scale[2], points[2]]
            yield request.case(f"{left}_{right}_{scale_type}", inputs, outputs)
