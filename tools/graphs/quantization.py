# SPDX-License-Identifier: Apache-2.0
"""Blocks of quantized networks: quantized values around any operator, integer operators."""

import numpy

from graphs.builder import Discard
from graphs.catalogue import block
from graphs.convolution import is_map
from graphs.elementwise import activation
from graphs.products import is_rows
from graphs.shape import has_axes


def is_plain(value):
    return value.dtype == "float32"


def scale_of(x, spread=127):
    most = max((float(numpy.abs(tracks[0]).max(initial=0)) for tracks in x.arrays), default=0)
    return max(most, 0.25) / spread


def scale_and_zero(b, x, dtype):
    zero = b.choice([0, 128] if dtype == "uint8" else [0, 0, 3, -5])
    scale = scale_of(x, 127 if zero not in (3, -5) else 120)
    return b.constant(numpy.array(scale, "float32"), True), b.constant(numpy.array(zero, dtype), True)


def quantized(b, x):
    """The value through 8 bits and back."""
    dtype = b.choice(["uint8", "int8"])
    scale, zero = scale_and_zero(b, x, dtype)
    q = b.op("QuantizeLinear", [x, scale, zero])
    return b.op("DequantizeLinear", [q, scale, zero])


def stored(b, shape, axis=None):
    """Weights that lie in the file as 8 bits."""
    q = b.constant(b.draw.integers(-127, 128, shape).astype("int8"))
    if axis is not None and b.opset >= 13 and b.chance(0.6):
        scales = numpy.abs(b.numbers((shape[axis],), "float32", 0.01)) + 0.002
        zero = b.constant(numpy.zeros(shape[axis], "int8"), True)
        return b.op("DequantizeLinear", [q, b.constant(scales.astype("float32"), True), zero], axis=axis)
    return b.op("DequantizeLinear", [q, b.constant(numpy.array(0.01, "float32"), True)])


def need(b, opset):
    if b.opset < opset:
        raise Discard("not yet")


@block(2, "quantized")
def round_trip(b):
    need(b, 10)
    quantized(b, b.pick(is_plain))


