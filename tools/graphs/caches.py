# SPDX-License-Identifier: Apache-2.0
"""Blocks of decoders: a past that grows, heads that share keys, positions from lengths."""

import math

import numpy

from graphs.builder import Discard
from graphs.catalogue import block
from graphs.products import is_rows, linear, soft
from graphs.shape import extent


@block(3, "rows")
def attention_with_past(b):
    if b.opset < 13:
        raise Discard("old")
    x = b.pick(is_rows, lambda v: v.rank == 3 and v.dtype == "float32" and not v.is_empty)
    count, size = b.choice([1, 2, 4]), b.choice([2, 4, 8])
    groups = b.choice([k for k in (1, 2) if count % k == 0])
    shared = count // groups
    dims = b.dims_of(x)
    length = b.choice(["K", 3, 0, 1])
    past_k, past_v = (b.input("float32", [dims[0], shared, length, size]) for _ in range(2))

    def heads(width):
        y = b.reshape(linear(b, x, width * size), [0, 0, width, size])
        return b.transpose(y, [0, 2, 1, 3])

    q, k, v = heads(count), heads(shared), heads(shared)
    k, v = b.op("Concat", [past_k, k], axis=2), b.op("Concat", [past_v, v], axis=2)
    total, rows = extent(b, k, 2), extent(b, q, 2)
    if groups > 1:
        wide = []
        for part in (k, v):
            target = b.op("Concat", [extent(b, part, 0), b.ints([shared, groups]), total, b.ints([size])], axis=0)
            grown = b.op("Expand", [b.unsqueeze(part, [2]), target])
            wide.append(b.op("Reshape", [grown, b.op("Concat", [extent(b, part, 0), b.ints([count]), total, b.ints([size])], axis=0)]))
        k, v = wide
    scores = b.op("MatMul", [q, b.transpose(k, [0, 1, 3, 2])])
    scores = b.op("Mul", [scores, b.scalar(1 / math.sqrt(size), "float32")])
    if b.chance(0.7):
        zero, one = (b.constant(numpy.array(n)) for n in (0, 1))
        begin, end = b.squeeze(b.op("Sub", [total, rows]), [0]), b.squeeze(total, [0])
        positions = b.unsqueeze(b.op("Range", [begin, end, one]), [1])
        keys = b.unsqueeze(b.op("Range", [zero, end, one]), [0])
        if b.opset >= 16 and b.chance(0.5):
            seen = b.op("LessOrEqual", [keys, positions])
        else:
            seen = b.op("Not", [b.op("Greater", [keys, positions])])
        low = b.constant(numpy.array(b.choice([-1e9, -3.4028234663852886e38]), "float32"))
        if b.chance(0.5):
            scores = b.op("Where", [seen, scores, low])
        else:
            scores = b.op("Add", [scores, b.op("Where", [seen, b.constant(numpy.array(0, "float32")), low])])
    y = b.transpose(b.op("MatMul", [soft(b, scores), v]), [0, 2, 1, 3])
    y = linear(b, b.reshape(y, [0, 0, count * size]), x.shape[2])
    b.op("Add", [x, y])


@block(1, "rows")
def newest_row(b):
    """The last row of each sequence, taken in one of the spellings of exporters."""
    x = b.pick(is_rows, lambda v: v.rank == 3 and not v.is_empty)
    form = b.rng.randrange(4)
    if form == 0:
        y = b.op("Gather", [x, b.constant(numpy.array(-1 if b.opset >= 11 else 0), True)], axis=1)
    elif form == 1:
        y = b.slice(x, [-1], [1 << 62], [1])
    elif form == 2 and b.opset >= 13:
        last = b.op("Sub", [extent(b, x, 1), b.ints([1])])
        y = b.op("Gather", [x, b.squeeze(last, [0])], axis=1)
    else:
        y = b.squeeze(b.slice(x, [-1], [1 << 62], [1]), [1])
    linear(b, y, b.choice([1, 5, 11]))


@block(1, "rows")
def pooled_by_mask(b):
    """The mean of the rows that a mask counts."""
    x = b.pick(is_rows, lambda v: v.rank == 3 and v.dtype == "float32" and not v.is_empty)
    dims = b.dims_of(x)
    mask = b.input("int64", dims[:2], lambda shape: numpy.tri(*shape, 1, dtype=bool) | (numpy.arange(shape[1]) == 0))
    weights = b.to(b.unsqueeze(mask, [2]), "float32")
    if b.opset >= 8 and b.chance(0.5):
        weights = b.op("Expand", [weights, b.op("Shape", [x])])
    total = b.reduce("ReduceSum", b.op("Mul", [x, weights]), [1], 0)
    count = b.reduce("ReduceSum", weights, [1], 0)
    b.op("Div", [total, b.clip(count, 1e-3, 1e9)])
