# SPDX-License-Identifier: Apache-2.0
"""Casts between element types: one rounding, towards zero to integers, saturating where ONNX says so."""

import numpy as np

from steps.integer_arithmetic import narrow_integer
from steps.number_format import BOOL, ROUNDING, WITHOUT_NAN, is_float, quantise
from steps.value import Value


def cast(kind, from_kind, a):
    if is_float(from_kind):
        if is_float(kind):
            if kind in (1, 11):
                with np.errstate(all="ignore"):
                    v = a.v.astype(np.float32).astype(np.float64) if kind == 1 else a.v
                    inexact = a.uncertain()
                    grown = a.e + (ROUNDING[1][0] * np.abs(a.v) + ROUNDING[1][1] if kind == 1 else 0)
                    over = inexact & (np.isinf(v) | (np.abs(a.v) + a.e > ROUNDING[kind][2]))
                return Value(np.where(inexact, a.v, v), np.where(inexact, grown, 0), a.u | over)
            v = quantise(kind, a.v)
            with np.errstate(all="ignore"):
                unit, step, _ = ROUNDING[kind]
                e = np.where(a.uncertain(), a.e + 2 * unit * np.abs(v) + step, 0)
                e = np.where(np.isfinite(e), e, 0)
                low, high = quantise(kind, a.v - a.e), quantise(kind, a.v + a.e)
                u = a.u | (a.uncertain() & (~np.isfinite(low) | ~np.isfinite(high)))
            # What a format without NaN makes of one is ONNX's own convention.
            return Value(v, e, u | (np.isnan(a.v) & (kind in WITHOUT_NAN)))
        with np.errstate(all="ignore"):
            if kind == BOOL:
                return Value(a.v != 0, None, a.u | (a.uncertain() & (np.abs(a.v) <= a.e)))
            t = np.trunc(a.v)
            moved = (np.trunc(a.v - a.e) != t) | (np.trunc(a.v + a.e) != t)
            inside = (t >= -(2.0**63)) & (t < 2.0**63)
            whole = np.where(inside, t, 0).astype(np.int64)
            whole = np.where(inside, whole, np.int64(-(2**63)))
            if kind == 13:
                upper = (t >= 2.0**63) & (t < 2.0**64)
                high = np.where(upper, t - 2.0**63, 0).astype(np.uint64) + np.uint64(2**63)
                whole = np.where(upper, high, whole.astype(np.uint64))
        u = a.u | (a.uncertain() & moved)
        return Value(narrow_integer(kind, whole), None, u)
    if is_float(kind):
        with np.errstate(all="ignore"):
            if kind == 1:
                return Value(a.v.astype(np.float32).astype(np.float64), None, a.u)
            if kind == 11:
                return Value(a.v.astype(np.float64), None, a.u)
            # One rounding: integers of more than 53 bits would be rounded on the way.
            v = quantise(kind, a.v.astype(np.float64))
        return Value(v, None, a.u | (np.abs(a.v.astype(np.float64)) >= 2.0**53))
    if kind == BOOL:
        return Value(a.v != 0, None, a.u)
    return Value(narrow_integer(kind, a.v), None, a.u)