@block(4, "quantized")
def quantized_convolution(b):
    need(b, 10)
    x = b.pick(is_map, is_plain)
    space, groups = x.rank - 2, b.choice([k for k in (1, 1, 2, x.shape[1]) if x.shape[1] % k == 0])
    channels, size = groups * b.choice([1, 2, 3, 4, 8]), b.choice([1, 3])
    if channels > 48:
        raise Discard("wide")
    operands = [quantized(b, x), stored(b, [channels, x.shape[1] // groups] + [size] * space, 0)]
    if b.chance(0.6):
        operands.append(b.weight([channels], "float32", 0.5))
    y = b.op("Conv", operands, group=groups, pads=[size // 2] * 2 * space, strides=[b.choice([1, 2])] * space)
    if b.chance(0.5):
        y = activation(b, y, b.choice(["Relu", "Clip", "Sigmoid", "HardSwish"]))
    y = quantized(b, y)
    if b.chance(0.4) and y.shapes == x.shapes:
        y = quantized(b, b.op("Add", [y, quantized(b, x)]))


@block(4, "quantized")
def quantized_product(b):
    need(b, 10)
    x = b.pick(is_rows, is_plain)
    y = b.op("MatMul", [quantized(b, x), stored(b, [x.shape[-1], b.choice([1, 3, 4, 8, 16, 17])], 1)])
    if b.chance(0.5):
        y = b.op("Add", [y, b.weight([y.shape[-1]], "float32", 0.5)])
    if b.chance(0.4):
        y = activation(b, y, b.choice(["Relu", "Gelu", "Tanh"]))
    if b.chance(0.7):
        quantized(b, y)


@block(4, "quantized")
def quantized_anything(b):
    """An operator between values of 8 bits."""
    need(b, 13)
    x = quantized(b, b.pick(is_plain, has_axes))
    form = b.rng.randrange(9)
    has_room = is_map(x) and all(extent > 1 for shape in x.shapes for extent in shape[2:])
    if form == 0 and has_room:
        y = b.op(b.choice(["MaxPool", "AveragePool"]), [x], kernel_shape=[2] * (x.rank - 2), strides=[2] * (x.rank - 2))
    elif form == 1:
        y = b.op("Softmax", [x], axis=x.rank - 1)
    elif form == 2:
        other = b.pick(is_plain, lambda v: v.shapes == x.shapes)
        y = b.op(b.choice(["Add", "Mul"]), [x, quantized(b, other)])
    elif form == 3:
        order = list(range(x.rank))
        b.rng.shuffle(order)
        y = b.transpose(x, order)
    elif form == 4:
        y = b.reshape(x, [0, -1] if x.rank > 1 else [-1])
    elif form == 5:
        y = b.op("Concat", [x, quantized(b, x)], axis=b.rng.randrange(x.rank))
    elif form == 6:
        y = b.reduce("ReduceMean", x, [x.rank - 1], 1)
    elif form == 7:
        y = b.op("Clip", [x, b.constant(numpy.array(0, "float32")), b.constant(numpy.array(2, "float32"))])
    else:
        y = activation(b, x)
    quantized(b, y)


@block(2, "quantized")
def bits_alone(b):
    """Operators that move elements or compare, on 8 bits."""
    need(b, 13)
    x = b.pick(is_plain, has_axes)
    scale, zero = scale_and_zero(b, x, b.choice(["uint8", "int8"]))
    q = b.op("QuantizeLinear", [x, scale, zero])
    form = b.rng.randrange(5)
    if form == 0:
        q = b.transpose(q, list(range(x.rank))[::-1])
    elif form == 1 and is_map(x) and all(extent > 1 for shape in x.shapes for extent in shape[2:]):
        q = b.op("MaxPool", [q], kernel_shape=[2] * (x.rank - 2))
    elif form == 2:
        q = b.op("Concat", [q, q], axis=0)
    elif form == 3:
        q = b.op("Max", [q, zero])
    else:
        q = b.slice(q, [1], [1 << 62], [0])
    b.op("DequantizeLinear", [q, scale, zero])


@block(2, "quantized")
def dynamically_quantized(b):
    need(b, 11)
    x = b.pick(is_rows, is_plain, lambda v: not v.is_empty)
    q, scale, zero = b.op("DynamicQuantizeLinear", [x], outputs=3)
    weights = b.constant(b.draw.integers(-100, 100, (x.shape[-1], b.choice([1, 4, 9, 16]))).astype(b.choice(["int8", "int8", "uint8"])))
    weights_zero = b.constant(numpy.array(b.choice([0, 0, 3]), weights.dtype))
    product = b.op("MatMulInteger", [q, weights, zero] + ([weights_zero] if b.chance(0.6) else []), keep=False)
    wide = b.to(product, "float32", keep=False)
    y = b.op("Mul", [wide, b.op("Mul", [scale, b.constant(numpy.array(0.01, "float32"))])])
    if b.chance(0.5):
        y = b.op("Add", [y, b.weight([y.shape[-1]], "float32", 0.5)])
    if b.chance(0.3):
        activation(b, y)


@block(2, "quantized")
def integer_convolution(b):
    need(b, 10)
    x = b.pick(is_map, is_plain)
    scale, zero = scale_and_zero(b, x, "uint8")
    q = b.op("QuantizeLinear", [x, scale, zero])
    space = x.rank - 2
    channels = b.choice([1, 2, 4, 8, 16])
    weights = b.draw.integers(-100, 100, [channels, x.shape[1]] + [3] * space).astype(b.choice(["int8", "uint8"]))
    w = b.constant(weights)
    attributes = {"pads": [1] * 2 * space, "strides": [b.choice([1, 2])] * space}
    w_zero = b.constant(numpy.array(b.choice([0, 2]), w.dtype), True)
    if b.chance(0.4):
        y = b.to(b.op("ConvInteger", [q, w, zero, w_zero], keep=False, **attributes), "float32", keep=False)
        b.op("Mul", [y, b.constant(numpy.array(1e-3, "float32"))])
        return
    w_scale = b.constant(numpy.array(0.01, "float32"), True)
    out_scale = b.constant(numpy.array(0.05, "float32"), True)
    out_zero = b.constant(numpy.array(128, "uint8"), True)
    operands = [q, scale, zero, w, w_scale, w_zero, out_scale, out_zero]
    if b.chance(0.5):
        operands.append(b.constant(b.draw.integers(-500, 500, channels).astype("int32"), True))
    y = b.op("QLinearConv", operands, **attributes)
    b.op("DequantizeLinear", [y, out_scale, out_zero])


@block(1, "quantized")
def integer_product(b):
    need(b, 10)
    x = b.pick(is_rows, is_plain)
    scale, zero = scale_and_zero(b, x, "uint8")
    q = b.op("QuantizeLinear", [x, scale, zero])
    w = b.constant(b.draw.integers(0, 200, (x.shape[-1], b.choice([1, 4, 9, 16]))).astype("uint8"))
    w_scale, w_zero = b.constant(numpy.array(0.01, "float32"), True), b.constant(numpy.array(100, "uint8"), True)
    out_scale, out_zero = b.constant(numpy.array(0.05, "float32"), True), b.constant(numpy.array(128, "uint8"), True)
    y = b.op("QLinearMatMul", [q, scale, zero, w, w_scale, w_zero, out_scale, out_zero])
    b.op("DequantizeLinear", [y, out_scale, out_zero])


@block(3, "quantized")
def quantized_layer_with_bias(b):
    """A layer whose bias is stored in 32 bits by the product of scales, as quantizers store it."""
    need(b, 13)
    x = b.pick(is_plain, lambda v: is_map(v) or is_rows(v) and v.rank == 2)
    dtype = b.choice(["uint8", "int8"])
    scale, zero = scale_and_zero(b, x, dtype)
    q = b.op("DequantizeLinear", [b.op("QuantizeLinear", [x, scale, zero]), scale, zero])
    channels = b.choice([1, 2, 4, 8, 16, 17])
    is_layer = is_map(x)
    shape = [channels, x.shape[1]] + [3] * (x.rank - 2 if is_layer else 0)
    if b.chance(0.3):
        bits, bits_zero = b.draw.integers(0, 256, shape).astype("uint8"), numpy.array(b.choice([128, 120]), "uint8")
    else:
        bits, bits_zero = b.draw.integers(-127, 128, shape).astype("int8"), numpy.array(0, "int8")
    is_per_channel = b.chance(0.5) and bits.dtype == "int8"
    w_scale = numpy.abs(b.numbers((channels,) if is_per_channel else (), "float32", 0.01)).astype("float32") + numpy.float32(0.003)
    w_zero = numpy.zeros(channels, "int8") if is_per_channel else bits_zero
    axis = {"axis": 0} if is_per_channel else {}
    w = b.op("DequantizeLinear", [b.constant(bits, True), b.constant(w_scale, True), b.constant(w_zero, True)], **axis)
    operands = [q, w]
    if b.chance(0.7):
        bias_scale = (w_scale * scale.arrays[0][0]).astype("float32")
        bias = b.constant(b.draw.integers(-300, 300, channels).astype("int32"), True)
        operands.append(b.op("DequantizeLinear", [bias, b.constant(bias_scale, True)], **axis))
    if is_layer:
        y = b.op("Conv", operands, pads=[1] * 2 * (x.rank - 2))
    else:
        y = b.op("Gemm", operands, transB=1)
    if b.chance(0.5):
        y = activation(b, y, b.choice(["Relu", "Clip", "HardSwish", "LeakyRelu"]))
    quantized(b, y)


@block(2, "quantized")
def joined_with_other_scales(b):
    need(b, 10)
    x = b.pick(is_plain, has_axes)
    axis = b.rng.randrange(x.rank)

    def fits(v):
        return is_plain(v) and v.rank == x.rank and all(
            s[:axis] + s[axis + 1:] == t[:axis] + t[axis + 1:] for s, t in zip(v.shapes, x.shapes))  # fmt: skip

    parts = [quantized(b, b.pick(fits, recent=0.2)) for _ in range(b.rng.randint(2, 3))]
    quantized(b, b.op("Concat", parts, axis=axis))


@block(2, "quantized")
def quantized_scores(b):
    """The product of two computed matrices, both of 8 bits."""
    need(b, 10)
    x = b.pick(is_plain, is_rows, lambda v: v.rank >= 3)
    order = list(range(x.rank - 2)) + [x.rank - 1, x.rank - 2]
    y = b.op("MatMul", [quantized(b, x), b.transpose(quantized(b, x), order)])
    y = quantized(b, b.op("Softmax", [quantized(b, y)], axis=x.rank - 1))
    quantized(b, b.op("MatMul", [y, quantized(b, x)]))


@block(1, "quantized")
def few_bits_in_blocks(b):
    need(b, 21)
    x = b.pick(is_plain, is_rows, lambda v: v.shape[-1] % 2 == 0)
    k, n, size = x.shape[-1], b.choice([1, 3, 8]), b.choice([2, x.shape[-1]])
    bits = b.constant(b.draw.integers(-7, 8, (k, n)).astype("int8"), True)
    scales = b.constant(b.draw.uniform(0.01, 0.1, (k // size if k % size == 0 else 1, n)).astype("float32"), True)
    w = b.op("DequantizeLinear", [bits, scales], axis=0, block_size=size)
    b.op("MatMul", [x, w])


@block(1, "quantized")
def channels_of_values(b):
    """Activations that have a scale per channel."""
    need(b, 13)
    x = b.pick(is_plain, lambda v: v.rank >= 2 and v.has_fixed(1) and v.shape[1])
    scales = b.constant((numpy.abs(b.numbers((x.shape[1],), "float32", 0.02)) + 0.01).astype("float32"), True)
    zeros = b.constant(b.draw.integers(-5, 5, x.shape[1]).astype("int8"), True)
    b.op("DequantizeLinear", [b.op("QuantizeLinear", [x, scales, zeros], axis=1), scales, zeros], axis=1)


@block(1, "quantized")
def wide_steps(b):
    need(b, 21)
    x = b.pick(is_plain)
    dtype = b.choice(["uint16", "int16"])
    scale = b.constant(numpy.array(scale_of(x, 30000), "float32"), True)
    zero = b.constant(numpy.array(b.choice([0, 7]) if dtype == "int16" else 32768, dtype), True)
    b.op("DequantizeLinear", [b.op("QuantizeLinear", [x, scale, zero], keep=False), scale, zero])
