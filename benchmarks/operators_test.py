# SPDX-License-Identifier: Apache-2.0
"""Tests of operators.py: its cases are models that ONNX takes, and its lines say what was measured."""

import unittest

import onnx

import operator_cases
import operators


class OperatorsTest(unittest.TestCase):
    def setUp(self):
        self.cases = [case for cases in operator_cases.list_cases().values() for case in cases]

    def test_names_are_told_apart(self):
        names = [case.name for case in self.cases]
        self.assertGreater(len(names), 300)
        self.assertEqual(len(names), len(set(names)))

    def test_cases_are_models(self):
        for case in self.cases[::7]:
            with self.subTest(case.name):
                model, feeds = operators.build_model(onnx, case, is_between=False)
                if case.op_type == "MeanVarianceNormalization":  # ONNX infers no shape of it.
                    model.graph.output[0].type.tensor_type.shape.SetInParent()
                    onnx.checker.check_model(model)
                else:
                    onnx.checker.check_model(model, full_check=True)
                self.assertEqual(set(feeds), {each.name for each in model.graph.input})

    def test_stands_between_convolutions(self):
        inside = [case for case in self.cases if operators.has_channels(case)]
        self.assertGreater(len(inside), 100)
        compared = next(case for case in inside if case.op_type == "Equal")
        for case in [*inside[::19], compared]:
            with self.subTest(case.name):
                model, _ = operators.build_model(onnx, case, is_between=True)
                onnx.checker.check_model(model, full_check=True)
                kinds = [node.op_type for node in model.graph.node]
                self.assertEqual(kinds[:2], ["Conv", case.op_type])
                # A recurrent operator's first result has an axis more, a comparison's is of bool: neither has
                # a convolution behind it.
                has_behind = len(kinds) == 3 + bool(case.behind)
                without = ("RNN", "GRU", "LSTM", "Equal", "Greater", "Less", "IsNaN")
                self.assertEqual(kinds[-1] == "Conv" and has_behind, case.op_type not in without)

    def test_compares_with_the_better_peer(self):
        times = {"onnxifi": 3.0, "onnxruntime": 2.0, "openvino": 1.5}
        line, ratio = operators.describe("x", times, 0.5)
        self.assertEqual(ratio, 2.0)
        self.assertIn("2.00", line)
        self.assertNotIn("apart", line)
        self.assertIn("9 tolerances apart", operators.describe("x", times, 9.0)[0])

    def test_says_what_was_not_compared(self):
        line, ratio = operators.describe("x", {"onnxifi": "no", "onnxruntime": 2.0}, None)
        self.assertIsNone(ratio)
        self.assertIn("refused", line)
        line, ratio = operators.describe("x", {"onnxifi": 1.0, "onnxruntime": "no"}, None)
        self.assertIsNone(ratio)
        self.assertIn("no peer", line)


if __name__ == "__main__":
    unittest.main()
