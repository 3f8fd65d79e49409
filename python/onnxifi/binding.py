# SPDX-License-Identifier: Apache-2.0
"""Binding: runs on the same memory again and again."""

import dataclasses

import numpy

from . import arrays, interface
from .arrays import address_of
from .errors import make_error
from .prepared_run import PreparedShape


@dataclasses.dataclass(frozen=True)
class Memory:
    """A tensor in memory of the caller's, by its address, for Session.bind: CUDA's, or that of another
    ONNXIFI_MEMORY_TYPE_... It has the type of the model's input or output."""

    address: int
    shape: tuple
    memory_type: int = interface.MEMORY_TYPE_CUDA_BUFFER


class Binding:
    """Inputs and outputs that stay bound: `outputs` are the arrays that run() fills. One run at a time; several
    bindings of a session run beside one another. `values` are the model's inputs."""

    def __init__(self, graph, library, values, feeds, outputs):
        self._library = library
        tensors = [self._as_input(value, feeds[value.name]) for value in values]
        shape = PreparedShape(graph, library, values, [tensor.shape for tensor, _ in tensors])
        if shape.untold is not None:
            raise make_error("UNSUPPORTED_SHAPE", f"The shape of output '{shape.untold}' is known only after a run.")
        self._prepared = shape.make()
        if not self._prepared.is_plain:
            raise make_error("UNSUPPORTED_DATATYPE", "A tensor with several elements in a byte does not stay bound; run() takes it.")
        self._kept = [tensor for tensor, _ in tensors]
        for descriptor, (tensor, address) in zip(self._prepared.inputs, tensors):
            descriptor.buffer = address
            descriptor.memoryType = getattr(tensor, "memory_type", interface.MEMORY_TYPE_CPU)
        self.outputs = {}
        for descriptor, (name, _, dtype, extents, _) in zip(self._prepared.outputs, self._prepared.specs):
            tensor = outputs.get(name)
            if isinstance(tensor, Memory):
                descriptor.buffer, descriptor.memoryType = tensor.address, tensor.memory_type
            else:
                if tensor is None:
                    tensor = numpy.zeros(extents, dtype)
                arrays.check_output(name, tensor, dtype, extents)
                descriptor.buffer = address_of(tensor)
            self.outputs[name] = tensor

    @staticmethod
    def _as_input(value, given):
        if isinstance(given, Memory):
            return given, given.address
        array = arrays.as_input(value.name, given, value.element_type)
        return array, address_of(array)

    def run(self):
        """One run, complete when it returns."""
        self._prepared.carry_out(self._library)
