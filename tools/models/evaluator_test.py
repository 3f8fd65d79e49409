# SPDX-License-Identifier: Apache-2.0
"""Compares evaluator.py with the reference evaluator of the `onnx` package.

Run from the folder above: python3 -m unittest models.evaluator_test
"""

import unittest

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from models import squeezenet, transformer_decoder, transformer_encoder
from models.evaluator import Evaluator, evaluate_node

_RANDOM = numpy.random.default_rng(7)


def _draw(*shape):
    return _RANDOM.standard_normal(shape)


def _make_model(op_type, operands, opset, outputs, attributes):
    """A one-node model; operands of float64 are inputs, others initializers, None is left out."""
    names = ["" if value is None else f"x{at}" for at, value in enumerate(operands)]
    inputs, initializers = [], []
    for name, value in zip(names, operands):
        if value is None:
            continue
        if value.dtype == numpy.float64:
            inputs.append(helper.make_tensor_value_info(name, TensorProto.DOUBLE, value.shape))
        else:
            initializers.append(numpy_helper.from_array(value, name))
    results = [f"y{position}" for position in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, **attributes)],
        op_type,
        inputs,
        [helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in results],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


# Operator, opset, operands, attributes: every form that the networks use, on small tensors.
_NODES = [
    ("Relu", 14, [_draw(3, 4)], {}),
    ("Tanh", 13, [_draw(3, 4)], {}),
    ("Erf", 13, [_draw(3, 4)], {}),
    ("Gelu", 20, [_draw(3, 4)], {"approximate": "tanh"}),
    ("Gelu", 20, [_draw(3, 4)], {}),
    ("Sigmoid", 13, [_draw(3, 4)], {}),
    ("Add", 7, [_draw(2, 3, 4), _draw(3, 1)], {}),
    ("Sub", 14, [_draw(2, 3), _draw(3)], {}),
    ("Mul", 7, [_draw(2, 3), _draw(2, 1)], {}),
    ("Div", 14, [_draw(2, 3), _draw(3)], {}),
    ("Clip", 10, [3 * _draw(40)], {"min": 0.0, "max": 2.0}),
    ("Gather", 13, [_draw(5, 3), numpy.array([[4, 0], [1, 1]])], {"axis": 0}),
    ("Gather", 13, [_draw(2, 5), numpy.array(3)], {"axis": 1}),
    ("Slice", 13, [_draw(2, 9)] + [numpy.array([v]) for v in (1, 7, 1, 2)], {}),
    ("Unsqueeze", 9, [_draw(3)], {"axes": [1, 2]}),
    ("Unsqueeze", 13, [_draw(3, 2), numpy.array([0, 2])], {}),
    ("Concat", 13, [_draw(2, 3), _draw(2, 1)], {"axis": 1}),
    ("Split", 18, [_draw(2, 6)], {"axis": 1, "num_outputs": 3}),
    ("Reshape", 13, [_draw(2, 3, 4), numpy.array([0, -1])], {}),
    ("Flatten", 11, [_draw(2, 3, 4)], {"axis": 2}),
    ("Transpose", 13, [_draw(2, 3, 4)], {"perm": [2, 0, 1]}),
    ("MatMul", 13, [_draw(2, 3, 4), _draw(2, 4, 5)], {}),
    ("Gemm", 11, [_draw(2, 3), _draw(4, 3), _draw(4)], {"transB": 1}),
    ("Gemm", 11, [_draw(3, 2), _draw(3, 4), _draw(4)], {"transA": 1, "alpha": 0.5, "beta": 2.0}),
    ("Conv", 11, [_draw(1, 4, 9, 8), _draw(6, 4, 3, 3), _draw(6)], {"pads": [1, 0, 2, 1]}),
    (
        "Conv",
        11,
        [_draw(2, 6, 9, 9), _draw(4, 3, 3, 2)],
        {"group": 2, "strides": [2, 1], "dilations": [1, 2]},
    ),
    ("Conv", 11, [_draw(1, 3, 7, 7), _draw(3, 1, 3, 3)], {"group": 3, "strides": [2, 2]}),
    ("MaxPool", 12, [_draw(1, 2, 9, 9)], {"kernel_shape": [3, 3], "strides": [2, 2]}),
    (
        "MaxPool",
        12,
        [_draw(1, 2, 8, 8)],
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    ),
    (
        "MaxPool",
        12,
        [_draw(1, 2, 8, 8)],
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 1, 1]},
    ),
    ("AveragePool", 11, [_draw(1, 2, 6, 6)], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    (
        "AveragePool",
        11,
        [_draw(1, 2, 6, 6)],
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    ),
    (
        "Resize",
        19,
        [_draw(1, 2, 3, 4), None, numpy.array([1, 1, 2, 3], numpy.float32)],
        {
            "mode": "nearest",
            "nearest_mode": "floor",
            "coordinate_transformation_mode": "asymmetric",
        },
    ),
    # As many images as channels: onnx 1.23 normalises only the first N channels of N images.
    ("LRN", 13, [10 * _draw(9, 9, 2, 2)], {"size": 5, "alpha": 0.1, "beta": 0.75, "bias": 1.0}),
    ("LRN", 13, [10 * _draw(9, 9, 2, 2)], {"size": 4, "alpha": 0.1, "beta": 0.5, "bias": 2.0}),
    ("GlobalAveragePool", 1, [_draw(2, 3, 4, 5)], {}),
    ("ReduceMean", 13, [_draw(2, 3, 4, 5)], {"axes": [2, 3], "keepdims": 0}),
    ("Softmax", 13, [_draw(2, 3, 4)], {"axis": -1}),
    (
        "BatchNormalization",
        15,
        [_draw(2, 3, 4, 4), _draw(3), _draw(3), _draw(3), _draw(3) ** 2],
        {"epsilon": 1e-2},
    ),
    ("LayerNormalization", 17, [_draw(2, 3, 8), _draw(8), _draw(8)], {"epsilon": 1e-2}),
    ("LogSoftmax", 13, [_draw(2, 3, 4)], {"axis": 1}),
    ("Identity", 14, [_draw(2, 3)], {}),
    # The package's evaluator has one direction, and no lengths.
    ("LSTM", 14, [_draw(5, 2, 3), _draw(1, 16, 3), _draw(1, 16, 4), _draw(1, 32)], {"hidden_size": 4}),
    (
        "GRU",
        14,
        [_draw(5, 2, 3), _draw(1, 12, 3), _draw(1, 12, 4), _draw(1, 24)],
        {"hidden_size": 4, "linear_before_reset": 1},
    ),
]

