# SPDX-License-Identifier: Apache-2.0
"""Files as they are found: one small network, written in the ways in which tools leave models.

Nodes in any order, values without a declared type, imports of operator sets that nothing uses, names
that subgraphs repeat, weights in several files, leftovers of training. Each file computes what the
plain one does, so the plain one's answers by ONNX's reference evaluator are the expected values.
"""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from exported.exported_case import Case, Exported, make_generator

_EXPORTER = "rewritten"


def _weights(generator):
    def draw(*shape, scale=0.4):
        return (generator.standard_normal(shape) * scale).astype(numpy.float32)

    return {
        "w1": draw(8, 3, 3, 3), "b1": draw(8), "gain": draw(8) + 1, "shift": draw(8),
        "mean": draw(8), "var": numpy.abs(draw(8)) + 0.5, "w2": draw(8, 5), "b2": draw(5),
        "limit": numpy.array(0.3, numpy.float32), "zero": numpy.array(0, numpy.int64),
        "axes": numpy.array([2, 3], numpy.int64),
    }  # fmt: skip


def _branch(name, operator, factor):
    """A branch of an If, of which the inner names are the same on both sides."""
    scale = helper.make_tensor("scale", TensorProto.FLOAT, [], [factor])
    nodes = [
        helper.make_node("Mul", ["pooled", "scale"], ["inner"], "inner_node"),
        helper.make_node(operator, ["inner"], [f"{name}_out"], "last"),
    ]
    out = helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, None)
    return helper.make_graph(nodes, name, [], [out], [scale])


def make_plain():
    weights = _weights(make_generator("rewritten"))
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c"], "conv", pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c", "gain", "shift", "mean", "var"], ["n"], "norm",
             epsilon=1e-3),
        node("Relu", ["n"], ["r"], "relu"),
        node("Dropout", ["r"], ["d"], "dropout"),
        node("ReduceMean", ["d", "axes"], ["pooled"], "mean", keepdims=0),
        node("ReduceMax", ["pooled"], ["most"], "most", keepdims=0),
        node("Greater", ["most", "limit"], ["is_large"], "greater"),
        node("If", ["is_large"], ["chosen"], "if", then_branch=_branch("then", "Tanh", 1.5),
             else_branch=_branch("else", "Neg", 0.7)),
        node("Gemm", ["chosen", "w2", "b2"], ["scores"], "gemm"),
        node("Softmax", ["scores"], ["y"], "softmax", axis=1),
    ]  # fmt: skip
    dims = ["batch", 3, "height", "width"]
    graph = helper.make_graph(
        nodes, "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 5])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()])  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def _initializer(model, name):
    return next(item for item in model.graph.initializer if item.name == name)


def _node(model, name):
    return next(item for item in model.graph.node if item.name == name)


def _shuffle(model, folder):
    order = make_generator("order").permutation(len(model.graph.node))
    nodes = [model.graph.node[at] for at in order]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _reverse(model, folder):
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    for name in ("then_branch", "else_branch"):
        for attribute in _node(model, "if").attribute:
            inner = list(attribute.g.node)[::-1]
            del attribute.g.node[:]
            attribute.g.node.extend(inner)


def _declare_values(model, folder):
    """Value_info of every value, with extents of another name than the inputs'."""
    for name in ("c", "n", "r", "d"):
        model.graph.value_info.append(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 8, "unk__1", "unk__2"])
        )
    model.graph.value_info.append(
        helper.make_tensor_value_info("not_there", TensorProto.INT64, ["?"])
    )


def _untyped_output(model, folder):
    model.graph.output[0].ClearField("type")


def _output_without_shape(model, folder):
    model.graph.output[0].type.tensor_type.ClearField("shape")


def _traced_output(model, folder):
    dims = model.graph.output[0].type.tensor_type.shape.dim
    dims[0].dim_value, dims[1].dim_param = 1, "classes"


