# SPDX-License-Identifier: Apache-2.0
"""Sequences of maps with the same keys, as classifiers give one for each sample: read all at once.

A library keeps such as a matrix and makes records of it whose addresses go on evenly. Where they do, arrays over
records and numbers see every one without a call for each; where they do not, values.py reads one after the other.
"""

import ctypes

import numpy

from . import element_types, interface

_FORMATS = {4: numpy.uint32, 8: numpy.uint64}
_RECORD = numpy.dtype(
    {
        "names": [name for name, _ in interface.Value._fields_],
        "formats": [_FORMATS[getattr(interface.Value, name).size] for name, _ in interface.Value._fields_],
        "offsets": [getattr(interface.Value, name).offset for name, _ in interface.Value._fields_],
        "itemsize": ctypes.sizeof(interface.Value),
    }
)
_POINTER = numpy.dtype(numpy.uint64)


def _view(address, shape, strides, dtype):
    """An array over memory; it touches its elements and nothing between them."""
    size = sum((extent - 1) * step for extent, step in zip(shape, strides)) + dtype.itemsize
    return numpy.ndarray(shape, dtype, (ctypes.c_char * size).from_address(address), 0, strides)


def _steps_of(addresses):
    """The distance of neighbours along each axis, or None where they do not go on evenly and upwards."""
    addresses = addresses.astype(numpy.int64)
    first = int(addresses.flat[0])
    expected, steps = first, []
    for axis, extent in enumerate(addresses.shape):
        after = [0] * addresses.ndim
        after[axis] = 1
        step = int(addresses[tuple(after)]) - first if extent > 1 else 0
        if step < 0:
            return None
        steps.append(step)
        expected = expected + step * numpy.arange(extent).reshape([-1 if at == axis else 1 for at in range(addresses.ndim)])
    return steps if (addresses == expected).all() else None


def _all_equal(numbers):
    return bool((numbers == numbers.flat[0]).all())


def _view_at(addresses, dtype):
    """An array over what lies at addresses, or None."""
    steps = _steps_of(addresses)
    return None if steps is None else _view(int(addresses.flat[0]), addresses.shape, steps, dtype)


def find_rows(elements, count):
    """The numbers of all maps as (maps, keys), copied, for the address of pointers to them; None where these are no such maps."""
    if count == 0:
        return None
    addresses = _view(elements, (count,), (8,), _POINTER)
    first = interface.Value.from_address(int(addresses[0]))
    width = first.element_count
    if first.kind != interface.VALUE_MAP or width == 0:
        return None
    maps = _view_at(addresses, _RECORD)
    if maps is None or not all(_all_equal(maps[name]) for name in ("struct_size", "kind", "element_count", "data", "strings")):
        return None
    starts = _steps_of(maps["elements"])
    if starts is None:
        return None
    pointers = _view(int(maps["elements"][0]), (count, width), (starts[0], 8), _POINTER)
    numbers = _view_at(pointers, _RECORD)
    if numbers is None or not all(_all_equal(numbers[name]) for name in ("struct_size", "kind", "rank", "data_type")):
        return None
    entry = numbers[0, 0]
    number = int(entry["data_type"])
    if entry["kind"] != interface.VALUE_TENSOR or entry["rank"] != 0 or number == element_types.STRING:
        return None
    if element_types.is_packed(number):
        return None
    matrix = _view_at(numbers["data"], element_types.dtype_of(number))
    return None if matrix is None else matrix.copy()