_OUTPUTS = {"LSTM": 3, "GRU": 2}


class NodeTest(unittest.TestCase):
    def test_agrees_with_onnx_on_every_form_of_node(self):
        for op_type, opset, operands, attributes in _NODES:
            with self.subTest(op_type=op_type, opset=opset, attributes=attributes):
                outputs = attributes.get("num_outputs", _OUTPUTS.get(op_type, 1))
                model = _make_model(op_type, operands, opset, outputs, attributes)
                inputs = {
                    value.name: operands[int(value.name[1:])] for value in model.graph.input
                }
                expected = ReferenceEvaluator(model).run(None, inputs)
                actual = Evaluator(model).run(inputs)
                self.assertEqual(len(expected), len(actual))
                for a, b in zip(actual, expected):
                    self.assertEqual(a.dtype, numpy.float64)
                    # Attributes of the nodes are float32, so the two differ by their rounding.
                    numpy.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)

    def test_softmax_before_opset_13_normalises_all_axes_behind(self):
        x = _draw(2, 3, 4)
        y = Evaluator(_make_model("Softmax", [x], 11, 1, {"axis": 1})).run({"x0": x})[0]
        exponentials = numpy.exp(x)
        expected = exponentials / exponentials.sum(axis=(1, 2), keepdims=True)
        numpy.testing.assert_allclose(y, expected, rtol=1e-12)

    def test_a_sequence_ends_at_its_length_in_both_directions(self):
        for op_type, gates in (("LSTM", 4), ("GRU", 3)):
            x = _draw(5, 2, 3)
            weights = [_draw(2, gates * 4, 3), _draw(2, gates * 4, 4), _draw(2, 2 * gates * 4)]
            attributes = {"hidden_size": 4, "direction": "bidirectional"}
            attributes |= {"linear_before_reset": 1} if op_type == "GRU" else {}
            lengths = numpy.array([5, 3], numpy.int32)
            whole = evaluate_node(
                helper.make_node(op_type, list("xwrbl"), list("yhc"), **attributes), [x, *weights, lengths], 14
            )
            node = helper.make_node(op_type, list("xwrb"), list("yhc"), **attributes)
            part = evaluate_node(node, [x[:3, 1:], *weights], 14)
            numpy.testing.assert_array_equal(whole[0][:3, :, 1:], part[0])
            numpy.testing.assert_array_equal(whole[0][3:, :, 1], 0)
            numpy.testing.assert_array_equal(whole[1][:, 1:], part[1])
            # Backwards is forwards over what is turned round.
            turned = helper.make_node(op_type, list("xwrb"), list("yhc"), **{**attributes, "direction": "forward"})
            ahead = evaluate_node(turned, [x[2::-1, 1:], *(each[1:] for each in weights)], 14)
            numpy.testing.assert_allclose(part[0][:, 1], ahead[0][::-1, 0], rtol=1e-12)

    def test_refuses_a_form_it_does_not_know(self):
        node = helper.make_node("LSTM", list("xwrb"), ["y"], hidden_size=4, clip=1.0)
        operands = [_draw(5, 2, 3), _draw(1, 16, 3), _draw(1, 16, 4), _draw(1, 32)]
        with self.assertRaisesRegex(NotImplementedError, "clip"):
            evaluate_node(node, operands, 14)

    def test_refuses_an_operator_it_does_not_know(self):
        x = _draw(2, 3)
        model = _make_model("Hardmax", [x], 13, 1, {})
        with self.assertRaisesRegex(NotImplementedError, "'Hardmax'"):
            Evaluator(model).run({"x0": x})


class NetworkTest(unittest.TestCase):
    def _compare(self, case, data_set):
        model = onnx.load_from_string(case.content)
        inputs = case.input_sets[data_set]
        expected = ReferenceEvaluator(model).run(None, inputs)
        actual = Evaluator(model).run(inputs)
        self.assertEqual(len(expected), len(actual))
        for a, b in zip(actual, expected):
            self.assertEqual(a.shape, b.shape)
            rms = numpy.sqrt(numpy.square(b).mean())
            numpy.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * rms)

    def test_agrees_with_onnx_on_an_image_network(self):
        self._compare(squeezenet.make_squeezenet()[0], data_set=1)

    def test_agrees_with_onnx_on_an_encoder_with_padding(self):
        self._compare(transformer_encoder.make_encoder()[0], data_set=1)

    def test_agrees_with_onnx_on_a_decoder_with_and_without_a_cache(self):
        case = transformer_decoder.make_decoder()[0]
        for data_set in range(len(case.input_sets)):
            self._compare(case, data_set)


if __name__ == "__main__":
    unittest.main()