def _input_without_shape(model, folder):
    """Extents of no name: each is its own symbol."""
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.Clear()
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 3


def _negative_extents(model, folder):
    """-1 for an extent that varies, as old converters wrote."""
    for at in (0, 2, 3):
        model.graph.input[0].type.tensor_type.shape.dim[at].dim_value = -1


def _unused_imports(model, folder):
    for domain in ("ai.onnx.ml", "com.example.unknown", "ai.onnx.training", "com.microsoft.nchwc"):
        model.opset_import.append(helper.make_opsetid(domain, 1))


def _named_domain(model, folder):
    """The domain of ONNX by its long name, in the import and in nodes."""
    model.opset_import[0].domain = "ai.onnx"
    for node in list(model.graph.node)[::2]:
        node.domain = "ai.onnx"


def _both_domains(model, folder):
    model.opset_import.append(helper.make_opsetid("ai.onnx", 18))


def _weights_as_inputs(model, folder):
    model.ir_version = 3
    for item in model.graph.initializer:
        model.graph.input.append(
            helper.make_tensor_value_info(item.name, item.data_type, list(item.dims))
        )


def _weights_as_constants(model, folder):
    items = list(model.graph.initializer)
    del model.graph.initializer[:]
    constants = [helper.make_node("Constant", [], [item.name], value=item) for item in items]
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(nodes[:3] + constants + nodes[3:])


def _weights_as_fields(model, folder):
    """Numbers in the typed fields instead of bytes."""
    for item in model.graph.initializer:
        value = numpy_helper.to_array(item)
        item.ClearField("raw_data")
        field = item.float_data if value.dtype == numpy.float32 else item.int64_data
        field.extend(value.ravel().tolist())


def _unused_weights(model, folder):
    model.graph.initializer.append(
        numpy_helper.from_array(numpy.ones((3, 3), numpy.float64), "unused")
    )
    model.graph.initializer.append(helper.make_tensor("text", TensorProto.STRING, [1], [b"x"]))
    model.graph.node.append(helper.make_node("Sqrt", ["c"], ["dead_end"], "dead"))


def _training_leftovers(model, folder):
    """What PyTorch leaves of a model in training mode, and tools of a checkpoint."""
    dropout = _node(model, "dropout")
    dropout.input.extend(["ratio", "training"])
    dropout.output.append("mask")
    model.graph.initializer.extend([
        numpy_helper.from_array(numpy.array(0.5, numpy.float32), "ratio"),
        numpy_helper.from_array(numpy.array(False), "training")])  # fmt: skip
    _node(model, "norm").attribute.append(helper.make_attribute("momentum", 0.1))
    _node(model, "norm").attribute.append(helper.make_attribute("training_mode", 0))
    info = model.training_info.add()
    info.algorithm.name = "step"
    model.metadata_props.add(key="epoch", value="12")


def _repeated_names(model, folder):
    """Names of graphs and nodes that other graphs have, too; inner values and weights share theirs
    already."""
    for attribute in _node(model, "if").attribute:
        attribute.g.name = "network"
        for node, name in zip(attribute.g.node, ("conv", "norm")):
            node.name = name


def _equal_node_names(model, folder):
    for node in model.graph.node:
        node.name = "same"


def _shadowed_names(model, folder):
    """A value of a branch with the name of one outside that the branch does not read."""
    for attribute in _node(model, "if").attribute:
        graph = attribute.g
        graph.node[0].output[0] = "n"
        graph.node[1].input[0] = "n"


def _unnamed_nodes(model, folder):
    for node in model.graph.node:
        node.ClearField("name")
        node.doc_string = "File \"model.py\", line 3, in forward\n"


def _foreign_attributes(model, folder):
    _node(model, "conv").attribute.append(helper.make_attribute("onnxifi_test_tag", "kept"))


