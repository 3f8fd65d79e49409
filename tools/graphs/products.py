# SPDX-License-Identifier: Apache-2.0
"""Blocks of products of matrices, and of transformers."""

import math

import numpy

from graphs.builder import Discard
from graphs.catalogue import block
from graphs.elementwise import activation, gelu, is_float, partner
from graphs.shape import extent

_WIDTHS = (1, 2, 3, 4, 5, 8, 9, 16, 17, 24, 32)


def is_rows(value):
    return value.dtype in ("float32", "float64") and value.rank >= 2 and value.has_fixed(-1) and value.shape[-1] > 0


def is_sequence(value):
    return is_rows(value) and value.rank == 3


def linear(b, x, width, bias=None):
    y = b.op("MatMul", [x, b.weight([x.shape[-1], width], x.dtype)])
    if b.chance(0.7) if bias is None else bias:
        w = b.weight([width], x.dtype, 0.5)
        y = b.op("Add", [y, w] if b.chance(0.6) else [w, y])
    return y


@block(4, "rows")
def matmul(b):
    x = b.pick(is_rows)
    y = linear(b, x, b.choice(_WIDTHS))
    if b.chance(0.5):
        activation(b, y)


@block(2, "rows")
def matmul_of_values(b):
    """Both operands computed, with batches that broadcast."""
    x = b.pick(is_rows)
    form = b.rng.randrange(3)
    if form == 0:
        order = list(range(x.rank - 2)) + [x.rank - 1, x.rank - 2]
        b.op("MatMul", [x, b.transpose(x, order)] if b.chance(0.5) else [b.transpose(x, order), x])
    elif form == 1:
        y = b.pick(lambda v: v.is_float and v.dtype == x.dtype and v.rank >= 1)
        b.op("MatMul", [x, y])
    else:
        lead = [b.choice([1, 2, 3])] if b.chance(0.5) else []
        w = b.weight([*lead, b.rng.randint(1, 5), x.shape[-1], b.choice(_WIDTHS)], x.dtype, 0.3) if b.chance(0.4) else b.weight([x.shape[-1]], x.dtype)
        b.op("MatMul", [x, w])


@block(3, "rows")
def gemm(b):
    x = b.pick(lambda v: is_rows(v) and v.rank == 2)
    width, attributes = b.choice(_WIDTHS), {}
    transposed = b.chance(0.5)
    if transposed:
        attributes["transB"] = 1
    if b.chance(0.3):
        attributes["alpha"] = b.choice([0.5, 2.0, 0.0])
    if b.chance(0.3):
        attributes["beta"] = b.choice([0.5, -1.0, 0.0])
    w = b.weight([width, x.shape[1]] if transposed else [x.shape[1], width], x.dtype)
    bias = b.weight(b.choice([(), (1,), (width,), (1, width)] + ([(x.shape[0], 1)] if x.is_fixed else [])), x.dtype, 1)
    operands = [x, w, bias] if b.opset < 11 or b.chance(0.8) else [x, w]
    y = b.op("Gemm", operands, **attributes)
    if b.chance(0.4):
        activation(b, y)


@block(1, "rows")
def einsum(b):
    if b.opset < 12:
        raise Discard("not yet")
    x = b.pick(is_rows, lambda v: v.rank in (2, 3, 4))
    letters = "abcd"[: x.rank]
    form = b.rng.randrange(4)
    if form == 0:
        b.op("Einsum", [x, b.weight([x.shape[-1], 5], x.dtype)], equation=f"{letters},{letters[-1]}k->{letters[:-1]}k")
    elif form == 1:
        b.op("Einsum", [x], equation=f"{letters}->{''.join(b.rng.sample(letters, x.rank))}")
    elif form == 2:
        b.op("Einsum", [x, x], equation=f"{letters[:-1]}i,{letters[:-1]}i->{letters[:-1]}")
    else:
        b.op("Einsum", [x], equation=f"{letters}->{letters[:-1]}")


def layer_norm(b, x):
    """In single nodes or as an operator."""
    d, axis = x.shape[-1], -1
    scale = b.weight([d], x.dtype, 1)
    shift = b.weight([d], x.dtype, 0.5)
    if b.opset >= 17 and b.chance(0.5):
        return b.op("LayerNormalization", [x, scale, shift] if b.chance(0.8) else [x, scale], axis=axis, epsilon=1e-5)
    centred = b.op("Sub", [x, b.reduce("ReduceMean", x, [axis], 1)])
    squares = b.op("Pow", [centred, b.scalar(2, x.dtype)]) if b.chance(0.5) else b.op("Mul", [centred, centred])
    spread = b.op("Sqrt", [b.op("Add", [b.reduce("ReduceMean", squares, [axis], 1), b.scalar(1e-5, x.dtype)])])
    if b.chance(0.7):
        y = b.op("Div", [centred, spread])
    else:
        y = b.op("Mul", [centred, b.op("Reciprocal", [spread])])
    return b.op("Add", [b.op("Mul", [y, scale]), shift])


