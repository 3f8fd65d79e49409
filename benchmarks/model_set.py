# SPDX-License-Identifier: Apache-2.0
"""The models that compare.py runs, with inputs and, where there are any, expected outputs.

Of the table three sources: the networks of tools/make_models.py (expected values in float64), the light_* files
of the onnx package (weights all 0.02, so all scores are equal and huge and softmax makes anything
of their rounding: their speed is compared, their results are not checked), and two small models
where the cost of a call shows. The networks of population.py are a set of their own.
"""

import dataclasses
import pathlib

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import population

# What bounds each model, as the table groups them.
_KINDS = {
    "squeezenet": "convolution",
    "shufflenet": "convolution",
    "mobilenet": "convolution",
    "efficientnet": "convolution",
    "yolo": "convolution",
    "convnext": "convolution",
    "inception_v1": "convolution",
    "inception_v2": "convolution",
    "densenet121": "convolution",
    "resnet50": "convolution",
    "vgg19": "convolution",
    "alexnet": "weights",
    "bvlc_alexnet": "weights",
    "zfnet": "weights",
    "zfnet512": "weights",
    "transformer_encoder": "transformer",
    "transformer_decoder": "transformer",
    "transformer_encoder_lengths": "transformer",
    "transformer_decoder_lengths": "transformer",
}
# Inputs of the transformers: the last data set of each case, but the longest of the encoder's.
_DATA_SETS = {"transformer_encoder_lengths": "longest"}


class BatchError(Exception):
    """A model that cannot be given another batch, in a sentence."""


@dataclasses.dataclass
class Model:
    name: str
    # "convolution", "weights", "transformer", "small", or "other" for a model unknown to _KINDS.
    kind: str
    path: pathlib.Path
    inputs: dict
    # {name: array}; None where only the engines can be compared with one another.
    expected: dict | None
    # Whether a difference beyond the tolerance is a fault.
    is_checked: bool = True
    # So many tolerances; narrow types have more.
    allowed: float = 1.0
    # What has the expected values, if there are any.
    oracle: str | None = population.FLOAT64


def _list_inputs(graph):
    constants = {initializer.name for initializer in graph.initializer}
    return [value for value in graph.input if value.name not in constants]


def _read_tensor(path):
    return numpy_helper.to_array(onnx.load_tensor(path))


def _read_data_set(graph, folder):
    inputs = {
        value.name: numpy.ascontiguousarray(_read_tensor(folder / f"input_{number}.pb"))
        for number, value in enumerate(_list_inputs(graph))
    }
    expected = {
        value.name: _read_tensor(folder / f"output_{number}.pb")
        for number, value in enumerate(graph.output)
    }
    return inputs, expected


def _list_data_sets(name, folder):
    """The data sets of a made model that are stacked into a batch, in order."""
    folders = sorted(folder.glob("test_data_set_*"), key=lambda path: int(path.name[14:]))
    if _DATA_SETS.get(name) == "longest":
        return [max(folders, key=lambda path: (path / "input_0.pb").stat().st_size)]
    return folders[-1:] if _KINDS.get(name) == "transformer" else folders


def _load_made(name, folder, batch, place):
    path = folder / "model.onnx"
    graph = onnx.load(path).graph
    sets = [_read_data_set(graph, data_set) for data_set in _list_data_sets(name, folder)]
    if batch == 1:
        return Model(name, _KINDS.get(name, "other"), path, *sets[0])
    chosen = [sets[number % len(sets)] for number in range(batch)]
    if all(value.type.tensor_type.shape.dim[0].dim_param for value in _list_inputs(graph)):
        batched = path  # The batch is a symbol of the model already.
    else:
        batched = _write_batched(name, path, batch, place)
    inputs, expected = (
        {key: numpy.concatenate([values[part][key] for values in chosen]) for key in sets[0][part]}
        for part in (0, 1)
    )
    return Model(name, _KINDS.get(name, "other"), batched, inputs, expected)


def _load_light(path, batch, place):
    name = path.stem
    graph = onnx.load(path).graph
    generator = numpy.random.default_rng(1)
    inputs = {}
    for value in _list_inputs(graph):
        extents = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        extents[0] = batch
        inputs[value.name] = generator.uniform(-1, 1, extents).astype(numpy.float32)
    batched = path if batch == 1 else _write_batched(name, path, batch, place)
    kind = _KINDS[name.removeprefix("light_")]
    return Model(name, kind, batched, inputs, expected=None, is_checked=False)


