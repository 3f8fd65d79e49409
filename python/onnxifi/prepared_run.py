# SPDX-License-Identifier: Apache-2.0
"""PreparedShape: what is known of runs on inputs of some shapes. PreparedRun: descriptors and arguments of
onnxSetIOAndRunGraph, which runs use one after the other; little but the calls of the interface, as this is what a
run of a small model costs."""

import ctypes
import math
import threading

from . import element_types, interface
from .errors import SUCCESS
from .graph import describe


class PreparedShape(list):
    """Those PreparedRuns of a shape that no thread is using. `values` are the model's inputs, `shapes` theirs."""

    def __init__(self, graph, library, values, shapes):
        super().__init__()
        self._graph, self._values, self._shapes = graph, values, shapes
        status, self.outputs = graph.infer_output_shapes(len(values), self._describe())
        library.check(status, "asking for the shapes of the outputs")
        # The first output of which only a run tells the extents.
        self.untold = next((name for name, _, extents in self.outputs if extents is None or min(extents, default=0) < 0), None)
        # Of each input with several elements in a byte its element type, else 0.
        self.packed = [value.element_type if element_types.is_packed(value.element_type) else 0 for value in values]

    def _describe(self):
        return describe([(value.name, value.element_type, shape, 0) for value, shape in zip(self._values, self._shapes)])

    def make(self):
        """Another PreparedRun; only where the extents of all outputs are known."""
        specs = []
        for name, number, shape in self.outputs:
            size = element_types.packed_bytes(number, math.prod(shape)) if element_types.is_packed(number) else None
            specs.append((name, number, element_types.dtype_of(number), shape, size))
        outputs = describe([(name, number, shape, 0) for name, number, shape in self.outputs])
        return PreparedRun(self._graph, self._describe(), len(self._values), outputs, specs, not any(self.packed))


class PreparedRun:
    """`inputs` and `outputs` are arrays of descriptors; their buffers are set before each run."""

    __slots__ = ("inputs", "outputs", "specs", "made", "is_plain", "_arguments", "_fence", "_event", "_state", "_state_address", "_graph", "_kept")

    def __init__(self, graph, inputs, input_count, outputs, specs, is_plain):
        self._graph = graph
        self._kept = (inputs, outputs)
        # Objects of their own, which share the memory of the arrays.
        self.inputs, self.outputs = list(inputs)[:input_count], list(outputs)[: len(specs)]
        # Of each output: name, element type, numpy's type, shape, and the bytes of several elements in a byte.
        self.specs = specs
        self.made = [(out, shape, dtype) for out, (_, _, dtype, shape, _) in zip(self.outputs, specs)]
        # Whether no tensor has several elements in a byte.
        self.is_plain = is_plain and all(size is None for *_, size in specs)
        self._fence = interface.MemoryFenceV1(interface.TAG_MEMORY_FENCE_V1, 0, None)
        self._event = ctypes.c_void_p.from_buffer(self._fence, interface.MemoryFenceV1.event.offset)
        self._state = ctypes.c_int32()
        self._state_address = ctypes.c_void_p(ctypes.addressof(self._state))
        self._arguments = (
            graph.handle,
            ctypes.c_uint32(input_count),
            ctypes.cast(inputs, ctypes.c_void_p),
            ctypes.c_uint32(len(specs)),
            ctypes.cast(outputs, ctypes.c_void_p),
            ctypes.c_void_p(ctypes.addressof(self._fence)),
        )

    def carry_out(self, library):
        """One run, complete when it returns. Memory is used until then, whatever is raised meanwhile."""
        graph, event = self._graph, self._event
        event.value = None
        started = status = SUCCESS
        try:
            started = graph.start_prepared(*self._arguments)
        finally:
            if event:
                wait = graph.wait_prepared
                # A wait, during which another thread may take the interpreter's lock, then costs more than a question.
                if threading.get_ident() != graph.first_caller:
                    graph.state_prepared(event, self._state_address)
                    if self._state.value == interface.EVENT_STATE_SIGNALLED:
                        wait = graph.status_prepared
                status = wait(event)
                graph.release_prepared(event)
        if started != SUCCESS:
            library.check(started, "starting the run")
        if status != SUCCESS:
            library.check(status, "running")
