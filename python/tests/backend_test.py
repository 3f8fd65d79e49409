# SPDX-License-Identifier: Apache-2.0
"""Tests of onnxifi.backend; backend_suite.py runs ONNX's own over it."""

import unittest

import numpy
import onnx

import onnxifi.backend
from fixture import DIGITS, LIBRARY, identity, node


class Backend(onnxifi.backend.OnnxifiBackend):
    library = LIBRARY


class BackendTest(unittest.TestCase):
    def test_devices(self):
        for device, is_there in (("CPU", True), ("cpu:0", True), ("auto", True), ("CUDA:7", False), ("nothing", False)):
            self.assertIs(Backend.supports_device(device), is_there, device)

    def test_prepared_model_takes_lists_names_and_one_array(self):
        prepared = Backend.prepare(onnx.load(DIGITS), "CPU", fast_algorithms=False)
        image = numpy.ones((1, 1, 8, 8), numpy.float32)
        results = [prepared.run(given) for given in ([image], {"image": image}, image)]
        for result in results:
            numpy.testing.assert_array_equal(result.scores, results[0][0])
            numpy.testing.assert_array_equal(result["scores"], result[0])
        with self.assertRaisesRegex(ValueError, "2 inputs are given; the model has 1: image"):
            prepared.run([image, image])

    def test_run_node(self):
        x, y = numpy.array([[1, -2]], numpy.float32), numpy.array([3, 4], numpy.float32)
        for options in ({}, {"outputs_info": [(numpy.dtype("float32"), (1, 2))]}, {"opset_version": 13}):
            result = Backend.run_node(node("Sub", ["x", "y"], ["z"]), [x, y], "CPU", **options)
            numpy.testing.assert_array_equal(result.z, x - y)
        # An input that is left out, and an output that nobody wants.
        clipped = Backend.run_node(node("Clip", ["x", "", "high"], ["z"]), [x, numpy.array(0, numpy.float32)])
        numpy.testing.assert_array_equal(clipped[0], numpy.minimum(x, 0))

    def test_compatibility(self):
        self.assertTrue(Backend.is_compatible(identity()))
        self.assertTrue(Backend.is_compatible(identity(onnx.TensorProto.STRING)))
        other = identity()
        other.graph.node[0].op_type = "Nothing"
        self.assertFalse(Backend.is_compatible(other))


if __name__ == "__main__":
    unittest.main()
