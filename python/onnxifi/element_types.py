# SPDX-License-Identifier: Apache-2.0
"""Element types: ONNX's numbers, numpy's types, and elements narrower than a byte, which lie packed in
tensors of the interface and one to a byte in arrays of ml_dtypes."""

import functools

import numpy

from .errors import make_error

STRING = 8

# By number: ONNX's name, numpy's, and the bits of an element.
_TYPES = {
    1: ("float", "float32", 32),
    2: ("uint8", "uint8", 8),
    3: ("int8", "int8", 8),
    4: ("uint16", "uint16", 16),
    5: ("int16", "int16", 16),
    6: ("int32", "int32", 32),
    7: ("int64", "int64", 64),
    8: ("string", "object", 0),
    9: ("bool", "bool", 8),
    10: ("float16", "float16", 16),
    11: ("double", "float64", 64),
    12: ("uint32", "uint32", 32),
    13: ("uint64", "uint64", 64),
    14: ("complex64", "complex64", 64),
    15: ("complex128", "complex128", 128),
    16: ("bfloat16", "bfloat16", 16),
    17: ("float8e4m3fn", "float8_e4m3fn", 8),
    18: ("float8e4m3fnuz", "float8_e4m3fnuz", 8),
    19: ("float8e5m2", "float8_e5m2", 8),
    20: ("float8e5m2fnuz", "float8_e5m2fnuz", 8),
    21: ("uint4", "uint4", 4),
    22: ("int4", "int4", 4),
    23: ("float4e2m1", "float4_e2m1fn", 4),
    24: ("float8e8m0", "float8_e8m0fnu", 8),
    25: ("uint2", "uint2", 2),
    26: ("int2", "int2", 2),
    27: ("float6e2m3", "float6_e2m3fn", 6),
    28: ("float6e3m2", "float6_e3m2fn", 6),
}
_NUMBERS = {numpy_name: number for number, (_, numpy_name, _) in _TYPES.items()}
_OF_ML_DTYPES = range(16, 29)


def name_of(number):
    """"float", "int64" ...: as ONNX writes the type."""
    return _TYPES[number][0] if number in _TYPES else f"type {number}"


def bits_of(number):
    return _TYPES[number][2]


@functools.cache
def dtype_of(number):
    """numpy's type; ml_dtypes has those that numpy lacks."""
    if number not in _TYPES:
        raise make_error("INVALID_DATATYPE", f"{number} is no number of an element type.")
    name = _TYPES[number][1]
    if number not in _OF_ML_DTYPES:
        return numpy.dtype(name)
    try:
        import ml_dtypes  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise make_error(
            "UNSUPPORTED_DATATYPE",
            f"Arrays of {_TYPES[number][0]} are those of the package ml_dtypes, which is not installed.",
        ) from None
    if not hasattr(ml_dtypes, name):
        raise make_error("UNSUPPORTED_DATATYPE", f"ml_dtypes {ml_dtypes.__version__} has no {name}.")
    return numpy.dtype(getattr(ml_dtypes, name))


def number_of(dtype):
    """ONNX's number for numpy's type, or None."""
    if dtype.kind in "OUST":
        return STRING
    return _NUMBERS.get(dtype.name)


def number_of_name(numpy_name):
    return _NUMBERS[numpy_name]


def is_packed(number):
    """Whether several elements share a byte."""
    return 0 < _TYPES[number][2] < 8


def packed_bytes(number, count):
    return (count * _TYPES[number][2] + 7) // 8


def pack(array, number):
    """The bytes of a tensor, elements one behind the other from the lowest bit on."""
    bits = bits_of(number)
    codes = numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8)
    each = numpy.unpackbits(codes[:, None], axis=1, count=bits, bitorder="little")
    return numpy.packbits(each.reshape(-1), bitorder="little")


def unpack(content, number, shape):
    """The array of packed bytes."""
    bits, count = bits_of(number), int(numpy.prod(shape, dtype=numpy.int64))
    each = numpy.unpackbits(content, count=count * bits, bitorder="little").reshape(count, bits)
    codes = numpy.packbits(each, axis=1, bitorder="little").reshape(count)
    return codes.view(dtype_of(number)).reshape(shape)