def _trailing_inputs(model, folder):
    """Optional inputs and outputs that are there and empty."""
    _node(model, "dropout").input.extend(["", ""])
    _node(model, "dropout").output.append("")
    model.graph.node.insert(2, helper.make_node("Clip", ["n", "", ""], ["n2"], "clip"))
    _node(model, "relu").input[0] = "n2"


def _passed_through(model, folder):
    """Outputs that are inputs, weights, or another output's value."""
    model.graph.node.append(helper.make_node("Identity", ["y"], ["again"], "again"))
    model.graph.output.append(helper.make_tensor_value_info("again", TensorProto.FLOAT, None))
    model.graph.output.append(
        helper.make_tensor_value_info("b2", TensorProto.FLOAT, [5])
    )
    model.graph.output.append(
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, "height", "width"])
    )


def _function(model, folder):
    """A function of the model's own, with an attribute that its body refers to."""
    gemm = helper.make_node("Gemm", ["a", "b", "c"], ["product"])
    gemm.attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="by")
    softmax = helper.make_node("Softmax", ["product"], ["out"], axis=1)
    model.functions.append(helper.make_function(
        "local", "Head", ["a", "b", "c"], ["out"], [gemm, softmax],
        [helper.make_opsetid("", 18)], ["by"]))  # fmt: skip
    nodes = [node for node in model.graph.node if node.name not in ("gemm", "softmax")]
    nodes.append(helper.make_node("Head", ["chosen", "w2", "b2"], ["y"], domain="local", by=1.0))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.opset_import.append(helper.make_opsetid("local", 1))


def _sparse_weight(model, folder):
    """A weight as a sparse initializer."""
    item = _initializer(model, "b2")
    values = numpy_helper.to_array(item)
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(values, "b2"),
        numpy_helper.from_array(numpy.arange(5, dtype=numpy.int64), "at"), [5])  # fmt: skip
    model.graph.initializer.remove(item)
    model.graph.sparse_initializer.append(sparse)


def _quantization_annotation(model, folder):
    annotation = model.graph.quantization_annotation.add()
    annotation.tensor_name = "c"
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="limit")


def _external(files, names=None, prefix="", offset=0, is_exact=True):
    """Weights outside, in several files of the folder."""

    def rewrite(model, folder):
        chosen = [i for i in model.graph.initializer if names is None or i.name in names]
        for at, item in enumerate(chosen):
            location = prefix + files[at % len(files)]
            path = folder / location
            path.parent.mkdir(parents=True, exist_ok=True)
            data = item.raw_data
            with open(path, "ab") as file:
                start = file.tell()
                if offset and start % offset:
                    file.write(b"\0" * (offset - start % offset))
                    start = file.tell()
                file.write(data)
            _refer(item, location, start if is_exact else None)

    return rewrite


def _refer(item, location, offset):
    """Has a tensor with bytes say that they lie in a file; without an offset, that they are all of it."""
    length = len(item.raw_data)
    item.ClearField("raw_data")
    item.data_location = TensorProto.EXTERNAL
    item.external_data.add(key="location", value=location)
    if offset is not None:
        item.external_data.add(key="offset", value=str(offset))
        item.external_data.add(key="length", value=str(length))


def _external_constants(model, folder):
    """Weights outside that are attributes of nodes, as onnx.save writes them on demand; one is too
    large to be structure."""
    _weights_as_constants(model, folder)
    _node(model, "softmax").output[0] = "shares"
    ones = numpy_helper.from_array(numpy.ones(5000, numpy.float32), "ones")
    model.graph.node.extend([
        helper.make_node("Constant", [], ["ones"], value=ones),
        helper.make_node("ReduceMin", ["ones"], ["one"], keepdims=0),
        helper.make_node("Mul", ["shares", "one"], ["y"])])  # fmt: skip
    with open(folder / "weights.bin", "wb") as file:
        for node in model.graph.node:
            if node.op_type == "Constant":
                item = node.attribute[0].t
                start = file.tell()
                file.write(item.raw_data)
                _refer(item, "weights.bin", start)