def rms_norm(b, x):
    scale = b.weight([x.shape[-1]], x.dtype, 1)
    if b.opset >= 23 and b.chance(0.4):
        return b.op("RMSNormalization", [x, scale], axis=-1)
    squares = b.op("Pow", [x, b.scalar(2, x.dtype)]) if b.chance(0.6) else b.op("Mul", [x, x])
    spread = b.op("Sqrt", [b.op("Add", [b.reduce("ReduceMean", squares, [-1], 1), b.scalar(1e-5, x.dtype)])])
    form = b.rng.randrange(3)
    if form == 0:
        y = b.op("Mul", [x, b.op("Reciprocal", [spread])])
    elif form == 1:
        y = b.op("Mul", [x, b.op("Div", [b.scalar(1, x.dtype), spread])])
    else:
        y = b.op("Div", [x, spread])
    return b.op("Mul", [scale, y] if b.chance(0.5) else [y, scale])


@block(3, "rows")
def norm(b):
    x = b.pick(is_rows)
    (layer_norm if b.chance(0.6) else rms_norm)(b, x)


@block(3, "rows")
def feed_forward(b):
    x = b.pick(is_rows)
    wide = b.choice([8, 16, 32, 33])
    if b.chance(0.4):
        gate, up = linear(b, x, wide, False), linear(b, x, wide, False)
        y = b.op("Mul", [activation(b, gate, "SiLU"), up])
    elif b.chance(0.3):
        both = linear(b, x, 2 * wide)
        first, second = b.split(both, [wide, wide], x.rank - 1)
        y = b.op("Mul", [first, gelu(b, second)])
    else:
        y = activation(b, linear(b, x, wide))
    y = linear(b, y, x.shape[-1])
    if b.chance(0.7):
        y = b.op("Add", [x, y])
    if b.chance(0.4):
        layer_norm(b, y)


def masked(b, scores, x):
    """Adds a mask to scores of [N, heads, L, L]."""
    form = b.rng.randrange(6)
    low = b.choice([-1e4, -1e9, -3.4e38]) if x.dtype == "float32" else -1e4
    if form == 0:
        return scores
    if form == 1 and scores.has_fixed(-1) and scores.has_fixed(-2):
        rows, columns = scores.shape[-2:]
        triangle = numpy.triu(numpy.full((rows, columns), low, x.dtype), 1 + columns - rows)
        return b.op("Add", [scores, b.constant(triangle.reshape(b.choice([(rows, columns), (1, 1, rows, columns)])))])
    if form in (2, 3) and b.opset >= 14 and b.opset >= 9:
        # A causal mask made of the length.
        rows, columns = extent(b, scores, scores.rank - 2), extent(b, scores, scores.rank - 1)
        ones = b.op("Expand", [b.constant(numpy.array(True if b.opset >= 21 or form == 2 else 1.0)), b.op("Concat", [rows, columns], axis=0)])
        lower = b.op("Trilu", [ones], upper=0)
        if lower.dtype != "bool":
            lower = b.to(lower, "bool")
        if form == 2:
            return b.op("Where", [lower, scores, b.constant(numpy.array(low, x.dtype))])
        bias = b.op("Where", [lower, b.constant(numpy.array(0, x.dtype)), b.constant(numpy.array(low, x.dtype))])
        return b.op("Add", [scores, bias])
    if form == 4:
        # Of tokens that count, as an input of numbers 0 and 1.
        mask = b.input("int64", [b.dims_of(x)[0], b.dims_of(x)[1]], lambda shape: numpy.tri(*shape, 1, dtype=bool) | (numpy.arange(shape[1]) == 0))
        wide = b.unsqueeze(mask, [1, 2]) if b.chance(0.5) else b.unsqueeze(b.unsqueeze(mask, [1]), [2])
        bias = b.op("Mul", [b.op("Sub", [b.scalar(1, x.dtype), b.to(wide, x.dtype)]), b.scalar(-1e4, x.dtype)])
        return b.op("Add", [scores, bias])
    bias = b.weight([1 if b.chance(0.5) else scores.shape[1], 1, 1], x.dtype, 1)
    return b.op("Add", [scores, bias])


def soft(b, scores):
    if b.opset < 13 or b.chance(0.6):
        return b.op("Softmax", [scores], axis=scores.rank - 1 if b.chance(0.5) or b.opset < 11 else -1)
    shifted = b.op("Sub", [scores, b.reduce("ReduceMax", scores, [-1], 1)])
    grown = b.op("Exp", [shifted])
    return b.op("Div", [grown, b.reduce("ReduceSum", grown, [-1], 1)])


