# SPDX-License-Identifier: Apache-2.0
"""Values that no tensor descriptor carries, to and from Python's: texts are arrays of str, sequences lists,
maps dicts, an optional without its element None."""

import ctypes
import functools
import math
import struct

import numpy

from . import arrays, element_types, interface, map_rows
from .arrays import address_of
from .errors import make_error


# Fewer maps are read one after the other, which is faster.
_FEWEST_ROWS = 4


# Types of the numbers that classifiers write into maps.
_NUMBERS = {1: ctypes.c_float, 7: ctypes.c_int64, 11: ctypes.c_double}
_LETTERS = {1: "f", 7: "q", 11: "d"}

# interface.Value as `struct` sees it.
_FIELDS = struct.Struct("NPIQIPPNPNP")
_Record = ctypes.c_char * ctypes.sizeof(interface.Value)
_Extent, _memmove, _empty = ctypes.c_int64, ctypes.memmove, numpy.empty
_TENSOR = interface.VALUE_TENSOR
_bytes_at, _dtype_of = ctypes.string_at, functools.cache(element_types.dtype_of)
_is_packed = functools.cache(element_types.is_packed)


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


def fields_of(address):
    """The fields of an onnxValue in their order; one call reads all, where ctypes has one for each."""
    return _FIELDS.unpack(_Record.from_address(address))


@functools.lru_cache(512)
def _layout_of(count, letter):
    return struct.Struct(f"{count}{letter}")


def _unpack(address, count, letter):
    """Numbers that lie one after the other, as `struct` calls their type."""
    if not count:
        return ()
    layout = _layout_of(count, letter)
    return layout.unpack(_bytes_at(address, layout.size))


def _read_texts(strings, count):
    places = _unpack(strings, 2 * count, "N")
    return [_bytes_at(data, size).decode("utf-8", "replace") if size else "" for data, size in zip(places[::2], places[1::2])]


def _read_tensor(fields):
    _, _, _, number, rank, extents, data, size_bytes, strings, _, _ = fields
    shape = (_Extent.from_address(extents).value,) if rank == 1 else _unpack(extents, rank, "q")
    if number == element_types.STRING:
        texts = numpy.empty(math.prod(shape), object)
        texts[:] = _read_texts(strings, len(texts))
        return texts.reshape(shape)
    if _is_packed(number):
        content = numpy.frombuffer(_bytes_at(data, size_bytes), numpy.uint8) if size_bytes else numpy.empty(0, numpy.uint8)
        return element_types.unpack(content, number, shape)
    result = _empty(shape, _dtype_of(number))
    if result.size:
        _memmove(address_of(result), data, result.nbytes)
    return result


def _read_list(fields):
    """The elements of a tensor of rank 1, as Python's own."""
    _, _, _, number, rank, extents, data, _, strings, _, _ = fields
    letter = _LETTERS.get(number)
    if letter is None and number != element_types.STRING or rank != 1:
        return _read_tensor(fields).tolist()
    count = _Extent.from_address(extents).value
    return _read_texts(strings, count) if letter is None else _unpack(data, count, letter)


def _read_entry(address):
    """What a map has for a key: a number of Python's where it is one."""
    fields = fields_of(address)
    _, _, kind, number, rank, _, data, _, _, _, _ = fields
    scalar = _NUMBERS.get(number)
    if scalar is not None and rank == 0 and kind == _TENSOR:
        return scalar.from_address(data).value
    content = read(fields)
    return content.item() if getattr(content, "size", 0) == 1 else content


def read_name(fields):
    """The name, as bytes."""
    return _bytes_at(fields[1]) if fields[1] else b""


def read(fields):
    """The content of a value by its fields, copied."""
    _, _, kind, _, _, _, _, _, _, count, elements = fields
    if kind == _TENSOR:
        return _read_tensor(fields)
    if kind == interface.VALUE_NOTHING:
        return None
    if kind == interface.VALUE_MAP:
        return dict(zip(_read_list(fields), map(_read_entry, _unpack(elements, count, "P"))))
    if count >= _FEWEST_ROWS and (rows := map_rows.find_rows(elements, count)) is not None:
        keys = _read_list(fields_of(_unpack(elements, 1, "P")[0]))
        return [dict(zip(keys, row)) for row in rows.tolist()]
    return [read(fields_of(address)) for address in _unpack(elements, count, "P")]
