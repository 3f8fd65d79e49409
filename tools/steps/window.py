# SPDX-License-Identifier: Apache-2.0
"""Window: pooling tap by tap over all outputs at once, and local response normalisation."""

import numpy as np

from steps.number_format import int_dtype, is_float
from steps.value import LIBRARY_ROUNDINGS, Value, settle

MAX, AVERAGE, LP, LRN = range(4)


class Taps:
    """What lies under each tap of the window of every output."""

    def __init__(self, step, image):
        self._step = step
        self._image = image

    def __iter__(self):
        """(elements, which of them are inside the input, which inside its padding, places in a channel)."""
        body, domain = self._step.body, self._step.domain
        extents = tuple(body["in_spatial"])
        outputs = np.meshgrid(*[np.arange(n) for n in domain[2:]], indexing="ij")
        for tap in np.ndindex(*body["kernel"]):
            at = [
                out * stride + t * dilation - before
                for out, stride, t, dilation, before in zip(
                    outputs, body["strides"], tap, body["dilations"], body["pads_begin"]
                )
            ]
            inside = np.ones(domain[2:], bool)
            padded = np.ones(domain[2:], bool)
            for place, extent, after in zip(at, extents, body["pads_end"]):
                inside &= (place >= 0) & (place < extent)
                padded &= place < extent + after
            safe = tuple(np.where(inside, place, 0) for place in at)
            order = range(len(extents))
            if body["column_major"]:
                order = reversed(order)
            place = np.zeros(domain[2:], np.int64)
            for axis in order:
                place = place * extents[axis] + safe[axis]
            yield self._image[(slice(None), slice(None)) + safe], inside, padded, place


def maximum(step, image):
    kind = step.body["accumulator"]
    least = -np.inf if is_float(kind) else np.iinfo(int_dtype(kind)).min
    best = np.full(step.domain, least, image.dtype)
    index = np.full(step.domain, -1, np.int64)
    channel = np.arange(step.domain[0] * step.domain[1]).reshape(step.domain[:2] + (1,) * (len(step.domain) - 2))
    first = channel * int(np.prod(step.body["in_spatial"], dtype=np.int64))
    for elements, inside, _, place in Taps(step, image):
        # The first of equals stays; NaN wins over all but NaN.
        wins = (index < 0) | (elements > best) | ((elements != elements) & (best == best))
        wins = wins & inside
        best = np.where(wins, elements, best)
        index = np.where(wins, first + place, index)
    return Value(best), index


def average(step, image):
    total, magnitude = np.zeros(step.domain), np.zeros(step.domain)
    count = np.zeros(step.domain[2:])
    for elements, inside, padded, _ in Taps(step, image):
        total = total + np.where(inside, elements, 0)
        magnitude = magnitude + np.where(inside, np.abs(elements), 0)
        count = count + (inside | (padded & step.body["count_include_pad"]))
    divisor = np.where(count == 0, 1, count)
    bound = magnitude / divisor * 2.0**-53 * (np.max(count, initial=0) + 2)
    exact = np.zeros(step.domain, bool)
    return settle(step.body["accumulator"], np.where(count == 0, 0, total / divisor), bound, exact, exact)


def norm(step, image):
    power = step.body["p"]
    total = np.zeros(step.domain)
    for elements, inside, _, _ in Taps(step, image):
        total = total + np.where(inside, np.abs(elements) ** power, 0)
    value = total ** (1 / power)
    exact = np.zeros(step.domain, bool)
    bound = LIBRARY_ROUNDINGS * 2.0**-53 * len(step.body["kernel"]) * 4 * value
    return settle(step.body["accumulator"], value, bound, exact, exact)


def response(step, image):
    body, size = step.body, step.body["kernel"][0]
    squares = image.astype(np.float64) ** 2
    total = np.zeros(image.shape)
    for channel in range(image.shape[1]):
        first, last = max(0, channel - (size - 1) // 2), channel + size // 2 + 1
        total[:, channel] = squares[:, first:last].sum(axis=1)
    value = image / (body["bias"] + body["alpha"] / size * total) ** body["beta"]
    exact = np.zeros(image.shape, bool)
    return settle(body["accumulator"], value, LIBRARY_ROUNDINGS * 2.0**-53 * 8 * np.abs(value), exact, exact)


def run_window(step):
    body = step.body
    extents = step.domain[:2] + tuple(body["in_spatial"])
    # Wider types hold all elements of narrower ones.
    image = step.load(0, step.coordinates(extents), extents).v
    if not is_float(body["accumulator"]):
        image = image.astype(int_dtype(body["accumulator"]))
    image = np.ascontiguousarray(np.broadcast_to(image, extents))
    at = step.coordinates(step.domain)
    with np.errstate(all="ignore"):
        index = None
        if body["kind"] == MAX:
            pooled, index = maximum(step, image)
        else:
            pooled = {AVERAGE: average, LP: norm, LRN: response}[body["kind"]](step, image)
    roots = body["roots"]
    values = step.evaluate(roots, at, step.domain, {"accumulator": pooled})
    out = [(k, at, value) for k, value in enumerate(values)]
    if len(step.record["writes"]) > len(roots):
        out.append((1, at, Value(index)))
    return out
