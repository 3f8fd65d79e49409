# SPDX-License-Identifier: Apache-2.0
"""What ONNX itself says of a model of one node: whether its schema allows it.

An oracle of claims that shares nothing with the library under test: the schema says how many inputs
a node has, of which types, which types are equal, and which attributes of which kind there are. For
what the schema allows, ONNX's shape inference says whether the extents fit, as far as it looks.
"""

import multiprocessing

import onnx
from onnx import defs, helper, shape_inference

VALID, INVALID, UNKNOWN = "valid", "invalid", "unknown"


def _type_of(info):
    element = helper.tensor_dtype_to_string(info.type.tensor_type.elem_type)
    return f"tensor({element.removeprefix('TensorProto.').lower()})"


def _version_of(model, domain):
    for entry in model.opset_import:
        if entry.domain in (domain, "ai.onnx" if domain == "" else domain):
            return entry.version
    return None


def _find_fault_of_inputs(node, schema, types):
    """`types`: by name of a value."""
    count = len(node.input)
    if not schema.min_input <= count <= schema.max_input:
        return f"{count} inputs; there are {schema.min_input} to {schema.max_input}"
    bound = {}
    variables = {constraint.type_param_str for constraint in schema.type_constraints}
    for position, name in enumerate(node.input):
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if not name:
            if formal.option != defs.OpSchema.FormalParameterOption.Optional:
                return f"input '{formal.name}' is left out"
            continue
        if name not in types:
            return None
        if types[name] not in formal.types:
            return f"input '{formal.name}' has the type {types[name]}"
        if formal.type_str not in variables or not formal.is_homogeneous:
            continue
        if bound.setdefault(formal.type_str, types[name]) != types[name]:
            return f"input '{formal.name}' has another type than those before it"
    return None


def _find_fault_of_attributes(node, schema):
    """None also where an attribute is not known: readers skip those."""
    for attribute in node.attribute:
        known = schema.attributes.get(attribute.name)
        if known is not None and int(known.type) != attribute.type:
            return f"attribute '{attribute.name}' has another kind"
    given = {attribute.name for attribute in node.attribute}
    for name, known in schema.attributes.items():
        if known.required and name not in given:
            return f"attribute '{name}' is missing"
    return None


def find_fault(model):
    """Why ONNX's schema does not allow the only node of a model; None if it does."""
    node = model.graph.node[0]
    version = _version_of(model, node.domain)
    if version is None:
        return "its domain is not imported"
    try:
        schema = defs.get_schema(node.op_type, version, node.domain)
    except defs.SchemaError:
        return f"there is no such operator in version {version}"
    if schema.deprecated:
        return f"it is deprecated in version {version}"
    types = {info.name: _type_of(info) for info in model.graph.input}
    for tensor in model.graph.initializer:
        info = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        types[tensor.name] = _type_of(info)
    return _find_fault_of_inputs(node, schema, types) or _find_fault_of_attributes(node, schema)


def _has_unknown_attribute(model):
    node = model.graph.node[0]
    schema = defs.get_schema(node.op_type, _version_of(model, node.domain), node.domain)
    return any(attribute.name not in schema.attributes for attribute in node.attribute)


def _infer(pipe):
    while True:
        content = pipe.recv_bytes()
        try:
            shape_inference.infer_shapes(
                content, check_type=True, strict_mode=True, data_prop=True
            )
            pipe.send("")
        except Exception as fault:  # whatever ONNX raises
            pipe.send(str(fault).strip() or type(fault).__name__)


class SchemaOracle:
    """Asks ONNX's inference in a process of its own, since some models end it."""

    def __init__(self):
        self._start()

    def _start(self):
        self._pipe, other = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_infer, args=(other,), daemon=True)
        self._process.start()
        other.close()

    def infer(self, content):
        """What inference objects to, "" if nothing, None if it does not come back."""
        if self._process is None:
            self._start()
        try:
            self._pipe.send_bytes(content)
            return self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            self._process = None
            return None

    def answer(self, content):
        """VALID, INVALID or UNKNOWN, and why not valid."""
        model = onnx.load_from_string(content)
        fault = find_fault(model)
        if fault is not None:
            return INVALID, fault
        objection = self.infer(content)
        if objection == "" and not _has_unknown_attribute(model):
            return VALID, ""
        return UNKNOWN, objection
