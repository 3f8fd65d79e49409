# SPDX-License-Identifier: Apache-2.0
"""Blocks that move elements, and arithmetic on extents as exporters write it."""

import math

import numpy
from onnx import numpy_helper

from graphs.builder import Discard
from graphs.catalogue import block


def has_axes(value):
    return value.rank > 0


def axis_of(b, x, is_fixed=False):
    axes = [axis for axis in range(x.rank) if not is_fixed or x.has_fixed(axis)]
    return b.choice(axes)


def signed(b, axis, rank):
    return axis - rank if b.chance(0.3) else axis


def extent(b, x, axis):
    """An extent of x as a value of rank 1, in one of the forms of exporters."""
    shape = b.op("Shape", [x])
    form = b.rng.randrange(3)
    if form == 0:
        return b.unsqueeze(b.op("Gather", [shape, b.constant(numpy.array(axis), True)], axis=0), [0])
    if form == 1:
        return b.slice(shape, [axis], [axis + 1], [0])
    if b.opset >= 15:
        return b.op("Shape", [x], start=axis, end=axis + 1)
    return b.op("Gather", [shape, b.ints([axis])], axis=0)


@block(3)
def reshape_by_numbers(b):
    x = b.pick(has_axes)
    target = [0] * x.rank
    if b.chance(0.5) and x.rank >= 2:
        first = b.rng.randrange(x.rank - 1)
        target = target[:first] + [-1] + target[first + 2:]
        if any(entry == 0 and k > first for k, entry in enumerate(target)):
            rest = x.shape[first + 2:]
            if not all(x.has_fixed(k) for k in range(first + 2, x.rank)):
                raise Discard("open extents behind")
            target = target[: first + 1] + list(rest)
    else:
        axis = axis_of(b, x, True)
        factors = [k for k in range(1, x.shape[axis] + 1) if x.shape[axis] % k == 0]
        factor = b.choice(factors)
        if not all(x.has_fixed(k) for k in range(axis, x.rank)):
            raise Discard("open extents behind")
        target = [0] * axis + [factor, x.shape[axis] // factor] + list(x.shape[axis + 1:])
        if b.chance(0.3) and 0 not in x.shape:
            target[b.rng.randrange(len(target))] = -1
    b.reshape(x, target)


@block(2)
def flatten(b):
    x = b.pick(has_axes)
    form = b.rng.randrange(3)
    if form == 0:
        b.op("Flatten", [x], axis=b.rng.randint(0, x.rank))
    elif form == 1:
        b.reshape(x, [-1])
    else:
        b.op("Reshape", [x, b.op("Concat", [extent(b, x, 0), b.ints([-1])], axis=0)])


@block(3)
def heads(b):
    """Splits the last axis by a computed shape, transposes, and perhaps goes back."""
    x = b.pick(lambda v: v.rank == 3 and v.has_fixed(2))
    count = b.choice([k for k in (1, 2, 3, 4, 8) if x.shape[2] % k == 0])
    parts = [extent(b, x, 0), extent(b, x, 1), b.ints([count]), b.ints([x.shape[2] // count])]
    split = b.op("Reshape", [x, b.op("Concat", parts, axis=0)])
    order = b.choice([[0, 2, 1, 3], [0, 2, 3, 1], [2, 0, 1, 3]])
    moved = b.transpose(split, order)
    if b.chance(0.5):
        back = b.transpose(moved, [order.index(k) for k in range(4)])
        b.op("Reshape", [back, b.op("Concat", [extent(b, x, 0), extent(b, x, 1), b.ints([x.shape[2]])], axis=0)])


@block(2)
def reshape_like(b):
    x = b.pick(has_axes)
    flat = b.reshape(x, [-1])
    if b.chance(0.5):
        flat = b.op("Neg", [flat]) if flat.is_float else flat
    b.op("Reshape", [flat, b.op("Shape", [x])])


@block(3)
def transpose(b):
    x = b.pick(lambda v: v.rank >= 2)
    order = list(range(x.rank))
    b.rng.shuffle(order)
    y = b.transpose(x, order) if b.chance(0.9) else b.op("Transpose", [x])
    if b.chance(0.2):
        b.transpose(y, [order.index(k) for k in range(x.rank)])


@block(3)
def squeeze_and_unsqueeze(b):
    x = b.pick()
    if b.chance(0.5):
        ones = [axis for axis in range(x.rank) if all(shape[axis] == 1 for shape in x.shapes)]
        if ones and b.chance(0.7):
            axes = b.rng.sample(ones, b.rng.randint(1, len(ones)))
            b.squeeze(x, [signed(b, axis, x.rank) for axis in axes])
        else:
            b.squeeze(x, None)
        return
    count = b.rng.randint(1, 2)
    if x.rank + count > 6:
        raise Discard("rank")
    axes = b.rng.sample(range(x.rank + count), count)
    y = b.unsqueeze(x, [signed(b, axis, x.rank + count) for axis in axes] if b.opset >= 11 else sorted(axes))
    if b.chance(0.3):
        b.squeeze(y, sorted(axes) if b.chance(0.6) else None)


@block(2)
def expand(b):
    if b.opset < 8:
        raise Discard("no Expand yet")
    x = b.pick(lambda v: v.size <= 2048)
    form = b.rng.randrange(4)
    if form == 0:
        others = [v for v in b.values if v.rank >= x.rank and all(
            all(a in (1, c) for a, c in zip(s[::-1], t[::-1])) for s, t in zip(x.shapes, v.shapes))]  # fmt: skip
        b.op("Expand", [x, b.op("Shape", [b.choice(others)])])
    elif form == 1 and x.rank < 6:
        b.op("Expand", [x, b.ints([b.rng.randint(1, 4)] + [1] * x.rank)])
    elif form == 2 and x.rank:
        other = b.pick(has_axes)
        b.op("Expand", [b.unsqueeze(x, [0]), b.op("Concat", [extent(b, other, axis_of(b, other))] + [b.ints([1] * x.rank)], axis=0)])
    else:
        repeats = [b.choice([1, 1, 2, 3]) for _ in range(x.rank)]
        b.op("Tile", [x, b.ints(repeats)])


@block(4)
def slices(b):
    x = b.pick(has_axes)
    axes = b.rng.sample(range(x.rank), b.rng.randint(1, min(2, x.rank)))
    starts, ends, steps = [], [], []
    for axis in axes:
        form = b.rng.randrange(6)
        step = 1
        if form == 0:
            start, end = 0, b.choice([1, 2, -1])
        elif form == 1:
            start, end = b.choice([1, -2, 2]), b.choice([1 << 62, 1000, 2147483647])
        elif form == 2:
            start, end, step = b.choice([-1, 1000]), b.choice([-(1 << 62), -1000]), b.choice([-1, -2])
        elif form == 3:
            start, end, step = b.rng.randint(0, 1), 1 << 40, b.choice([2, 3])
        else:
            start, end = 0, b.rng.randint(1, max(1, x.shape[axis]))
        starts.append(start), ends.append(end), steps.append(step)
    if b.opset < 11 and any(step != 1 for step in steps):
        raise Discard("no negative steps")
    b.slice(x, starts, ends, [signed(b, axis, x.rank) for axis in axes], steps if b.chance(0.5) or any(s != 1 for s in steps) else None)


@block(3)
def slice_with_computed_ends(b):
    """Ends from extents: halves, all but the last, the length of another."""
    if b.opset < 10:
        raise Discard("no computed ends yet")
    x = b.pick(has_axes)
    axis = axis_of(b, x)
    whole = extent(b, x, axis)
    form = b.rng.randrange(4)
    begin, end = b.ints([0]), whole
    if form == 0:
        end = b.op("Div", [whole, b.ints([2])])
    elif form == 1:
        end = b.op("Sub", [whole, b.ints([1])])
    elif form == 2:
        begin = b.op("Div", [b.op("Add", [whole, b.ints([1])]), b.ints([2])])
    else:
        other = b.pick(has_axes)
        end = extent(b, other, axis_of(b, other))
    b.op("Slice", [x, begin, end, b.ints([axis])])
    if b.chance(0.3) and form == 0:
        tail = b.op("Slice", [x, end, b.ints([1 << 62]), b.ints([axis])])
        if tail.is_float:
            b.op("Concat", [b.op("Neg", [tail]), b.values[-2]], axis=axis)


@block(4)
def concat(b):
    x = b.pick(has_axes)
    axis = axis_of(b, x)

    def fits(v):
        return v.dtype == x.dtype and v.rank == x.rank and all(
            s[:axis] + s[axis + 1:] == t[:axis] + t[axis + 1:] for s, t in zip(v.shapes, x.shapes))  # fmt: skip

    parts = [x] + [b.pick(fits, recent=0.2) for _ in range(b.rng.randint(1, 3))]
    if x.is_fixed and b.chance(0.4):
        shape = list(x.shape)
        shape[axis] = b.rng.randint(0, 3)
        parts.append(b.constant(b.numbers(shape, x.dtype)))
    b.rng.shuffle(parts)
    b.op("Concat", parts, axis=signed(b, axis, x.rank) if b.opset >= 11 else axis)


@block(3)
def split(b):
    x = b.pick(has_axes)
    axis = axis_of(b, x, True)
    total = x.shape[axis]
    first = b.rng.randint(0, total)
    sizes = [first, total - first]
    if b.chance(0.3) and sizes[1] > 1:
        sizes = [first, 1, sizes[1] - 1]
    parts = b.split(x, sizes, axis)
    if b.chance(0.5):
        parts[0] = b.op("Identity", [parts[0]]) if not parts[0].is_float else b.op("Sigmoid", [parts[0]])
        b.op("Concat", parts[::-1], axis=axis)


@block(1)
def split_evenly(b):
    if b.opset < 18:
        raise Discard("no num_outputs yet")
    x = b.pick(has_axes)
    axis = axis_of(b, x)
    count = b.choice([2, 3])
    parts = b.op("Split", [x], outputs=count, axis=axis, num_outputs=count)
    if x.is_float:
        b.op("Mul", [parts[0], b.op("Sigmoid", [parts[0]])])


@block(2)
def pad(b):
    x = b.pick(has_axes, lambda v: v.is_float or v.dtype in ("int32", "int64"))
    if b.opset < 11 and not x.is_float:
        raise Discard("floats only")
    mode = b.choice(["constant", "constant", "edge", "reflect"] + (["wrap"] if b.opset >= 19 else []))
    pads = [b.choice([0, 0, 1, 2]) for _ in range(2 * x.rank)]
    if mode == "constant" and b.chance(0.2):
        pads[b.rng.randrange(len(pads))] = -1
    b.pad(x, pads, mode, b.choice([0, 1, -2]))


@block(1)
def depth_and_space(b):
    x = b.pick(lambda v: v.rank == 4 and v.dtype in ("float32", "float64"))
    if b.chance(0.5) and x.has_fixed(1):
        attributes = {"mode": b.choice(["DCR", "CRD"])} if b.opset >= 11 else {}
        b.op("DepthToSpace", [x], blocksize=2, **attributes)
    else:
        b.op("SpaceToDepth", [x], blocksize=2)


@block(2)
def gather(b):
    x = b.pick(has_axes)
    axis = axis_of(b, x)
    least = min(shape[axis] for shape in x.shapes)
    if not least:
        raise Discard("nothing to gather")
    shape = b.choice([(), (1,), (3,), (2, 2), (0,), (5,)])
    low = -least if b.opset >= 11 else 0
    dtype = b.choice(["int64", "int64", "int32"])

    def draw(_=None):
        return numpy.array([b.rng.randint(low, least - 1) for _ in range(math.prod(shape))], dtype).reshape(shape)

    indices = b.input(dtype, shape, draw) if b.chance(0.3) else b.constant(draw(), True)
    b.op("Gather", [x, indices], axis=signed(b, axis, x.rank) if b.opset >= 11 else axis)


@block(1)
def gather_elements(b):
    if b.opset < 11:
        raise Discard("not yet")
    x = b.pick(has_axes, lambda v: v.is_fixed and not v.is_empty)
    axis = axis_of(b, x)
    indices = numpy.array([b.rng.randrange(x.shape[axis]) for _ in range(math.prod(x.shape))]).reshape(x.shape)
    b.op("GatherElements", [x, b.constant(indices, True)], axis=axis)


@block(2)
def made_of_a_shape(b):
    """A tensor of one number with the extents of another, in several spellings."""
    x = b.pick(has_axes)
    form = b.rng.randrange(4)
    if form == 0 and b.opset >= 9:
        value = numpy_helper.from_array(b.numbers((1,), b.choice(["float32", "int64", "bool"])))
        b.op("ConstantOfShape", [b.op("Shape", [x])], value=value)
    elif form == 1 and b.opset >= 11:
        stop = b.squeeze(extent(b, x, axis_of(b, x)), [0])
        positions = b.op("Range", [b.constant(numpy.array(0)), stop, b.constant(numpy.array(b.choice([1, 2])))])
        if b.chance(0.5):
            b.to(positions, "float32")
    elif form == 2:
        b.op("Size", [x])
    elif b.opset >= 9:
        y = b.pick(lambda v: v.rank == 2)
        b.op("EyeLike", [y], k=b.choice([0, 1, -1]), dtype=1)


@block(1)
def extents_as_numbers(b):
    """Arithmetic on extents that ends in floats, as scales do."""
    x = b.pick(has_axes)
    number = b.to(extent(b, x, axis_of(b, x)), "float32")
    number = b.op("Sqrt", [number]) if b.chance(0.5) else b.op("Mul", [number, b.scalar(0.5, "float32")])
    y = b.pick(lambda v: v.dtype == "float32")
    b.op(b.choice(["Mul", "Add"]), [y, number])


@block(1)
def triangle(b):
    if b.opset < 14:
        raise Discard("not yet")
    x = b.pick(lambda v: v.rank >= 2 and v.dtype in ("float32", "float64", "int64", "bool"))
    operands = [x] + ([b.constant(numpy.array(b.choice([-1, 0, 1, 2])), True)] if b.chance(0.6) else [])
    b.op("Trilu", operands, upper=b.rng.randrange(2))


@block(1)
def one_hot(b):
    if b.opset < 9:
        raise Discard("not yet")
    x = b.pick(lambda v: v.dtype in ("int64", "int32") and v.rank < 4 and v.size < 1024)
    depth, dtype = b.rng.randint(1, 9), b.choice(["float32", "int64"])
    b.op("OneHot", [x, b.constant(numpy.array(depth), True), b.constant(numpy.array([0, 1], dtype))], axis=b.choice([-1, 0]))


@block(1)
def reverse_sequence(b):
    if b.opset < 10:
        raise Discard("not yet")
    x = b.pick(lambda v: v.rank >= 2 and v.has_fixed(0) and not v.is_empty)
    least = min(shape[1] for shape in x.shapes)
    lengths = b.constant(numpy.array([b.rng.randint(1, least) for _ in range(x.shape[0])]), True)
    b.op("ReverseSequence", [x, lengths], batch_axis=0, time_axis=1)


@block(2)
def shuffle_channels(b):
    x = b.pick(lambda v: v.rank == 4 and v.has_fixed(1))
    groups = b.choice([k for k in (2, 3, 4) if x.shape[1] % k == 0])
    if not x.has_fixed(2) or not x.has_fixed(3):
        raise Discard("open")
    _, c, h, w = x.shape
    y = b.transpose(b.reshape(x, [-1 if 0 not in x.shape else 0, groups, c // groups, h, w]), [0, 2, 1, 3, 4])
    b.reshape(y, [-1 if 0 not in x.shape else 0, c, h, w])