def _over_two_gibibytes(model, folder):
    """A table of 2.1 GiB in a file of its own, of which some rows are read; holes take no disk."""
    rows, columns = 2_250_000, 250
    path = folder / "table.bin"
    table = make_generator("table").standard_normal((3, columns)).astype(numpy.float32)
    places = [5, 1_100_000, rows - 1]
    with open(path, "wb") as file:
        file.truncate(rows * columns * 4)
        for place, row in zip(places, table):
            file.seek(place * columns * 4)
            file.write(row.tobytes())
    item = model.graph.initializer.add()
    item.name, item.data_type = "table", TensorProto.FLOAT
    item.dims.extend([rows, columns])
    item.data_location = TensorProto.EXTERNAL
    for key, value in (("location", path.name), ("offset", "0"),
                       ("length", str(rows * columns * 4))):  # fmt: skip
        item.external_data.add(key=key, value=value)
    model.graph.initializer.append(numpy_helper.from_array(numpy.array(places), "places"))
    model.graph.node.append(helper.make_node("Gather", ["table", "places"], ["rows"], "gather"))
    model.graph.output.append(helper.make_tensor_value_info("rows", TensorProto.FLOAT, [3, columns]))


_REWRITES = {
    "plain": lambda model, folder: None,
    "shuffled_nodes": _shuffle,
    "reversed_nodes": _reverse,
    "declared_values": _declare_values,
    "untyped_output": _untyped_output,
    "output_without_shape": _output_without_shape,
    "traced_output": _traced_output,
    "input_without_names": _input_without_shape,
    "negative_extents": _negative_extents,
    "unused_imports": _unused_imports,
    "named_domain": _named_domain,
    "both_domains": _both_domains,
    "weights_as_inputs": _weights_as_inputs,
    "weights_as_constants": _weights_as_constants,
    "weights_as_fields": _weights_as_fields,
    "unused_weights": _unused_weights,
    "training_leftovers": _training_leftovers,
    "repeated_names": _repeated_names,
    "equal_node_names": _equal_node_names,
    "shadowed_names": _shadowed_names,
    "unnamed_nodes": _unnamed_nodes,
    "foreign_attributes": _foreign_attributes,
    "trailing_inputs": _trailing_inputs,
    "passed_through": _passed_through,
    "function": _function,
    "sparse_weight": _sparse_weight,
    "quantization_annotation": _quantization_annotation,
    "external_one_file": _external(["weights.bin"]),
    "external_several_files": _external(["a.bin", "b.data", "c"], offset=4096),
    "external_folder": _external(["w1.bin", "w2.bin"], ["w1", "w2"], "parts/"),
    "external_dot": _external(["w1.bin"], ["w1"], "./"),
    "external_whole_files": _external(["w1.bin", "w2.bin"], ["w1", "w2"], is_exact=False),
    "external_constants": _external_constants,
    "over_two_gibibytes": _over_two_gibibytes,
}


def _rewritten(name, rewrite):
    def make(folder):
        from onnx.reference import ReferenceEvaluator

        plain = make_plain()
        evaluator = ReferenceEvaluator(plain)
        model = make_plain()
        rewrite(model, folder)
        path = folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
        runs = []
        for seed, extents in ((1, (1, 3, 8, 9)), (2, (3, 3, 11, 7))):
            x = numpy.random.default_rng(seed).standard_normal(extents).astype(numpy.float32)
            # So that each branch is taken.
            x *= 2.5 if seed == 1 else 0.1
            rest = [None] * (len(model.graph.output) - 1)
            runs.append(({"x": x}, [*evaluator.run(None, {"x": x}), *rest]))
        return Exported(path, runs)

    return Case(f"file/{name}", _EXPORTER, make)


def list_cases():
    for name, rewrite in _REWRITES.items():
        yield _rewritten(name, rewrite)
