# SPDX-License-Identifier: Apache-2.0
"""Compares onnxifi/interface.py and onnxifi/errors.py with the C headers, read as text."""

import ctypes
import re
import unittest

from onnxifi import errors, interface
from fixture import TREE

_INCLUDE = TREE / "include"
_SDK = "".join((_INCLUDE / "onnxifi" / name).read_text() for name in ("sdk.h", "auto_device.h"))
_STANDARD = (_INCLUDE / "onnx" / "onnxifi.h").read_text() + (_INCLUDE / "onnx" / "onnxifi_ext.h").read_text()
_C_TYPES = {
    "size_t": ctypes.c_size_t, "uint32_t": ctypes.c_uint32, "int32_t": ctypes.c_int32, "onnxStatus": ctypes.c_int32,
    "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "onnxEnum": ctypes.c_uint64, "onnxPointer": ctypes.c_uint64,
}


def _without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def _fields(text, name):
    """(name, C type) of the fields of a structure."""
    body = re.search(rf"struct {name} {{(.*?)}} {name};", _without_comments(text), re.DOTALL)[1]
    return [(declared[2], declared[1].strip()) for declared in re.finditer(r"([\w\s*]+?[\s*])(\w+);", body)]


def _structures():
    for structure in vars(interface).values():
        if isinstance(structure, type) and issubclass(structure, ctypes.Structure) and hasattr(structure, "_fields_"):
            yield structure


def _number(text, name):
    """The value of a macro."""
    found = re.search(rf"#define {name} +(\(\(uint64_t\)1 << (\d+)\)|0x[0-9A-Fa-f]+|\d+)", text)
    return 1 << int(found[2]) if found[2] else int(found[1], 0)


class InterfaceTest(unittest.TestCase):
    def test_structures_have_the_fields_of_the_headers(self):
        count = 0
        for structure in _structures():
            name = f"onnx{structure.__name__}"
            if name == "onnxMemoryFenceV1":
                continue  # has a union
            with self.subTest(name):
                declared = _fields(_STANDARD if name == "onnxTensorDescriptorV1" else _SDK, name)
                self.assertEqual([field[0] for field in structure._fields_], [field for field, _ in declared])
                for (_, kind), (field, c_type) in zip(structure._fields_, declared):
                    if "*" in c_type:
                        self.assertEqual(ctypes.sizeof(kind), ctypes.sizeof(ctypes.c_void_p), field)
                    else:
                        self.assertIs(kind, _C_TYPES[c_type.removeprefix("const ")], field)
                count += 1
        self.assertGreaterEqual(count, 12)

    def test_numbers_are_those_of_the_headers(self):
        self.assertEqual(_number(_STANDARD, "ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1"), interface.TAG_TENSOR_DESCRIPTOR_V1)
        self.assertEqual(_number(_STANDARD, "ONNXIFI_TAG_MEMORY_FENCE_V1"), interface.TAG_MEMORY_FENCE_V1)
        self.assertEqual(_number(_STANDARD, "ONNXIFI_EVENT_STATE_SIGNALLED"), interface.EVENT_STATE_SIGNALLED)
        for name, number in interface.DEVICE_TYPES.items():
            self.assertEqual(_number(_STANDARD, f"ONNXIFI_DEVICE_TYPE_{name}"), number)
        for prefix, numbers in (
            ("GRAPH_PROPERTY", interface.GRAPH_PROPERTIES), ("PRECISION", interface.PRECISIONS), ("PLACEMENT", interface.PLACEMENTS),
        ):
            for name, number in numbers.items():
                self.assertEqual(_number(_SDK, f"ONNXIFI_SDK_{prefix}_{name}"), number, name)
        for name, number in vars(interface).items():
            if name.startswith(("BACKEND_", "MEMORY_TYPE_")):
                self.assertEqual(_number(_STANDARD, f"ONNXIFI_{name}"), number, name)
            elif name.startswith(("VALUE_", "NODE_", "VERDICT_", "DATATYPE_")):
                self.assertEqual(_number(_SDK, f"ONNXIFI_SDK_{name}"), number, name)

    def test_functions_have_as_many_arguments(self):
        for text, functions, suffix in ((_STANDARD, interface.FUNCTIONS, ""), (_SDK + _STANDARD, interface.EXTENSIONS, "Function")):
            for name, types in functions.items():
                found = re.search(rf"\b{name}{suffix}\)?\s*\((.*?)\);", _without_comments(text), re.DOTALL)
                self.assertIsNotNone(found, name)
                self.assertEqual(found[1].count(",") + 1, len(types), name)

    def test_statuses_are_those_of_the_header(self):
        listed = (_INCLUDE / "onnxifi" / "statuses.h").read_text()
        names = re.findall(r"X\((\w+), \w+, \"", listed)
        self.assertEqual(sorted(errors.STATUSES), sorted(names))
        for name, number in errors.STATUSES.items():
            self.assertEqual(_number(_STANDARD, f"ONNXIFI_STATUS_{name}"), number)


if __name__ == "__main__":
    unittest.main()
