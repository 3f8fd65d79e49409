# SPDX-License-Identifier: Apache-2.0
"""ValueRun: descriptors, fences and a callback of runs on values, which runs use one after the other; as PreparedRun
for descriptors alone, little but the calls of the interface."""

import ctypes

import numpy

from . import arrays, element_types, interface, values
from .arrays import address_of
from .errors import SUCCESS
from .graph import describe

_ndarray = numpy.ndarray


class _Keeper:
    """What the library's callback reads: the outputs of `wanted` by the bytes of their names."""

    __slots__ = ("wanted", "answers", "fault")

    def callback(self):
        def keep(_, address):
            # An exception in a callback would be lost.
            try:
                fields = values.fields_of(address)
                name = values.read_name(fields)
                if name in self.wanted:
                    self.answers[name] = values.read(fields)
            except Exception as fault:  # pylint: disable=broad-exception-caught
                self.fault = fault

        return interface.ValueCallback(keep)


class ValueRun:
    """Runs of a graph on inputs of any shape, one after the other. `inputs` are the model's."""

    __slots__ = ("_graph", "_numbers", "_others", "_shapes", "_arguments", "_pointers", "_kept",
                 "_ready", "_done", "_event", "_keeper", "_callback")

    def __init__(self, graph, inputs):
        self._graph = graph
        numbers = [(index, value) for index, value in enumerate(inputs) if value.element_type]
        described = describe([(value.name, value.element_type, (), 0) for _, value in numbers])
        # Of each: where it is among the inputs, what it is, and its descriptor.
        self._numbers = [
            (index, value.name, value.element_type, value.dtype, element_types.is_packed(value.element_type), descriptor)
            for (index, value), descriptor in zip(numbers, described)
        ]
        self._shapes = [()] * len(inputs)
        self._others = [(index, value.name, value.kind) for index, value in enumerate(inputs) if not value.element_type]
        self._pointers = (ctypes.c_void_p * max(len(self._others), 1))()
        ready = interface.MemoryFenceV1(interface.TAG_MEMORY_FENCE_V1, 0, graph.signalled_event.value)
        done = interface.MemoryFenceV1(interface.TAG_MEMORY_FENCE_V1, 0, None)
        self._kept = (described, ready, done)
        self._ready, self._done = ctypes.c_void_p(ctypes.addressof(ready)), ctypes.c_void_p(ctypes.addressof(done))
        self._event = ctypes.c_void_p.from_buffer(done, interface.MemoryFenceV1.event.offset)
        self._arguments = (
            graph.handle,
            ctypes.c_uint32(len(numbers)),
            ctypes.c_void_p(ctypes.addressof(described)),
            ctypes.c_uint32(len(self._others)),
            ctypes.c_void_p(ctypes.addressof(self._pointers)),
            ctypes.c_uint32(0),
            None,
        )
        self._keeper = _Keeper()
        self._callback = self._keeper.callback()

    def carry_out(self, library, contents, wanted, lock):
        """{name: value} of the outputs `wanted`, both by bytes; complete when it returns. What is bound is the graph's,
        so that one thread at a time binds and starts, in `lock`."""
        given = [self._describe(number, contents[number[0]]) for number in self._numbers]
        for place, (index, name, kind) in enumerate(self._others):
            made = values.GivenValue(name, kind, contents[index])
            self._pointers[place] = ctypes.addressof(made.value)
            given.append(made)
        graph, calls, event = self._graph, self._graph.value_calls, self._event
        event.value = None
        has_ended = False
        try:
            with lock:
                status, doing = calls.bind(*self._arguments), "binding the inputs"
                if status == SUCCESS:
                    status, doing = calls.run(graph.handle, self._ready, self._done), "starting the run"
            if status == SUCCESS:
                status, doing = graph.wait_prepared(event), "running"
                has_ended = True
            if status != SUCCESS:
                library.check(status, doing)
            return self._read(library, calls, wanted)
        finally:
            if event:
                # What it reads lives until then, whatever was raised.
                if not has_ended:
                    graph.wait_prepared(event)
                graph.release_prepared(event)

    def _describe(self, number, array):
        """What the library reads, which has to live until the run has ended."""
        index, name, element_type, dtype, is_packed, descriptor = number
        # carray: dense, aligned and writeable
        if type(array) is not _ndarray or array.dtype is not dtype or not array.flags.carray:
            array = arrays.as_input(name, array, element_type)
        shape = array.shape
        if shape != self._shapes[index]:
            descriptor.dimensions = len(shape)
            descriptor.shape = (ctypes.c_uint64 * max(len(shape), 1))(*shape)
            self._shapes[index] = shape
        if is_packed:
            array = element_types.pack(array, element_type)
        descriptor.buffer = address_of(array)
        return array

    def _read(self, library, calls, wanted):
        keeper = self._keeper
        keeper.wanted, keeper.answers, keeper.fault = wanted, {}, None
        status = calls.visit(self._event, self._callback, None)
        if status != SUCCESS:
            library.check(status, "asking for the outputs")
        if keeper.fault is not None:
            raise keeper.fault
        answers, keeper.answers = keeper.answers, None
        return answers
