# SPDX-License-Identifier: Apache-2.0
"""Inputs that a model leaves too open to be compiled: those without a rank, and lists of extents or axes of any
length. A Session compiles such a model for what each run gives."""

from . import arrays
from .model_outline import copy_with, name_of, write_message, write_varint

_INTEGERS = (6, 7)  # int32 and int64
_GRAPH, _INPUT, _TYPE, _TENSOR, _SHAPE, _DIMENSION, _EXTENT = 7, 11, 2, 1, 2, 1, 1  # fields of onnx.proto


class OpenInputs:
    """Those of `inputs` whose rank or length is open; false where there are none."""

    def __init__(self, inputs):
        tensors = [value for value in inputs if value.element_type]
        self._unranked = [value for value in tensors if value.shape is None]
        self._lists = [
            value
            for value in tensors
            if value.element_type in _INTEGERS
            and value.shape is not None
            and len(value.shape) == 1
            and not isinstance(value.shape[0], int)
        ]

    def __bool__(self):
        return bool(self._unranked or self._lists)

    def shortest(self):
        """Shapes of lists of one number; None where nothing tells a rank."""
        return None if self._unranked else {value.name: (1,) for value in self._lists}

    def shapes_of(self, feeds):
        """{name: shape} of what a run gives for them."""
        return {
            value.name: arrays.as_input(value.name, feeds[value.name], value.element_type).shape
            for value in (*self._unranked, *self._lists)
        }

    def declared(self, shapes):
        """{name: dimensions} to declare: all that is open of a rank is its number of axes, None each."""
        ranks = {value.name: (None,) * len(shapes[value.name]) for value in self._unranked}
        return {**ranks, **{value.name: tuple(shapes[value.name]) for value in self._lists}}


def _shape(dimensions):
    said = (b"" if extent is None else write_varint(_EXTENT << 3) + write_varint(extent) for extent in dimensions)
    return write_message(_SHAPE, b"".join(write_message(_DIMENSION, dimension) for dimension in said))


def declare(content, declared):
    """The bytes of a ModelProto, with inputs of these dimensions, {name: extents or None each}."""

    def with_shape(tensor, dimensions):
        return copy_with(tensor, _SHAPE, lambda _: None) + _shape(dimensions)

    def with_input(value):
        dimensions = declared.get(name_of(value))
        if dimensions is None:
            return value
        return copy_with(value, _TYPE, lambda type_: copy_with(type_, _TENSOR, lambda tensor: with_shape(tensor, dimensions)))

    return copy_with(content, _GRAPH, lambda graph: copy_with(graph, _INPUT, with_input))
