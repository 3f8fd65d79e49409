# SPDX-License-Identifier: Apache-2.0
"""The nodes of an expression that compute with floats: in float64, with a bound of the error of the step's own type."""

import math

import numpy as np

from steps.number_format import ROUNDING
from steps.value import LIBRARY_ROUNDINGS, Value, corners, settle

TRIGONOMETRIC = {"sin", "cos", "tan"}


def erf(x):
    return np.array([math.erf(t) for t in np.ravel(x)]).reshape(np.shape(x))


STEPS = {
    "floor": np.floor, "ceil": np.ceil, "round_even": np.rint, "trunc": np.trunc,
    "sign": lambda x: np.where(np.isnan(x), np.nan, np.sign(x)),
}
SMOOTH = {
    "sqrt": np.sqrt, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "erf": erf,
}


def float_unary(op, kind, a):
    if op == "neg":
        return Value(-a.v, a.e, a.u)
    if op == "abs":
        return Value(np.abs(a.v), a.e, a.u)
    if op == "is_nan":
        return Value(np.isnan(a.v), None, a.u)
    if op in STEPS:
        with np.errstate(all="ignore"):
            mid = STEPS[op](a.v)
            moved = (STEPS[op](a.v - a.e) != mid) | (STEPS[op](a.v + a.e) != mid)
        return Value(mid, None, a.u | (moved & a.uncertain()))
    mid, e, unsure = corners(SMOOTH[op], a.v, a.e)
    if op in TRIGONOMETRIC:
        unsure |= a.e > 1e-2
        # Far from 0 the libraries reduce the argument differently well.
        unsure |= np.abs(a.v) > 1e5
    if op == "sqrt":
        return settle(kind, mid, e, a.u | unsure, np.ones(mid.shape, bool))
    unit = ROUNDING[kind][0] * LIBRARY_ROUNDINGS
    with np.errstate(all="ignore"):
        e = e + np.where(np.isfinite(mid), unit * np.abs(mid), 0)
        # Results that are numbers by chance of the type, such as the largest exponent.
        huge = np.isinf(mid) & np.isfinite(a.v) & (np.abs(a.v) > 80) & (op in ("exp", "expm1", "sinh", "cosh"))
    return settle(kind, mid, e, a.u | unsure | huge, np.zeros(mid.shape, bool))


def float_binary(op, kind, a, b, ordered):
    u = a.u | b.u
    x, y, ex, ey = a.v, b.v, a.e, b.e
    with np.errstate(all="ignore"):
        if op in ("min", "max"):
            nan = np.isnan(x) | np.isnan(y)
            v = np.where(nan, np.nan, np.minimum(x, y) if op == "min" else np.maximum(x, y))
            return Value(v, np.where(nan, 0, np.maximum(ex, ey)), u)
        if op in ("equal", "less", "less_equal"):
            near = (np.abs(x - y) <= ex + ey) & (ex + ey > 0)
            v = {"equal": x == y, "less": x < y, "less_equal": x <= y}[op]
            return Value(v, None, u | near)
        exact = np.ones(x.shape, bool)
        if op == "add" or op == "sub":
            v = x + y if op == "add" else x - y
            e = ex + ey
        elif op == "mul":
            v = x * y
            e = np.where(ex + ey > 0, np.abs(x) * ey + np.abs(y) * ex + ex * ey, 0)
        elif op == "div":
            v = x / y
            unsure = (ey > 0) & (np.abs(y) <= 2 * ey)
            e = np.where(ex + ey > 0, (ex + np.abs(v) * ey) / (np.abs(y) - ey), 0)
            u = u | unsure
        elif op in ("mod", "fmod"):
            v = np.mod(x, y) if op == "mod" else np.fmod(x, y)
            round_down = np.floor if op == "mod" else np.trunc
            quotients = [round_down((x + s * ex) / (y + t * ey)) for s in (-1, 1) for t in (-1, 1)]
            quotients.insert(0, round_down(x / y))
            # Near 0 the divisor may have either sign, or be 0.
            moved = (ey > 0) & (np.abs(y) <= 2 * ey)
            for quotient in quotients:
                moved |= quotient != quotients[0]
            # The quotient itself is rounded here.
            moved |= np.abs(x / y) > 2.0**40
            inexact = ex + ey > 0
            u = u | (inexact & (moved | ~np.isfinite(quotients[0])))
            e = np.where(inexact, ex + np.abs(quotients[0]) * ey, 0)
            e = np.where(np.isfinite(v), e, 0)
            # numpy's own remainder of infinities differs from C's in the sign convention only for mod.
            u = u | ((op == "mod") & np.isinf(y) & np.isfinite(x))
        elif op == "pow":
            v = np.power(x, y)
            e = np.zeros(x.shape)
            for s in (-1, 1):
                for t in (-1, 1):
                    moved = np.power(x + s * ex, y + t * ey)
                    u = u | ((ex + ey > 0) & (np.isfinite(moved) != np.isfinite(v)))
                    e = np.maximum(e, np.where(ex + ey > 0, 2 * np.abs(moved - v), 0))
            u = u | ((ey > 0) & (x <= ex))
            e = np.where(np.isfinite(v), e + ROUNDING[kind][0] * LIBRARY_ROUNDINGS * np.abs(v), 0)
            exact = np.zeros(x.shape, bool)
        if not ordered:
            # Another order of a sum rounds elsewhere, unless nothing is rounded.
            whole = np.abs(v) < (2.0**24 if kind == 1 else 2.0**53)
            exact = exact & whole & (v == np.floor(v))
        e = np.where(np.isfinite(v) | (e > 0), e, 0)
        # Infinity out of numbers that are only known about is no certain infinity.
        u = u | (~np.isfinite(v) & (ex + ey > 0))
        e = np.where(np.isfinite(v), e, 0)
    return settle(kind, v, e, u, exact)
