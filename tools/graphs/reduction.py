# SPDX-License-Identifier: Apache-2.0
"""Blocks that reduce, sort and accumulate."""

import numpy

from graphs.builder import Discard
from graphs.catalogue import block
from graphs.elementwise import is_float, is_number
from graphs.shape import axis_of, has_axes, signed

_REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
               "ReduceLogSumExp", "ReduceLogSum")  # fmt: skip


@block(4)
def reduce(b):
    op_type = b.choice(_REDUCTIONS)
    x = b.pick(is_float if op_type in ("ReduceMean", "ReduceL2", "ReduceLogSumExp", "ReduceLogSum", "ReduceProd") else is_number)
    if op_type == "ReduceLogSum":
        x = b.op("Add", [b.op("Abs", [x]), b.scalar(0.5, x.dtype)])
    axes = None
    if x.rank and b.chance(0.85):
        axes = [signed(b, axis, x.rank) if b.opset >= 11 else axis for axis in b.rng.sample(range(x.rank), b.rng.randint(1, x.rank))]
    b.reduce(op_type, x, axes, b.rng.randrange(2))


@block(1)
def reduce_nothing(b):
    if b.opset < 18:
        raise Discard("not yet")
    x = b.pick(is_float)
    b.op(b.choice(["ReduceSum", "ReduceMax", "ReduceMean"]), [x] + ([b.ints([])] if b.chance(0.5) else []), noop_with_empty_axes=1)


@block(2)
def find_largest(b):
    x = b.pick(is_number, has_axes)
    attributes = {"axis": axis_of(b, x), "keepdims": b.rng.randrange(2)}
    if any(shape[attributes["axis"]] == 0 for shape in x.shapes):
        raise Discard("nothing to choose from")
    if b.opset >= 12 and b.chance(0.4):
        attributes["select_last_index"] = 1
    b.op(b.choice(["ArgMax", "ArgMin"]), [x], **attributes)


@block(2)
def softmax(b):
    x = b.pick(is_float, has_axes)
    b.op(b.choice(["Softmax", "Softmax", "LogSoftmax"]), [x], axis=axis_of(b, x))


@block(1)
def hardmax(b):
    x = b.pick(is_float, has_axes)
    b.op("Hardmax", [x], axis=axis_of(b, x))


@block(2)
def top(b):
    x = b.pick(is_float, has_axes)
    axis = axis_of(b, x)
    k = b.rng.randint(1, max(1, min(shape[axis] for shape in x.shapes)))
    if b.opset < 10:
        values, _ = b.op("TopK", [x], outputs=2, k=k, axis=axis)
    else:
        attributes = {} if b.opset < 11 else {"largest": b.rng.randrange(2), "sorted": 1}
        leaves_out = (b.rng.randrange(2),) if b.chance(0.2) else ()
        values, _ = b.op("TopK", [x, b.ints([k])], outputs=2, axis=axis, leaves_out=leaves_out, **attributes)
    if values is not None and b.chance(0.3):
        b.op("Sigmoid", [values])


@block(1)
def cumulative(b):
    if b.opset < 11:
        raise Discard("not yet")
    x = b.pick(lambda v: v.dtype in ("float32", "float64", "int32", "int64") and v.rank)
    b.op("CumSum", [x, b.constant(numpy.array(axis_of(b, x), b.choice(["int32", "int64"])), True)],
         exclusive=b.rng.randrange(2), reverse=b.rng.randrange(2))  # fmt: skip


@block(1)
def normalized_by_length(b):
    """Rows divided by their lengths, as retrieval networks end."""
    x = b.pick(is_float, has_axes)
    axis = axis_of(b, x)
    if b.chance(0.3) and x.dtype == "float32":
        b.op("LpNormalization", [b.op("Add", [x, b.scalar(0.1, x.dtype)])], axis=axis, p=b.choice([1, 2]))
        return
    length = b.reduce("ReduceL2", x, [axis], 1)
    bounded = b.op("Max", [length, b.scalar(0.125, x.dtype)]) if b.opset >= 8 else b.op("Add", [length, b.scalar(1, x.dtype)])
    if b.opset >= 8 and b.chance(0.5):
        bounded = b.op("Expand", [bounded, b.op("Shape", [x])])
    b.op("Div", [x, bounded])


@block(1)
def statistics(b):
    """Mean and deviation of one tensor, both used."""
    x = b.pick(is_float, has_axes)
    axes = [axis_of(b, x)]
    mean = b.reduce("ReduceMean", x, axes, 1)
    spread = b.reduce("ReduceMean", b.op("Mul", [x, x]), axes, 1)
    variance = b.op("Sub", [spread, b.op("Mul", [mean, mean])])
    b.op("Concat", [mean, b.op("Abs", [variance])], axis=axes[0])
