# SPDX-License-Identifier: Apache-2.0
"""Blocks in which several values are the same, or are views of the same: what buffers are shared and copied for."""

import numpy

from graphs.builder import Discard
from graphs.catalogue import block
from graphs.elementwise import activation, is_float, is_number
from graphs.shape import axis_of, has_axes


@block(2)
def same_twice(b):
    """Two equal nodes, joined."""
    x = b.pick(is_float)
    if b.chance(0.5):
        parts = [activation(b, x, "Tanh"), activation(b, x, "Tanh")]
    else:
        w = b.constant(b.numbers((), x.dtype))
        parts = [b.op("Mul", [x, w]), b.op("Mul", [x, w])]
    if x.rank and b.chance(0.6):
        b.op("Concat", [*parts, x, parts[0]], axis=axis_of(b, x))
    else:
        b.op("Sub", parts)


@block(2)
def copies(b):
    """Of inputs, constants and results, which the graph may give away as they are."""
    x = b.pick()
    for _ in range(b.rng.randint(1, 3)):
        b.op("Identity", [x])
        x = b.choice(b.values[-3:])


@block(2)
def views_of_views(b):
    x = b.pick(has_axes, lambda v: v.rank >= 2)
    for _ in range(b.rng.randint(2, 5)):
        form = b.rng.randrange(5)
        if form == 0:
            order = list(range(x.rank))
            b.rng.shuffle(order)
            x = b.transpose(x, order)
        elif form == 1:
            axis = axis_of(b, x)
            x = b.slice(x, [b.choice([0, 1])], [b.choice([1 << 62, -1])], [axis])
        elif form == 2 and x.rank < 6:
            x = b.unsqueeze(x, [b.rng.randint(0, x.rank)])
        elif form == 3 and x.rank > 1:
            x = b.op("Flatten", [x], axis=b.rng.randint(1, x.rank - 1))
        elif b.opset >= 11:
            x = b.slice(x, [-1], [-(1 << 62)], [axis_of(b, x)], [-1])
        if not x.rank:
            break
    if x.is_float:
        b.op(b.choice(["Relu", "Neg", "Sigmoid"]), [x])


@block(2)
def chain_of_concats(b):
    """What has been joined is joined again, with parts that are read elsewhere too."""
    x = b.pick(has_axes, is_float)
    axis = axis_of(b, x)
    total = x
    for _ in range(b.rng.randint(2, 4)):
        part = activation(b, x, b.choice(["Relu", "Sigmoid", "Tanh"]))
        total = b.op("Concat", [total, part] if b.chance(0.6) else [part, total, part], axis=axis)
        if b.chance(0.4):
            x = b.slice(total, [0], [max(1, x.shape[axis])], [axis]) if x.has_fixed(axis) else part


@block(2)
def written_twice(b):
    """A value that is scattered into and read as it was."""
    if b.opset < 11:
        raise Discard("not yet")
    x = b.pick(has_axes, is_number, lambda v: not v.is_empty)
    if not all(x.has_fixed(axis) for axis in range(1, x.rank)):
        raise Discard("open")
    y = b.op("Identity", [x]) if b.chance(0.3) else b.op("Add", [x, x])
    updates = b.constant(b.numbers([1, *x.shape[1:]], x.dtype))
    z = b.op("ScatterND", [y, b.constant(numpy.zeros((1, 1), numpy.int64), True), updates])
    b.op("Add", [y, z] if b.chance(0.5) else [z, x])


@block(1)
def halves(b):
    """Two halves of an axis, one through a function, joined in either order."""
    x = b.pick(has_axes, is_float)
    axis = axis_of(b, x, True)
    half = x.shape[axis] // 2
    if not half or x.shape[axis] % 2:
        raise Discard("odd")
    if b.chance(0.5):
        first, second = b.split(x, [half, half], axis)
    else:
        first, second = b.slice(x, [0], [half], [axis]), b.slice(x, [half], [2 * half], [axis])
    form = b.rng.randrange(3)
    if form == 0:
        b.op("Concat", [second, activation(b, first, "Sigmoid")], axis=axis)
    elif form == 1:
        b.op("Mul", [first, b.op("Sigmoid", [second])])
    else:
        b.op("Concat", [b.op("Add", [first, second]), b.op("Sub", [first, second])], axis=axis)
