# SPDX-License-Identifier: Apache-2.0
"""Which element types of an operator's schema a device takes, by asking it: models of cases with other types.

A case of a node is retyped: what a type variable of the schema stands for in it, constants among them, and the
attribute that tells a type. What the device says where it initialises the graph counts.
"""

import collections
import pathlib
import re
import sys

import numpy
import onnx
from onnx import helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import onnxifi  # noqa: E402
from onnxifi.graph import Graph  # noqa: E402

# Of onnxInitGraph.
_TAKEN = ("SUCCESS", "FALLBACK")
_REFUSED = ("UNSUPPORTED_OPERATOR", "UNSUPPORTED_ATTRIBUTE", "UNSUPPORTED_SHAPE", "UNSUPPORTED_DATATYPE")
# That of a list or an optional is that of its elements.
_ELEMENT = re.compile(r"tensor\((\w+)\)")
_TYPE_ATTRIBUTES = ("dtype", "output_datatype", "to")
# Its types are those of the graph that it differentiates.
_NOT_OF_ITSELF = ("Gradient",)

Answer = collections.namedtuple("Answer", "taken refused")


class Device:
    """A device that is asked about models of bytes."""

    def __init__(self, library, name):
        self._device = onnxifi.Library(library).device(name)
        self._backend = self._device.backend()  # one for all models

    def try_graph(self, model):
        """The status with which the device initialises a graph for values of the model, or refuses it."""
        try:
            graph = Graph(self._device, model, len(model), takes_values=True)
        except onnxifi.Error as error:
            return error.status
        graph.release()
        return "FALLBACK" if graph.is_emulated else "SUCCESS"


def allowed_types(schema):
    """By type variable: element types by number."""
    return {
        each.type_param_str: {
            onnx.TensorProto.DataType.Value(name.upper())
            for text in each.allowed_type_strs
            for name in _ELEMENT.findall(text)
        }
        for each in schema.type_constraints
    }


def _values_of(node, schema):
    """By type variable: the names of the values of the node that it stands for; the variables of inputs."""
    found, of_inputs = collections.defaultdict(set), set()
    for formals, names, is_input in ((schema.inputs, node.input, True), (schema.outputs, node.output, False)):
        for k, name in enumerate(names):
            if name and formals:
                variable = formals[min(k, len(formals) - 1)].type_str
                found[variable].add(name)
                of_inputs |= {variable} if is_input else set()
    return found, of_inputs


def _element_type(kind):
    """The tensor type inside lists and optionals, None where there is none."""
    while kind.WhichOneof("value") in ("sequence_type", "optional_type"):
        kind = getattr(kind, kind.WhichOneof("value")).elem_type
    return kind.tensor_type if kind.WhichOneof("value") == "tensor_type" else None


def _as_type(tensor, number):
    """The constant in another type, its numbers as that keeps them; None for numbers of texts."""
    array = numpy_helper.to_array(tensor)
    if number == onnx.TensorProto.STRING:
        texts = [str(each).encode() for each in array.ravel()]
        return helper.make_tensor(tensor.name, number, array.shape, texts)
    if array.dtype == object:
        return None
    with numpy.errstate(all="ignore"):
        other = numpy.abs(array).astype(helper.tensor_dtype_to_np_dtype(number))
    return numpy_helper.from_array(other, tensor.name)


def _retyped(model, op_type, values, number, attribute):
    """The model with these values, and the attribute if it is given, of another type; None where that cannot be."""
    changed = onnx.ModelProto.FromString(model.SerializeToString())
    graph = changed.graph
    for info in [*graph.input, *graph.output, *graph.value_info]:
        kind = _element_type(info.type)
        if info.name in values and kind is not None:
            kind.elem_type = number
    for tensor in graph.initializer:
        if tensor.name in values:
            other = _as_type(tensor, number)
            if other is None:
                return None
            tensor.CopyFrom(other)
    if attribute:
        node = next(each for each in graph.node if each.op_type == op_type)
        kept = [each for each in node.attribute if each.name != attribute]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(attribute, number)])
    return changed


def _ways(model, schema, number):
    """Pairs of values to retype and the attribute that tells the type or None, the least change first."""
    node = next(each for each in model.graph.node if each.op_type == schema.name)
    values, of_inputs = _values_of(node, schema)
    allowed = allowed_types(schema)
    variables = [each for each in values if number in allowed.get(each, ())]
    attribute = next((each for each in _TYPE_ATTRIBUTES if each in schema.attributes), None)
    infos = [*model.graph.input, *model.graph.output]
    current = {each.name: kind.elem_type for each in infos if (kind := _element_type(each.type)) is not None}
    for variable in variables:
        yield values[variable], None if variable in of_inputs else attribute
        # A list and what is put into it are two variables of one type.
        same = {current[each] for each in values[variable] if each in current}
        yield {each for each in current if current[each] in same}, None
    if attribute:
        yield set().union(*(values[each] for each in variables)), attribute


def probe(device, models, schema, known):
    """What the device takes and what it refuses of the types that `known` lacks: element types by number.

    `models`: of cases of the schema's version; those with another number of its nodes than one are left out.
    """
    models = [each for each in models if [node.op_type for node in each.graph.node].count(schema.name) == 1]
    taken, refused = set(), set()
    if schema.name in _NOT_OF_ITSELF:
        return Answer(taken, refused)
    for number in sorted(set().union(*allowed_types(schema).values()) - known):
        for model in models:
            for values, attribute in _ways(model, schema, number):
                changed = _retyped(model, schema.name, values, number, attribute)
                if changed is None or number in taken:
                    continue
                status = device.try_graph(changed.SerializeToString())
                if status in _TAKEN:
                    taken.add(number)
                elif status in _REFUSED:
                    refused.add(number)
    return Answer(taken, refused - taken)
