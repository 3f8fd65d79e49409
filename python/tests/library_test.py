# SPDX-License-Identifier: Apache-2.0
"""Tests of onnxifi.Library: which library it opens, what it says where it cannot, and its devices."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import onnxifi
from onnxifi import interface
from fixture import LIBRARY, LIBRARY_PATH, TREE

# A library of ONNXIFI 1.0 by somebody else: it has the functions and no extensions.
_PLAIN = "".join(f"int {name}() {{ return 0x0301; }}\n" for name in interface.FUNCTIONS)


def in_new_process(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(TREE / "python"), **environment},
        capture_output=True, text=True, check=False,
    )
    return done.stdout + done.stderr


def compiled(code, folder):
    source, library = pathlib.Path(folder, "plain.c"), pathlib.Path(folder, "libonnxifi.so.1")
    source.write_text(code)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", str(source), "-o", str(library)], check=True)
    return library


class FindTest(unittest.TestCase):
    _OPEN = "import onnxifi; print(onnxifi.default_library().path, onnxifi.devices()[0].key)"

    def test_variable_names_it(self):
        said = in_new_process(self._OPEN, ONNXIFI_LIBRARY=str(LIBRARY_PATH))
        self.assertEqual(said.strip(), f"{LIBRARY_PATH} auto")

    def test_system_linker_finds_it(self):
        said = in_new_process(self._OPEN, LD_LIBRARY_PATH=str(LIBRARY_PATH.parent))
        self.assertEqual(said.strip(), "libonnxifi.so.1 auto")

    def test_none_is_there(self):
        said = in_new_process(self._OPEN)
        self.assertIn("LibraryError: There is no libonnxifi: no path is given, ONNXIFI_LIBRARY is not set", said)
        self.assertIn(f"'{sys.prefix}/lib/libonnxifi.so.1' cannot be opened either", said)

    def test_named_library_is_not_there(self):
        with self.assertRaisesRegex(onnxifi.LibraryError, "'/nowhere/libonnxifi.so' cannot be opened: .*No such file"):
            onnxifi.Library("/nowhere/libonnxifi.so")
        said = in_new_process(self._OPEN, ONNXIFI_LIBRARY="/nowhere/libonnxifi.so")
        self.assertIn("The library that ONNXIFI_LIBRARY names, '/nowhere/libonnxifi.so' cannot be opened", said)

    def test_another_library(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(onnxifi.LibraryError, "lacks the function onnxGetBackendIDs of ONNXIFI 1.0"):
                onnxifi.Library(compiled("int nothing;", folder))
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(onnxifi.LibraryError, "does not offer the extension onnxGetLastErrorMessage"):
                onnxifi.Library(compiled(_PLAIN, folder))


class DeviceTest(unittest.TestCase):
    def test_devices_are_those_of_onnxifi_info(self):
        info = TREE / "build" / "release" / "bin" / "onnxifi_info"
        lines = subprocess.run([str(info)], capture_output=True, text=True, check=True).stdout.splitlines()
        listed = [line.split() for line in lines[1:] if not line.startswith("Plugin")]
        devices = LIBRARY.devices()
        self.assertEqual([(row[0], row[1]) for row in listed], [(device.key, device.type) for device in devices])
        for device in devices:
            self.assertGreater(device.memory_bytes, 0)
            self.assertGreaterEqual(device.opsets["ai.onnx"], 28)
        self.assertEqual((devices[0].state, devices[0].reason), ("ready", ""))

    def test_plugin_alone(self):
        library = onnxifi.Library(LIBRARY_PATH.parent / "libonnxifi-null.so")
        self.assertEqual([device.key for device in library.devices()], ["null:0"])
        session = onnxifi.Session(TREE / "samples" / "digits" / "digits.onnx", library=library)
        self.assertTrue(session.is_emulated)
        self.assertEqual([island.device for island in session.placement()], ["null:0"])

    def test_discovery_tells_plugins(self):
        records = {record.plugin: record for record in LIBRARY.discovery()}
        self.assertTrue(records["cpu"].is_loaded)

    def test_unknown_device_with_the_reason_of_its_plugin(self):
        if any(record.plugin == "cuda" and record.device_count == 0 for record in LIBRARY.discovery()):
            with self.assertRaisesRegex(onnxifi.InvalidError, "no device 'cuda'; .* Plugin 'cuda': .*libcuda"):
                LIBRARY.device("cuda")


if __name__ == "__main__":
    unittest.main()