@block(5, "rows")
def attention(b):
    """Product, softmax, product, with what exporters put between."""
    x = b.pick(is_sequence, lambda v: v.shape[2] >= 2)
    d = x.shape[2]
    count = b.choice([k for k in (1, 2, 3, 4) if d % k == 0])
    size = d // count
    shared = b.choice([k for k in (1, count) if count % k == 0]) if b.chance(0.3) else count
    source = x
    if b.chance(0.15):
        source = b.pick(is_sequence, lambda v: v.shape[2] == d and v.dtype == x.dtype and [s[0] for s in v.shapes] == [s[0] for s in x.shapes])
    if source is x and shared == count and b.chance(0.3):
        q, k, v = b.split(linear(b, x, 3 * d), [d, d, d], 2)
    else:
        q, k, v = linear(b, x, d), linear(b, source, shared * size), linear(b, source, shared * size)

    def split_heads(y, heads, order):
        if b.chance(0.5):
            y = b.reshape(y, [0, 0, heads, size])
        else:
            y = b.op("Reshape", [y, b.op("Concat", [extent(b, y, 0), extent(b, y, 1), b.ints([heads]), b.ints([size])], axis=0)])
        return b.transpose(y, order)

    is_turned = b.chance(0.5)
    q, v = split_heads(q, count, [0, 2, 1, 3]), split_heads(v, shared, [0, 2, 1, 3])
    k = split_heads(k, shared, [0, 2, 3, 1] if is_turned else [0, 2, 1, 3])
    if b.opset >= 23 and not is_turned and b.chance(0.5):
        y = b.op("Attention", [q, k, v], is_causal=b.rng.randrange(2))
    else:
        if not is_turned:
            k = b.transpose(k, [0, 1, 3, 2])
        scale = 1 / math.sqrt(size)
        form = b.rng.randrange(4)
        if form == 0:
            q = b.op("Mul", [q, b.scalar(scale, x.dtype)])
        elif form == 1:
            q, k = (b.op("Mul", [part, b.scalar(math.sqrt(scale), x.dtype)]) for part in (q, k))
        scores = b.op("MatMul", [q, k])
        if form == 2:
            scores = b.op("Div", [scores, b.scalar(1 / scale, x.dtype)])
        elif form == 3:
            scores = b.op("Mul", [scores, b.scalar(scale, x.dtype)])
        weights = soft(b, masked(b, scores, x))
        if b.chance(0.2):
            weights = b.op("Dropout", [weights])
        y = b.op("MatMul", [weights, v])
    y = b.transpose(y, [0, 2, 1, 3])
    if b.chance(0.5):
        y = b.reshape(y, [0, 0, d])
    else:
        y = b.op("Reshape", [y, b.op("Concat", [extent(b, x, 0), extent(b, x, 1), b.ints([d])], axis=0)])
    y = linear(b, y, d)
    if b.chance(0.6):
        y = b.op("Add", [x, y])
    if b.chance(0.4):
        layer_norm(b, y)


@block(2, "rows")
def rotary(b):
    """Halves of each row turned by angles, as decoders write positions."""
    if b.opset < 10:
        raise Discard("no Slice of inputs yet")
    x = b.pick(is_sequence, lambda v: v.shape[2] % 2 == 0 and v.has_fixed(1))
    length, d = x.shape[1:]
    angles = numpy.tile(numpy.outer(numpy.arange(length), numpy.exp(-numpy.arange(d // 2))), 2)
    first, second = b.slice(x, [0], [d // 2], [2]), b.slice(x, [d // 2], [1 << 62], [2])
    turned = b.op("Concat", [b.op("Neg", [second]), first], axis=2)
    cosines, sines = (b.constant(f(angles).astype(x.dtype)) for f in (numpy.cos, numpy.sin))
    b.op("Add", [b.op("Mul", [x, cosines]), b.op("Mul", [turned, sines])])


@block(2, "rows")
def embedding(b):
    tokens = b.pick(lambda v: v.dtype in ("int64", "int32") and 1 <= v.rank <= 3 and v.size < 512)
    rows = 11
    if b.opset >= 10:
        tokens = b.op("Mod", [tokens, b.constant(numpy.array(rows, tokens.dtype))])
    elif any(t[0].size and (t[0].min() < 0 or t[0].max() >= rows) for t in tokens.arrays):
        raise Discard("outside")
    x = b.op("Gather", [b.weight([rows, b.choice([4, 6, 8, 16])], "float32", 1), tokens])
    if b.chance(0.5) and x.rank == 3 and b.opset >= 11:
        positions = b.op("Range", [b.constant(numpy.array(0)), b.squeeze(extent(b, x, 1), [0]), b.constant(numpy.array(1))])
        x = b.op("Add", [x, b.op("Gather", [b.weight([33, x.shape[2]], "float32", 1), positions])])
    if b.chance(0.5):
        layer_norm(b, x)


@block(1, "rows")
def outer_operand(b):
    """A product whose result an operand of other extents grows."""
    x = b.pick(is_float, lambda v: v.rank >= 1)
    y = b.unsqueeze(x, [x.rank])
    b.op("Mul", [y, partner(b, y)])
