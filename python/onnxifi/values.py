# SPDX-License-Identifier: Apache-2.0
"""Values that no tensor descriptor carries, to and from Python's: texts are arrays of str, sequences lists,
maps dicts, an optional without its element None."""

import ctypes
import math

import numpy

from . import arrays, element_types, interface, map_rows
from .errors import make_error


# Fewer maps are read one after the other, which is faster.
_FEWEST_ROWS = 4


# Types of the numbers that classifiers write into maps.
_NUMBERS = {1: ctypes.c_float, 7: ctypes.c_int64, 11: ctypes.c_double}


class GivenValue:
    """An input as an onnxValue; `value` points into the object, which must outlive it."""

    def __init__(self, name, kind, content):
        self._kept = []
        self.value = self._make(kind, content, name)
        self.value.name = name.encode()

    def _make(self, kind, content, name):
        value = interface.Value(struct_size=ctypes.sizeof(interface.Value))
        if kind[:1] == ("optional",):
            if content is not None:
                return self._make(kind[1], content, name)
            value.kind = interface.VALUE_NOTHING
        elif kind[:1] == ("seq",):
            value.kind = interface.VALUE_SEQUENCE
            self._add_elements(value, [self._make(kind[1], element, name) for element in content])
        elif kind[:1] == ("map",):
            value.kind = interface.VALUE_MAP
            self._fill_tensor(value, _as_dense(list(content), kind[1], name))
            self._add_elements(value, [self._make(kind[2], element, name) for element in content.values()])
        else:
            value.kind = interface.VALUE_TENSOR
            number = kind[1] if kind else 0
            self._fill_tensor(value, _as_dense(content, number, name), number)
        return value

    def _add_elements(self, value, elements):
        pointers = (ctypes.POINTER(interface.Value) * max(len(elements), 1))(
            *[ctypes.pointer(element) for element in elements]
        )
        self._kept += [elements, pointers]
        value.element_count = len(elements)
        value.elements = pointers

    def _fill_tensor(self, value, array, number=0):
        extents = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        value.rank = array.ndim
        value.extents = extents
        value.data_type = number or element_types.number_of(array.dtype)
        self._kept.append(extents)
        if value.data_type == element_types.STRING:
            self._fill_texts(value, array)
            return
        content = element_types.pack(array, value.data_type) if element_types.is_packed(value.data_type) else array
        self._kept.append(content)
        value.data = content.__array_interface__["data"][0]
        value.data_size_bytes = content.nbytes

    def _fill_texts(self, value, array):
        """One block of bytes, and places in it."""
        flat = [text if isinstance(text, bytes) else str(text).encode() for text in array.ravel().tolist()]
        content = numpy.frombuffer(b"".join(flat) + b"\0", numpy.uint8)
        sizes = numpy.fromiter(map(len, flat), numpy.uint64, len(flat))
        places = numpy.empty((max(len(flat), 1), 2), numpy.uint64)
        places[: len(flat), 0] = content.__array_interface__["data"][0] + numpy.cumsum(sizes) - sizes
        places[: len(flat), 1] = sizes
        self._kept += [content, places]
        value.strings = places.ctypes.data_as(ctypes.POINTER(interface.String))


def _as_dense(content, number, name):
    """A dense array of this element type; of what it has where the model tells none."""
    if number == element_types.STRING:
        array = numpy.asarray(content)
        if array.size == 0 and not isinstance(content, numpy.ndarray):
            array = array.astype(object)
        if array.dtype.kind not in "OUST":
            raise make_error(
                "MISMATCHING_DATATYPE", f"Input '{name}' is of type {array.dtype}; the model declares string."
            )
        return array
    return arrays.as_input(name, content, number)


def _read_texts(value, count):
    texts = numpy.empty(count, object)
    if count:
        places = numpy.ctypeslib.as_array(
            ctypes.cast(value.strings, ctypes.POINTER(ctypes.c_uint64)), (count, 2)
        )
        at = ctypes.string_at
        texts[:] = [at(data, size).decode(errors="replace") if size else "" for data, size in places.tolist()]
    return texts


def _read_tensor(value):
    extents = value.extents[: value.rank] if value.rank else []
    count = math.prod(extents)
    number = value.data_type
    if number == element_types.STRING:
        return _read_texts(value, count).reshape(extents)
    if not count:
        return numpy.empty(extents, element_types.dtype_of(number))
    content = numpy.frombuffer((ctypes.c_uint8 * value.data_size_bytes).from_address(value.data), numpy.uint8)
    if element_types.is_packed(number):
        return element_types.unpack(content, number, extents)
    return content.copy().view(element_types.dtype_of(number)).reshape(extents)


def _read_entry(value):
    """What a map has for a key: a number of Python's where it is one."""
    kind = _NUMBERS.get(value.data_type)
    if kind is not None and value.rank == 0 and value.kind == interface.VALUE_TENSOR:
        return kind.from_address(value.data).value
    content = read(value)[1]
    return content.item() if getattr(content, "size", 0) == 1 else content


def read(value):
    """The name and the content of a value, copied."""
    name = interface.text_of(value.name)
    if value.kind == interface.VALUE_NOTHING:
        return name, None
    if value.kind == interface.VALUE_TENSOR:
        return name, _read_tensor(value)
    if value.element_count >= _FEWEST_ROWS and (rows := map_rows.find_rows(value)):
        keys = _read_tensor(rows[0]).tolist()
        return name, [dict(zip(keys, row)) for row in rows[1].tolist()]
    elements = [pointer.contents for pointer in value.elements[: value.element_count]]
    if value.kind == interface.VALUE_SEQUENCE:
        return name, [read(element)[1] for element in elements]
    keys = _read_tensor(value).tolist()
    return name, dict(zip(keys, map(_read_entry, elements)))
