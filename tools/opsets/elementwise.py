# SPDX-License-Identifier: Apache-2.0
"""Operators of one element at a time: functions, arithmetic, comparison, casts."""

import functools
import math

import numpy

from opsets.case import SHAPE, allowed_types, covers, dtype_of, is_float, narrow, number_of, widen

_ERF = numpy.vectorize(math.erf, otypes=[numpy.float64])


def _softplus(x):
    return numpy.log1p(numpy.exp(-numpy.abs(x))) + numpy.maximum(x, 0)


# What a function is, and where it is defined.
_FUNCTIONS = {
    "Abs": (numpy.abs, -4, 4),
    "Acos": (numpy.arccos, -0.9, 0.9),
    "Acosh": (numpy.arccosh, 1.25, 4),
    "Asin": (numpy.arcsin, -0.9, 0.9),
    "Asinh": (numpy.arcsinh, -4, 4),
    "Atan": (numpy.arctan, -4, 4),
    "Atanh": (numpy.arctanh, -0.9, 0.9),
    "Ceil": (numpy.ceil, -4, 4),
    "Cos": (numpy.cos, -4, 4),
    "Cosh": (numpy.cosh, -3, 3),
    "Erf": (_ERF, -3, 3),
    "Exp": (numpy.exp, -4, 4),
    "Floor": (numpy.floor, -4, 4),
    "HardSwish": (lambda x: x * numpy.clip(x / 6 + 0.5, 0, 1), -4, 4),
    "Identity": (lambda x: x, -4, 4),
    "IsNaN": (numpy.isnan, -4, 4),
    "Log": (numpy.log, 0.125, 4),
    "Mish": (lambda x: x * numpy.tanh(_softplus(x)), -4, 4),
    "Neg": (numpy.negative, -4, 4),
    "Reciprocal": (lambda x: 1 / x, 0.25, 4),
    "Relu": (lambda x: numpy.maximum(x, 0), -4, 4),
    "Round": (numpy.rint, -4, 4),
    "Sigmoid": (lambda x: 1 / (1 + numpy.exp(-x)), -4, 4),
    "Sign": (numpy.sign, -4, 4),
    "Sin": (numpy.sin, -4, 4),
    "Sinh": (numpy.sinh, -3, 3),
    "Softplus": (_softplus, -4, 4),
    "Softsign": (lambda x: x / (1 + numpy.abs(x)), -4, 4),
    "Sqrt": (numpy.sqrt, 0, 4),
    "Tan": (numpy.tan, -1.25, 1.25),
    "Tanh": (numpy.tanh, -4, 4),
}


@covers(*(name for name in _FUNCTIONS if name not in ("Identity", "IsNaN")))
def make_function(request):
    function, low, high = _FUNCTIONS[request.op_type]
    for name in request.types():
        x = request.values(name, SHAPE, low, high)
        yield request.case(name, [x], [narrow(function(widen(x)), name)])


# By operator: the function of x and attributes, and attributes that are not the defaults.
def _selu(x, alpha, gamma):
    return gamma * numpy.where(x > 0, x, alpha * numpy.expm1(x))


_WITH_ATTRIBUTES = {
    "Celu": (
        lambda x, alpha: numpy.maximum(x, 0) + numpy.minimum(0, alpha * numpy.expm1(x / alpha)),
        {"alpha": 1.75},
    ),
    "Elu": (lambda x, alpha: numpy.where(x > 0, x, alpha * numpy.expm1(x)), {"alpha": 1.75}),
    "HardSigmoid": (
        lambda x, alpha, beta: numpy.clip(alpha * x + beta, 0, 1),
        {"alpha": 0.375, "beta": 0.25},
    ),
    "LeakyRelu": (lambda x, alpha: numpy.where(x > 0, x, alpha * x), {"alpha": 0.375}),
    "Selu": (_selu, {"alpha": 1.75, "gamma": 1.25}),
    "ThresholdedRelu": (lambda x, alpha: numpy.where(x > alpha, x, 0), {"alpha": 0.625}),
}


