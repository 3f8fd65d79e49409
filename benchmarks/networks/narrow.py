# SPDX-License-Identifier: Apache-2.0
"""Networks in narrow numbers, made of those in float32: int8, 4 bits and float16 by the tools of ONNX
Runtime, bfloat16 as a network is exported that was made so in its framework."""

import logging
import pathlib
import tempfile

import ml_dtypes
import numpy
import onnx
from onnx import numpy_helper


class _Samples:
    """What the quantizer takes its ranges from: the sample inputs and two of twice and half their size."""

    def __init__(self, samples):
        self._sets = iter(
            {
                name: value * numpy.float32(factor) if value.dtype == numpy.float32 else value
                for name, value in samples.items()
            }
            for factor in (1.0, 0.5, 2.0)
        )

    def get_next(self):
        return next(self._sets, None)


def quantize(model, samples, form):
    """The model in int8, with ranges from sample inputs, or with matrices of 4 bits. `form`: "qdq",
    "qoperator", "dynamic" or "4bit"."""
    from onnxruntime import quantization

    if form == "4bit":
        return _pack(model)
    logging.getLogger().setLevel(logging.ERROR)  # It recommends steps that exporters' users skip.
    with tempfile.TemporaryDirectory() as place:
        source, target = (pathlib.Path(place) / name for name in ("float.onnx", "int8.onnx"))
        onnx.save(model, source)
        if form == "dynamic":
            quantization.quantize_dynamic(source, target)
        else:
            formats = quantization.QuantFormat
            quantization.quantize_static(
                source,
                target,
                _Samples(samples),
                quant_format=formats.QDQ if form == "qdq" else formats.QOperator,
                # Of operators, only those that ONNX itself has.
                op_types_to_quantize=None if form == "qdq" else ["Conv", "MatMul"],
                per_channel=True,
            )
        return onnx.load(target)


def _pack(model):
    """Products with weights become MatMulNBits, with the options that the builder of generative models has
    for processors."""
    from onnxruntime.quantization import matmul_nbits_quantizer

    logging.getLogger().setLevel(logging.ERROR)  # It tells of every node.
    packed = onnx.ModelProto()
    packed.CopyFrom(model)
    quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(
        packed, bits=4, block_size=32, is_symmetric=True, accuracy_level=4
    )
    quantizer.process()
    return quantizer.model.model


def keep_operands(model):
    """A copy of the model of quantize(form="4bit") with products whose operands are float32, not rounded to 8 bits."""
    exact = onnx.ModelProto()
    exact.CopyFrom(model)
    for node in exact.graph.node:
        kept = [attribute for attribute in node.attribute if attribute.name != "accuracy_level"]
        del node.attribute[:]
        node.attribute.extend(kept)
    return exact


def unpack(model):
    """The model of quantize(form="4bit") with products of float32 again, of the numbers that the 4 bits say."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    constants = {tensor.name: tensor for tensor in wide.graph.initializer}
    for node in wide.graph.node:
        if node.op_type != "MatMulNBits":
            continue
        sizes = {attribute.name: attribute.i for attribute in node.attribute}
        packed, scales = (numpy_helper.to_array(constants.pop(name)) for name in node.input[1:])
        numbers = numpy.stack([packed & 15, packed >> 4], axis=-1).reshape(sizes["N"], -1).astype(numpy.float32)
        scales = scales.reshape(sizes["N"], -1).repeat(sizes["block_size"], axis=1)
        weights = ((numbers - 8) * scales)[:, : sizes["K"]].T
        constants[node.name] = numpy_helper.from_array(numpy.ascontiguousarray(weights), f"{node.name}_weights")
        node.CopyFrom(
            onnx.helper.make_node("MatMul", [node.input[0], f"{node.name}_weights"], node.output, node.name)
        )
    del wide.graph.initializer[:]
    wide.graph.initializer.extend(constants.values())
    return wide


def halve(model):
    """The model in float16, with inputs and outputs in float32."""
    from onnxruntime.transformers import float16

    half = onnx.ModelProto()
    half.CopyFrom(model)
    return float16.convert_float_to_float16(half, keep_io_types=True)


# Operators with operands that are float32 whatever the others are.
_WITH_FLOAT_OPERANDS = ("Resize", "QuantizeLinear", "DequantizeLinear")


def _bound_to_bfloat16(array):
    """float32 values that bfloat16 has; what would become an infinity, as the lowest number of float32 as a
    mask, becomes its largest number."""
    largest = float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    return numpy.clip(array, -largest, largest).astype(ml_dtypes.bfloat16)


def _refuse_other_networks(model):
    for node in model.graph.node:
        if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
            raise ValueError(f"{node.op_type} has a graph inside; bfloat16 networks have none.")
        if node.op_type in _WITH_FLOAT_OPERANDS:
            raise ValueError(f"{node.op_type} has operands that stay float32; bfloat16 networks have none.")


def make_bfloat16(model):
    """The model with every float32 value in bfloat16, but for inputs and outputs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    _refuse_other_networks(made)
    # The first with bfloat16 for convolutions and pooling.
    made.opset_import[0].version = max(made.opset_import[0].version, 22)
    graph = made.graph
    for tensor in graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            array = _bound_to_bfloat16(numpy_helper.to_array(tensor))
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == onnx.TensorProto.FLOAT:
                attribute.i = onnx.TensorProto.BFLOAT16
    before, after = [], []
    renamed = {}
    for value in graph.input:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            renamed[value.name] = f"{value.name}_bfloat16"
            before.append(_make_cast(value.name, renamed[value.name], onnx.TensorProto.BFLOAT16))
    for value in graph.output:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            renamed[value.name] = f"{value.name}_bfloat16"
            after.append(_make_cast(renamed[value.name], value.name, onnx.TensorProto.FLOAT))
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [renamed.get(name, name) for name in names]
    nodes = [*before, *graph.node, *after]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(made, full_check=True)
    return made


def round_to_bfloat16(model):
    """The model in float32 with weights, inputs and the results of its nodes rounded to bfloat16: what
    make_bfloat16's answers are, for an engine that does not multiply bfloat16."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    _refuse_other_networks(made)
    graph = onnx.shape_inference.infer_shapes(made, data_prop=True).graph
    floats = {
        value.name
        for value in (*graph.value_info, *graph.input, *graph.output)
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    }
    for tensor in made.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            array = _bound_to_bfloat16(numpy_helper.to_array(tensor)).astype(numpy.float32)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    nodes = []

    def add_rounding(source, target):
        nodes.append(_make_cast(source, f"{target}_16", onnx.TensorProto.BFLOAT16))
        nodes.append(_make_cast(f"{target}_16", target, onnx.TensorProto.FLOAT))

    inputs = {value.name: f"{value.name}_rounded" for value in made.graph.input if value.name in floats}
    for name, target in inputs.items():
        add_rounding(name, target)
    for node in made.graph.node:
        node.input[:] = [inputs.get(name, name) for name in node.input]
        exact = {name: f"{name}_exact" for name in node.output if name in floats}
        node.output[:] = [exact.get(name, name) for name in node.output]
        nodes.append(node)
        for target, source in exact.items():
            add_rounding(source, target)
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def _make_cast(source, target, elem_type):
    return onnx.helper.make_node("Cast", [source], [target], f"cast_{target}", to=elem_type)
