# SPDX-License-Identifier: Apache-2.0
"""Inputs that given_models draws for the files of others."""

import pathlib
import tempfile
import unittest

import numpy
import onnx
from onnx import TensorProto, helper

import given_models


class GivenModelsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._path = pathlib.Path(folder.name) / "one.onnx"

    def _save(self, *inputs):
        infos = [helper.make_tensor_value_info(*each) for each in inputs]
        output = helper.make_tensor_value_info("y", infos[0].type.tensor_type.elem_type, None)
        node = helper.make_node("Identity", [infos[0].name], ["y"])
        weight = helper.make_tensor("w", TensorProto.FLOAT, [1], [2.0])
        infos.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [1]))
        onnx.save(helper.make_model(helper.make_graph([node], "g", infos, [output], [weight])), self._path)

    def test_symbols_have_the_given_sizes_and_weights_are_no_inputs(self):
        self._save(("x", TensorProto.FLOAT, ["N", 3, None]), ("ids", TensorProto.INT64, ["N"]))
        model = given_models.load("one", self._path, {"N": 5, "x.2": 4})
        self.assertEqual({"x", "ids"}, set(model.inputs))
        self.assertEqual((5, 3, 4), model.inputs["x"].shape)
        self.assertEqual((5,), model.inputs["ids"].shape)
        self.assertTrue(((model.inputs["ids"] >= 0) & (model.inputs["ids"] < 8)).all())
        self.assertGreater(numpy.std(model.inputs["x"]), 0.5)
        self.assertIsNone(model.expected)

    def test_a_size_that_is_missing_is_named(self):
        self._save(("x", TensorProto.FLOAT, ["N", None]))
        with self.assertRaisesRegex(given_models.GivenModelError, "the symbol 'N'; give --dim N=N"):
            given_models.load("one", self._path, {})
        with self.assertRaisesRegex(given_models.GivenModelError, "has no name; give --dim x.1=N"):
            given_models.load("one", self._path, {"N": 2})

    def test_what_is_no_number_is_left_out(self):
        self._save(("x", TensorProto.STRING, [2]))
        with self.assertRaisesRegex(given_models.GivenModelError, "'x' is no tensor of numbers"):
            given_models.load("one", self._path, {})
        self._path.write_bytes(b"no model")
        with self.assertRaisesRegex(given_models.GivenModelError, "cannot be read"):
            given_models.load("one", self._path, {})

    def test_a_folder_stands_for_its_files(self):
        self._save(("x", TensorProto.FLOAT, [1]))
        (self._path.parent / "other.txt").write_text("no model")
        other = pathlib.Path("/a/model.onnx")
        self.assertEqual([other, self._path], given_models.find_files([other, self._path.parent]))

    def test_files_of_one_name_have_that_of_their_folder(self):
        paths = [pathlib.Path("/a/model.onnx"), pathlib.Path("/b/model.onnx"), pathlib.Path("/b/other.onnx")]
        self.assertEqual(["a/model", "b/model", "other"], list(given_models.name_files(paths)))


if __name__ == "__main__":
    unittest.main()
