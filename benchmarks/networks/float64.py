# SPDX-License-Identifier: Apache-2.0
"""What a network answers in float64: the expected values of the population.

The reference evaluator of the onnx package, which follows the types of its operands, runs the network
with its float32 tensors and casts made float64.
"""

import numpy
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_conv


class GridSample(OpRun):
    """Linear samples of images: the package's own goes point by point, and knows the names of opset 20 only."""

    op_domain = ""

    def _run(self, x, grid, align_corners=0, mode="linear", padding_mode="zeros"):
        if x.ndim != 4 or mode not in ("linear", "bilinear") or padding_mode not in ("zeros", "border"):
            raise NotImplementedError(f"GridSample of {x.ndim} axes, mode {mode}, padding {padding_mode}.")
        batch = numpy.arange(x.shape[0])[:, None, None]
        result, corners = 0, []
        for axis in (0, 1):  # x, then y
            extent = x.shape[3 - axis]
            at = (grid[..., axis] + 1) / 2 * (extent - 1 if align_corners else extent)
            at = at if align_corners else at - 0.5
            at = numpy.clip(at, 0, extent - 1) if padding_mode == "border" else at
            low = numpy.floor(at).astype(numpy.int64)
            corners.append([(low, 1 - (at - low), extent), (low + 1, at - low, extent)])
        for column, column_weight, width in corners[0]:
            for row, row_weight, height in corners[1]:
                inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
                taken = x[batch, :, numpy.clip(row, 0, height - 1), numpy.clip(column, 0, width - 1)]
                result = result + taken * (inside * column_weight * row_weight)[..., None]
        return (numpy.moveaxis(result, -1, 1),)


class Conv(op_conv.Conv):
    """The package's own, image by image: it lays out all windows of what it is given."""

    op_domain = ""

    def _run(self, x, *others, **attributes):
        images = [super(Conv, self)._run(x[k : k + 1], *others, **attributes)[0] for k in range(len(x))]
        return (numpy.concatenate(images) if images else super()._run(x, *others, **attributes)[0],)


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
    values = ReferenceEvaluator(model, new_ops=[GridSample, Conv]).run(None, wide)
    return {
        output.name: value.astype(numpy.float32) if value.dtype == numpy.float64 else value
        for output, value in zip(model.graph.output, values)
    }
