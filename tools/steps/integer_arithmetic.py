# SPDX-License-Identifier: Apache-2.0
"""The nodes of an expression that compute with integers, exactly; random bits are among them."""

import numpy as np

from steps.number_format import PACKED_BITS, int_dtype, wrap_packed


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
