# SPDX-License-Identifier: Apache-2.0
"""Inputs that a model leaves too open to be compiled: those without a rank, and lists of extents or axes of any
length. A Session compiles such a model for what each run gives."""

from . import arrays
from .errors import make_error
from .model_outline import copy_with, name_of, write_message, write_varint

_INTEGERS = (6, 7)  # int32 and int64
# Fields of onnx.proto.
_GRAPH, _INPUT, _TYPE, _TENSOR, _SHAPE, _DIMENSION, _EXTENT, _SYMBOL = 7, 11, 2, 1, 2, 1, 1, 2
_PROBED_LENGTHS = range(9)


class OpenInputs:
    """Those of `inputs` whose rank or length is open; false where there are none. Ranks come first: a model that
    has them may still have lists whose lengths are open."""

    def __init__(self, inputs):
        self._tensors = [value for value in inputs if value.element_type]
        self._unranked = [value for value in self._tensors if value.shape is None]
        self._lists = [] if self._unranked else [value for value in self._tensors if _is_list(value)]

    def __bool__(self):
        return bool(self._unranked or self._lists)

    @property
    def has_lists(self):
        """Every rank is declared; lengths are what is open."""
        return bool(self._lists)

    @property
    def has_one_length(self):
        """Probes try all that a run can give."""
        return len({value.shape[0] or value.name for value in self._lists}) == 1

    def probes(self):
        """Shapes of lists that say whether the model compiles with any of them."""
        return [{value.name: (length,) for value in self._lists} for length in _PROBED_LENGTHS]

    def shapes_of(self, feeds):
        """{name: shape} of what a run gives for them."""
        return {
            value.name: arrays.as_input(value.name, feeds[value.name], value.element_type).shape
            for value in (*self._unranked, *self._lists)
        }

    def declarations(self, shapes):
        """What to declare for these shapes, each {name: dimensions} with numbers, symbols and None as those: the
        first of them that compiles. All that is open of a rank is its number of axes. A list may be only data, whose
        length is left a symbol, so that each is declared alone before they are together.
        """
        if self._unranked:
            return [{value.name: (None,) * len(shapes[value.name]) for value in self._unranked}]
        self._check_lists(shapes)
        found = []
        for lists in (*([value] for value in self._lists), self._lists):
            declared = self._with_lengths(lists, shapes)
            if declared not in found:
                found.append(declared)
        return found

    def _check_lists(self, shapes):
        first = {}
        for value in self._lists:
            shape, symbol = tuple(shapes[value.name]), value.shape[0]
            if len(shape) != 1:
                raise make_error("MISMATCHING_SHAPE", f"Input '{value.name}' has {len(shape)} axes instead of 1.")
            other, length = first.setdefault(symbol, (value.name, shape[0])) if symbol else (None, shape[0])
            if shape[0] != length:
                raise make_error(
                    "MISMATCHING_SHAPE",
                    f"Inputs '{other}' and '{value.name}' have {length} and {shape[0]} elements; both are '{symbol}'.",
                )

    def _with_lengths(self, lists, shapes):
        """These lists with their lengths, and every other input that has the symbol of one."""
        lengths = {value.shape[0]: shapes[value.name][0] for value in lists if value.shape[0]}
        declared = {
            value.name: tuple(lengths.get(extent, extent) for extent in value.shape)
            for value in self._tensors
            if any(extent in lengths for extent in value.shape)
        }
        return {**declared, **{value.name: tuple(shapes[value.name]) for value in lists}}


def _is_list(value):
    return value.element_type in _INTEGERS and len(value.shape) == 1 and not isinstance(value.shape[0], int)


def _dimension(extent):
    if extent is None:
        return b""
    if isinstance(extent, str):
        return write_message(_SYMBOL, extent.encode())
    return write_varint(_EXTENT << 3) + write_varint(extent)


def _shape(dimensions):
    return write_message(_SHAPE, b"".join(write_message(_DIMENSION, _dimension(extent)) for extent in dimensions))


def declare(content, declared):
    """The bytes of a ModelProto, with inputs of these dimensions, {name: a number, a symbol or None each}."""

    def with_shape(tensor, dimensions):
        return copy_with(tensor, _SHAPE, lambda _: None) + _shape(dimensions)

    def with_input(value):
        dimensions = declared.get(name_of(value))
        if dimensions is None:
            return value
        return copy_with(value, _TYPE, lambda type_: copy_with(type_, _TENSOR, lambda tensor: with_shape(tensor, dimensions)))

    return copy_with(content, _GRAPH, lambda graph: copy_with(graph, _INPUT, with_input))
