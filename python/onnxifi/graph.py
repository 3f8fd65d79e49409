# SPDX-License-Identifier: Apache-2.0
"""A graph on a device and its runs, on descriptors and values: the calls of the C interface that Session and
tools are made of."""

import ctypes
import threading
import weakref

from . import interface, reports
from .errors import FALLBACK, SUCCESS, make_error

_NO_PROPERTIES = (ctypes.c_uint64 * 1)(0)


def describe(tensors, memory_type=interface.MEMORY_TYPE_CPU):
    """Descriptors of (name, number of the element type, shape, address)."""
    descriptors = (interface.TensorDescriptorV1 * max(len(tensors), 1))()
    for descriptor, (name, element_type, shape, address) in zip(descriptors, tensors):
        descriptor.tag = interface.TAG_TENSOR_DESCRIPTOR_V1
        descriptor.name = name.encode()
        descriptor.dataType = element_type
        descriptor.memoryType = memory_type
        descriptor.dimensions = len(shape)
        descriptor.shape = (ctypes.c_uint64 * max(len(shape), 1))(*shape)
        descriptor.buffer = address
    return descriptors


class Graph:
    """A model on a device. `content` is the bytes of the model: an object with an address for ctypes. `weights` are
    (count, descriptors)."""

    def __init__(self, device, content, size_bytes, properties=_NO_PROPERTIES, takes_values=False, weights=(0, None)):
        library = device.library
        self._backend = device.backend()
        self._library, self._device = library, device
        self.takes_values = takes_values
        self.handle = ctypes.c_void_p()
        self.status = library.find("onnxInitGraph")(
            self._backend.handle, properties, size_bytes, content, *weights, ctypes.byref(self.handle)
        )
        if not reports.runs(self.status):
            raise make_error(self.status, library.sentence() or "The library gives no reason.")
        # What the graph uses is released after it.
        self._release = weakref.finalize(self, _release, library.find("onnxReleaseGraph"), self.handle, self._backend, content)
        self._infer = library.find("onnxInferOutputShapes", device.id)
        self._release_event = library.find("onnxReleaseEvent", keeps_lock=True)
        # For PreparedRun.
        self.start_prepared = library.find("onnxSetIOAndRunGraph", device.id, takes_objects=True)
        self.wait_prepared = library.find("onnxWaitEvent", takes_objects=True)
        # These return at once: the state of an event, the status of one that is signalled, its release.
        self.state_prepared = library.find("onnxGetEventState", keeps_lock=True, takes_objects=True)
        self.status_prepared = library.find("onnxWaitEvent", keeps_lock=True, takes_objects=True)
        self.release_prepared = library.find("onnxReleaseEvent", keeps_lock=True, takes_objects=True)
        self.first_caller = threading.get_ident()
        # For ValueRun. Inputs are there when a run starts: all runs wait for one event.
        self.value_calls = self.signalled_event = None
        if takes_values:
            self.value_calls = _ValueCalls(library, device.id)
            self.signalled_event = _make_signalled_event(library, self._backend)
            self._release_signalled = weakref.finalize(
                self, _release, self.release_prepared, self.signalled_event, self._backend
            )

    @property
    def is_emulated(self):
        return self.status == FALLBACK

    def release(self):
        self._release()
        if self.signalled_event is not None:
            self._release_signalled()
        self._backend = None

    def infer_output_shapes(self, count, descriptors):
        """The status, and (name, element type, extents or None) of each output; -1: known after a run."""
        shapes = []

        def add(_, pointer):
            shape = pointer.contents
            extents = tuple(shape.extents[: shape.rank]) if shape.has_rank else None
            shapes.append((interface.text_of(shape.name), shape.data_type, extents))

        return self._infer(self.handle, count, descriptors, interface.ShapeCallback(add), None), shapes

    def run_within(self, inputs, outputs, timeout_ms):
        """The status of one run on (count, descriptors). UnavailableError where it takes longer."""
        fence = interface.MemoryFenceV1(interface.TAG_MEMORY_FENCE_V1, 0, None)
        start = self._library.find("onnxSetIOAndRunGraph", self._device.id)
        status = start(self.handle, *inputs, *outputs, ctypes.byref(fence))
        if status != SUCCESS:
            return status
        state, result, length = ctypes.c_int32(), ctypes.c_int32(), ctypes.c_size_t(0)
        wait_for = self._library.find("onnxWaitEventFor", self._device.id)
        status = wait_for(
            fence.event, timeout_ms, ctypes.byref(state), ctypes.byref(result), None, ctypes.byref(length)
        )
        if status != SUCCESS or state.value != interface.EVENT_STATE_SIGNALLED:
            raise make_error("BACKEND_UNAVAILABLE", f"A run did not end within {timeout_ms} ms.")
        self._release_event(fence.event)
        return result.value

    def plan(self):
        """The islands of the graph, in an order in which they can run."""
        islands = []

        def add(_, pointer):
            islands.append(reports.read_island(pointer.contents))

        tell = self._library.find("onnxGetGraphPlan", self._device.id)
        status = tell(self.handle, interface.IslandCallback(add), interface.CutCallback(lambda *_: None), None)
        self._library.check(status, "asking for the plan")
        return islands

    def profile(self):
        """The steps of the last run of a profiled graph, in the order of their start."""
        steps = []

        def add(_, pointer):
            steps.append(reports.read_step(pointer.contents))

        tell = self._library.find("onnxGetGraphProfile", self._device.id)
        self._library.check(tell(self.handle, interface.StepCallback(add), None), "asking for the profile")
        return steps


class _ValueCalls:
    """Functions that runs on values need."""

    def __init__(self, library, backend_id):
        self.bind = library.find("onnxSetGraphValues", backend_id, takes_objects=True)
        self.run = library.find("onnxRunGraph", takes_objects=True)
        self.visit = library.find("onnxGetRunValues", backend_id, keeps_lock=True, takes_objects=True)


def _make_signalled_event(library, backend):
    event = ctypes.c_void_p()
    library.check(library.find("onnxInitEvent")(backend.handle, ctypes.byref(event)), "making an event")
    library.check(library.find("onnxSignalEvent")(event), "signalling the inputs")
    return event


def _release(release, handle, *_kept):
    release(handle)


def as_address(content):
    """The bytes of a model as ctypes passes them by address: bytes, or an array over any buffer, which it keeps."""
    if isinstance(content, bytes):
        return content
    return (ctypes.c_char * len(content)).from_buffer(content)
