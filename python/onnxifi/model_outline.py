# SPDX-License-Identifier: Apache-2.0
"""What a caller has to know of a model: names, types and shapes of its inputs and outputs, and its nodes.

Read from the bytes of the file, so that the package needs neither `onnx` nor a copy of the weights.
"""

import dataclasses

from . import element_types
from .errors import make_error

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def _read_varint(content, at):
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise IndexError


def _fields(content):
    """(number, value) of each field of a message; the value of a message or text is a view of its bytes."""
    at, end = 0, len(content)
    while at < end:
        key, at = _read_varint(content, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _read_varint(content, at)
        elif kind == _BYTES:
            size, at = _read_varint(content, at)
            value = content[at : at + size]
            at += size
        elif kind in (_FIXED32, _FIXED64):
            size = 4 if kind == _FIXED32 else 8
            value = content[at : at + size]
            at += size
        else:
            raise IndexError
        if at > end:
            raise IndexError
        yield key >> 3, value


def copy_with(content, number, replace):
    """The bytes of a message, with replace(content) in place of that of each message field `number`; None leaves
    the field out."""
    parts, at, end = [], 0, len(content)
    while at < end:
        start = at
        key, at = _read_varint(content, at)
        kind = key & 7
        if kind == _VARINT:
            _, at = _read_varint(content, at)
        elif kind == _BYTES:
            size, at = _read_varint(content, at)
            at += size
            if key >> 3 == number:
                replaced = replace(content[at - size : at])
                if replaced is not None:
                    parts += [write_varint(key), write_varint(len(replaced)), replaced]
                continue
        else:
            at += 8 if kind == _FIXED64 else 4
        parts.append(content[start:at])
    return b"".join(parts)


def write_varint(value):
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def write_message(number, content):
    """A field of a message or text."""
    return write_varint(number << 3 | _BYTES) + write_varint(len(content)) + content


def name_of(value):
    """The name of a ValueInfoProto."""
    return _text(_one(value, 1, b""))


def _all(content, number):
    return [value for field, value in _fields(content) if field == number]


def _one(content, number, otherwise):
    """The field; the last one counts."""
    found = _all(content, number)
    return found[-1] if found else otherwise


def _text(content):
    return bytes(content).decode(errors="replace")


def _first_text(content, number):
    """The first field of this number: what follows, such as a weight's elements, is not looked at."""
    return next((_text(value) for field, value in _fields(content) if field == number), "")


@dataclasses.dataclass(frozen=True)
class ValueInfo:
    """An input or output: `type` as ONNX Runtime writes it ("tensor(float)"); `shape` a list of numbers,
    names of symbols and None, or None where the model does not tell the rank."""

    name: str
    type: str
    shape: list
    # The number of the element type where it is a tensor of numbers, else None.
    element_type: int = dataclasses.field(default=None, repr=False)
    # The parsed type: ("tensor", number), ("seq", type), ("optional", type), ("map", number, type), ().
    kind: tuple = dataclasses.field(default=(), repr=False)

    @property
    def dtype(self):
        """numpy's type of the elements; None where it is no tensor."""
        return element_types.dtype_of(self.kind[1]) if self.kind[:1] == ("tensor",) and self.kind[1] else None


@dataclasses.dataclass(frozen=True)
class Node:
    index: int
    name: str
    operator: str


def _read_type(content):
    for number, value in _fields(content):
        if number == 1:
            return ("tensor", _one(value, 1, 0))
        if number == 8:
            return ("sparse_tensor", _one(value, 1, 0))
        if number in (4, 9):
            return ("seq" if number == 4 else "optional", _read_type(_one(value, 1, b"")))
        if number == 5:
            return ("map", _one(value, 1, 0), _read_type(_one(value, 2, b"")))
    return ()


def _write_type(kind):
    if not kind:
        return "unknown"
    if kind[0] in ("tensor", "sparse_tensor"):
        return f"{kind[0]}({element_types.name_of(kind[1])})"
    if kind[0] == "map":
        return f"map({element_types.name_of(kind[1])},{_write_type(kind[2])})"
    return f"{kind[0]}({_write_type(kind[1])})"


def _read_dimension(content):
    for number, value in _fields(content):
        if number == 1:
            return value - (1 << 64) if value >> 63 else value
        if number == 2:
            return _text(value) or None
    return None


def _read_shape(content):
    tensor = _one(content, 1, None)
    shape = None if tensor is None else _one(tensor, 2, None)
    return None if shape is None else [_read_dimension(dimension) for dimension in _all(shape, 1)]


def _read_value(content):
    kind_bytes = _one(content, 2, b"")
    kind = _read_type(kind_bytes)
    is_of_numbers = kind[:1] == ("tensor",) and kind[1] not in (0, element_types.STRING)
    return ValueInfo(
        _text(_one(content, 1, b"")),
        _write_type(kind),
        _read_shape(kind_bytes),
        kind[1] if is_of_numbers else None,
        kind,
    )


class ModelOutline:
    """Of the bytes of a ModelProto: `inputs` that a caller gives, and `outputs`."""

    def __init__(self, content):
        self._content = memoryview(content).cast("B")
        try:
            self._read()
        except IndexError:
            raise make_error(
                "INVALID_PROTOBUF", "The bytes of the model are no serialised ModelProto."
            ) from None

    def _graph(self):
        graph = _one(self._content, 7, None)
        if graph is None:
            raise make_error("INVALID_MODEL", "The model has no graph.")
        return graph

    def _read(self):
        inputs, outputs, given = {}, {}, set()
        for number, value in _fields(self._graph()):
            if number == 11:
                read = _read_value(value)
                inputs.setdefault(read.name, read)
            elif number == 12:
                read = _read_value(value)
                outputs.setdefault(read.name, read)
            elif number == 5:
                given.add(_first_text(value, 8))
            elif number == 15:
                given.add(_first_text(_one(value, 1, b""), 8))
        self.inputs = [value for name, value in inputs.items() if name not in given]
        self.outputs = list(outputs.values())

    def nodes(self):
        """Those of the main graph, in its order."""
        found = []
        for content in _all(self._graph(), 1):
            name, operator, domain = (_text(_one(content, number, b"")) for number in (3, 4, 7))
            found.append(Node(len(found), name, f"{domain}.{operator}" if domain not in ("", "ai.onnx") else operator))
        return found

    def release(self):
        """Ends the view of the bytes."""
        self._content.release()
