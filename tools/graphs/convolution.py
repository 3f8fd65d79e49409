# SPDX-License-Identifier: Apache-2.0
"""Blocks of convolutional networks: windows, normalizations, and what exporters make of them."""

import numpy

from graphs.builder import Discard
from graphs.catalogue import block
from graphs.elementwise import activation, partner
from graphs.shape import extent

_CHANNELS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 32, 33)


def is_map(value):
    """Channels over one to three axes of space."""
    return value.dtype in ("float32", "float64") and 3 <= value.rank <= 5 and value.has_fixed(1) and value.shape[1] > 0


def is_image(value):
    return is_map(value) and value.rank == 4


def convolve(b, x, channels=None, kernel=None, groups=1, stride=None, pads=None, bias=None):
    space = x.rank - 2
    kernel = kernel or [b.choice([1, 1, 2, 3, 3, 5]) for _ in range(space)]
    channels = channels or groups * b.choice([c for c in _CHANNELS if c * groups <= 48] or [1])
    w = b.weight([channels, x.shape[1] // groups, *kernel], x.dtype)
    operands = [x, w] + ([b.weight([channels], x.dtype, 0.5)] if (b.chance(0.5) if bias is None else bias) else [])
    attributes = {"strides": stride or [b.choice([1, 1, 2, 3]) for _ in range(space)], "group": groups}
    if b.chance(0.7):
        attributes["kernel_shape"] = kernel
    if pads is not None:
        attributes["pads"] = pads
    elif b.chance(0.2):
        attributes["auto_pad"] = b.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        same = [k // 2 for k in kernel]
        attributes["pads"] = same * 2 if b.chance(0.7) else [b.rng.randint(0, k - 1) for k in kernel * 2]
        if b.chance(0.2):
            attributes["dilations"] = [b.choice([1, 2, 3]) for _ in range(space)]
    return b.op("Conv", operands, **attributes)


def same_convolution(b, x, channels, size=3, groups=1):
    space = x.rank - 2
    return convolve(b, x, channels, [size] * space, groups, [1] * space, [size // 2] * (2 * space))


def normalize(b, x):
    c = x.shape[1]
    form = b.rng.random()
    if form < 0.6:
        mean, spread = b.weight([c], x.dtype, 0.3), b.weight([c], x.dtype, 1, positive=True)
        scale, shift = b.weight([c], x.dtype, 1), b.weight([c], x.dtype, 0.5)
        attributes = {"epsilon": b.choice([1e-5, 1e-3])}
        return b.op("BatchNormalization", [x, scale, shift, mean, spread], **attributes)
    if form < 0.7:
        return b.op("InstanceNormalization", [x, b.weight([c], x.dtype, 1), b.weight([c], x.dtype, 0.5)])
    if form < 0.85:
        # As channels are scaled where a normalization is taken apart.
        shape = [c] + [1] * (x.rank - 2) if b.chance(0.5) else [1, c] + [1] * (x.rank - 2)
        return b.op("Add", [b.op("Mul", [x, b.weight(shape, x.dtype, 1)]), b.weight(shape, x.dtype, 1)])
    return group_normalization(b, x)


def group_normalization(b, x):
    c = x.shape[1]
    groups = b.choice([k for k in (1, 2, 3, 4) if c % k == 0])
    if b.opset >= 21 and b.chance(0.5):
        return b.op("GroupNormalization", [x, b.weight([c], x.dtype, 1), b.weight([c], x.dtype, 1)], num_groups=groups)
    flat = b.reshape(x, [0, groups, -1])
    flat = b.op("InstanceNormalization", [flat, b.constant(numpy.ones(groups, x.dtype)), b.constant(numpy.zeros(groups, x.dtype))])
    y = b.op("Reshape", [flat, b.op("Shape", [x])])
    shape = [c] + [1] * (x.rank - 2)
    return b.op("Add", [b.op("Mul", [y, b.weight(shape, x.dtype, 1)]), b.weight(shape, x.dtype, 1)])


@block(5, "image")
def convolution(b):
    x = b.pick(is_map)
    groups = b.choice([k for k in (1, 1, 1, 2, 3, 4, x.shape[1]) if x.shape[1] % k == 0])
    y = convolve(b, x, groups=groups)
    if b.chance(0.5):
        y = normalize(b, y)
    if b.chance(0.5):
        activation(b, y)


@block(4, "image")
def residual(b):
    x = b.pick(is_map)
    y = activation(b, normalize(b, same_convolution(b, x, b.choice(_CHANNELS))))
    y = same_convolution(b, y, x.shape[1], b.choice([1, 3]))
    if b.chance(0.5):
        y = normalize(b, y)
    y = b.op("Add", [x, y] if b.chance(0.5) else [y, x])
    if b.chance(0.7):
        activation(b, y)


@block(3, "image")
def inverted_bottleneck(b):
    x = b.pick(is_map)
    wide = x.shape[1] * b.choice([1, 2, 3])
    if wide > 64:
        raise Discard("wide")
    y = activation(b, same_convolution(b, x, wide, 1))
    y = activation(b, normalize(b, same_convolution(b, y, wide, b.choice([3, 5]), wide)))
    if b.chance(0.5):
        y = squeeze_excite(b, y)
    y = same_convolution(b, y, x.shape[1], 1)
    if b.chance(0.6):
        b.op("Add", [y, x])


def squeeze_excite(b, x):
    c, space = x.shape[1], x.rank - 2
    if b.chance(0.5):
        s = b.op("GlobalAveragePool", [x])
    else:
        s = b.reduce("ReduceMean", x, list(range(2, x.rank)), 1)
    s = activation(b, convolve(b, s, max(1, c // 2), [1] * space, stride=[1] * space, pads=[0] * 2 * space))
    s = convolve(b, s, c, [1] * space, stride=[1] * space, pads=[0] * 2 * space)
    return b.op("Mul", [x, b.op(b.choice(["Sigmoid", "HardSigmoid"]), [s])])


@block(2, "image")
def squeeze_and_excite(b):
    squeeze_excite(b, b.pick(is_map))


@block(2, "image")
def depthwise_separable(b):
    x = b.pick(is_map)
    y = same_convolution(b, x, x.shape[1] * b.choice([1, 1, 2]), 3, x.shape[1])
    if b.chance(0.5):
        y = activation(b, y)
    activation(b, same_convolution(b, y, b.choice(_CHANNELS), 1))


@block(2, "image")
def branches(b):
    """Convolutions of one map side by side, concatenated."""
    x = b.pick(is_map)
    parts = [same_convolution(b, x, b.choice(_CHANNELS[:10]), b.choice([1, 3])) for _ in range(b.rng.randint(2, 3))]
    if b.chance(0.5):
        parts.append(x)
    if b.chance(0.4):
        parts[0] = activation(b, parts[0])
    y = b.op("Concat", parts, axis=1)
    if b.chance(0.6):
        same_convolution(b, y, b.choice(_CHANNELS), 1)


@block(3, "image")
def pooling(b):
    x = b.pick(is_map)
    space = x.rank - 2
    form = b.rng.randrange(5)
    if form == 0:
        b.op(b.choice(["GlobalAveragePool", "GlobalMaxPool"]), [x])
        return
    kernel = [b.choice([1, 2, 3, 3]) for _ in range(space)]
    attributes = {"kernel_shape": kernel, "strides": [b.choice([1, 2, 3]) for _ in range(space)]}
    if b.chance(0.5):
        attributes["pads"] = [b.rng.randint(0, k // 2) for k in kernel * 2]
    elif b.chance(0.3) and all(k >= s for k, s in zip(kernel, attributes["strides"])):
        # With longer strides, padding is negative: ONNX Runtime's operators answer one so and another so.
        attributes["auto_pad"] = b.choice(["SAME_UPPER", "SAME_LOWER"])
    # ONNX Runtime rounds the count of windows towards zero, so that one is left where none has room.
    if any(extent < k for shape in x.shapes for extent, k in zip(shape[2:], kernel)):
        raise Discard("no window")
    if b.opset >= 10 and b.chance(0.3):
        attributes["ceil_mode"] = 1
    if form in (1, 2):
        if b.opset >= 10 and b.chance(0.2) and "auto_pad" not in attributes:
            attributes["dilations"] = [2] * space
            if any(extent < 2 * k - 1 for shape in x.shapes for extent, k in zip(shape[2:], kernel)):
                raise Discard("no window")
        if b.opset >= 8 and b.chance(0.15):
            b.op("MaxPool", [x], outputs=2, **attributes)
        else:
            b.op("MaxPool", [x], **attributes)
    elif form == 3:
        attributes["count_include_pad"] = b.rng.randrange(2)
        b.op("AveragePool", [x], **attributes)
    else:
        b.op("LpPool", [x], p=b.choice([1, 2, 3]), **{k: v for k, v in attributes.items() if k != "ceil_mode"})


@block(2, "image")
def transposed_convolution(b):
    x = b.pick(is_map)
    space = x.rank - 2
    groups = b.choice([k for k in (1, 1, 2, x.shape[1]) if x.shape[1] % k == 0])
    kernel = [b.choice([1, 2, 3, 4]) for _ in range(space)]
    out = b.choice([1, 2, 3, 4, 8])
    operands = [x, b.weight([x.shape[1], out, *kernel], x.dtype)] + ([b.weight([out * groups], x.dtype)] if b.chance(0.5) else [])
    strides = [b.choice([1, 2, 3]) for _ in range(space)]
    attributes = {"strides": strides, "group": groups}
    form = b.rng.randrange(4)
    if form == 0:
        attributes["pads"] = [b.rng.randint(0, k // 2) for k in kernel * 2]
    elif form == 1:
        attributes["output_padding"] = [b.rng.randrange(s) for s in strides]
    elif form == 2:
        # Where a stride is longer than its kernel, ONNX Runtime's results are shorter than ONNX says.
        is_covered = all(k >= s for k, s in zip(kernel, strides))
        attributes["auto_pad"] = b.choice(["SAME_UPPER", "SAME_LOWER", "VALID"] if is_covered else ["VALID"])
    y = b.op("ConvTranspose", operands, **attributes)
    if b.chance(0.4):
        activation(b, y)


@block(2, "image")
def normalized(b):
    normalize(b, b.pick(is_map))


@block(1, "image")
def local_response(b):
    b.op("LRN", [b.pick(is_image)], size=b.choice([1, 3, 5]), alpha=0.1, beta=0.75, bias=1.0)


def upsample(b, x):
    """Twice as high and wide, as versions and exporters write it."""
    scales = [1.0, 1.0] + [b.choice([2.0, 2.0, 1.0, 3.0]) for _ in range(x.rank - 2)]
    mode = b.choice(["nearest", "nearest", "linear"] + (["cubic"] if b.opset >= 11 and x.rank == 4 else []))
    if b.opset < 9:
        return b.op("Upsample", [x], mode=mode, scales=scales)
    if b.opset < 10:
        return b.op("Upsample", [x, b.constant(numpy.array(scales, "float32"), True)], mode=mode)
    if b.opset < 11:
        return b.op("Resize", [x, b.constant(numpy.array(scales, "float32"), True)], mode=mode)
    attributes = {"mode": mode, "coordinate_transformation_mode": b.choice(
        ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])}  # fmt: skip
    if mode == "nearest":
        attributes["coordinate_transformation_mode"] = b.choice(["asymmetric", "half_pixel"])
        attributes["nearest_mode"] = b.choice(["floor", "round_prefer_floor", "ceil", "round_prefer_ceil"])
    if b.opset >= 18 and mode != "nearest" and b.chance(0.2):
        attributes["antialias"] = 1
    region = None if b.opset >= 13 else b.constant(numpy.zeros(0, "float32"), True)
    form = b.rng.randrange(3)
    if form == 0:
        return b.op("Resize", [x, region, b.constant(numpy.array(scales, "float32"), True)], **attributes)
    empty = None if b.opset >= 13 else b.constant(numpy.zeros(0, "float32"), True)
    if form == 1:
        parts = [extent(b, x, 0), extent(b, x, 1)]
        parts += [b.op("Mul", [extent(b, x, axis), b.ints([int(scales[axis])])]) for axis in range(2, x.rank)]
        sizes = b.op("Concat", parts, axis=0)
    else:
        shape = b.op("Shape", [x])
        targets = b.ints([b.rng.randint(1, 9) for _ in range(x.rank - 2)])
        sizes = b.op("Concat", [b.slice(shape, [0], [2], [0]), targets], axis=0)
    return b.op("Resize", [x, region, empty, sizes], **attributes)


@block(3, "image")
def resize(b):
    upsample(b, b.pick(lambda v: is_map(v) and v.dtype == "float32" and not v.is_empty))


@block(2, "image")
def upsample_and_concat(b):
    """As decoders of segmentation networks: a deeper map comes back to the extents of one before it."""
    x = b.pick(is_image)
    if any(extent < 2 for shape in x.shapes for extent in shape[2:]):
        raise Discard("no window")
    deep = b.op("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    deep = activation(b, same_convolution(b, deep, b.choice(_CHANNELS[:9])))
    if b.opset < 11:
        up = upsample(b, deep)
    else:
        shape = b.op("Shape", [x])
        sizes = b.op("Concat", [b.slice(b.op("Shape", [deep]), [0], [2], [0]), b.slice(shape, [2], [4], [0])], axis=0)
        attributes = {"mode": b.choice(["nearest", "linear"]), "coordinate_transformation_mode": b.choice(["asymmetric", "half_pixel"])}
        if attributes["mode"] == "nearest":
            attributes["nearest_mode"] = "floor"
        none = b.constant(numpy.zeros(0, "float32"), True)
        up = b.op("Resize", [deep, none, none, sizes], **attributes)
    b.op("Concat", [up, x], axis=1)


@block(2, "image")
def head_of_classifier(b):
    x = b.pick(is_map)
    y = b.op("GlobalAveragePool", [x])
    form = b.rng.randrange(4)
    if form == 0:
        y = b.op("Flatten", [y])
    elif form == 1:
        y = b.squeeze(y, list(range(2, x.rank)))
    elif form == 2:
        y = b.reshape(y, [0, x.shape[1]])
    else:
        y = b.op("Reshape", [y, b.op("Concat", [extent(b, x, 0), b.ints([-1])], axis=0)])
    out = b.choice([1, 2, 10])
    y = b.op("Gemm", [y, b.weight([out, x.shape[1]], x.dtype), b.weight([out], x.dtype)], transB=1)
    if b.chance(0.5):
        b.op("Softmax", [y], axis=1)


@block(2, "image")
def padded_convolution(b):
    x = b.pick(is_map)
    space = x.rank - 2
    padded = b.pad(x, [0, 0] + [1] * space + [0, 0] + [b.choice([0, 1]) for _ in range(space)], b.choice(["constant", "reflect", "edge"]), 0)
    y = convolve(b, padded, kernel=[3] * space, pads=[0] * 2 * space)
    if b.chance(0.4):
        activation(b, y)


@block(1, "image")
def channels_behind(b):
    """A map that is transposed so that channels lie innermost, as converted networks have around their layers."""
    x = b.pick(is_image)
    y = b.transpose(x, [0, 2, 3, 1])
    y = b.op("MatMul", [y, b.weight([x.shape[1], b.choice(_CHANNELS[:9])], x.dtype)])
    if b.chance(0.5):
        y = b.op("Add", [y, partner(b, y)])
    same_convolution(b, b.transpose(y, [0, 3, 1, 2]), b.choice(_CHANNELS))
