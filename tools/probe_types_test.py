# SPDX-License-Identifier: Apache-2.0
"""What probe_types asks a device, by a device that writes it down."""

import unittest

import onnx
from onnx import TensorProto, helper

import probe_types


class _Device:
    """Takes what `takes` says of the first input's type."""

    def __init__(self, takes):
        self.asked, self._takes = [], takes

    def try_graph(self, content):
        graph = onnx.ModelProto.FromString(content).graph
        number = graph.input[0].type.tensor_type.elem_type
        self.asked.append(number)
        return "SUCCESS" if number in self._takes else "UNSUPPORTED_DATATYPE"


def _model(op_type, inputs, output, **attributes):
    values = [helper.make_tensor_value_info(f"x{k}", each, [2, 3]) for k, each in enumerate(inputs)]
    node = helper.make_node(op_type, [each.name for each in values], ["y"], **attributes)
    graph = helper.make_graph([node], "one", values, [helper.make_tensor_value_info("y", output, [2, 3])])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


class ProbeTypesTest(unittest.TestCase):
    def test_types_of_the_schema_are_asked_for_once_and_told_apart(self):
        model = _model("Mod", [TensorProto.INT64] * 2, TensorProto.INT64)
        device = _Device({TensorProto.INT8, TensorProto.UINT16})
        schema = onnx.defs.get_schema("Mod", 13, "")
        answer = probe_types.probe(device, [model], schema, {TensorProto.INT64, TensorProto.UINT16})
        self.assertEqual({TensorProto.INT8}, answer.taken)
        self.assertIn(TensorProto.UINT8, answer.refused)
        self.assertNotIn(TensorProto.UINT16, device.asked)
        self.assertNotIn(TensorProto.STRING, device.asked)

    def test_an_attribute_tells_the_type_of_an_output(self):
        model = _model("Bernoulli", [TensorProto.FLOAT], TensorProto.FLOAT)
        schema = onnx.defs.get_schema("Bernoulli", 15, "")
        answer = probe_types.probe(_Device({TensorProto.FLOAT}), [model], schema, {TensorProto.FLOAT})
        self.assertIn(TensorProto.INT16, answer.taken)

    def test_a_model_with_two_nodes_of_the_operator_is_left_out(self):
        model = _model("Mod", [TensorProto.INT64] * 2, TensorProto.INT64)
        model.graph.node.append(helper.make_node("Mod", ["y", "x1"], ["z"]))
        device = _Device(set())
        probe_types.probe(device, [model], onnx.defs.get_schema("Mod", 13, ""), set())
        self.assertEqual([], device.asked)


if __name__ == "__main__":
    unittest.main()
