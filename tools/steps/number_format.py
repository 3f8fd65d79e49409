# SPDX-License-Identifier: Apache-2.0
"""What the bits of every element type mean: decoding, rounding to it, and the size of one rounding."""

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
    27: (2.0**-4, 2.0**-3, 7.5),  # float6e2m3
    28: (2.0**-3, 2.0**-4, 28.0),  # float6e3m2
    24: (0.5, 2.0**-127, 2.0**127),  # float8e8m0
}

NATIVE = {
    1: np.float32, 11: np.float64, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16,
    6: np.int32, 7: np.int64, 12: np.uint32, 13: np.uint64, 10: np.float16,
}
# Exponent bits, mantissa bits, bias, kind of specials of the formats that numpy lacks.
NARROW = {
    17: (4, 3, 7, "fn"), 18: (4, 3, 8, "fnuz"), 19: (5, 2, 15, "ieee"),
    20: (5, 2, 16, "fnuz"), 23: (2, 1, 1, "none"), 27: (2, 3, 1, "none"), 28: (3, 2, 3, "none"),
}
WITHOUT_NAN = {kind for kind, (_, _, _, specials) in NARROW.items() if specials == "none"}
PACKED_BITS = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2, 27: 6, 28: 6}
INT_DTYPE = {21: np.uint8, 22: np.int8, 25: np.uint8, 26: np.int8}
BOOL, COMPLEX64, COMPLEX128 = 9, 14, 15


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
        # One stream of bits, the lowest of each byte first.
        stream = np.unpackbits(raw, bitorder="little")[: count * bits].reshape(count, bits)
        codes = np.packbits(stream, axis=1, bitorder="little").reshape(count)
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


def element_bits(kind):
    """Bits of one element in a buffer."""
    if kind in PACKED_BITS:
        return PACKED_BITS[kind]
    if kind in NATIVE:
        return np.dtype(NATIVE[kind]).itemsize * 8
    return {COMPLEX64: 64, COMPLEX128: 128, 16: 16}.get(kind, 8)


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
