# SPDX-License-Identifier: Apache-2.0
"""Blocks at the edges of what is fused, moved, folded and laid out otherwise."""

import numpy

from graphs.catalogue import block
from graphs.convolution import convolve, is_image, is_map, same_convolution
from graphs.elementwise import activation
from graphs.products import is_rows, linear
from graphs.quantization import is_plain, need, quantized, scale_and_zero


@block(2, "image")
def along_one_axis(b):
    """Images of height or width 1, and kernels along one axis."""
    x = b.pick(is_map, lambda v: v.rank == 3 and not v.is_empty)
    axis = b.choice([2, 3])
    y = b.unsqueeze(x, [axis])
    size = b.choice([3, 5])
    kernel = [1, size] if axis == 2 else [size, 1]
    pads = [k // 2 for k in kernel] * 2
    groups = x.shape[1] if b.chance(0.4) else 1
    channels = groups * b.choice([1, 2]) if groups > 1 else b.choice([1, 4, 8, 16, 32])
    y = convolve(b, y, channels, kernel, groups, [1, b.choice([1, 2])] if axis == 2 else [b.choice([1, 2]), 1], pads)
    if b.chance(0.6):
        y = activation(b, y)
    if b.chance(0.5):
        y = b.op("MaxPool", [y], kernel_shape=kernel, pads=pads)
    if b.chance(0.7):
        b.squeeze(y, [axis])


@block(3, "image")
def wide_rows_of_layers(b):
    """Layers of 3 x 3 with many channels one after the other, whose results are also read otherwise."""
    x = b.pick(is_image, lambda v: not v.is_empty)
    channels = b.choice([16, 24, 32, 48, 64])
    y = same_convolution(b, x, channels)
    for _ in range(b.rng.randint(1, 3)):
        z = same_convolution(b, y, b.choice([channels, channels, 8, 17]))
        form = b.rng.randrange(6)
        if form == 0:
            z = activation(b, z)
        elif form == 1 and z.shapes == y.shapes:
            z = activation(b, b.op("Add", [y, z]), "Relu")
        elif form == 2:
            z = b.op("Concat", [y, z] if b.chance(0.5) else [z, y], axis=1)
        elif form == 3:
            z = b.op("Mul", [z, b.weight([z.shape[1], 1, 1], z.dtype, 1)])
            z = b.op("Add", [z, b.weight([1, z.shape[1], 1, 1], z.dtype, 1)])
        elif form == 4:
            b.reduce("ReduceMean", z, [1], b.rng.randrange(2))
        y = z
        if y.shape[1] > 96:
            break


@block(3, "image")
def map_read_otherwise(b):
    """What follows a layer and looks at its result along other axes than layers do."""
    x = b.pick(is_image, lambda v: not v.is_empty)
    y = same_convolution(b, x, b.choice([4, 8, 16, 17]), b.choice([1, 3]))
    form = b.rng.randrange(10)
    if form == 0:
        b.op("Softmax", [y], axis=1)
    elif form == 1:
        b.reduce("ReduceMax", y, [1], 1)
        b.reduce("ReduceMean", y, [2, 3], 0)
    elif form == 2:
        y = b.op("Flatten", [y])
        if y.has_fixed(1) and y.shape[1] <= 2048:
            b.op("Gemm", [y, b.weight([y.shape[1], 5], y.dtype), b.weight([5], y.dtype)])
    elif form == 3:
        y = b.transpose(b.reshape(y, [0, y.shape[1], -1]), [0, 2, 1])
        linear(b, y, 6)
    elif form == 4:
        b.op("Concat", [y, b.op("Sigmoid", [y])], axis=b.choice([1, 2, 3]))
    elif form == 5:
        half = y.shape[1] // 2
        first, second = b.split(y, [half, y.shape[1] - half], 1)
        b.op("Concat", [second, same_convolution(b, first, 5)], axis=1)
    elif form == 6:
        b.slice(y, [1], [1 << 62], [1])
        b.slice(y, [0], [1], [2])
    elif form == 7:
        same_convolution(b, b.transpose(y, [0, 1, 3, 2]), 7)
    elif form == 8:
        z = b.op("ArgMax", [y], axis=1)
        b.op("Cast", [z], to=1)
    else:
        b.op("InstanceNormalization", [y, b.weight([y.shape[1]], y.dtype, 1), b.weight([y.shape[1]], y.dtype, 1)])


@block(2, "image")
def shared_kernel(b):
    """One kernel in two layers, with factors behind the first that must not reach the second."""
    x = b.pick(is_image, lambda v: not v.is_empty)
    c = x.shape[1]
    w = b.weight([c, c, 3, 3], x.dtype)
    first = b.op("Conv", [x, w], pads=[1] * 4)
    y = b.op("Mul", [first, b.weight([c, 1, 1], x.dtype, 1)])
    y = b.op("Conv", [y, w], pads=[1] * 4)
    if b.chance(0.5):
        y = b.op("Div", [y, b.constant((numpy.abs(b.numbers((c, 1, 1), x.dtype, 1)) + 0.5).astype(x.dtype))])
    b.op("Add", [y, first] if b.chance(0.5) else [y, x])


@block(2, "rows")
def factors_around_products(b):
    x = b.pick(is_rows, lambda v: v.dtype == "float32")
    width = b.choice([1, 3, 8, 16])
    if b.chance(0.4):
        x = b.op("Mul", [x, b.weight([x.shape[-1]], "float32", 1)])
    y = b.op("MatMul", [x, b.weight([x.shape[-1], width])])
    for _ in range(b.rng.randint(1, 3)):
        shape = b.choice([(), (1,), (width,), (1, width)])
        y = b.op(b.choice(["Mul", "Add", "Sub", "Mul"]), [y, b.weight(shape, "float32", 1)])
    if b.chance(0.5):
        activation(b, y)


@block(2, "rows")
def experts(b):
    """A matrix for each row, chosen by data."""
    x = b.pick(is_rows, lambda v: v.rank == 2 and v.dtype == "float32" and not v.is_empty)
    count, width = b.choice([2, 3]), b.choice([1, 4, 8])
    matrices = b.weight([count, x.shape[1], width])
    scores = linear(b, x, count)
    chosen = b.op("ArgMax", [scores], axis=1, keepdims=0)
    of_rows = b.op("Gather", [matrices, chosen], axis=0)
    y = b.op("MatMul", [b.unsqueeze(x, [1]), of_rows])
    y = b.squeeze(y, [1])
    if b.chance(0.5):
        b.op("Mul", [y, b.reduce("ReduceMax", b.op("Softmax", [scores], axis=1), [1], 1)])


@block(3, "quantized")
def bytes_with_several_readers(b):
    """8 bits that are dequantized, moved and compared by several nodes."""
    need(b, 13)
    x = b.pick(is_plain, lambda v: v.rank >= 2 and not v.is_empty)
    scale, zero = scale_and_zero(b, x, b.choice(["uint8", "int8"]))
    q = b.op("QuantizeLinear", [x, scale, zero])
    first = b.op("DequantizeLinear", [q, scale, zero])
    form = b.rng.randrange(5)
    if form == 0:
        b.op("Add", [first, b.op("DequantizeLinear", [q, scale, zero])])
    elif form == 1:
        other = b.op("DequantizeLinear", [b.transpose(q, list(range(x.rank))[::-1]), scale, zero])
        b.op("Relu", [other])
        b.op("Sigmoid", [first])
    elif form == 2:
        joined = b.op("Concat", [q, b.op("QuantizeLinear", [b.op("Relu", [first]), scale, zero]), q], axis=b.rng.randrange(x.rank))
        b.op("DequantizeLinear", [joined, scale, zero])
    elif form == 3:
        y = b.op("Mul", [first, b.op("Sigmoid", [first])])
        quantized(b, b.op("Add", [y, first]))
    else:
        b.op("Max", [q, zero])
        b.to(q, "float32")
        b.op("Add", [first, x])


@block(2, "quantized")
def quantized_residuals(b):
    need(b, 13)
    x = b.pick(is_map, is_plain, lambda v: v.rank == 4 and not v.is_empty)
    c = x.shape[1]
    y = quantized(b, x)
    start = y
    for _ in range(b.rng.randint(1, 2)):
        bits = b.constant(b.draw.integers(-127, 128, [c, c, 3, 3]).astype("int8"), True)
        scale = b.constant(numpy.array(0.01, "float32"), True)
        w = b.op("DequantizeLinear", [bits, scale, b.constant(numpy.array(0, "int8"), True)])
        y = b.op("Conv", [y, w, b.weight([c])] if b.chance(0.6) else [y, w], pads=[1] * 4)
        if b.chance(0.6):
            y = b.op("Relu", [y])
        y = quantized(b, y)
    y = quantized(b, b.op("Add", [y, start]))
    form = b.rng.randrange(4)
    if form == 0:
        quantized(b, b.op("Concat", [y, start], axis=1))
    elif form == 1:
        quantized(b, b.op("GlobalAveragePool", [y]))
    elif form == 2 and b.opset >= 11:
        sizes = b.constant(numpy.array([1, 1, 2, 2], "float32"), True)
        none = b.constant(numpy.zeros(0, "float32"), True)
        quantized(b, b.op("Resize", [y, none, sizes], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"))


@block(2, "any")
def half_floats(b):
    """A stretch in 16 bits between casts, as converted models have it."""
    x = b.pick(lambda v: v.dtype == "float32" and v.rank >= 2 and v.has_fixed(-1) and v.shape[-1])
    y = b.to(x, "float16")
    for _ in range(b.rng.randint(1, 4)):
        form = b.rng.randrange(5)
        if form == 0:
            y = activation(b, y, b.choice(["Relu", "Sigmoid", "Tanh", "SiLU"]))
        elif form == 1:
            y = b.op("MatMul", [y, b.weight([y.shape[-1], b.choice([4, 8])], "float16")])
        elif form == 2:
            y = b.op("Add", [y, b.weight([y.shape[-1]], "float16", 1)])
        elif form == 3:
            y = b.op("Softmax", [y], axis=y.rank - 1)
        else:
            b.op("Mul", [y, b.weight((), "float16", 1)])
    b.to(y, "float32")


@block(2, "any")
def broadcast_between(b):
    """A small value that is computed, grown by others and reduced again."""
    x = b.pick(lambda v: v.dtype == "float32" and v.rank >= 2 and not v.is_empty)
    axis = b.rng.randrange(x.rank)
    small = b.reduce(b.choice(["ReduceMean", "ReduceMax", "ReduceSum"]), x, [axis], 1)
    grown = b.op(b.choice(["Sub", "Mul", "Add"]), [x, small] if b.chance(0.7) else [small, x])
    if b.chance(0.5):
        grown = activation(b, grown)
    if grown.rank < 6:
        wide = b.op("Mul", [b.unsqueeze(grown, [grown.rank]), b.weight([3], "float32", 1)])
        b.reduce("ReduceSum", wide, [b.rng.randrange(wide.rank)], b.rng.randrange(2))
    if b.chance(0.3):
        raise_to = b.op("Pow", [small, b.scalar(2, "float32")])
        b.op("Add", [raise_to, small])
