# SPDX-License-Identifier: Apache-2.0
"""Blocks that sample and cut images."""

import numpy

from graphs.builder import Discard
from graphs.catalogue import block
from graphs.convolution import is_image, is_map, same_convolution
from graphs.shape import axis_of, extent, has_axes


def need(b, opset):
    if b.opset < opset:
        raise Discard("not yet")


def is_plain_image(value):
    return is_image(value) and value.dtype == "float32" and not value.is_empty


@block(1, "image")
def sampled_by_grid(b):
    need(b, 16)
    x = b.pick(is_plain_image)
    rows, columns = b.rng.randint(1, 6), b.rng.randint(1, 6)
    dims = [b.dims_of(x)[0], rows, columns, 2]
    grid = b.input("float32", dims, lambda shape: b.draw.uniform(-1.2, 1.2, shape))
    modes = ["linear", "nearest", "cubic"] if b.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    b.op("GridSample", [x, grid], mode=b.choice(modes), align_corners=b.rng.randrange(2),
         padding_mode=b.choice(["zeros", "border", "reflection"]))  # fmt: skip


@block(1, "image")
def regions(b):
    need(b, 16)
    x = b.pick(is_plain_image)
    count = b.rng.randint(1, 5)
    low = b.draw.uniform(0, 3, (count, 2))
    boxes = b.constant(numpy.concatenate([low, low + b.draw.uniform(1, 6, (count, 2))], 1).astype("float32"))
    images = b.constant(numpy.zeros(count, numpy.int64), True)
    b.op("RoiAlign", [x, boxes, images], output_height=b.rng.randint(1, 4), output_width=b.rng.randint(1, 4),
         sampling_ratio=b.choice([1, 2]), spatial_scale=b.choice([1.0, 0.5]), mode=b.choice(["avg", "avg", "max"]))  # fmt: skip


@block(1, "image")
def super_resolution(b):
    x = b.pick(is_plain_image)
    y = same_convolution(b, x, 4 * b.choice([1, 2, 3]))
    attributes = {"mode": b.choice(["DCR", "CRD"])} if b.opset >= 11 else {}
    b.op("DepthToSpace", [y], blocksize=2, **attributes)


@block(1, "image")
def patches(b):
    """An image as tokens, as vision transformers begin."""
    x = b.pick(is_plain_image)
    size, width = b.choice([1, 2, 4]), b.choice([4, 8, 16])
    y = b.op("Conv", [x, b.weight([width, x.shape[1], size, size])], kernel_shape=[size] * 2, strides=[size] * 2)
    if b.chance(0.5):
        y = b.op("Reshape", [y, b.op("Concat", [extent(b, y, 0), b.ints([width, -1])], axis=0)])
    else:
        y = b.reshape(y, [0, 0, -1])
    y = b.transpose(y, [0, 2, 1])
    if b.chance(0.4) and b.opset >= 8:
        first = b.op("Expand", [b.weight([1, 1, width]), b.op("Concat", [extent(b, y, 0), b.ints([1, 1])], axis=0)])
        y = b.op("Concat", [first, y], axis=1)
    if y.has_fixed(1) and b.chance(0.6):
        b.op("Add", [y, b.weight([1, y.shape[1], width])])


@block(1, "image")
def centre(b):
    need(b, 18)
    x = b.pick(has_axes, lambda v: v.dtype in ("float32", "int64"))
    axis = axis_of(b, x)
    b.op("CenterCropPad", [x, b.ints([b.rng.randint(1, 9)])], axes=[axis])


@block(1, "image")
def unpooled(b):
    need(b, 11)
    x = b.pick(is_plain_image, lambda v: v.is_fixed and v.shape[2] % 2 == 0 and v.shape[3] % 2 == 0)
    y, positions = b.op("MaxPool", [x], outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    b.op("MaxUnpool", [b.op("Neg", [y]) if b.chance(0.5) else y, positions], kernel_shape=[2, 2], strides=[2, 2])


@block(1, "image")
def columns_to_image(b):
    need(b, 18)
    x = b.pick(lambda v: v.dtype == "float32" and v.rank == 3 and v.is_fixed and v.shape[1] % 4 == 0 and not v.is_empty)
    rows = b.choice([k for k in range(1, x.shape[2] + 1) if x.shape[2] % k == 0])
    b.op("Col2Im", [x, b.ints([rows + 1, x.shape[2] // rows + 1]), b.ints([2, 2])])


@block(1, "image")
def bent(b):
    need(b, 19)
    x = b.pick(is_plain_image, lambda v: v.is_fixed)
    n, c, h, w = x.shape
    offsets = b.constant((b.draw.standard_normal((n, 18, h, w)) * 0.5).astype("float32"))
    b.op("DeformConv", [x, b.weight([b.choice([1, 2, 4]), c, 3, 3]), offsets], kernel_shape=[3, 3], pads=[1] * 4)


@block(1, "image")
def windows(b):
    """Space in windows side by side and back, as windowed attention does."""
    x = b.pick(is_map, lambda v: v.rank == 4 and v.is_fixed and v.shape[2] % 2 == 0 and v.shape[3] % 2 == 0)
    if x.is_empty:
        raise Discard("empty")
    n, c, h, w = x.shape
    y = b.reshape(x, [n, c, h // 2, 2, w // 2, 2])
    y = b.transpose(y, [0, 2, 4, 3, 5, 1])
    y = b.reshape(y, [-1, 4, c])
    if b.chance(0.6):
        y = b.op("MatMul", [y, b.weight([c, c], x.dtype)])
        y = b.transpose(b.reshape(y, [n, h // 2, w // 2, 2, 2, c]), [0, 5, 1, 3, 2, 4])
        y = b.reshape(y, [n, c, h, w])
        if b.chance(0.6):
            b.op("Add", [x, y])


@block(1, "image")
def rolled(b):
    """Shifted along an axis, the end to the beginning."""
    x = b.pick(has_axes, lambda v: not v.is_empty)
    axis = axis_of(b, x)
    shift = b.rng.randint(1, max(1, min(shape[axis] for shape in x.shapes) - 1))
    head, tail = b.slice(x, [0], [shift], [axis]), b.slice(x, [shift], [1 << 62], [axis])
    b.op("Concat", [tail, head], axis=axis)
