# SPDX-License-Identifier: Apache-2.0
"""Blocks of operators by element."""

import numpy

from graphs.builder import Discard
from graphs.catalogue import block

_UNARY = {
    "Relu": 1, "LeakyRelu": 1, "Sigmoid": 1, "Tanh": 1, "Exp": 1, "Neg": 1, "Abs": 1, "Erf": 9, "Softplus": 1,
    "Softsign": 1, "Elu": 1, "Selu": 1, "HardSigmoid": 1, "HardSwish": 14, "ThresholdedRelu": 10, "Celu": 12,
    "Mish": 18, "Gelu": 20, "Sin": 7, "Cos": 7, "Atan": 7, "Sinh": 9, "Asinh": 9, "Floor": 1, "Ceil": 1, "Round": 11,
    "Sign": 9, "Shrink": 9, "Identity": 1, "Swish": 24, "Acos": 7, "Tan": 7, "Atanh": 9,
}  # fmt: skip
_ALPHA = ("LeakyRelu", "Elu", "HardSigmoid", "ThresholdedRelu", "Celu", "Swish")
INTEGERS = ("int32", "int64", "int8", "uint8")
ACTIVATIONS = ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "SiLU", "Clip", "Gelu", "PRelu", "Elu", "Mish", "Softplus")


def is_float(value):
    return value.is_float


def is_number(value):
    return value.dtype != "bool"


def activation(b, x, kind=None):
    kind = kind or b.choice(ACTIVATIONS)
    if kind == "SiLU":
        return b.op("Mul", [x, b.op("Sigmoid", [x])] if b.chance(0.5) else [b.op("Sigmoid", [x]), x])
    if kind == "Gelu":
        return gelu(b, x)
    if kind == "Clip":
        return b.clip(x, 0, 6)
    if kind == "PRelu":
        if x.rank < 2 or not x.has_fixed(1):
            raise Discard("no channels")
        shape = [x.shape[1]] + [1] * (x.rank - 2)
        return b.op("PRelu", [x, b.weight(shape, x.dtype, 0.3)])
    if kind == "HardSwish" and b.opset < 14 or b.chance(0.2) and kind == "HardSwish":
        shifted = b.clip(b.op("Add", [x, b.scalar(3, x.dtype)]), 0, 6)
        return b.op("Div", [b.op("Mul", [x, shifted]), b.scalar(6, x.dtype)])
    if kind == "Mish" and b.opset < 18:
        return b.op("Mul", [x, b.op("Tanh", [b.op("Softplus", [x])])])
    return b.op(kind, [x])


def gelu(b, x):
    """As exporters write it: the error function in single nodes, its tanh form, the operator."""
    form = b.rng.randrange(4)
    if form == 0 and b.opset >= 20:
        return b.op("Gelu", [x], approximate=b.choice(["none", "tanh"]))
    if form == 1:
        cube = b.op("Mul", [b.op("Mul", [x, x]), x]) if b.chance(0.5) else b.op("Pow", [x, b.scalar(3, x.dtype)])
        inner = b.op("Add", [x, b.op("Mul", [cube, b.scalar(0.044715, x.dtype)])])
        tanh = b.op("Tanh", [b.op("Mul", [inner, b.scalar(0.7978845608, x.dtype)])])
        return b.op("Mul", [b.op("Mul", [x, b.scalar(0.5, x.dtype)]), b.op("Add", [tanh, b.scalar(1, x.dtype)])])
    if b.opset < 9:
        raise Discard("no Erf")
    erf = b.op("Erf", [b.op("Div", [x, b.scalar(1.41421356, x.dtype)])])
    grown = b.op("Add", [erf, b.scalar(1, x.dtype)])
    if form == 2:
        return b.op("Mul", [b.op("Mul", [x, grown]), b.scalar(0.5, x.dtype)])
    return b.op("Mul", [x, b.op("Mul", [grown, b.scalar(0.5, x.dtype)])])


@block(4)
def unary(b):
    x = b.pick(is_float)
    op_type = b.choice([name for name, since in _UNARY.items() if since <= b.opset])
    attributes = {}
    if op_type in _ALPHA and b.chance(0.6):
        attributes["alpha"] = b.rng.uniform(0.05, 1.5)
    if op_type == "Shrink":
        if x.dtype == "float64":
            raise Discard("ONNX Runtime computes it in float32")
        attributes = {"lambd": 0.25, "bias": b.choice([0.0, 0.125])}
    if op_type in ("Exp", "Sinh", "Tan"):
        x = b.op("Tanh", [x])
    if op_type in ("Acos", "Atanh"):
        x = b.op("Mul", [b.op("Tanh", [x]), b.scalar(0.9, x.dtype)])
    if op_type in ("Floor", "Ceil", "Round", "Sign") and b.chance(0.5):
        x = b.op("Mul", [x, b.scalar(3, x.dtype)])
    b.op(op_type, [x], **attributes)


@block(3)
def chain_of_activations(b):
    x = b.pick(is_float)
    for _ in range(b.rng.randint(1, 3)):
        x = activation(b, x)