@covers(*_WITH_ATTRIBUTES)
def make_function_with_attributes(request):
    function, attributes = _WITH_ATTRIBUTES[request.op_type]
    for name in request.types():
        x = request.values(name)
        outputs = [narrow(function(widen(x), **attributes), name)]
        yield request.case(name, [x], outputs, **attributes)
    if request.op_type == "Selu":  # The defaults differ between versions in the fourth digit.
        alpha, gamma = (1.6732, 1.0507) if request.version < 6 else (1.6732632, 1.0507010)
        x = request.values("float")
        outputs = [narrow(_selu(widen(x), alpha, gamma), "float")]
        yield request.case("defaults", [x], outputs, rtol=4e-6)


_ARITHMETIC = {
    "Add": numpy.add,
    "Sub": numpy.subtract,
    "Mul": numpy.multiply,
    "Div": lambda a, b: a / b if a.dtype.kind == "f" else numpy.trunc(a / b),
    "Pow": numpy.power,
    "And": numpy.logical_and,
    "Or": numpy.logical_or,
    "Xor": numpy.logical_xor,
    "Equal": numpy.equal,
    "Greater": numpy.greater,
    "Less": numpy.less,
    "GreaterOrEqual": numpy.greater_equal,
    "LessOrEqual": numpy.less_equal,
}
_ANSWERS = {"And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"}


def _make_operands(request, name, shapes):
    """Left and right; a divisor is not zero, a base and an exponent are not negative."""
    a, b = (request.values(name, shape) for shape in shapes)
    if request.op_type == "Pow" and request.version == 13 and name == "bfloat16":
        b = request.values("float", shapes[1])  # An exponent has that type from version 15 on.
    if request.op_type in ("Div", "Pow"):
        b = numpy.where(widen(b) == 0, 3, widen(b)).astype(b.dtype)
    if request.op_type == "Pow":
        a = narrow(numpy.abs(widen(a)) + (0.25 if is_float(name) else 1), name)
        b = b if is_float(name) else narrow(numpy.abs(widen(b)), name)
    return a, b


def _compute(request, name, a, b):
    if name == "string":
        return a == b
    result = _ARITHMETIC[request.op_type](widen(a), widen(b))
    return narrow(result, "bool" if request.op_type in _ANSWERS else name)


@covers(*_ARITHMETIC)
def make_arithmetic(request):
    # Version 7 brought numpy's broadcast in place of attributes.
    is_old = request.version < 7
    for name in request.types():
        shapes = (SHAPE, SHAPE) if is_old else ((3, 1, 11), (37, 1))
        a, b = _make_operands(request, name, shapes)
        yield request.case(name, [a, b], [_compute(request, name, a, b)])
        if not is_old:
            continue
        for suffix, shape, view, axis in (
            ("suffix", (37, 11), (37, 11), None),
            ("axis", (37,), (37, 1), 1),
            ("axes", (3, 37), (3, 37, 1), 0),
            ("one", (1,), (1,), None),
        ):
            a, b = _make_operands(request, name, (SHAPE, shape))
            attributes = {"broadcast": 1} if axis is None else {"broadcast": 1, "axis": axis}
            outputs = [_compute(request, name, a, b.reshape(view))]
            yield request.case(f"{name}_{suffix}", [a, b], outputs, **attributes)
    if request.op_type == "Pow" and request.version >= 12:
        for name in request.types("T1", but=request.types()):
            a = request.values("float", SHAPE, 0.25, 2)
            b = request.values(name, (11,), 0, 3)
            outputs = [narrow(widen(a) ** widen(b), "float")]
            yield request.case(f"exponent_{name}", [a, b], outputs)


@covers("Mod")
def make_mod(request):
    for name in request.types():
        a, b = request.values(name, (3, 1, 11), -40, 40), request.values(name, (37, 1), -9, 9)
        b = narrow(numpy.where(widen(b) == 0, 3, widen(b)), name)
        if not is_float(name):
            yield request.case(name, [a, b], [narrow(numpy.mod(widen(a), widen(b)), name)])
        outputs = [narrow(numpy.fmod(widen(a), widen(b)), name)]
        yield request.case(f"{name}_fmod", [a, b], outputs, fmod=1)


@covers("BitShift")
def make_bit_shift(request):
    for name in request.types():
        a, b = request.values(name, SHAPE, 0, 100), request.values(name, (11,), 0, 5)
        shifted = narrow(widen(a) << widen(b), name)
        yield request.case(f"{name}_left", [a, b], [shifted], direction="LEFT")
        shifted = narrow(widen(a) >> widen(b), name)
        yield request.case(f"{name}_right", [a, b], [shifted], direction="RIGHT")


