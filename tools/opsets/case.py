# SPDX-License-Identifier: Apache-2.0
"""What the cases of the suite `opsets` are made with: pairs, types, values, models.

A pair is an operator of one version. The modules beside this one register a function per operator
(`covers`); it gets a Request and yields cases of that version. Expected values are made by numpy in
float64 or by plain loops, from the texts of ONNX's versions.
"""

import collections
import functools
import zlib

import ml_dtypes
import numpy
import onnx
import onnx.defs
from onnx import helper

Pair = collections.namedtuple("Pair", "domain op_type version")
Case = collections.namedtuple("Case", "pair name model inputs outputs rtol atol")

# Two vectors of each width and a rest; more elements than a tile of the CPU has.
SHAPE = (3, 37, 11)

# By output type: what may differ relative to the value, and absolutely.
_TOLERANCES = {"double": (1e-9, 1e-12), "float": (2e-5, 2e-6), "float16": (2e-3, 1e-3)}
_DEFAULT_TOLERANCE = (1e-3, 1e-3)

_FUNCTIONS = {}


def covers(*op_types):
    """Registers a function from a Request to cases, for these operators."""

    def register(function):
        for op_type in op_types:
            if op_type in _FUNCTIONS:
                raise ValueError(f"{op_type} is registered twice.")
            _FUNCTIONS[op_type] = function
        return function

    return register


@functools.cache
def schemas():
    """Every schema of ONNX's registry by its pair."""
    history = onnx.defs.get_all_schemas_with_history()
    return {Pair(each.domain, each.name, each.since_version): each for each in history}


def versions_of(domain, op_type):
    return sorted(pair.version for pair in schemas() if pair[:2] == (domain, op_type))


def allowed_types(pair, parameter):
    """The element types of tensors that a type parameter of a schema allows, in ONNX's order."""
    for constraint in schemas()[pair].type_constraints:
        if constraint.type_param_str == parameter:
            return [
                text.removeprefix("tensor(").removesuffix(")")
                for text in constraint.allowed_type_strs
                if text.startswith("tensor(")
            ]
    return []


def number_of(type_name):
    """TensorProto.DataType of a type as schemas spell it."""
    return onnx.TensorProto.DataType.Value(type_name.upper())


def dtype_of(type_name):
    return numpy.dtype(helper.tensor_dtype_to_np_dtype(number_of(type_name)))


def type_name_of(dtype):
    number = helper.np_dtype_to_tensor_dtype(numpy.dtype(dtype))
    return onnx.TensorProto.DataType.Name(number).lower()


def is_float(type_name):
    return "float" in type_name or type_name == "double"


def bounds_of(type_name):
    dtype = dtype_of(type_name)
    return (ml_dtypes.iinfo if dtype.kind == "V" else numpy.iinfo)(dtype)


def make_values(random, type_name, shape, low=-4, high=4):
    """Seeded values of a type: numbers of floats are multiples of 1/16 before they are rounded."""
    if type_name == "string":
        words = numpy.array(["", "a", "beta", "gamma γ", "x" * 40], dtype=object)
        return words[random.integers(0, len(words), shape)]
    if type_name == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if type_name.startswith("complex"):
        pair = random.integers(-64, 65, (2, *shape)) / 16
        return (pair[0] + 1j * pair[1]).astype(dtype_of(type_name))
    if type_name == "float8e8m0":  # Powers of two only.
        return (2.0 ** random.integers(-6, 7, shape)).astype(dtype_of(type_name))
    if is_float(type_name):
        low, high = int(numpy.ceil(low * 16)), int(numpy.floor(high * 16))
        return (random.integers(low, high + 1, shape) / 16).astype(dtype_of(type_name))
    bounds = bounds_of(type_name)
    low, high = max(int(bounds.min), int(low)), min(int(bounds.max), int(high))
    return random.integers(low, high + 1, shape).astype(dtype_of(type_name))


def widen(array):
    """Numbers in the type in which expected values are computed."""
    if array.dtype.kind in "biu" or "int" in array.dtype.name:
        return array.astype(numpy.int64)
    return array.astype(numpy.complex128 if array.dtype.kind == "c" else numpy.float64)


def narrow(array, type_name):
    """A result in its type; integers wrap around."""
    array = numpy.asarray(array)
    with numpy.errstate(all="ignore"):
        return array.astype(dtype_of(type_name))


def value_info(name, value):
    number = helper.np_dtype_to_tensor_dtype(value.dtype) if value.dtype.kind not in "OU" else 8
    return helper.make_tensor_value_info(name, number, value.shape)