def make_batched(model, batch):
    """Changes a model drawn for a batch of 1 to one for `batch`.

    The first extent of every input becomes `batch`, and the target shapes [1, ...] of Reshape keep
    the first extent of their operand. BatchError where an input has no first extent of 1 (what
    depends on the batch is not known then).
    """
    graph = model.graph
    for value in _list_inputs(graph):
        dims = value.type.tensor_type.shape.dim
        if not dims or dims[0].dim_value != 1:
            raise BatchError(f"input '{value.name}' has no first extent of 1")
        dims[0].dim_value = batch
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    del graph.value_info[:]
    constants = {initializer.name: initializer for initializer in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value":
                    constants[node.output[0]] = attribute.t
    made_of_weights = set(constants) | {
        output
        for node in graph.node
        if node.op_type == "ConstantOfShape"
        for output in node.output
    }
    for node in graph.node:
        if node.op_type != "Reshape" or node.input[0] in made_of_weights:
            continue
        shape = constants.get(node.input[1])
        if shape is None:
            raise BatchError(f"the target shape of Reshape '{node.output[0]}' is computed")
        target = numpy_helper.to_array(shape).copy()
        if len(target) > 1 and target[0] == 1:
            target[0] = 0  # ONNX: as in the operand.
            shape.CopyFrom(numpy_helper.from_array(target, shape.name))
    return model


def make_symbolic(model):
    """Changes a model so that the extents of its inputs are symbols, each axis of an input another one.

    An axis of a later input takes the symbol of an earlier input's axis that is as long. Numbers stay
    where a network is drawn for them: the channels of what has four axes or more, and the features of float
    rows.
    """
    known = []  # (extent, symbol)
    for value in _list_inputs(model.graph):
        dims = value.type.tensor_type.shape.dim
        is_float = numpy.dtype(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)).kind == "f"
        own, taken = [], set()
        for axis, dim in enumerate(dims):
            is_channels = axis == 1 and len(dims) >= 4
            if not dim.dim_value or is_channels or (is_float and len(dims) == 2 and axis == 1):
                continue
            symbol = next((name for extent, name in known if extent == dim.dim_value and name not in taken), None)
            if symbol is None:
                symbol = f"{value.name}_{axis}"
                own.append((dim.dim_value, symbol))
            taken.add(symbol)
            dim.dim_param = symbol  # Takes the number's place.
        known += own
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    return model


def write_symbolic(model, place):
    """The file of a Model with symbols."""
    file = pathlib.Path(place) / "symbolic.onnx"
    onnx.save(make_symbolic(onnx.load(model.path)), file)
    return file


def _write_batched(name, path, batch, place):
    model = onnx.load(path)
    try:
        make_batched(model, batch)
    except BatchError as fault:
        raise BatchError(f"Model '{name}' is left out at batch {batch}: {fault}.") from fault
    file = place / f"{name}_batch{batch}.onnx"
    onnx.save(model, file)
    return file


def _make_identity(place):
    """The least work that a run can be: what remains is the cost of the call."""
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "identity", [info[0]], [info[1]]
    )
    path = place / "identity.onnx"
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    values = numpy.array([1.5, -2.25, 3, 0], numpy.float32)
    return Model("identity", "small", path, {"x": values}, {"y": values})


def _load_digits(path):
    graph = onnx.load(path).graph
    generator = numpy.random.default_rng(1)
    inputs = {}
    for value in _list_inputs(graph):
        extents = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
        inputs[value.name] = generator.uniform(0, 1, extents).astype(numpy.float32)
    return Model("digits", "small", path, inputs, None)


def list_names(made_folder):
    """Every name that `load` knows, in the order of the table."""
    made = [path.parent.name for path in sorted(made_folder.glob("*/model.onnx"))]
    return ["identity", "digits", *made, *(path.stem for path in _list_light())]


def _list_light():
    folder = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return sorted(folder.glob("light_*.onnx"))


def load_of_population(name, batch=1):
    """Returns a Model of population.py. BatchError where the network is drawn for a batch of 1 only."""
    if batch != 1 and not population.takes_batches(name):
        raise BatchError(f"Network '{name}' is left out at batch {batch}: it is drawn for one.")
    made = population.make(name, batch)
    kind = population.ENTRIES[name].kind
    return Model(
        name, kind, made.path, made.inputs, made.expected, allowed=made.allowed, oracle=made.oracle
    )


def load(name, made_folder, batch, place):
    """Returns a Model; files that have to be written go to the folder `place`.

    BatchError where the model exists for a batch of 1 only.
    """
    if name in ("identity", "digits"):
        if batch != 1:
            raise BatchError(f"Model '{name}' is left out at batch {batch}: it is for one.")
        if name == "identity":
            return _make_identity(place)
        tree = pathlib.Path(__file__).resolve().parent.parent
        return _load_digits(tree / "samples" / "digits" / "digits.onnx")
    for path in _list_light():
        if path.stem == name:
            return _load_light(path, batch, place)
    return _load_made(name, made_folder / name, batch, place)
