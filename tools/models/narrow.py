# SPDX-License-Identifier: Apache-2.0
"""Networks in float16 and bfloat16, of which every tensor of the network has that type.

A network in float32 is drawn, its weights and inputs are rounded to the narrow type, and the float64
evaluation of what is rounded says what to expect. How far plain arithmetic in the narrow type strays
from that sets the tolerance.
"""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from models import builder
from models.diffusion import make_diffusion
from models.evaluator import Evaluator
from models.transformer_network import TransformerNetwork

# How many times the error of plain narrow arithmetic an answer may have.
_MARGIN = 4
_WIDTH = 48
_LAYERS = 2
_LENGTHS = (11, 6)


class _Network(TransformerNetwork):
    def normalize(self, x, output=None):
        scale = self.add_constant(self.generator.uniform(0.6, 1.4, _WIDTH), "scale")
        shift = self.draw_constant(_WIDTH, 0.2, "shift")
        return self.add_node("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)


def _make_encoder():
    """Attention of one head and gated layers over a sequence of any length."""
    net = _Network("encoder_bfloat16", opset=21)
    sets = [
        {"states": net.generator.standard_normal((1, length, _WIDTH)).astype(numpy.float32)}
        for length in _LENGTHS
    ]
    x = net.add_input("states", [1, "length", _WIDTH], sets[0]["states"])
    for _ in range(_LAYERS):
        y = net.normalize(x)
        query, key, value = (net.project(y, _WIDTH, gain) for gain in (1.3, 1.3, 1.0))
        scores = net.add_node("MatMul", query, net.transpose(key, 0, 2, 1))
        scores = net.add_node("Mul", scores, net.constant(_WIDTH**-0.5))
        y = net.add_node("MatMul", net.add_node("Softmax", scores, axis=-1), value)
        x = net.add_node("Add", x, net.project(y, _WIDTH))
        y = net.project(net.normalize(x), 2 * _WIDTH)
        gate = net.add_node("Gelu", net.project(net.normalize(x), 2 * _WIDTH))
        x = net.add_node("Add", x, net.project(net.add_node("Mul", y, gate), _WIDTH))
    net.add_output(net.project(net.normalize(x), 13, output="tags"), [1, "length", 13])
    return builder.Case("encoder_bfloat16", net.serialize(), sets)


def _round(value, dtype):
    return value.astype(dtype).astype(value.dtype) if value.dtype.kind == "f" else value


def _list_tensors(model):
    """The float32 tensors of the network; what Resize scales by stays float32."""
    factors = {node.input[2] for node in model.graph.node if node.op_type == "Resize"}
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and tensor.name not in factors:
            yield tensor
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t") and attribute.t.data_type == TensorProto.FLOAT:
                yield attribute.t


def _narrow(case, name, elem_type):
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    model = onnx.load_from_string(case.content)
    narrow = onnx.load_from_string(case.content)
    for wide, tensor in zip(_list_tensors(model), list(_list_tensors(narrow))):
        value = numpy_helper.to_array(wide).astype(dtype)
        wide.CopyFrom(numpy_helper.from_array(value.astype(numpy.float32), wide.name))
        tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
    for value in (*narrow.graph.input, *narrow.graph.output):
        value.type.tensor_type.elem_type = elem_type
    onnx.checker.check_model(narrow, full_check=True)

    sets = [{key: _round(value, dtype) for key, value in inputs.items()} for inputs in case.input_sets]
    exact = Evaluator(model)
    plain = Evaluator(model, numpy.float32, lambda value: _round(value, dtype))
    error = 0.0
    for inputs in sets:
        for expected, actual in zip(exact.run(inputs), plain.run(inputs)):
            allowed = numpy.abs(expected) + numpy.sqrt(numpy.square(expected).mean())
            error = max(error, float((numpy.abs(actual - expected) / allowed).max()))
    inputs = [{key: value.astype(dtype) for key, value in each.items()} for each in sets]
    facts = {**case.facts, "rms_factor": round(_MARGIN * error, 6)}
    content = narrow.SerializeToString()
    return builder.Case(name, content, inputs, facts, reference=model)


def make_narrow():
    (block,) = make_diffusion()
    return [
        _narrow(block, "diffusion_float16", TensorProto.FLOAT16),
        _narrow(_make_encoder(), "encoder_bfloat16", TensorProto.BFLOAT16),
    ]
