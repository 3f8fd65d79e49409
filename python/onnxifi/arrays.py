# SPDX-License-Identifier: Apache-2.0
"""What a caller gives for an input, as an array that the library can read: numpy's own in place where it is
dense and of the declared type; tensors of others by DLPack; lists and numbers converted."""

import ctypes

import numpy

from . import element_types
from .errors import make_error

_addressof, _from_buffer = ctypes.addressof, ctypes.c_char.from_buffer
DENSE = 0x101  # of flags.num: C-contiguous and aligned
# Of DLPack: the device types whose memory the host reads (CPU, pinned), and numpy's kinds by code.
_HOST_DEVICES = (1, 3, 11)
_CODES = {
    (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
    (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32", (1, 64): "uint64",
    (2, 16): "float16", (2, 32): "float32", (2, 64): "float64", (4, 16): "bfloat16",
    (5, 64): "complex64", (5, 128): "complex128", (6, 8): "bool",
    (10, 8): "float8_e4m3fn", (11, 8): "float8_e4m3fnuz", (12, 8): "float8_e5m2", (13, 8): "float8_e5m2fnuz",
    (14, 8): "float8_e8m0fnu",
}


def address_of(array):
    """Where the elements of an array lie."""
    try:
        return _addressof(_from_buffer(array))
    except (TypeError, ValueError, BufferError):
        # Read-only, empty, or of a type that no buffer has: the way that takes every array, and six times as long.
        return array.__array_interface__["data"][0]


def is_dense(array):
    """Whether the library can use the array where it lies."""
    return array.flags.num & DENSE == DENSE


class _Tensor(ctypes.Structure):
    """DLTensor, with which a DLManagedTensor begins."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def from_dlpack(tensor, name):
    """An array over the memory of a tensor that has __dlpack__; numpy's own function knows fewer types."""
    try:
        device_type, _ = tensor.__dlpack_device__()
        if device_type not in _HOST_DEVICES:
            raise make_error(
                "UNSUPPORTED_MEMORY_TYPE",
                f"Input '{name}' lies on a device (type {device_type} of DLPack); inputs are read from the host's memory.",
            )
        capsule = tensor.__dlpack__()
    except (BufferError, RuntimeError, TypeError, ValueError) as fault:
        raise make_error("INVALID_MEMORY_LOCATION", f"Input '{name}' is not given by DLPack: {fault}") from fault
    described = _Tensor.from_address(_get_pointer(capsule, b"dltensor"))
    dtype_name = _CODES.get((described.code, described.bits)) if described.lanes == 1 else None
    if dtype_name is None:
        raise make_error(
            "UNSUPPORTED_DATATYPE",
            f"Input '{name}' has elements of DLPack's code {described.code} with {described.bits} bits, which no tensor here has.",
        )
    dtype = element_types.dtype_of(element_types.number_of_name(dtype_name))
    shape = tuple(described.shape[: described.ndim])
    if 0 in shape:
        return numpy.empty(shape, dtype)
    if described.strides:
        steps = [stride * dtype.itemsize for stride in described.strides[: described.ndim]]
    else:
        steps = _dense_steps(shape, dtype.itemsize)
    reaches = [(extent - 1) * step for extent, step in zip(shape, steps)]
    before = sum(reach for reach in reaches if reach < 0)
    size = sum(reach for reach in reaches if reach > 0) - before + dtype.itemsize
    memory = (ctypes.c_uint8 * size).from_address(described.data + described.byte_offset + before)
    memory.capsule = capsule  # and with it the tensor
    return numpy.ndarray(shape, dtype, memory, -before, steps)


def _dense_steps(shape, itemsize):
    steps = [itemsize]
    for extent in reversed(shape[1:]):
        steps.append(steps[-1] * extent)
    return steps[::-1] if shape else []


def as_input(name, given, number):
    """A dense array of the element type `number` (0: whatever it has). Numbers and lists are converted;
    arrays and tensors of another type are refused."""
    is_typed = True
    if isinstance(given, numpy.ndarray):
        array = given
    elif hasattr(given, "__dlpack__") and hasattr(given, "__dlpack_device__"):
        array = from_dlpack(given, name)
    else:
        array = numpy.asarray(given)
        is_typed = hasattr(given, "dtype")
    if number == 0:
        number = element_types.number_of(array.dtype) or 0
        if number == 0:
            raise make_error("MISMATCHING_DATATYPE", f"Input '{name}' is of type {array.dtype}, which no tensor has.")
    dtype = element_types.dtype_of(number)
    native = array.dtype.newbyteorder("=")
    if native != dtype:
        if is_typed or not (array.size == 0 or numpy.can_cast(native, dtype, "same_kind") or _is_index(native, dtype)):
            raise make_error(
                "MISMATCHING_DATATYPE",
                f"Input '{name}' is of type {array.dtype}; the model declares {element_types.name_of(number)}.",
            )
        try:
            array = numpy.asarray(given, dtype)
        except (OverflowError, ValueError, TypeError) as fault:
            raise make_error("MISMATCHING_DATATYPE", f"Input '{name}' does not fit {dtype}: {fault}") from fault
    # Arrays from files and other processes have a type object of their own.
    if (array.dtype is dtype or array.dtype == dtype) and is_dense(array):
        return array
    return numpy.array(array, dtype, order="C")


def _is_index(given, wanted):
    """Integers of Python are int64; numpy looks at each when it makes unsigned ones of them."""
    return given.kind == "i" and wanted.kind == "u"


def check_output(name, array, dtype, shape):
    """Raises why runs cannot write to a caller's array."""
    if not isinstance(array, numpy.ndarray):
        raise make_error("INVALID_MEMORY_LOCATION", f"What is given for output '{name}' is no array of numpy.")
    if array.dtype != dtype:
        raise make_error("MISMATCHING_DATATYPE", f"The array for output '{name}' is of type {array.dtype}; the output is {dtype}.")
    if array.shape != shape:
        raise make_error("MISMATCHING_SHAPE", f"The array for output '{name}' has shape {array.shape}; the output has {shape}.")
    if not is_dense(array) or not array.flags.writeable:
        why = "is read-only" if is_dense(array) else "is not dense"
        raise make_error("INVALID_MEMORY_LOCATION", f"The array for output '{name}' {why}.")
