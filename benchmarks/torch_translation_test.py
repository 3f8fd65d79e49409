# SPDX-License-Identifier: Apache-2.0
"""Tests of torch_translation.py against ONNX's own evaluator; they need PyTorch, on any device."""

import importlib.util
import pathlib
import tempfile
import unittest

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

_HAS_TORCH = importlib.util.find_spec("torch") is not None
if _HAS_TORCH:
    import torch

    import torch_models
    import torch_translation

_OPSET = helper.make_opsetid("", 23)


def draw(*extents):
    return numpy.random.default_rng(len(extents)).standard_normal(extents).astype(numpy.float32)


def whole(*values):
    return numpy.array(values, numpy.int64)


def make_model(nodes, inputs, constants, outputs=("y",)):
    graph = helper.make_graph(
        nodes,
        "test",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in inputs.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[_OPSET], ir_version=8)


# Operator, attributes, inputs that are known at the run only, constants; None is an absent input.
_CASES = [
    ("Add", {}, [draw(2, 3), draw(3)], []),
    ("Attention", {}, [draw(1, 2, 3, 4), draw(1, 2, 5, 4), draw(1, 2, 5, 6)], []),
    ("Attention", {"is_causal": 1, "scale": 0.25}, [draw(1, 4, 5, 8), draw(1, 2, 5, 8), draw(1, 2, 5, 8)], []),
    ("BatchNormalization", {"epsilon": 1e-3}, [draw(2, 3, 4)], [draw(3), draw(3), draw(3), abs(draw(3))]),
    ("Cast", {"to": TensorProto.INT64}, [draw(2, 3) * 9], []),
    ("Clip", {}, [draw(2, 9)], [numpy.float32(-0.5), numpy.float32(0.25)]),
    ("Concat", {"axis": 1}, [draw(2, 3), draw(2, 1)], []),
    ("Conv", {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 2, 1]}, [draw(1, 4, 9, 8)], [draw(6, 4, 3, 2)]),
    ("Conv", {"group": 2, "pads": [1, 1]}, [draw(2, 4, 9)], [draw(6, 2, 3), draw(6)]),
    ("Conv", {"kernel_shape": [2, 2, 2]}, [draw(1, 2, 4, 4, 3)], [draw(3, 2, 2, 2, 2)]),
    ("Div", {}, [draw(2, 3), abs(draw(3)) + 1], []),
    ("Div", {}, [whole(-7, 7, 9), whole(2, 2, 4)], []),
    ("Erf", {}, [draw(5)], []),
    ("Expand", {}, [draw(3, 1)], [whole(2, 1, 4)]),
    ("Flatten", {"axis": 2}, [draw(2, 3, 4, 5)], []),
    ("Gather", {"axis": 1}, [draw(2, 5)], [whole(3, 0)]),
    ("Gather", {"axis": 1}, [draw(2, 5)], [numpy.array(4)]),
    ("Gather", {}, [draw(6, 3), whole(5, 0, 2)], []),
    ("Gather", {"axis": 1}, [draw(2, 5, 3), numpy.array([[4, 1], [0, 0]])], []),
    ("Gelu", {}, [draw(7)], []),
    ("Gelu", {"approximate": "tanh"}, [draw(7)], []),
    ("Gemm", {"transB": 1}, [draw(2, 3)], [draw(4, 3), draw(4)]),
    ("Gemm", {"alpha": 0.5, "beta": 2.0, "transA": 1}, [draw(3, 2)], [draw(3, 4), draw(2, 1)]),
    ("Gemm", {"alpha": 0.5}, [draw(2, 3)], [draw(3, 4)]),
    ("GlobalAveragePool", {}, [draw(2, 3, 4, 5)], []),
    ("Identity", {}, [draw(3)], []),
    ("LayerNormalization", {"axis": 1, "epsilon": 1e-3}, [draw(2, 3, 4)], [draw(3, 4), draw(3, 4)]),
    ("LessOrEqual", {}, [whole(1, 2, 3), whole(2, 2, 2)], []),
    ("MatMul", {}, [draw(2, 3, 4), draw(4, 5)], []),
    ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [0, 1, 1, 0]}, [draw(1, 2, 8, 7) - 4], []),
    ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, [draw(1, 2, 8, 8)], []),
    ("Mul", {}, [draw(2, 3), draw(3)], []),
    ("Neg", {}, [draw(3)], []),
    ("Pow", {}, [abs(draw(3))], [numpy.float32(1.5)]),
    ("ReduceMean", {"keepdims": 0}, [draw(2, 3, 4)], [whole(-1, 0)]),
    ("ReduceMean", {}, [draw(2, 3)], []),
    ("Relu", {}, [draw(5)], []),
    ("Reshape", {}, [draw(2, 3, 4)], [whole(0, -1)]),
    ("Sigmoid", {}, [draw(5)], []),
    ("Slice", {}, [draw(5, 6)], [whole(1, -5), whole(5, 100), whole(0, 1), whole(2, 3)]),
    ("Softmax", {"axis": 1}, [draw(2, 3, 4)], []),
    ("Split", {"axis": 1}, [draw(2, 7)], [whole(3, 4)]),
    ("Split", {"axis": 1, "num_outputs": 2}, [draw(2, 7)], []),
    ("Sqrt", {}, [abs(draw(3))], []),
    ("Squeeze", {}, [draw(2, 1, 3, 1)], [whole(-1, 1)]),
    ("Squeeze", {}, [draw(2, 1, 3, 1)], []),
    ("Sub", {}, [draw(2, 3), draw(3)], []),
    ("Tanh", {}, [draw(5)], []),
    ("Transpose", {"perm": [2, 0, 1]}, [draw(2, 3, 4)], []),
    ("Transpose", {}, [draw(2, 3, 4)], []),
    ("Unsqueeze", {}, [draw(2, 3)], [whole(0, -1)]),
    ("Where", {}, [numpy.array([True, False, True]), draw(2, 3), draw(3)], []),
]
_NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
_RESIZES = [
    (_NEAREST, [None, numpy.array([1, 1, 2, 3], numpy.float32)]),
    ({"mode": "linear"}, [None, None, whole(1, 2, 9, 5)]),
    ({"mode": "linear", "coordinate_transformation_mode": "align_corners"}, [None, None, whole(1, 2, 9, 5)]),
]


