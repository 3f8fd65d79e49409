# SPDX-License-Identifier: Apache-2.0
"""Contract: sums of products as products of numpy's matrices, one per tap of a kernel."""

import numpy as np

from steps.number_format import is_float
from steps.value import Value, settle

MATMUL, CONV, CONV_TRANSPOSE = range(3)


def operand_extents(step):
    """Extents of A and of B over their own axes."""
    body, domain = step.body, step.domain
    inner = tuple(body["inner"])
    if body["form"] == MATMUL:
        batch, rest = domain[: body["batch_axes"]], domain[body["batch_axes"] :]
        rows, columns = rest[: body["m_axes"]], rest[body["m_axes"] :]
        return batch + rows + inner, batch + inner + columns
    group, channels, kernel = body["group"], inner[0], inner[1:]
    a = (domain[0], group * channels) + tuple(body["a_spatial"])
    if body["form"] == CONV:
        return a, (domain[1], channels) + kernel
    return a, (group * channels, domain[1] // group) + kernel


def matrix_product(step, a, b):
    batch = step.domain[: step.body["batch_axes"]]
    rows = step.domain[len(batch) : len(batch) + step.body["m_axes"]]
    columns = step.domain[len(batch) + len(rows) :]
    size = lambda extents: int(np.prod(extents, dtype=np.int64))
    depth = size(step.body["inner"])
    left = a.reshape(size(batch), size(rows), depth)
    right = b.reshape(size(batch), depth, size(columns))
    return np.matmul(left, right).reshape(step.domain)


def taps(kernel):
    return np.ndindex(*kernel) if kernel else [()]


def convolution(step, a, b):
    """[N, C, spatial] with [M, C / group, kernel]: each tap is a product over the channels."""
    body, out = step.body, step.domain[2:]
    group, kernel = body["group"], tuple(body["inner"][1:])
    images, spatial = a.shape[0], a.shape[2:]
    last = [
        (n - 1) * stride + (size - 1) * dilation + 1
        for n, stride, size, dilation in zip(out, body["strides"], kernel, body["dilations"])
    ]
    around = [(0, 0), (0, 0)] + [
        (before, max(0, reach - before - n))
        for before, reach, n in zip(body["pads"], last, spatial)
    ]
    padded = np.pad(a, around)
    total = np.zeros((images, group, step.domain[1] // group) + out, a.dtype)
    weights = b.reshape((group, step.domain[1] // group) + b.shape[1:])
    for tap in taps(kernel):
        window = padded[
            (slice(None), slice(None))
            + tuple(
                slice(t * dilation, t * dilation + (n - 1) * stride + 1, stride)
                for t, dilation, n, stride in zip(tap, body["dilations"], out, body["strides"])
            )
        ]
        image = window.reshape((images, group, -1) + out)
        factors = weights[(slice(None), slice(None), slice(None)) + tap]
        total = total + np.einsum("gmc,ngc...->ngm...", factors, image)
    return total.reshape(step.domain)


def transposed_convolution(step, a, b):
    """[N, C, spatial] with [C, M / group, kernel]: each element is spread over the taps."""
    body, out = step.body, step.domain[2:]
    group, kernel = body["group"], tuple(body["inner"][1:])
    images, spatial = a.shape[0], a.shape[2:]
    room = [
        max((n - 1) * stride + (size - 1) * dilation + 1, before + extent)
        for n, stride, size, dilation, before, extent in zip(
            spatial, body["strides"], kernel, body["dilations"], body["pads"], out
        )
    ]
    total = np.zeros((images, group, step.domain[1] // group) + tuple(room), a.dtype)
    image = a.reshape((images, group, -1) + spatial)
    weights = b.reshape((group, b.shape[0] // group) + b.shape[1:])
    for tap in taps(kernel):
        factors = weights[(slice(None), slice(None), slice(None)) + tap]
        place = (slice(None),) * 3 + tuple(
            slice(t * dilation, t * dilation + (n - 1) * stride + 1, stride)
            for t, dilation, n, stride in zip(tap, body["dilations"], spatial, body["strides"])
        )
        total[place] += np.einsum("gcm,ngc...->ngm...", factors, image)
    crop = (slice(None),) * 3 + tuple(
        slice(before, before + extent) for before, extent in zip(body["pads"], out)
    )
    return total[crop].reshape(step.domain)


PRODUCTS = {MATMUL: matrix_product, CONV: convolution, CONV_TRANSPOSE: transposed_convolution}


def accumulate(step, a, b):
    """The sums, with the bound of what rounding the operands, the sum and the result may make."""
    product = lambda left, right: PRODUCTS[step.body["form"]](step, left, right)
    kind = step.body["accumulator"]
    total = product(a.v, b.v)
    counts = product(a.u.astype(np.int64), np.ones(b.u.shape, np.int64))
    counts = counts + product(np.ones(a.u.shape, np.int64), b.u.astype(np.int64))
    if not is_float(kind):
        return Value(total, None, counts > 0)
    magnitude = product(np.abs(a.v), np.abs(b.v))
    moved = product(np.abs(a.v), b.e) + product(a.e, np.abs(b.v)) + product(a.e, b.e)
    depth = int(np.prod(step.body["inner"], dtype=np.int64))
    moved = moved + (depth + 1) * 2.0**-53 * magnitude
    return settle(kind, total, moved, counts > 0, np.zeros(total.shape, bool))


def run_contract(step):
    operands = []
    for root, extents in zip(("a_prologue", "b_prologue"), operand_extents(step)):
        value = step.evaluate([step.body[root]], step.coordinates(extents), extents)[0]
        spread = lambda x, extents=extents: np.ascontiguousarray(np.broadcast_to(x, extents))
        operands.append(Value(spread(value.v), spread(value.e), spread(value.u)))
    at = step.coordinates(step.domain)
    outside = {"accumulator": accumulate(step, *operands)}
    values = step.evaluate(step.body["roots"], at, step.domain, outside)
    return [(k, at, value) for k, value in enumerate(values)]
