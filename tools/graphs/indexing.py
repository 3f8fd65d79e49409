# SPDX-License-Identifier: Apache-2.0
"""Blocks whose positions or extents are data."""

import itertools
import math

import numpy

from graphs.builder import Discard
from graphs.catalogue import block
from graphs.elementwise import is_float, is_number
from graphs.shape import axis_of, has_axes


def _positions(b, x, count, width):
    """Distinct positions of the first `width` axes."""
    least = [min(shape[axis] for shape in x.shapes) for axis in range(width)]
    everywhere = list(itertools.islice(itertools.product(*(range(extent) for extent in least)), 4096))
    if len(everywhere) < count:
        raise Discard("too few positions")
    return numpy.array(b.rng.sample(everywhere, count), numpy.int64).reshape(count, width)


@block(2)
def scatter(b):
    if b.opset < 11:
        raise Discard("not yet")
    x = b.pick(has_axes, is_number)
    width, count = b.rng.randint(1, x.rank), b.rng.randint(1, 4)
    if not all(x.has_fixed(axis) for axis in range(width, x.rank)):
        raise Discard("open")
    updates = b.constant(b.numbers([count, *x.shape[width:]], x.dtype))
    kinds = ["none", "none", "add", "mul"] if b.opset >= 16 else ["none"]
    attributes = {"reduction": b.choice(kinds + ["min", "max"] if b.opset >= 18 else kinds)} if b.opset >= 16 else {}
    b.op("ScatterND", [x, b.constant(_positions(b, x, count, width), True), updates], **attributes)


@block(1)
def scatter_elements(b):
    if b.opset < 11:
        raise Discard("not yet")
    x = b.pick(has_axes, is_number, lambda v: v.is_fixed and not v.is_empty)
    axis = axis_of(b, x)
    shape = [max(1, extent - b.rng.randint(0, 2)) for extent in x.shape]
    shape[axis] = b.rng.randint(1, x.shape[axis])
    rows = numpy.array([b.rng.sample(range(x.shape[axis]), shape[axis]) for _ in range(math.prod(shape) // shape[axis])])
    other = shape[:axis] + shape[axis + 1:]
    indices = numpy.moveaxis(rows.reshape(*other, shape[axis]), -1, axis)
    attributes = {"reduction": b.choice(["none", "add", "mul"])} if b.opset >= 16 else {}
    b.op("ScatterElements", [x, b.constant(indices, True), b.constant(b.numbers(shape, x.dtype))], axis=axis, **attributes)


@block(1)
def gather_nd(b):
    if b.opset < 12:
        raise Discard("not yet")
    x = b.pick(has_axes)
    width = b.rng.randint(1, x.rank)
    b.op("GatherND", [x, b.constant(_positions(b, x, b.rng.randint(1, 3), width), True)])


@block(2)
def nonzero(b):
    """Positions that data tell, and what lies there."""
    if b.opset < 13:
        raise Discard("not yet")
    x = b.pick(has_axes, is_number, lambda v: v.size <= 2048)
    chosen = b.op("Greater", [x, b.constant(numpy.array(0, x.dtype))])
    found = b.op("NonZero", [chosen])
    positions = b.transpose(found, [1, 0])
    form = b.rng.randrange(4)
    if form == 0:
        y = b.op("GatherND", [x, positions])
        b.reduce("ReduceSum", y, [0], 0)
    elif form == 1:
        first = b.squeeze(b.slice(found, [0], [1], [0]), [0])
        b.op("Gather", [x, first], axis=0)
    elif form == 2 and x.is_float:
        y = b.op("Sigmoid", [b.op("GatherND", [x, positions])])
        b.op("ScatterND", [x, positions, y])
    else:
        b.op("Shape", [found])


@block(1)
def compress(b):
    if b.opset < 9:
        raise Discard("not yet")
    x = b.pick(has_axes)
    axis = axis_of(b, x, True)
    flags = numpy.array([b.chance(0.6) for _ in range(x.shape[axis])])
    b.op("Compress", [x, b.constant(flags)], axis=axis)


@block(1)
def unique(b):
    if b.opset < 11:
        raise Discard("not yet")
    x = b.pick(lambda v: v.dtype in ("int64", "float32") and v.size <= 512)
    b.op("Unique", [x], outputs=b.choice([2, 4]), sorted=1)


@block(2)
def gather_by_top(b):
    """The rows with the largest scores, as detectors take them."""
    if b.opset < 11:
        raise Discard("not yet")
    x = b.pick(is_float, lambda v: v.rank >= 2 and not v.is_empty)
    scores = b.reduce("ReduceMax", x, list(range(1, x.rank)), 0)
    least = min(shape[0] for shape in x.shapes)
    _, best = b.op("TopK", [scores, b.ints([b.rng.randint(1, least)])], outputs=2, axis=0)
    b.op("Gather", [x, best], axis=0)


@block(1)
def count_of_top(b):
    """How many TopK takes is computed."""
    if b.opset < 14:
        raise Discard("not yet")
    x = b.pick(is_float, has_axes)
    axis = axis_of(b, x)
    length = b.slice(b.op("Shape", [x]), [axis], [axis + 1], [0])
    b.op("TopK", [x, b.op("Min", [length, b.ints([3])])], outputs=2, axis=axis)


@block(1)
def suppressed(b):
    """Boxes that overlap better ones are left out."""
    if b.opset < 10:
        raise Discard("not yet")
    count = b.rng.randint(1, 12)
    boxes = b.input("float32", [1, count, 4], lambda shape: numpy.concatenate(
        [c := b.numbers((1, count, 2), "float32", 1), c + numpy.abs(b.numbers((1, count, 2), "float32", 1)) + 0.1], -1))  # fmt: skip
    scores = b.input("float32", [1, 2, count])
    limits = [b.ints([3]), b.constant(numpy.array([0.4], "float32"), True), b.constant(numpy.array([-0.5], "float32"), True)]
    found = b.op("NonMaxSuppression", [boxes, scores, *limits])
    if b.chance(0.7):
        column = b.op("Gather", [found, b.constant(numpy.array(2), True)], axis=1)
        b.op("Gather", [boxes, column], axis=1)