@block(1)
def guarded(b):
    """Roots, logarithms and quotients of what is positive."""
    x = b.pick(is_float)
    x = b.op("Add", [b.op("Abs", [x]), b.scalar(0.5, x.dtype)])
    b.op(b.choice(["Sqrt", "Log", "Reciprocal"]), [x])


def partner(b, x):
    """Another operand of the type that broadcasts with x."""
    form = b.rng.random()
    if form < 0.45:
        others = [v for v in b.values if v.dtype == x.dtype and v.rank and _broadcasts(v, x)]
        if others:
            return b.choice(others)
    if form < 0.55:
        return x
    if form < 0.7 or x.rank == 0:
        return b.constant(b.numbers(b.choice([(), (1,)]), x.dtype))
    rank = b.rng.randint(1, x.rank + (x.rank < 6 and b.chance(0.1)))
    shape = []
    for axis in range(-rank, 0):
        is_inside = -axis <= x.rank
        shape.append(x.shape[axis] if is_inside and x.has_fixed(axis) and b.chance(0.6) else 1)
    if all(extent == 1 for extent in shape) and b.chance(0.3):
        shape[b.rng.randrange(rank)] = 3  # grows x where that has extent 1
    return b.constant(b.numbers(shape, x.dtype))


def _broadcasts(v, x):
    return all(
        all(a == c or 1 in (a, c) for a, c in zip(s[::-1], t[::-1])) for s, t in zip(v.shapes, x.shapes)
    )


def ordered(b, x, y):
    return [x, y] if b.chance(0.6) else [y, x]


@block(6)
def binary(b):
    x = b.pick(is_number)
    y = partner(b, x)
    op_type = b.choice(["Add", "Sub", "Mul", "Add", "Mul", "Min", "Max", "Div", "Pow", "Mod", "Sum", "Mean"])
    if op_type == "Div":
        y = b.op("Add", [b.op("Abs", [y]), b.constant(numpy.array(1, x.dtype))])
        b.op("Div", [x, y])
    elif op_type == "Pow":
        if not x.is_float:
            raise Discard("integer powers")
        exponent = b.choice([2, 3, 0.5, 1, -1, 0, 1.5])
        if exponent not in (2, 3, 1, 0):
            x = b.op("Add", [b.op("Abs", [x]), b.scalar(0.5, x.dtype)])
        kinds = [x.dtype] if b.opset < 12 else [x.dtype, "float32", "float64"] + (["int64", "int32"] if exponent == int(exponent) else [])
        b.op("Pow", [x, b.scalar(exponent, b.choice(kinds))])
    elif op_type == "Mod":
        if b.opset < 10:
            raise Discard("no Mod yet")
        b.op("Mod", [x, b.constant(numpy.array(b.choice([2, 3, 5]), x.dtype))], fmod=1 if x.is_float else b.rng.randrange(2))
    elif op_type in ("Sum", "Mean"):
        if op_type == "Sum" and b.opset < 8 or not x.is_float:
            raise Discard("no broadcast yet")
        b.op(op_type, ordered(b, x, y) + ([partner(b, x)] if b.chance(0.5) else []))
    else:
        b.op(op_type, ordered(b, x, y))


@block(2)
def compare_and_choose(b):
    x = b.pick(is_number)
    y = partner(b, x)
    kinds = ["Greater", "Less", "Equal"] + (["GreaterOrEqual", "LessOrEqual"] if b.opset >= 12 else [])
    condition = b.op(b.choice(kinds), ordered(b, x, y))
    if b.chance(0.3):
        other = b.pick(lambda v: v.dtype == "bool")
        if _broadcasts(other, condition):
            condition = b.op(b.choice(["And", "Or", "Xor"]), [condition, other])
    if b.chance(0.3):
        condition = b.op("Not", [condition])
    if b.opset >= 9 and b.chance(0.8):
        z = b.pick(is_number)
        b.op("Where", [condition, *ordered(b, z, partner(b, z))])
    elif b.chance(0.7):
        b.to(condition, b.choice(["float32", "int64", "int32", "float64", "uint8"]))


@block(2)
def cast(b):
    x = b.pick()
    dtype = b.choice(["float32", "float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"])
    if x.is_float and dtype == "uint8":
        x = b.op("Abs", [x])
    y = b.to(x, dtype)
    if b.chance(0.4) and y.is_float:
        y = activation(b, y)
        b.to(y, x.dtype if x.is_float else "float32")


@block(1)
def integers(b):
    x = b.pick(lambda v: v.dtype in INTEGERS)
    if b.opset >= 18 and b.chance(0.4):
        b.op(b.choice(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), [x, partner(b, x)])
    elif b.opset >= 11 and x.dtype == "uint8":
        b.op("BitShift", [x, b.constant(numpy.array(b.rng.randint(0, 3), x.dtype))], direction=b.choice(["LEFT", "RIGHT"]))
    else:
        b.op(b.choice(["Abs", "Neg", "Sign"] if b.opset >= 9 else ["Abs"]), [x])


