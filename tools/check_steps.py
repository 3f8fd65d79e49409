#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Evaluates the random steps that step_fuzz wrote, on its own, with numpy: floats in float64 with a bound of the error that the
# step's own types may make, integers exactly. Compares with the reference's results, which lie in the same files, element by
# element, and with what buffers held before where a step writes nothing.
#
#   check_steps.py PREFIX                     reads PREFIX.jsonl and PREFIX.bin
#   check_steps.py --binary step_fuzz --count N   draws N steps of all families and checks them on all cores

import argparse
import collections
import concurrent.futures
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np

# The tolerances, one line per float type: relative size of one rounding, smallest step, largest finite number.
ROUNDING = {
    1: (2.0**-24, 2.0**-149, 3.4028234663852886e38),  # float32
    11: (2.0**-53, 2.0**-1074, 1.7976931348623157e308),  # float64
    10: (2.0**-11, 2.0**-24, 65504.0),  # float16
    16: (2.0**-8, 2.0**-133, 3.3895313892515355e38),  # bfloat16
    17: (2.0**-4, 2.0**-9, 448.0),  # float8e4m3fn
    18: (2.0**-4, 2.0**-10, 240.0),  # float8e4m3fnuz
    19: (2.0**-3, 2.0**-16, 57344.0),  # float8e5m2
    20: (2.0**-3, 2.0**-17, 57344.0),  # float8e5m2fnuz
    23: (2.0**-2, 0.5, 6.0),  # float4e2m1
    24: (0.5, 2.0**-127, 2.0**127),  # float8e8m0
}
LIBRARY_ROUNDINGS = 8  # of exp, sin, ...: both sides may be off by a few
SLACK = 4  # what a bound is multiplied with before two numbers count as different

NATIVE = {
    1: np.float32, 11: np.float64, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16,
    6: np.int32, 7: np.int64, 12: np.uint32, 13: np.uint64, 10: np.float16,
}
# Exponent bits, mantissa bits, bias, kind of specials of the formats that numpy lacks.
NARROW = {
    17: (4, 3, 7, "fn"), 18: (4, 3, 8, "fnuz"), 19: (5, 2, 15, "ieee"),
    20: (5, 2, 16, "fnuz"), 23: (2, 1, 1, "none"),
}
PACKED_BITS = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}
INT_DTYPE = {21: np.uint8, 22: np.int8, 25: np.uint8, 26: np.int8}
BOOL, COMPLEX64, COMPLEX128 = 9, 14, 15
TRIGONOMETRIC = {"sin", "cos", "tan"}


def is_float(kind):
    return kind in ROUNDING


def int_dtype(kind):
    return np.bool_ if kind == BOOL else INT_DTYPE.get(kind) or NATIVE[kind]


def decode_table(kind):
    exponent_bits, mantissa_bits, bias, specials = NARROW[kind]
    codes = 1 << (1 + exponent_bits + mantissa_bits)
    table = np.zeros(codes)
    for code in range(codes):
        sign = -1.0 if code >> (exponent_bits + mantissa_bits) else 1.0
        exponent = code >> mantissa_bits & (1 << exponent_bits) - 1
        mantissa = code & (1 << mantissa_bits) - 1
        top = (1 << exponent_bits) - 1
        if specials == "fnuz" and code == codes // 2:
            table[code] = np.nan
        elif specials == "fn" and exponent == top and mantissa == (1 << mantissa_bits) - 1:
            table[code] = np.nan
        elif specials == "ieee" and exponent == top:
            table[code] = np.nan if mantissa else sign * np.inf
        elif exponent == 0:
            table[code] = sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
        else:
            table[code] = sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)
    return table


DECODE = {kind: decode_table(kind) for kind in NARROW}
DECODE[24] = np.array([2.0 ** (code - 127) for code in range(255)] + [np.nan])


