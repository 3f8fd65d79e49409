# SPDX-License-Identifier: Apache-2.0
"""Gives batch normalisations the statistics of what arrives at them, as training leaves them.

A copy of the model normalises by the statistics of its own batch and answers with them; each network is
run once so, by ONNX Runtime. Without this activations would grow or vanish with depth.
"""

import numpy
import onnx
from onnx import helper, numpy_helper

_EPSILON = 1e-5


def _normalize_by_batch(node, rank, number):
    """Nodes in the place of a BatchNormalization, and the names of mean and variance."""
    label = f"statistics_{number}"
    axes = numpy.array([axis for axis in range(rank) if axis != 1])
    names = {part: f"{label}_{part}" for part in ("mean", "centred", "square", "variance", "spread")}
    shape = numpy.array([1, -1] + [1] * (rank - 2))
    constants = {
        f"{label}_axes": axes,
        f"{label}_shape": shape,
        f"{label}_epsilon": numpy.array(_EPSILON, numpy.float32),
    }

    def make(op_type, inputs, output):
        return helper.make_node(op_type, inputs, [output])

    nodes = [
        make("ReduceMean", [node.input[0], f"{label}_axes"], names["mean"]),
        make("Sub", [node.input[0], names["mean"]], names["centred"]),
        make("Mul", [names["centred"]] * 2, names["square"]),
        make("ReduceMean", [names["square"], f"{label}_axes"], names["variance"]),
        make("Add", [names["variance"], f"{label}_epsilon"], f"{label}_sum"),
        make("Sqrt", [f"{label}_sum"], names["spread"]),
        make("Div", [names["centred"], names["spread"]], f"{label}_normal"),
        make("Reshape", [node.input[1], f"{label}_shape"], f"{label}_scale"),
        make("Reshape", [node.input[2], f"{label}_shape"], f"{label}_shift"),
        make("Mul", [f"{label}_normal", f"{label}_scale"], f"{label}_scaled"),
        make("Add", [f"{label}_scaled", f"{label}_shift"], node.output[0]),
    ]
    made = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    return nodes, made, (names["mean"], names["variance"])


def set_statistics(model, samples, generator):
    """Writes means and variances, shaken a little, into the initializers of the model's normalisations."""
    ranks = {
        value.name: len(value.type.tensor_type.shape.dim)
        for value in onnx.shape_inference.infer_shapes(model).graph.value_info
    }
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.node[:]
    del probe.graph.output[:]
    wanted = []
    for number, node in enumerate(model.graph.node):
        if node.op_type != "BatchNormalization":
            probe.graph.node.append(node)
            continue
        nodes, constants, names = _normalize_by_batch(node, ranks[node.input[0]], number)
        probe.graph.node.extend(nodes)
        probe.graph.initializer.extend(constants)
        wanted.append((node, names))
        for name in names:
            probe.graph.output.append(helper.make_tensor_value_info(name, 1, None))
    if not wanted:
        return
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    session = onnxruntime.InferenceSession(
        probe.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    values = iter(session.run(None, samples))
    initializers = {each.name: each for each in model.graph.initializer}
    for node, _ in wanted:
        mean, variance = (next(values).reshape(-1) for _ in range(2))
        spread = numpy.sqrt(variance + _EPSILON)
        mean = mean + 0.1 * spread * generator.standard_normal(len(mean))
        variance = variance * generator.uniform(0.8, 1.25, len(mean)) + 1e-3
        for name, value in zip(node.input[3:5], (mean, variance)):
            value = value.astype(numpy.float32)
            initializers[name].CopyFrom(numpy_helper.from_array(value, name))