@covers("PRelu")
def make_prelu(request):
    # Up to version 6 a slope belongs to a channel; since then it is broadcast to x.
    for name in request.types():
        x = request.values(name)
        for suffix, shape, view in (
            ("channel", (37,) if request.version < 7 else (37, 1), (37, 1)),
            ("one", (1,), (1,)),
        ):
            slope = request.values(name, shape, 0, 2)
            slopes = widen(slope).reshape(view)
            outputs = [narrow(numpy.where(widen(x) < 0, widen(x) * slopes, widen(x)), name)]
            yield request.case(f"{name}_{suffix}", [x, slope], outputs)


_VARIADIC = {
    "Max": lambda values: functools.reduce(numpy.maximum, values),
    "Min": lambda values: functools.reduce(numpy.minimum, values),
    "Sum": lambda values: functools.reduce(numpy.add, values),
    "Mean": lambda values: functools.reduce(numpy.add, values) / len(values),
}


@covers(*_VARIADIC)
def make_variadic(request):
    shapes = (SHAPE,) * 3 if request.version < 8 else ((3, 1, 11), (37, 1), (11,))
    for name in request.types():
        inputs = [request.values(name, shape) for shape in shapes]
        outputs = [narrow(_VARIADIC[request.op_type]([widen(each) for each in inputs]), name)]
        yield request.case(name, inputs, outputs)
    x = request.values("float")
    yield request.case("one_input", [x], [x])


@covers("Clip")
def make_clip(request):
    for name in request.types():
        x = request.values(name, SHAPE, -9, 9)
        low, high = (-1.5, 2.25) if is_float(name) else (max(0, x.min() + 1), 6)
        if request.version < 11:
            outputs = [narrow(numpy.clip(widen(x), low, high), name)]
            yield request.case(name, [x], outputs, min=low, max=high)
            outputs = [narrow(numpy.maximum(widen(x), low), name)]
            yield request.case(f"{name}_min", [x], outputs, min=low)
            continue
        lower, upper = (numpy.array(each).astype(dtype_of(name)) for each in (low, high))
        outputs = [narrow(numpy.clip(widen(x), low, high), name)]
        yield request.case(name, [x, lower, upper], outputs)
        outputs = [narrow(numpy.minimum(widen(x), high), name)]
        yield request.case(f"{name}_max", [x, None, upper], outputs, constants=[2])


@covers("IsInf", "IsNaN")
def make_float_class(request):
    special = [numpy.nan, numpy.inf, -numpy.inf, 0, 1.5]
    for name in request.types("T1"):
        x = numpy.array(special, numpy.float64)[request.random.integers(0, 5, SHAPE)]
        with numpy.errstate(all="ignore"):
            x = x.astype(dtype_of(name))
        wide = x.astype(numpy.float64)
        if request.op_type == "IsNaN":
            yield request.case(name, [x], [numpy.isnan(wide)])
            continue
        yield request.case(name, [x], [numpy.isinf(wide)])
        for sign, attributes in ((1, {"detect_negative": 0}), (-1, {"detect_positive": 0})):
            suffix = f"{name}_{'positive' if sign > 0 else 'negative'}"
            yield request.case(suffix, [x], [wide == sign * numpy.inf], **attributes)


@covers("Where")
def make_where(request):
    for name in request.types("T"):
        condition = request.values("bool", (37, 1))
        x, y = request.values(name, (3, 1, 11)), request.values(name, (11,))
        yield request.case(name, [condition, x, y], [numpy.where(condition, x, y)])


def cast_values(x, source, target):
    """What a cast gives for values that the target has room for."""
    if target == "string":
        return x.astype(numpy.str_).astype(object)
    if source == "string":
        return numpy.vectorize(float, otypes=[numpy.float64])(x).astype(dtype_of(target))
    if target == "bool":
        return widen(x) != 0
    wide = widen(x)
    if wide.dtype.kind == "f" and not is_float(target):
        wide = numpy.trunc(wide)
    return wide.astype(dtype_of(target))


def _casts(request, parameter):
    """Names of source and target: what the version adds to and from a type that all have."""
    for name in request.types(parameter, but=("string",)):
        yield "float", name
        yield name, "float"
    if request.version < 9 or request.version in (13, 15):
        yield "double", "int32"
        yield "int64", "float16"
    if "string" in request.types(parameter):
        yield "string", "float"
        yield "int32", "string"


