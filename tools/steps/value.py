# SPDX-License-Identifier: Apache-2.0
"""What is known of a result: a number per lane, how far the step's own may be from it, and where nothing can be told."""

import struct

import numpy as np

from steps.number_format import BOOL, COMPLEX64, COMPLEX128, ROUNDING, int_dtype, is_float

LIBRARY_ROUNDINGS = 8  # of exp, sin, ...: both sides may be off by a few
SLACK = 4  # what a bound is multiplied with before two numbers count as different


class Value:
    """Lanes of one node: `v`; for floats a bound `e` of how far the step's result may be; `u`: lanes that cannot be told."""

    def __init__(self, v, e=None, u=None):
        self.v = v
        self.e = np.zeros(v.shape) if e is None else e
        self.u = np.zeros(v.shape, bool) if u is None else u

    def uncertain(self):
        return self.e > 0


def constant(kind, payload, shape):
    if is_float(kind):
        return Value(np.full(shape, struct.unpack("<d", struct.pack("<Q", payload))[0]))
    if kind in (COMPLEX64, COMPLEX128):
        real = struct.unpack("<d", struct.pack("<Q", payload))[0]
        item = struct.pack("<ff", real, 0) if kind == COMPLEX64 else struct.pack("<dd", real, 0)
        lane = np.frombuffer(item, "V%d" % len(item)).reshape(())
        return Value(np.broadcast_to(lane, shape))
    if kind == BOOL:
        return Value(np.full(shape, payload != 0))
    return Value(np.full(shape, payload, np.uint64).astype(int_dtype(kind)))


def settle(kind, v, e, u, exact):
    """A float64 number as the step's type holds it. `exact`: the true result is v and the type rounds it correctly."""
    unit, step, largest = ROUNDING[kind]
    with np.errstate(all="ignore"):
        rounded = v.astype(np.float32).astype(np.float64) if kind == 1 else v
        known = exact & (e == 0)
        # Once there is a bound, a result near the largest number may or may not have overflowed.
        near = ~known & (np.abs(v) * (1 + 1e-6) + e > largest) & np.isfinite(v)
        e = np.where(known, 0, np.where(np.isfinite(v), e + unit * np.abs(v) + step, e))
    e = np.where(np.isnan(e), np.inf, e)
    u = u | near | ~np.isfinite(e)
    return Value(np.where(known, rounded, v), np.where(np.isfinite(e), e, 0), u)


def corners(function, v, e):
    """How far `function` moves when its operand moves by e, and where that cannot be told."""
    with np.errstate(all="ignore"):
        mid, low, high = function(v), function(v - e), function(v + e)
        moved = 1.5 * np.maximum(np.abs(low - mid), np.abs(high - mid))
        sure = (e == 0) | (np.isfinite(mid) & np.isfinite(low) & np.isfinite(high))
    return mid, np.where(e == 0, 0, moved), ~sure