def decode(kind, raw, count):
    """The elements of a buffer: floats as float64, integers in their own type, complex as opaque items."""
    raw = np.frombuffer(raw, np.uint8)
    if kind == COMPLEX64 or kind == COMPLEX128:
        return raw.view("V8" if kind == COMPLEX64 else "V16")
    if kind == BOOL:
        return raw != 0
    if kind == 16:
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if kind in PACKED_BITS:
        bits = PACKED_BITS[kind]
        shifts = np.arange(0, 8, bits)
        codes = ((raw[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count].astype(np.uint8)
        return DECODE[kind][codes] if kind in DECODE else wrap_packed(kind, codes)
    if kind in DECODE:
        return DECODE[kind][raw]
    elements = raw.view(NATIVE[kind])
    return elements.astype(np.float64) if is_float(kind) else elements


def wrap_packed(kind, values):
    bits = PACKED_BITS[kind]
    low = values.astype(np.int64) & ((1 << bits) - 1)
    if kind in (22, 26):
        low = np.where(low >= 1 << (bits - 1), low - (1 << bits), low)
    return low.astype(INT_DTYPE[kind])


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
        big = np.abs(v) > largest
        near = ~known & (np.abs(v) * (1 + 1e-6) + e > largest) & np.isfinite(v)
        e = np.where(known, 0, np.where(np.isfinite(v), e + unit * np.abs(v) + step, e))
    e = np.where(np.isnan(e), np.inf, e)
    u = u | near | ~np.isfinite(e)
    out = np.where(known, rounded, np.where(big & np.isfinite(v), v, v))
    return Value(out, np.where(np.isfinite(e), e, 0), u)


def corners(function, v, e):
    """How far `function` moves when its operand moves by e, and where that cannot be told."""
    with np.errstate(all="ignore"):
        mid, low, high = function(v), function(v - e), function(v + e)
        moved = 1.5 * np.maximum(np.abs(low - mid), np.abs(high - mid))
        sure = (e == 0) | (np.isfinite(mid) & np.isfinite(low) & np.isfinite(high))
    return mid, np.where(e == 0, 0, moved), ~sure


def erf(x):
    from math import erf as scalar

    return np.array([scalar(t) for t in np.ravel(x)]).reshape(np.shape(x))


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


def power_of_integers(kind, a, b):
    dtype = int_dtype(kind)
    bits = np.dtype(dtype).itemsize * 8
    out = []
    for base, exponent in zip(np.ravel(a).tolist(), np.ravel(b).tolist()):
        if exponent >= 0:
            result = pow(base, exponent, 1 << bits)
        else:
            result = {1: 1, -1: 1 if exponent % 2 == 0 else -1}.get(base, 0)
        out.append(result & ((1 << bits) - 1))
    return np.array(out, np.uint64).astype(dtype).reshape(a.shape)


def integer_operation(op, kind, a, b):
    dtype = np.dtype(int_dtype(kind))
    bits = dtype.itemsize * 8
    with np.errstate(all="ignore"):
        if b is None:
            if op == "neg":
                return (dtype.type(0) - a).astype(dtype)
            if op == "abs":
                return np.where(a < 0, (dtype.type(0) - a).astype(dtype), a)
            return {"sign": np.sign, "bit_not": np.invert}[op](a).astype(dtype)
        if op in ("shl", "shr"):
            inside = (b >= 0) & (b < bits)
            count = np.where(inside, b, 0).astype(dtype)
            moved = np.left_shift(a, count) if op == "shl" else np.right_shift(a, count)
            return np.where(inside, moved, 0).astype(dtype)
        if op == "pow":
            return power_of_integers(kind, a, b)
        zero = b == 0
        safe = np.where(zero, 1, b).astype(dtype)
        if op == "div":
            whole = np.floor_divide(a, safe)
            rest = (a - whole * safe).astype(dtype)
            whole = whole + ((rest != 0) & ((a < 0) != (safe < 0)))
            return np.where(zero, 0, whole).astype(dtype)
        if op in ("mod", "fmod"):
            rest = np.mod(a, safe) if op == "mod" else np.fmod(a, safe)
            return np.where(zero, 0, rest).astype(dtype)
        functions = {
            "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum,
            "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
        }
        return functions[op](a, b).astype(dtype)


def quantise(kind, v):
    """v rounded to a narrow float type, ties to even, out of range saturated (8 bits and less) or infinite (16 bits)."""
    with np.errstate(all="ignore"):
        if kind == 10:
            return v.astype(np.float16).astype(np.float64)
        if kind == 24:
            magnitude = np.abs(v)
            low = 2.0 ** np.floor(np.log2(np.where(magnitude > 0, magnitude, 1)))
            out = np.where(magnitude >= 1.5 * low, 2 * low, low)
            out = np.clip(out, 2.0**-127, 2.0**127)
            out = np.where(magnitude < 2.0**-127, 2.0**-127, out)
            return np.where(np.isnan(v), np.nan, np.where(np.isinf(v), 2.0**127, out))
        unit, smallest, largest = ROUNDING[kind]
        _, exponent = np.frexp(np.where(np.isfinite(v), v, 0))
        spacing = np.maximum(np.ldexp(unit, exponent), smallest)
        out = np.rint(v / spacing) * spacing
        if kind == 16:
            return np.where(np.abs(out) > largest, np.copysign(np.inf, v), out)
        return np.where(np.isnan(v), np.nan, np.clip(out, -largest, largest))


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
            return Value(v, e, u | (np.isnan(a.v) & (kind == 23)))
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


def narrow_integer(kind, v):
    if kind in PACKED_BITS:
        return wrap_packed(kind, v.astype(np.int64))
    return v.astype(int_dtype(kind))


def random_uniform(seed, counters):
    def mix(bits):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return bits ^ (bits >> np.uint64(31))

    gamma = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(all="ignore"):
        start = mix(np.full(1, seed, np.uint64) + gamma)
        bits = mix(start + (counters.astype(np.uint64) + np.uint64(1)) * gamma)
    return ((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(counters.shape)


class Step:
    def __init__(self, record, data):
        self.record = record
        self.domain = tuple(record["domain"])
        self.body = record["body"]
        self.nodes = record["nodes"]
        self.kind_of = {node[0]: node[2] for node in self.nodes}
        self.before = [self.buffer(entry, data) for entry in record["buffers"]]
        self.after = [self.buffer(entry, data) for entry in record["results"]]

    @staticmethod
    def buffer(entry, data):
        kind, count, position = entry
        bits = PACKED_BITS.get(kind) or (
            {COMPLEX64: 64, COMPLEX128: 128, BOOL: 8, 16: 16}.get(kind)
            or (np.dtype(NATIVE[kind]).itemsize * 8 if kind in NATIVE else 8)
        )
        return decode(kind, data[position : position + (count * bits + 7) // 8], count)

    def linear(self, offset, coefficients, coordinates, shape):
        total = np.full(shape, offset, np.int64)
        for coefficient, coordinate in zip(coefficients, coordinates):
            total = total + coefficient * coordinate
        return total

    def load(self, read, coordinates, shape):
        view = self.record["reads"][read]
        coordinates = coordinates[: len(view["strides"])]
        inside = np.ones(shape, bool)
        for coefficients, offset, extent in view["guards"]:
            value = self.linear(offset, coefficients, coordinates, shape)
            inside &= (value >= 0) & (value < extent)
        elements = self.linear(view["offset"], view["strides"], coordinates, shape)
        buffer = self.before[view["buffer"]]
        fill = constant(view["type"], view["fill"], shape).v
        if buffer.size == 0 or not inside.any():
            return Value(np.array(fill))
        if (elements[inside] < 0).any() or (elements[inside] >= buffer.size).any():
            raise ValueError("read %d leaves its buffer" % read)
        return Value(np.where(inside, buffer[np.where(inside, elements, 0)], fill))

    def coordinates(self, extents):
        return list(np.meshgrid(*[np.arange(n) for n in extents], indexing="ij")) if extents else []

    def evaluate(self, roots, coordinates, shape, outside=None, unordered=False):
        """Values of `roots` at `coordinates` (an array of `shape` per axis). `outside` gives states and row results."""
        wanted, pending = set(), [root for root in roots if root >= 0]
        operands_of = {node[0]: node[5] for node in self.nodes}
        while pending:
            node = pending.pop()
            if node not in wanted:
                wanted.add(node)
                pending.extend(operands_of[node])
        values, carried = {}, {}
        for number, op, kind, payload, dim, operands in self.nodes:
            if number not in wanted:
                continue
            inputs = [values[operand] for operand in operands]
            carried[number] = op in ("state", "other") or any(carried[o] for o in operands)
            values[number] = self.node(
                op, kind, payload, dim, operands, inputs, coordinates, shape, outside,
                not (unordered and carried[number]),
            )
        return [values[root] if root >= 0 else None for root in roots]

    def node(self, op, kind, payload, dim, operands, inputs, coordinates, shape, outside, ordered):
        if op == "constant":
            return constant(kind, payload, shape)
        if op == "dim":
            return Value(np.full(shape, dim, np.int64))
        if op == "index":
            return Value(np.broadcast_to(coordinates[payload], shape).astype(np.int64))
        if op == "load":
            if not inputs:
                return self.load(payload, coordinates, shape)
            loaded = self.load(payload, [value.v for value in inputs], shape)
            unknown = loaded.u
            for value in inputs:
                unknown = unknown | value.u
            return Value(loaded.v, None, unknown)
        if op in ("state", "row"):
            return outside[(op, payload)]
        if op == "random":
            return Value(random_uniform(payload, inputs[0].v), None, inputs[0].u)
        if op == "select":
            choose, a, b = inputs
            return Value(
                np.where(choose.v, a.v, b.v),
                np.where(choose.v, a.e, b.e),
                choose.u | np.where(choose.v, a.u, b.u),
            )
        from_kind = self.kind_of[operands[0]]
        if op == "cast":
            return cast(kind, from_kind, inputs[0])
        if op == "not":
            return Value(~inputs[0].v, None, inputs[0].u)
        if is_float(from_kind):
            if len(inputs) == 1:
                return float_unary(op, kind, inputs[0])
            return float_binary(op, kind, inputs[0], inputs[1], ordered)
        a = inputs[0].v
        b = inputs[1].v if len(inputs) > 1 else None
        unknown = inputs[0].u | (inputs[1].u if b is not None else False)
        if op in ("equal", "less", "less_equal"):
            return Value({"equal": a == b, "less": a < b, "less_equal": a <= b}[op], None, unknown)
        if from_kind == BOOL:
            return Value({"and": a & b, "or": a | b, "xor": a ^ b}[op], None, unknown)
        return Value(integer_operation(op, kind, a, b), None, unknown)

    # -- families: each returns a list of (write, coordinates, value) --

    def run(self):
        return getattr(self, "run_" + self.record["family"].lower())()

    def run_map(self):
        at = self.coordinates(self.domain)
        return [(k, at, v) for k, v in enumerate(self.evaluate(self.body["roots"], at, self.domain))]

    def fold(self, states, outer, inner, rows):
        """States after all elements of the last axes, per coordinate of the leading ones."""
        at = self.coordinates(outer)
        outside = dict(rows)
        zeros = [np.zeros(outer, np.int64) for _ in inner]
        values = self.evaluate([s[1] for s in states], at + zeros, outer, outside)
        largest = [np.where(np.isfinite(v.v.astype(np.float64)), np.abs(v.v.astype(np.float64)), np.inf) for v in values]
        count = int(np.prod(inner, dtype=np.int64))
        for element in range(count):
            inner_at = [np.full(outer, c) for c in np.unravel_index(element, inner)] if inner else []
            for k, value in enumerate(values):
                outside[("state", k)] = value
            values = self.evaluate([s[2] for s in states], at + inner_at, outer, outside, True)
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

    def run_reduce(self):
        axes = self.body["axes"]
        outer = self.domain[: len(self.domain) - axes]
        inner = self.domain[len(self.domain) - axes :]
        states = self.fold(self.body["states"], outer, inner, {})
        outside = {("state", k): value for k, value in enumerate(states)}
        at = self.coordinates(outer)
        values = self.evaluate(self.body["roots"], at, outer, outside)
        return [(k, at, value) for k, value in enumerate(values)]

    def run_row(self):
        axes = self.body["axes"]
        outer = self.domain[: len(self.domain) - axes]
        inner = self.domain[len(self.domain) - axes :]
        at = self.coordinates(outer)
        rows = {}
        for stage, (states, results) in enumerate(self.body["stages"]):
            folded = self.fold(states, outer, inner, rows)
            outside = {**rows, **{("state", k): value for k, value in enumerate(folded)}}
            zeros = [np.zeros(outer, np.int64) for _ in inner]
            for k, value in enumerate(self.evaluate(results, at + zeros, outer, outside)):
                rows[("row", stage * 256 + k)] = value
        out = []
        for k, root in enumerate(self.body["roots"]):
            strides = self.record["writes"][k]["strides"]
            of_row = self.kind_of_row(root) and not any(strides[len(outer) :])
            if of_row:
                value = self.evaluate([root], at, outer, rows)[0]
                out.append((k, at + [np.zeros(outer, np.int64) for _ in inner], value))
                continue
            wide = {}
            for key, value in rows.items():
                spread = lambda x: np.broadcast_to(x.reshape(outer + (1,) * axes), self.domain)
                wide[key] = Value(spread(value.v), spread(value.e), spread(value.u))
            everywhere = self.coordinates(self.domain)
            out.append((k, everywhere, self.evaluate([root], everywhere, self.domain, wide)[0]))
        return out

    def kind_of_row(self, root):
        """Whether a root depends on nothing but results of the row."""
        operands_of = {node[0]: node[5] for node in self.nodes}
        op_of = {node[0]: node[1] for node in self.nodes}
        pending, ops = [root], set()
        while pending:
            node = pending.pop()
            ops.add(op_of[node])
            pending.extend(operands_of[node])
        return not ops & {"load", "index"}

    def run_scan(self):
        outer, length = self.domain[:-1], self.domain[-1]
        at = self.coordinates(outer)
        states = self.body["states"]
        values = self.evaluate([s[1] for s in states], at + [np.zeros(outer, np.int64)], outer)
        out = []
        for element in range(length):
            here = at + [np.full(outer, element)]
            outside = {("state", k): value for k, value in enumerate(values)}
            updated = self.evaluate([s[2] for s in states], here, outer, outside)
            if not self.body["exclusive"]:
                outside = {("state", k): value for k, value in enumerate(updated)}
            for k, value in enumerate(self.evaluate(self.body["roots"], here, outer, outside)):
                out.append((k, here, value))
            values = updated
        return out

    def run_index(self):
        kind = self.body["kind"]
        at = self.coordinates(self.domain)
        source = self.load(0, at, self.domain).v
        if kind == 0:
            return self.scatter(at, source)
        if kind == 1:
            return self.top_k(source)
        if kind == 4:
            return [(0, at, Value(self.suppress(at, source)))]
        found = np.argwhere(source != 0) if self.domain else np.zeros((int(source != 0), 0))
        if kind == 2:
            return [(0, [], Value(np.array(len(found), np.int64)))]
        columns = found.T.astype(np.int64)
        return [(0, self.coordinates(columns.shape), Value(columns))]

    def scatter(self, at, source):
        target = tuple(self.body["target"])
        view = self.record["writes"][0]
        kind = view["type"]
        places = self.linear(view["offset"], view["strides"], self.coordinates(target), target)
        values = self.before[view["buffer"]][places]
        coordinates = [self.load(k + 1, at, self.domain).v.ravel() for k in range(len(target))]
        combine = ["none", "add", "mul", "min", "max"][self.body["combine"]]
        for lane, update in enumerate(source.ravel()):
            slot = tuple(int(c[lane]) for c in coordinates)
            if any(c < 0 or c >= n for c, n in zip(slot, target)):
                continue
            if combine != "none":
                with np.errstate(all="ignore"):
                    old = values[slot]
                    if is_float(kind):
                        if combine in ("min", "max"):
                            new = np.nan if old != old or update != update else {"min": min, "max": max}[combine](old, update)
                        else:
                            new = old + update if combine == "add" else old * update
                        if kind == 1:
                            update = np.float64(np.float32(new))
                        else:
                            update = new if kind == 11 else quantise(kind, np.array([new], np.float64))[0]
                    else:
                        wide = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
                        update = wide[combine](np.array([old]), np.array([update]))
                        update = (wrap_packed(kind, update) if kind in PACKED_BITS else update)[0]
            values[slot] = update
        return [(0, self.coordinates(target), Value(values))]

    def suppress(self, at, candidates):
        length = self.domain[-1]
        kept = np.zeros(self.domain, bool).reshape(-1, max(length, 1))
        if not candidates.size:
            return kept.reshape(self.domain)
        rows = [self.load(k, at, self.domain).v.reshape(-1, length) for k in range(1, 7)]
        boxes = np.stack(rows[:4], axis=-1).astype(np.float32)  # y1, x1, y2, x2; rounded at each operation
        area = (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
        for row, candidate in enumerate(candidates.reshape(-1, length)):
            threshold, limit = np.float32(rows[4][row, 0]), int(rows[5][row, 0])
            chosen = []
            for k in range(length):
                if not candidate[k] or len(chosen) >= limit:
                    continue
                mine, theirs = boxes[row, k], boxes[row, chosen]
                height = np.minimum(mine[2], theirs[:, 2]) - np.maximum(mine[0], theirs[:, 0])
                width = np.minimum(mine[3], theirs[:, 3]) - np.maximum(mine[1], theirs[:, 1])
                meets = (height > 0) & (width > 0)
                shared = height * width
                joined = area[row, k] + area[row, chosen] - shared
                ratio = np.divide(shared, joined, out=np.zeros_like(shared), where=joined > 0)
                if not (meets & (joined > 0) & (ratio > threshold)).any():
                    chosen.append(k)
            kept[row, chosen] = True
        return kept.reshape(self.domain)

    def top_k(self, source):
        k = self.body["k"]
        rows = source.reshape(-1, self.domain[-1]) if self.domain[-1] else source.reshape(0, 0)
        shape = self.domain[:-1] + (k,)
        picked = np.zeros(shape, np.int64).reshape(-1, max(k, 1)) if k else np.zeros((0, 1), np.int64)
        for number, row in enumerate(rows):
            if not k:
                break
            def key(position):
                value = row[position]
                value = float("inf") if value != value else (value.item() if hasattr(value, "item") else value)
                rank = (1 if row[position] != row[position] else 0, value)
                return rank
            order = sorted(range(len(row)), key=key, reverse=self.body["largest"])
            # A reversed sort keeps equal items in their order, as Python documents.
            picked[number] = order[:k]
        at = self.coordinates(shape)
        positions = picked.reshape(shape) if k else np.zeros(shape, np.int64)
        values = np.take_along_axis(source, positions, axis=-1) if positions.size else np.zeros(shape, source.dtype)
        return [(0, at, Value(values)), (1, at, Value(positions))]


def check(step):
    """What differs, or None; and how many elements could and could not be told."""
    expected = [buffer.copy() for buffer in step.before]
    bounds = [np.zeros(buffer.shape) for buffer in step.before]
    unknown = [np.zeros(buffer.shape, bool) for buffer in step.before]
    for write, coordinates, value in step.run():
        view = step.record["writes"][write]
        places = step.linear(view["offset"], view["strides"], coordinates, value.v.shape)
        buffer = view["buffer"]
        expected[buffer][places] = value.v
        bounds[buffer][places] = value.e
        unknown[buffer][places] = value.u
    told, untold = 0, 0
    for number, (want, have) in enumerate(zip(expected, step.after)):
        if want.dtype.kind == "V":
            same = np.array([x.tobytes() == y.tobytes() for x, y in zip(want, have)], bool)
        else:
            with np.errstate(all="ignore"):
                same = want == have
                if want.dtype.kind == "f":
                    same |= np.isnan(want) & np.isnan(have)
                    same |= np.abs(want - have) <= SLACK * bounds[number]
        told += int((~unknown[number]).sum())
        untold += int(unknown[number].sum())
        wrong = np.flatnonzero(~(same | unknown[number]))
        if wrong.size:
            first = wrong[0]
            return (
                "buffer %d, element %d: %s instead of %s, bound %g (%d of %d elements differ)"
                % (number, first, have[first], want[first], bounds[number][first], wrong.size, want.size),
                told,
                untold,
            )
    return None, told, untold


# Steps of each family, in parts of a thousand; Reduce and Row take the longest to evaluate here.
SHARES = {"Map": 300, "Index": 300, "Scan": 200, "Reduce": 125, "Row": 75}
PART = 500  # steps per process


class Tally:
    """Steps, differences and elements of one family."""

    def __init__(self):
        self.steps = self.different = self.told = self.untold = 0
        self.differences = []

    def add(self, other):
        self.steps += other.steps
        self.different += other.different
        self.told += other.told
        self.untold += other.untold
        self.differences += other.differences

    def untold_percent(self):
        return 100.0 * self.untold / max(1, self.told + self.untold)


def check_files(prefix):
    """Tallies of the families in PREFIX.jsonl and PREFIX.bin."""
    tallies = collections.defaultdict(Tally)
    with open(prefix + ".bin", "rb") as file:
        data = file.read()
    with open(prefix + ".jsonl") as lines:
        for line in lines:
            record = json.loads(line)
            difference, told, untold = check(Step(record, data))
            tally = tallies[record["family"]]
            tally.steps += 1
            tally.told += told
            tally.untold += untold
            if difference:
                tally.different += 1
                tally.differences.append(
                    "%s step of seed %d: %s" % (record["family"], record["seed"], difference)
                )
    return dict(tallies)


def draw_and_check(binary, family, seed, count):
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "steps")
        command = [binary, "--out", prefix, "--family", family, "--seed", str(seed)]
        subprocess.run(command + ["--count", str(count)], check=True)
        return check_files(prefix)


def draw_and_check_all(binary, count, seed):
    tallies = collections.defaultdict(Tally)
    with concurrent.futures.ProcessPoolExecutor() as pool:
        parts = []
        for family, share in SHARES.items():
            left = -(-count * share // 1000)
            start = seed
            while left > 0:
                parts.append(pool.submit(draw_and_check, binary, family, start, min(left, PART)))
                start += PART
                left -= PART
        for part in parts:
            for family, tally in part.result().items():
                tallies[family].add(tally)
    return tallies


def main():
    parser = argparse.ArgumentParser(description="Checks the reference's random steps with numpy.")
    parser.add_argument("prefix", nargs="?", help="files that step_fuzz wrote")
    parser.add_argument("--binary", help="step_fuzz itself, to draw steps with")
    parser.add_argument("--count", type=int, default=1000, help="steps to draw, of all families")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-least", type=int, default=1, help="steps that each family must have")
    parser.add_argument("--show", type=int, default=5, help="differences to print")
    arguments = parser.parse_args()
    if (arguments.prefix is None) == (arguments.binary is None):
        parser.error("either files or --binary")
    if arguments.binary:
        tallies = draw_and_check_all(arguments.binary, arguments.count, arguments.seed)
    else:
        tallies = check_files(arguments.prefix)
    failed = not tallies
    total = Tally()
    for family, tally in sorted(tallies.items()):
        total.add(tally)
        print(
            "%-8s %7d steps, %d different, %.2f %% of elements cannot be told"
            % (family, tally.steps, tally.different, tally.untold_percent())
        )
        # Bounds that tell nothing would make a check that cannot fail.
        failed |= tally.different > 0 or tally.steps < arguments.at_least
        failed |= tally.untold_percent() > 15
    for difference in total.differences[: arguments.show]:
        print(difference)
    print("total    %7d steps, %d different" % (total.steps, total.different))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
