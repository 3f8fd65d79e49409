# SPDX-License-Identifier: Apache-2.0
"""Reductions of a tuple over elements, in one order; the bound allows for any other."""

import numpy as np

from steps.number_format import ROUNDING, is_float
from steps.value import Value


def reduction(step, states, outer, inner, rows):
    """States after all elements of the last axes, per coordinate of the leading ones."""
    at = step.coordinates(outer)
    outside = dict(rows)
    zeros = [np.zeros(outer, np.int64) for _ in inner]
    values = step.evaluate([s[1] for s in states], at + zeros, outer, outside)
    largest = [np.where(np.isfinite(v.v.astype(np.float64)), np.abs(v.v.astype(np.float64)), np.inf) for v in values]
    count = int(np.prod(inner, dtype=np.int64))
    for element in range(count):
        inner_at = [np.full(outer, c) for c in np.unravel_index(element, inner)] if inner else []
        for k, value in enumerate(values):
            outside[("state", k)] = value
        values = step.evaluate([s[2] for s in states], at + inner_at, outer, outside, True)
        for k, value in enumerate(values):
            with np.errstate(all="ignore"):
                size = np.abs(value.v.astype(np.float64))
            largest[k] = np.maximum(largest[k], np.where(np.isnan(size), np.inf, size))
    out = []
    for k, value in enumerate(values):
        if not is_float(states[k][0]):
            out.append(value)
            continue
        unit, _, limit = ROUNDING[states[k][0]]
        with np.errstate(all="ignore"):
            # In another order the sums in between are others; those here tell their size.
            rounded = value.e > 0
            e = np.where(rounded, 4 * value.e + 4 * unit * count * largest[k], 0)
            unknown = value.u | (largest[k] > np.sqrt(limit)) | (rounded & ~np.isfinite(e))
        out.append(Value(value.v, np.where(unknown, 0, e), unknown))
    return out
