# SPDX-License-Identifier: Apache-2.0
"""What a network answers in float64: the expected values of the population.

The reference evaluator of the onnx package, which follows the types of its operands, runs the network
with its float32 tensors and casts made float64.
"""

import numpy
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator


def _widen_tensor(tensor):
    if tensor.data_type == TensorProto.FLOAT:
        wide = numpy_helper.to_array(tensor).astype(numpy.float64)
        tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))


def _widen_attribute(attribute):
    if attribute.HasField("t"):
        _widen_tensor(attribute.t)
    # Cast, CastLike's kin and generators of numbers name a type.
    if attribute.name in ("to", "dtype") and attribute.i == TensorProto.FLOAT:
        attribute.i = TensorProto.DOUBLE
    for graph in [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]:
        _widen_graph(graph)


def _widen_graph(graph):
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            _widen_attribute(attribute)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE


def widen(model):
    """Changes a float32 model to one in float64."""
    _widen_graph(model.graph)


def evaluate(model, inputs):
    """The outputs of a float32 model computed in float64, as {name: array}, rounded to float32 at the end.

    Changes the model.
    """
    widen(model)
    wide = {
        name: value.astype(numpy.float64) if value.dtype == numpy.float32 else value
        for name, value in inputs.items()
    }
    values = ReferenceEvaluator(model).run(None, wide)
    return {
        output.name: value.astype(numpy.float32) if value.dtype == numpy.float64 else value
        for output, value in zip(model.graph.output, values)
    }