@unittest.skipUnless(_HAS_TORCH, "there is no PyTorch")
class Operators(unittest.TestCase):
    def expect_right(self, model, inputs):
        module = torch_translation.translate(model, inputs)
        expected = ReferenceEvaluator(model).run(None, inputs)
        with torch.inference_mode():
            actual = module(*(torch.from_numpy(array) for array in inputs.values()))
        self.assertEqual(len(actual), len(expected))
        for value, array in zip(actual, expected):
            self.assertEqual(value.numpy().dtype, array.dtype)
            numpy.testing.assert_allclose(value.numpy(), array, rtol=2e-5, atol=2e-5)

    def expect_node_right(self, op_type, attributes, values, known):
        inputs = {f"x{number}": array for number, array in enumerate(values)}
        constants = {f"c{number}": numpy.asarray(array) for number, array in enumerate(known) if array is not None}
        names = [*inputs, *(f"c{number}" if array is not None else "" for number, array in enumerate(known))]
        outputs = ("y", "z") if op_type == "Split" else ("y",)
        node = helper.make_node(op_type, names, list(outputs), **attributes)
        self.expect_right(make_model([node], inputs, constants, outputs), inputs)

    def test_each_is_that_of_onnx(self):
        for op_type, attributes, values, known in _CASES:
            with self.subTest(op_type, **attributes):
                self.expect_node_right(op_type, attributes, values, known)
        for attributes, known in _RESIZES:
            with self.subTest("Resize", **attributes):
                self.expect_node_right("Resize", attributes, [draw(1, 2, 4, 3)], known)

    def test_each_has_a_case(self):
        tested = {case[0] for case in _CASES} | {"Resize"}
        self.assertEqual(tested, set(torch_translation._OPERATORS))

    def test_shapes_are_known(self):
        nodes = [
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Gather", ["shape", "second"], ["extent"]),
            helper.make_node("Unsqueeze", ["extent", "zero"], ["extents"]),
            helper.make_node("Concat", ["minus", "extents"], ["target"], axis=0),
            helper.make_node("Reshape", ["x", "target"], ["y"]),
        ]
        constants = {"second": numpy.array(1), "zero": whole(0), "minus": whole(-1)}
        inputs = {"x": draw(2, 3, 4)}
        self.expect_right(make_model(nodes, inputs, constants), inputs)

    def test_nodes_may_come_before_what_they_take(self):
        nodes = [
            helper.make_node("Add", ["root", "x"], ["y"]),
            helper.make_node("Sqrt", ["square"], ["root"]),
            helper.make_node("Mul", ["x", "x"], ["square"]),
        ]
        inputs = {"x": draw(2, 3)}
        model = make_model(nodes, inputs, {})
        (actual,) = torch_translation.translate(model, inputs)(torch.from_numpy(inputs["x"]))
        numpy.testing.assert_allclose(actual.numpy(), abs(inputs["x"]) + inputs["x"], rtol=1e-6)
        model.graph.node.pop()
        with self.assertRaisesRegex(torch_translation.TranslationError, "Add takes what no node makes"):
            torch_translation.translate(model, inputs)

    def test_what_is_not_known_is_refused(self):
        target = {"x": draw(2, 3), "target": whole(3, 2)}
        for node, inputs, words in (
            (helper.make_node("Reshape", ["x", "target"], ["y"]), target, "target shape of Reshape depends"),
            (helper.make_node("Celu", ["x"], ["y"]), {"x": draw(3)}, "Celu has no translation"),
            (
                helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="cubic"),
                {"x": draw(1, 1, 2, 2)},
                "no Resize of cubic",
            ),
        ):
            model = make_model([node], inputs, {"scales": numpy.ones(4, numpy.float32)})
            with self.assertRaisesRegex(torch_translation.TranslationError, words):
                torch_translation.translate(model, inputs)

    def test_a_file_is_the_module_and_the_names(self):
        inputs = {"x": draw(2, 3)}
        good = make_model([helper.make_node("Mul", ["x", "w"], ["y"])], inputs, {"w": draw(3)})
        bad = make_model([helper.make_node("Celu", ["x"], ["y"])], inputs, {})
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.onnx")
            onnx.save(good, path)
            read = torch.load(torch_models.convert(path, inputs, folder), weights_only=False)
            self.assertEqual((read["inputs"], read["outputs"]), (["x"], ["y"]))
            (y,) = read["module"](torch.from_numpy(inputs["x"]))
            numpy.testing.assert_array_equal(y.numpy(), inputs["x"] * draw(3))
            onnx.save(bad, path)
            with self.assertRaisesRegex(torch_models.TranslationError, "it is not translated: Celu has no"):
                torch_models.convert(path, inputs, folder)


if __name__ == "__main__":
    unittest.main()
