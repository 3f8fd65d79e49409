# SPDX-License-Identifier: Apache-2.0
"""What the oracle says of nodes whose fault is known."""

import unittest

import numpy
from onnx import TensorProto, helper

from schema_oracle import BESIDE, INVALID, UNKNOWN, VALID, SchemaOracle, is_worded_rule


def _model(op_type, inputs, opset=22, reads=None, **attributes):
    """`inputs`: element type and shape by name."""
    node = helper.make_node(op_type, reads or list(inputs), ["y"], **attributes)
    infos = [helper.make_tensor_value_info(name, *info) for name, info in inputs.items()]
    output = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "one", infos, [output])
    return helper.make_model(
        graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)]
    ).SerializeToString()


_FLOATS = (TensorProto.FLOAT, [2, 3])


class SchemaOracleTest(unittest.TestCase):
    def setUp(self):
        self.oracle = SchemaOracle()

    def check(self, verdict, words, content):
        answer, why = self.oracle.answer(content)
        self.assertEqual(answer, verdict, why)
        self.assertIn(words, why or "")

    def test_a_right_node_is_valid(self):
        self.check(VALID, "", _model("Add", {"a": _FLOATS, "b": _FLOATS}))

    def test_types_are_those_of_the_schema(self):
        self.check(BESIDE, "tensor(int8)", _model("Tanh", {"a": (TensorProto.INT8, [2])}))

    def test_inputs_of_one_variable_have_one_type(self):
        doubles = (TensorProto.DOUBLE, [2, 3])
        self.check(BESIDE, "another type", _model("Add", {"a": _FLOATS, "b": doubles}))

    def test_a_foreign_type_hides_no_other_fault(self):
        self.check(INVALID, "1 inputs", _model("Add", {"a": (TensorProto.STRING, [2])}))

    def test_inputs_are_counted(self):
        self.check(INVALID, "1 inputs", _model("Add", {"a": _FLOATS}))

    def test_required_inputs_are_there(self):
        self.check(INVALID, "left out", _model("Add", {"a": _FLOATS}, reads=["a", ""]))

    def test_required_attributes_are_there_and_of_their_kind(self):
        self.check(INVALID, "'axis' is missing", _model("Concat", {"a": _FLOATS, "b": _FLOATS}))
        self.check(INVALID, "another kind", _model("Softmax", {"a": _FLOATS}, axis=1.5))

    def test_the_version_counts(self):
        self.check(INVALID, "no such operator", _model("Gelu", {"a": _FLOATS}, opset=11))
        self.check(VALID, "", _model("Gelu", {"a": _FLOATS}, opset=20))

    def test_what_onnx_runtime_computes_fits(self):
        model = _model("Softmax", {"a": _FLOATS}, axis=1)
        self.assertTrue(self.oracle.computes(model, {"a": numpy.ones((2, 3), numpy.float32)}))

    def test_what_onnx_runtime_refuses_does_not_fit(self):
        model = _model("Softmax", {"a": _FLOATS}, axis=2)
        self.assertFalse(self.oracle.computes(model, {"a": numpy.ones((2, 3), numpy.float32)}))

    def test_extents_that_do_not_fit_are_not_called_valid(self):
        other = (TensorProto.FLOAT, [2, 4])
        self.check(UNKNOWN, "ncompatible", _model("Add", {"a": _FLOATS, "b": other}))

    def test_unknown_attributes_are_not_decided(self):
        self.check(UNKNOWN, "", _model("Tanh", {"a": _FLOATS}, colour=1))

    def test_a_model_that_ends_inference_leaves_the_oracle_alive(self):
        self.oracle.infer(_model("Add", {"a": _FLOATS, "b": _FLOATS}))
        self.oracle._process.kill()
        self.oracle._process.join()
        self.assertIsNone(self.oracle.infer(_model("Tanh", {"a": _FLOATS})))
        self.assertEqual(self.oracle.infer(_model("Tanh", {"a": _FLOATS})), "")

    def test_rules_in_words_are_those_of_their_operators_alone(self):
        self.assertTrue(is_worded_rule("LpPool", "LpPool: p (0) is less than 1."))
        self.assertFalse(is_worded_rule("MaxPool", "MaxPool: p (0) is less than 1."))
        self.assertFalse(is_worded_rule("LpPool", "LpPool: X has 2 axes instead of 3."))


if __name__ == "__main__":
    unittest.main()
