# SPDX-License-Identifier: Apache-2.0
"""Draws a network's graph node by node, evaluating each node on a probe input as it is added.

The probe value tells the shape of everything drawn so far, and its magnitudes, from which weights
and normalisation statistics are scaled so that activations neither vanish nor explode with depth.
Expected values do not come from the probe: they are computed later from the finished bytes.
"""

import dataclasses
import zlib

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from models import evaluator

# The IR version that came with an opset; from 4 on, initializers need not be graph inputs.
_IR_VERSIONS = {7: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 17: 8, 20: 9, 21: 10}


@dataclasses.dataclass
class Case:
    """A model to write: its bytes and, per data set, the inputs by name."""

    name: str
    content: bytes
    input_sets: list
    facts: dict = dataclasses.field(default_factory=dict)  # Further entries of case.json.
    # The float32 model that says what to expect, where the written one has narrower types.
    reference: onnx.ModelProto | None = None
    # What to expect, where another runtime has said it.
    expected_sets: list | None = None


def make_generator(name):
    """Returns the random generator that belongs to a name, the same on every machine."""
    return numpy.random.default_rng(zlib.crc32(name.encode()))


class Builder:
    """One graph under construction; values are named by strings, as in ONNX."""

    def __init__(self, name, opset):
        self.generator = make_generator(name)
        self._name = name
        self._opset = opset
        self._nodes = []
        self._inputs = []
        self._outputs = []
        self._initializers = []
        self._values = {}
        self._domains = {}

    def add_input(self, name, dims, probe):
        """Declares a graph input; a dimension given as text is symbolic."""
        self._inputs.append(self._declare(name, dims, probe))
        self._values[name] = probe.astype(numpy.float64) if probe.dtype.kind == "f" else probe
        return name

    def add_output(self, name, dims):
        self._outputs.append(self._declare(name, dims, self._values[name]))

    def add_constant(self, value, role):
        """Stores an initializer (floating point as float32) and returns its name."""
        value = numpy.asarray(value)
        if value.dtype.kind == "f":
            value = value.astype(numpy.float32)
        name = f"{role}_{len(self._initializers)}"
        self._initializers.append(numpy_helper.from_array(value, name))
        self._values[name] = value.astype(numpy.float64) if value.dtype.kind == "f" else value
        return name

    def draw_constant(self, shape, deviation, role):
        """Stores normally distributed numbers with the given standard deviation."""
        value = self.generator.standard_normal(shape, dtype=numpy.float32)
        value *= numpy.float32(deviation)
        return self.add_constant(value, role)

    def add_node(self, op_type, *inputs, output=None, **attributes):
        """Appends a node with one output and returns the output's name."""
        return self.add_split_node(op_type, *inputs, outputs=[output], **attributes)[0]

    def use_domain(self, domain, version):
        """Imports a domain beside ONNX's own; nodes name it by their attribute `domain`."""
        self._domains[domain] = version

    def add_split_node(self, op_type, *inputs, outputs, **attributes):
        """Appends a node with several outputs, named where `outputs` holds no None."""
        label = f"{op_type}_{len(self._nodes)}"
        names = [name or f"{label}_output_{at}" for at, name in enumerate(outputs)]
        node = helper.make_node(op_type, inputs, names, label, **attributes)
        operands = [self._values[name] if name else None for name in inputs]
        self._values.update(zip(names, evaluator.evaluate_node(node, operands, self._opset)))
        self._nodes.append(node)
        return names

    def get_probe(self, name):
        """Returns what a value is for the probe input."""
        return self._values[name]

    def serialize(self):
        """Returns the checked model as bytes."""
        ir_version = _IR_VERSIONS[self._opset]
        inputs = list(self._inputs)
        if ir_version < 4:
            inputs += [
                helper.make_tensor_value_info(i.name, i.data_type, i.dims)
                for i in self._initializers
            ]
        graph = helper.make_graph(
            self._nodes, self._name, inputs, self._outputs, self._initializers
        )
        model = helper.make_model(
            graph,
            opset_imports=[
                helper.make_opsetid(*entry) for entry in (("", self._opset), *self._domains.items())
            ],
            ir_version=ir_version,
            producer_name="make_models",
        )
        content = model.SerializeToString()
        onnx.checker.check_model(content, full_check=True)
        return content

    @staticmethod
    def _declare(name, dims, probe):
        if len(dims) != probe.ndim or any(
            isinstance(dim, int) and dim != extent for dim, extent in zip(dims, probe.shape)
        ):
            raise ValueError(f"Value '{name}' is declared as {dims}, but is {probe.shape}.")
        is_float = probe.dtype.kind == "f"
        elem_type = TensorProto.FLOAT if is_float else helper.np_dtype_to_tensor_dtype(probe.dtype)
        return helper.make_tensor_value_info(name, elem_type, dims)
