# SPDX-License-Identifier: Apache-2.0
"""Values of the C interface that no tensor descriptor carries: texts, sequences, maps and
optionals, to and from Python's. onnxifi_library.py's part for onnxSetGraphValues and
onnxGetRunValues."""

import ctypes

import numpy
import onnx

_NOTHING, _TENSOR, _SEQUENCE, _MAP = range(4)
_STRING = 8  # ONNXIFI_SDK_DATATYPE_STRING


class _String(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size_bytes", ctypes.c_size_t)]


class Value(ctypes.Structure):
    """onnxValue."""


Value._fields_ = [
    ("struct_size", ctypes.c_size_t),
    ("name", ctypes.c_char_p),
    ("kind", ctypes.c_uint32),
    ("data_type", ctypes.c_uint64),
    ("rank", ctypes.c_uint32),
    ("extents", ctypes.POINTER(ctypes.c_int64)),
    ("data", ctypes.c_void_p),
    ("data_size_bytes", ctypes.c_size_t),
    ("strings", ctypes.POINTER(_String)),
    ("element_count", ctypes.c_size_t),
    ("elements", ctypes.POINTER(ctypes.POINTER(Value))),
]

Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Value))


class _Texts:
    """A value of texts with the memory that it points into: one block of bytes, and places in it."""

    def __init__(self, name, array):
        flat = [str(text).encode() for text in array.ravel()]
        self._bytes = numpy.frombuffer(b"".join(flat) + b"\0", numpy.uint8)
        sizes = numpy.fromiter(map(len, flat), numpy.uint64, len(flat))
        self._places = numpy.empty((max(len(flat), 1), 2), numpy.uint64)
        self._places[: len(flat), 0] = self._bytes.ctypes.data + numpy.cumsum(sizes) - sizes
        self._places[: len(flat), 1] = sizes
        strings = self._places.ctypes.data_as(ctypes.POINTER(_String))
        self._extents = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        self.value = Value(
            struct_size=ctypes.sizeof(Value),
            name=name.encode(),
            kind=_TENSOR,
            data_type=_STRING,
            rank=array.ndim,
            extents=self._extents,
            strings=strings,
        )


def from_texts(name, array):
    """An input of texts; its member `value` points into the object, which must outlive it."""
    return _Texts(name, array)


def _read_tensor(value):
    extents = value.extents[: value.rank] if value.rank else []
    count = int(numpy.prod(extents, dtype=numpy.int64))
    if value.data_type == _STRING:
        texts = numpy.empty(count, object)
        if count:
            places = numpy.ctypeslib.as_array(
                ctypes.cast(value.strings, ctypes.POINTER(ctypes.c_uint64)), (count, 2)
            )
            at = ctypes.string_at
            texts[:] = [
                at(data, size).decode(errors="replace") if size else ""
                for data, size in places.tolist()
            ]
        return texts.reshape(extents)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(value.data_type)
    content = ctypes.string_at(value.data, value.data_size_bytes) if count else b""
    return numpy.frombuffer(content, dtype, count).reshape(extents).copy()


def read(value):
    """The name and the content of a value, copied."""
    name = value.name.decode() if value.name else ""
    if value.kind == _NOTHING:
        return name, None
    if value.kind == _TENSOR:
        return name, _read_tensor(value)
    elements = [read(value.elements[at].contents)[1] for at in range(value.element_count)]
    if value.kind == _SEQUENCE:
        return name, elements
    keys = _read_tensor(value).tolist()
    return name, {key: numpy.asarray(element).item() for key, element in zip(keys, elements)}