def _canonical(domain):
    return "" if domain == "ai.onnx" else domain


def nodes_of(graph):
    """All nodes of a graph, those of its subgraphs too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from nodes_of(body)


def pairs_of(model):
    """The pairs that a model's nodes are."""
    opsets = {_canonical(entry.domain): entry.version for entry in model.opset_import}
    found = set()
    for node in nodes_of(model.graph):
        domain = _canonical(node.domain)
        if domain not in opsets or not onnx.defs.has(node.op_type, domain):
            continue
        try:
            schema = onnx.defs.get_schema(node.op_type, opsets[domain], domain)
        except onnx.defs.SchemaError:
            continue
        found.add(Pair(domain, node.op_type, schema.since_version))
    return found


class Request:
    """A pair that wants cases, and its own seeded generator."""

    def __init__(self, pair):
        self.pair = pair
        self.op_type = pair.op_type
        self.version = pair.version
        self.random = numpy.random.default_rng(zlib.crc32(repr(tuple(pair)).encode()))

    def types(self, parameter="T", but=()):
        """The types that the version adds to the one before it, and one that all have."""
        now = allowed_types(self.pair, parameter)
        earlier = [v for v in versions_of(self.pair.domain, self.op_type) if v < self.version]
        before = (
            allowed_types(self.pair._replace(version=earlier[-1]), parameter) if earlier else []
        )
        chosen = [name for name in now if name not in before]
        usual = next((name for name in ("float", "int32", "uint8", "bool") if name in now), now[0])
        chosen += [usual] if usual not in chosen else []
        return [name for name in chosen if name not in but]

    def values(self, type_name, shape=SHAPE, low=-4, high=4):
        return make_values(self.random, type_name, shape, low, high)

    def case(self, suffix, inputs, outputs, constants=(), rtol=None, atol=None, **attributes):
        """A model of one node. An input that is None is left out; `constants` are positions."""
        names = [f"x{k}" if value is not None else "" for k, value in enumerate(inputs)]
        made = [f"y{k}" if value is not None else "" for k, value in enumerate(outputs)]
        node = helper.make_node(self.op_type, names, made, **attributes)
        given = {name: value for name, value in zip(names, inputs) if name}
        results = {name: value for name, value in zip(made, outputs) if name}
        fixed = {f"x{k}" for k in constants}
        return self.graph_case(suffix, [node], given, results, fixed, rtol, atol)

    def graph_case(
        self, suffix, nodes, inputs, outputs, constants=(), rtol=None, atol=None, opset=None
    ):
        """A model of nodes; `inputs` and `outputs` by name. The opset is the pair's version."""
        name = f"test_{self.op_type.lower()}_{self.version}_{suffix}"
        runtime = {key: value for key, value in inputs.items() if key not in constants}
        graph = helper.make_graph(
            nodes,
            name,
            [value_info(key, value) for key, value in runtime.items()],
            [value_info(key, value) for key, value in outputs.items()],
            [onnx.numpy_helper.from_array(inputs[key], key) for key in constants],
        )
        own = self.pair.domain
        opsets = [helper.make_opsetid("", opset or self.version)]
        opsets += [helper.make_opsetid(own, self.version)] if own else []
        model = helper.make_model(graph, opset_imports=opsets, ir_version=13)
        types = {
            type_name_of(value.dtype)
            for value in outputs.values()
            if isinstance(value, numpy.ndarray) and value.dtype.kind not in "OU"
        }
        tolerances = [_TOLERANCES.get(each, _DEFAULT_TOLERANCE) for each in types if is_float(each)]
        rtol = rtol or max((each[0] for each in tolerances), default=1e-3)
        atol = atol or max((each[1] for each in tolerances), default=1e-7)
        return Case(
            self.pair, name, model, list(runtime.values()), list(outputs.values()), rtol, atol
        )


def check(case):
    """Raises ValueError unless ONNX takes the model and it has the pair."""
    if case.pair not in pairs_of(case.model):
        raise ValueError(f"{case.name} has no node of {case.pair}.")
    try:
        onnx.checker.check_model(case.model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ValueError(f"{case.name} is refused by ONNX: {error}") from error


def list_cases(pair):
    """The cases that the modules make for a pair; none if none covers its operator."""
    function = _FUNCTIONS.get(pair.op_type)
    if function is None or schemas()[pair].deprecated:
        return []
    return list(function(Request(pair)))