def _types_of_six_bits(request):
    return [name for name in request.types("T1") if name.startswith("float6")]


def _casts_of_six_bits(request):
    """Names of source and target: those of 6 bits to and from every other type."""
    for name in _types_of_six_bits(request):
        for other in allowed_types(request.pair, "T1"):
            if other not in ("string", name):
                yield name, other
                yield other, name


def _around_numbers_and_midpoints(numbers):
    """Of either sign, with the next float32 on both sides, and what no format of 6 bits has."""
    midpoints = (numbers[:-1] + numbers[1:]) / 2
    beyond = numbers[-1] + (numbers[-1] - numbers[-2]) / 2
    exact = numpy.concatenate([numbers, midpoints, [beyond, 1e30]]).astype(numpy.float32)
    near = [numpy.nextafter(exact, numpy.float32(to)) for to in (-numpy.inf, numpy.inf)]
    magnitudes = numpy.concatenate([exact, *near, [numpy.inf, numpy.nan]]).astype(numpy.float32)
    return numpy.concatenate([magnitudes, -magnitudes])


def _cast_input(request, source, target):
    low, high = (0, 1) if "2" in target[-2:] and not is_float(target) else (0, 6)
    if source == "string":
        return request.values("int32", SHAPE, -99, 99).astype(numpy.str_).astype(object)
    if target == "float8e8m0":  # Which has no zero.
        exponents = (-3, 3) if source.startswith("float6") else (-6, 7)
        return (2.0 ** request.random.integers(*exponents, SHAPE)).astype(dtype_of(source))
    return request.values(source, SHAPE, low, high)


@covers("Cast")
def make_cast(request):
    for source, target in dict.fromkeys([*_casts(request, "T1"), *_casts_of_six_bits(request)]):
        x = _cast_input(request, source, target)
        to = target.upper() if request.version < 6 else number_of(target)
        outputs = [cast_values(x, source, target)]
        yield request.case(f"{source}_{target}", [x], outputs, to=to)
    for name in _types_of_six_bits(request):
        codes = numpy.arange(64, dtype=numpy.uint8).view(dtype_of(name))
        numbers = codes.astype(numpy.float32)
        yield request.case(f"codes_{name}", [codes], [numbers], to=number_of("float"))
        # 63 of them: the last byte of an initializer is half full.
        yield request.case(
            f"constant_{name}", [codes[:63]], [numbers[:63]], constants=[0], to=number_of("float")
        )
        x = _around_numbers_and_midpoints(numbers[:32])
        yield request.case(f"rounding_{name}", [x], [narrow(x, name)], to=number_of(name))


@covers("CastLike")
def make_cast_like(request):
    for source, target in dict.fromkeys(_casts(request, "T1")):
        x = _cast_input(request, source, target)
        like = request.values(target, (2,))
        yield request.case(f"{source}_{target}", [x, like], [cast_values(x, source, target)])


@covers("Dropout")
def make_dropout(request):
    for name in request.types(but=[each for each in request.types() if "float8" in each]):
        x = request.values(name)
        if request.version < 7:  # In training unless told otherwise.
            yield request.case(name, [x], [x], is_test=1, ratio=0.375)
        elif request.version < 12:
            yield request.case(name, [x], [x], ratio=0.375)
        else:
            ratio, training = numpy.array(0.75, numpy.float32), numpy.array(False)
            mask = numpy.ones(x.shape, bool)
            yield request.case(name, [x, ratio, training], [x, mask], constants=[2])
            # The runner holds what is drawn against the ratio.
            outputs = [x, mask]
            inputs = [x, ratio, numpy.array(True)]
            yield request.case(f"{name}_training", inputs, outputs, seed=7)
    if request.version in (7, 10):
        x = request.values("float")
        mask = numpy.ones(x.shape, numpy.float32 if request.version == 7 else bool)
        yield request.case("mask", [x], [x, mask])


@covers("Bernoulli")
def make_bernoulli(request):
    # Probabilities of 0 and 1 leave nothing to chance.
    for name in request.types("T1"):
        x = request.values("bool").astype(dtype_of(name))
        for target in ("float", "int32", "bool"):
            outputs = [widen(x).astype(dtype_of(target))]
            attributes = {"dtype": number_of(target), "seed": 3.0}
            yield request.case(f"{name}_{target}", [x], outputs, **attributes)
