# SPDX-License-Identifier: Apache-2.0
"""Reads the declarations of backends/core/domains, to hold them against ONNX Runtime's schemas."""

import pathlib
import re

import onnx
from onnxruntime.capi import onnxruntime_pybind11_state as state

MICROSOFT = "com.microsoft"
BLOCKED = "com.microsoft.nchwc"
FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "backends" / "core" / "domains"

_BLOCK = re.compile(r'R"\((\w+\(.*?)\)",\s*\w+[^{}"]*\}', re.DOTALL)
_DOMAINS_OF_FILES = {"blocked_channels": BLOCKED}
_KINDS = {"": "Single", "?": "Optional", "*": "Variadic"}


def _parameters(text, types):
    found = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, kind, spelled = re.fullmatch(r"(\w+)([?*]?): (\w+)", each).groups()
        allowed = types.get(spelled, {f"tensor({spelled})"})
        found.append((name, _KINDS[kind], frozenset(allowed)))
    return found


def operator_key(domain, op_type):
    """The operator's name; with its domain where that has the names of others' operators."""
    return f"{domain}.{op_type}" if domain == BLOCKED else op_type


def read_declarations():
    """By operator (`operator_key`): inputs, outputs and attributes, in the form of `describe_schemas`."""
    declared = {}
    for path in sorted(FOLDER.glob("*/*.cc")):
        for block in _BLOCK.findall(path.read_text()):
            signature = re.match(r"\s*(\w+)\((.*?)\)\s*->\s*\((.*?)\)", block, re.DOTALL)
            types, attributes = {}, {}
            for line in map(str.strip, block[signature.end() :].strip().splitlines()):
                attribute = re.fullmatch(r"(\w+): (\w+)( required)?(?: = (\S+))?", line)
                if attribute:
                    name, kind, required, default = attribute.groups()
                    attributes[name] = (kind.upper(), bool(required), default)
                else:
                    name, allowed = re.fullmatch(r"(\w+) = (.+)", line).groups()
                    types[name] = {f"tensor({each.strip()})" for each in allowed.split("|")}
            name, inputs, outputs = signature.groups()
            key = operator_key(_DOMAINS_OF_FILES.get(path.stem), name)
            declared[key] = (_parameters(inputs, types), _parameters(outputs, types), attributes)
    return declared


def _schema_parameters(parameters, types):
    return [
        (each.name, str(each.option).rpartition(".")[2], frozenset(types.get(each.typeStr, {each.typeStr})))
        for each in parameters
    ]


def _default(attribute):
    proto = onnx.AttributeProto.FromString(attribute._default_value)
    return None if proto.type == 0 else onnx.helper.get_attribute_value(proto)


def describe_schemas(domains=(MICROSOFT, BLOCKED, "")):
    """The same of ONNX Runtime's schemas of these domains, the oldest of each operator; of ONNX's own
    those that it adds."""
    known = {
        (schema.name, schema.since_version)
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain == ""
    }
    described = {}
    for schema in sorted(state.get_all_operator_schema(), key=lambda each: -each.since_version):
        if schema.domain not in domains:
            continue
        if schema.domain == "" and (schema.name, schema.since_version) in known:
            continue
        types = {each.type_param_str: set(each.allowed_type_strs) for each in schema.type_constraints}
        attributes = {
            each.name: (str(each.type).rpartition(".")[2], each.required, _default(each))
            for each in schema.attributes.values()
        }
        described[operator_key(schema.domain, schema.name)] = (
            _schema_parameters(schema.inputs, types),
            _schema_parameters(schema.outputs, types),
            attributes,
        )
    return described


def same_default(declared, actual):
    if actual == b"":  # what an attribute of text without a default is here
        return declared is None
    if declared is None or actual is None:
        return declared is None and actual is None
    if isinstance(actual, bytes):
        return declared == actual.decode()
    return abs(float(declared) - actual) <= 1e-6 * abs(actual)