@block(1)
def clips(b):
    x = b.pick(is_number)
    if b.opset < 12 and not x.is_float or b.opset < 11:
        b.clip(x, -0.5, 0.75)
        return
    low = b.constant(numpy.array(0 if not x.is_float else -0.5, x.dtype)) if b.chance(0.7) else None
    high = b.constant(numpy.array(3, x.dtype)) if b.chance(0.7) else None
    b.op("Clip", [x, low, high])


@block(1)
def numbers_that_are_none(b):
    x = b.pick(is_float)
    if b.opset < 10:
        raise Discard("no IsInf yet")
    flags = b.op(b.choice(["IsNaN", "IsInf"]), [x])
    b.op("Where", [flags, b.constant(numpy.zeros((), x.dtype)), x])


@block(1)
def accumulate(b):
    """Several readers of one value, joined again."""
    x = b.pick(is_float)
    parts = [activation(b, x) if b.chance(0.5) else b.op("Mul", [x, b.weight((), x.dtype, 1)]) for _ in range(b.rng.randint(2, 4))]
    if b.chance(0.5) and b.opset >= 8:
        b.op(b.choice(["Sum", "Max", "Mean", "Min"]), parts + [x])
    else:
        total = x
        for part in parts:
            total = b.op(b.choice(["Add", "Sub", "Mul"]), [total, part])




@block(2)
def whole_numbers(b):
    """Division, remainders and powers of integers, negative ones too."""
    x = b.pick(lambda v: v.dtype in INTEGERS)
    form = b.rng.randrange(5)
    if form == 0:
        divisor = b.choice([2, 3, 7] + ([-2] if x.dtype != "uint8" else []))
        b.op("Div", [x, b.constant(numpy.array(divisor, x.dtype))])
    elif form == 1 and b.opset >= 10:
        divisor = b.choice([2, 3, 7] + ([-3] if x.dtype != "uint8" else []))
        b.op("Mod", [x, b.constant(numpy.array(divisor, x.dtype))], fmod=b.rng.randrange(2))
    elif form == 2 and b.opset >= 12 and x.dtype in ("int32", "int64"):
        b.op("Pow", [x, b.constant(numpy.array(2, b.choice([x.dtype, "float32"])))])
    elif form == 3 and b.opset >= 8:
        b.op(b.choice(["Min", "Max"]), [x, partner(b, x), partner(b, x)])
    else:
        y = b.to(x, "float32")
        b.op("Mul", [y, b.op("Sigmoid", [y])])


@block(2)
def to_whole_numbers(b):
    """Floats to integers and on, through numbers that are negative and not whole."""
    x = b.pick(is_float)
    y = b.op("Mul", [x, b.scalar(3, x.dtype)])
    y = b.to(y, b.choice(["int32", "int64", "int8"]))
    form = b.rng.randrange(3)
    if form == 0:
        y = b.op("Add", [y, y])
    elif form == 1:
        y = b.op("Mul", [y, b.constant(numpy.array(2, y.dtype))])
    b.to(y, b.choice(["float32", "bool", "int64", "float16", "float64"]))


@block(1)
def truths(b):
    x = b.pick(lambda v: v.dtype == "bool")
    form = b.rng.randrange(4)
    if form == 0:
        b.op("Not", [x])
    elif form == 1:
        b.op(b.choice(["And", "Or", "Xor"]), [x, partner(b, x)])
    elif form == 2:
        y = b.to(x, b.choice(["float32", "int32", "int64"]))
        if x.rank:
            b.reduce("ReduceSum" if y.is_float else "ReduceMax", y, [b.rng.randrange(x.rank)], b.rng.randrange(2))
    elif b.opset >= 9:
        y = b.pick(is_number)
        b.op("Where", [x, y, b.constant(b.numbers((), y.dtype))])


@block(1)
def bounds_from_data(b):
    if b.opset < 12:
        raise Discard("old")
    x = b.pick(is_float, lambda v: not v.is_empty)
    low = b.reduce("ReduceMin", x, None, 0)
    high = b.op("Add", [low, b.scalar(1, x.dtype)])
    if high.rank:
        raise Discard("no number")
    b.op("Clip", [x, low, high])


@block(1)
def numbers_to_vector(b):
    """Scalars from a vector, computed with, and joined to a vector again."""
    x = b.pick(lambda v: v.rank >= 1 and v.dtype in ("float32", "int64") and not v.is_empty)
    flat = b.op("Reshape", [x, b.ints([-1])])
    parts = []
    for at in (0, -1 if b.opset >= 11 else 0):
        number = b.op("Gather", [flat, b.constant(numpy.array(at), True)], axis=0)
        number = b.op("Mul", [number, b.constant(b.numbers((), x.dtype))])
        parts.append(b.unsqueeze(number, [0]))
    b.op("Concat", parts, axis=0)
    if b.chance(0.4) and x.is_float:
        b.op("Reshape", [b.op("Add", parts), b.constant(numpy.zeros(0, numpy.int64), True)])
