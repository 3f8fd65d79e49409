# SPDX-License-Identifier: Apache-2.0
"""An ONNXIFI library through ctypes: its devices, claims, graphs and runs, for the Python tools.

The only Python file that knows the C interface's structures. Functions that end in a status return
it where the caller checks it, and raise LibraryError with the library's sentence where it does not.
"""

import ctypes
import mmap
import os

import numpy
import onnx

import onnxifi_value

SUCCESS, FALLBACK = 0, 1
_INFO_DEVICE = 5  # ONNXIFI_BACKEND_DEVICE
_INFO_GRAPH_INIT_PROPERTIES = 13  # ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES
_PROPERTY_BASE_FOLDER = 1 << 48  # ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER
_PROPERTY_PROFILE = 1 << 49  # ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE
_PROPERTY_VALUES = 1 << 50  # ONNXIFI_SDK_GRAPH_PROPERTY_VALUES
_PROPERTY_MAPPED_MODEL = 1 << 52  # ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL
_PROPERTY_LASTING_MODEL = 1 << 54  # ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL
_PROPERTY_CALLER_RUNS = 1 << 53  # ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS
_TAG_TENSOR, _TAG_FENCE = 0x43DFBF69, 0x23E08AAB
_STATE_SIGNALLED = 0x3395


class LibraryError(Exception):
    """A call that failed, with the library's own sentence."""


class _Descriptor(ctypes.Structure):
    _fields_ = [
        ("tag", ctypes.c_int32),
        ("name", ctypes.c_char_p),
        ("data_type", ctypes.c_uint64),
        ("memory_type", ctypes.c_uint64),
        ("dimensions", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
        ("buffer", ctypes.c_uint64),
    ]


class _Fence(ctypes.Structure):
    _fields_ = [
        ("tag", ctypes.c_int32),
        ("type", ctypes.c_uint64),
        ("event", ctypes.c_void_p),
    ]


class _Shape(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("data_type", ctypes.c_uint64),
        ("rank", ctypes.c_uint32),
        ("extents", ctypes.POINTER(ctypes.c_int64)),
        ("has_rank", ctypes.c_uint32),
    ]


_ShapeCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Shape))


class _StepRecord(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("step_index", ctypes.c_uint32),
        ("node_index", ctypes.c_int64),
        ("family", ctypes.c_char_p),
        ("implementation", ctypes.c_char_p),
        ("detail", ctypes.c_char_p),
        ("data_type", ctypes.c_uint64),
        ("rank", ctypes.c_uint32),
        ("extents", ctypes.POINTER(ctypes.c_int64)),
        ("rejected_count", ctypes.c_uint32),
        ("rejected", ctypes.POINTER(ctypes.c_char_p)),
        ("start_ns", ctypes.c_uint64),
        ("duration_ns", ctypes.c_uint64),
        ("flops", ctypes.c_uint64),
        ("read_bytes", ctypes.c_uint64),
        ("written_bytes", ctypes.c_uint64),
        ("precision", ctypes.c_uint32),
    ]


class _Island(ctypes.Structure):
    """The beginning of onnxPlanIsland."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("island_index", ctypes.c_uint32),
        ("device_key", ctypes.c_char_p),
    ]


_IslandCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Island))
_CutCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_StepCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_StepRecord))


def describe(tensors):
    """Descriptors of (name, element type, shape, dense array of the bytes); they point into the
    arrays, which must outlive them."""
    descriptors = (_Descriptor * len(tensors))()
    for descriptor, (name, data_type, shape, array) in zip(descriptors, tensors):
        if not array.flags.c_contiguous:
            raise ValueError(f"The array for '{name}' is not dense.")
        descriptor.tag = _TAG_TENSOR
        descriptor.name = name.encode()
        descriptor.data_type = data_type
        descriptor.dimensions = len(shape)
        descriptor.shape = (ctypes.c_uint64 * max(len(shape), 1))(*shape)
        descriptor.buffer = array.ctypes.data
    return descriptors


def _describe_arrays(arrays):
    return describe(
        [
            (name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, array)
            for name, array in arrays.items()
        ]
    )


class Library:
    """A loaded library and one of its devices, by key ("cpu:0") or plugin name ("cpu")."""

    def __init__(self, path, device):
        self.functions = ctypes.CDLL(str(path))
        # For calls that return at once: they keep the interpreter's lock, which another thread would
        # take otherwise, and give back only when it waits itself.
        self.brief_functions = ctypes.PyDLL(str(path))
        self.kept = {}  # by graph: what it reads until it is released
        self._last_error = self.find(None, "onnxGetLastErrorMessage")
        count = ctypes.c_size_t(0)
        self.functions.onnxGetBackendIDs(None, ctypes.byref(count))
        ids = (ctypes.c_void_p * max(count.value, 1))()
        self.check(self.functions.onnxGetBackendIDs(ids, ctypes.byref(count)), "listing devices")
        keys = []
        for value in ids[: count.value]:
            self.id = ctypes.c_void_p(value)
            text, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
            key_of = self.find(self.id, "onnxGetBackendKey")
            self.check(key_of(self.id, text, ctypes.byref(size)), "asking for a device's key")
            keys.append(text.value.decode())
            if device in (keys[-1], keys[-1].split(":")[0]):
                break
        else:
            # With the library's words on plugins that list none.
            present = f"There is no device '{device}'; present are {', '.join(keys) or 'none'}."
            raise LibraryError(f"{present} {self.sentence()}".strip())
        self.key = keys[-1]
        # Timed by callers, so that a call converts as little as possible.
        self._claim = self.functions.onnxGetBackendCompatibility
        self._nothing = ctypes.CDLL(None).labs  # the least that there is
        for function in (self._claim, self._nothing):
            function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
        self._backend = ctypes.c_void_p()
        status = self.functions.onnxInitBackend(self.id, None, ctypes.byref(self._backend))
        self.check(status, "initialising the device")

    def find(self, backend_id, name):
        """An extension function that returns a status."""
        address = ctypes.c_void_p()
        status = self.functions.onnxGetExtensionFunctionAddress(
            backend_id, name.encode(), ctypes.byref(address)
        )
        if status != SUCCESS:
            raise LibraryError(f"The library has no function '{name}'.")
        return ctypes.CFUNCTYPE(ctypes.c_int32)(address.value)

    def sentence(self):
        """What the library says about the last call of this thread that failed; may be empty."""
        size = ctypes.c_size_t(0)
        self._last_error(None, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value or 1)
        self._last_error(text, ctypes.byref(size))
        return text.value.decode(errors="replace")

    def check(self, status, doing):
        if status != SUCCESS:
            sentence = self.sentence() or "no reason given"
            raise LibraryError(f"{doing}: {sentence} (status 0x{status & 0xFFFF:04x})")

    def claim(self, model):
        """The status with which the device answers whether it can run the bytes of a model."""
        return self._claim(self.id, len(model), model)

    def claim_nothing(self, model):
        """The same call to a function that does nothing: what a call takes beside the answer."""
        return self._nothing(self.id, len(model), model)

    def device_name(self):
        """What the device calls itself."""
        text, size = ctypes.create_string_buffer(4096), ctypes.c_size_t(4096)
        status = self.functions.onnxGetBackendInfo(
            self.id, _INFO_DEVICE, text, ctypes.byref(size)
        )
        self.check(status, "asking for a device's name")
        return text.value.decode(errors="replace")

    def graph_properties(self):
        """The keys that the device takes in onnxInitGraph, as bits."""
        bits, size = ctypes.c_uint64(0), ctypes.c_size_t(8)
        status = self.functions.onnxGetBackendInfo(
            self.id, _INFO_GRAPH_INIT_PROPERTIES, ctypes.byref(bits), ctypes.byref(size)
        )
        self.check(status, "asking for a device's graph properties")
        return bits.value

    def init_graph(self, model, size_bytes, properties=()):
        """The status, and the graph or None; `model` is anything that ctypes passes by address.

        `properties` are pairs of key and value.
        """
        handle = ctypes.c_void_p()
        flat = [number for pair in properties for number in pair]
        status = self.functions.onnxInitGraph(
            self._backend,
            (ctypes.c_uint64 * (len(flat) + 1))(*flat, 0),
            ctypes.c_size_t(size_bytes),
            model,
            0,
            None,
            ctypes.byref(handle),
        )
        return status, Graph(self, handle) if status in (SUCCESS, FALLBACK) else None

    def open_graph(self, path, is_profiled=False, takes_values=False):
        """The graph of a model file, which stays mapped for as long as the graph, with the external
        data of its folder. Runs may be carried out by the thread that starts them, since Graph.run
        waits for them at once. A profiled one records the steps of its runs for Graph.profile; one
        that takes values has texts, sequences and maps for Graph.compute.
        """
        with open(path, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        start = ctypes.c_char.from_buffer(content)
        taken = self.graph_properties()
        wanted = (_PROPERTY_MAPPED_MODEL, _PROPERTY_LASTING_MODEL, _PROPERTY_CALLER_RUNS)
        properties = [(key, 1) for key in wanted if taken & key]
        if is_profiled:
            properties.append((_PROPERTY_PROFILE, 1))
        if takes_values:
            properties.append((_PROPERTY_VALUES, 1))
        folder = ctypes.create_string_buffer(os.path.dirname(os.path.abspath(path)).encode())
        properties.append((_PROPERTY_BASE_FOLDER, ctypes.addressof(folder)))
        status, graph = self.init_graph(ctypes.byref(start), len(content), properties)
        if graph is None:
            self.check(status, "initialising the model")
        graph.keep(start)
        return graph


class Graph:
    def __init__(self, library, handle, has_other_callers=False):
        # Then a wait, for which another thread gets the interpreter's lock, costs more than a question.
        self._has_other_callers = has_other_callers
        self._library = library
        self._handle = handle
        self._set_and_run = library.find(library.id, "onnxSetIOAndRunGraph")
        self._infer = library.find(library.id, "onnxInferOutputShapes")
        self._wait = library.functions.onnxWaitEvent
        self._get_state = library.brief_functions.onnxGetEventState
        self._get_status = library.brief_functions.onnxWaitEvent  # of an event that is signalled
        self._release = library.brief_functions.onnxReleaseEvent
        self._state = ctypes.c_int32()
        self._state_pointer = ctypes.byref(self._state)
        self._fence = _Fence(_TAG_FENCE, 0, None)
        self._fence_pointer = ctypes.byref(self._fence)

    def keep(self, content):
        """Keeps what the graph reads until it is released, whoever forgets this object."""
        self._library.kept[self._handle.value] = content

    def for_another_caller(self):
        """The same graph with tensors of its own to bind, for runs beside those of this object."""
        return Graph(self._library, self._handle, has_other_callers=True)

    def release(self):
        self._library.functions.onnxReleaseGraph(self._handle)
        self._library.kept.pop(self._handle.value, None)

    def infer_output_shapes(self, inputs):
        """The status, and (name, element type, extents) of each output; -1: known after a run."""
        shapes = []

        def add(_, pointer):
            shape = pointer.contents
            shapes.append((shape.name.decode(), shape.data_type, shape.extents[: shape.rank]))

        status = self._infer(self._handle, len(inputs), inputs, _ShapeCallback(add), None)
        return status, shapes

    def run_on(self, inputs, outputs, timeout_ms):
        """One run on descriptors: its status once it has ended. LibraryError when it does not."""
        status = self._set_and_run(
            self._handle, len(inputs), inputs, len(outputs), outputs, self._fence_pointer
        )
        if status != SUCCESS:
            return status
        state, result = ctypes.c_int32(), ctypes.c_int32()
        length = ctypes.c_size_t(0)
        event = ctypes.c_void_p(self._fence.event)
        wait_for = self._library.find(self._library.id, "onnxWaitEventFor")
        status = wait_for(
            event,
            timeout_ms,
            ctypes.byref(state),
            ctypes.byref(result),
            None,
            ctypes.byref(length),
        )
        if status != SUCCESS or state.value != _STATE_SIGNALLED:
            raise LibraryError(f"A run did not end within {timeout_ms} ms.")
        self._release(event)
        return result.value

    def bind(self, inputs, place=None):
        """Prepares runs on {name: array} and returns {name: array} that the runs will fill.

        With a `place` tensors are in memory of its `memory_type`, where `put` gives the address of
        a copy of an array: then it is Graph.take that fills the arrays.
        """
        self._inputs = inputs
        self._input_descriptors = _describe_arrays(inputs)
        status, shapes = self.infer_output_shapes(self._input_descriptors)
        self._library.check(status, "asking for the shapes of the outputs")
        self._outputs = {}
        for name, data_type, extents in shapes:
            if any(extent < 0 for extent in extents):
                raise LibraryError(f"The shape of output '{name}' is known only after a run.")
            dtype = onnx.helper.tensor_dtype_to_np_dtype(data_type)
            self._outputs[name] = numpy.zeros(extents, dtype)
        self._output_descriptors = _describe_arrays(self._outputs)
        self._place = place
        if place is not None:
            for arrays, descriptors in (
                (self._inputs, self._input_descriptors),
                (self._outputs, self._output_descriptors),
            ):
                for array, descriptor in zip(arrays.values(), descriptors):
                    descriptor.memory_type = place.memory_type
                    descriptor.buffer = place.put(array)
        return self._outputs

    def take(self):
        """Fills what bind returned from the place that it was given."""
        if self._place is not None:
            for array, descriptor in zip(self._outputs.values(), self._output_descriptors):
                self._place.take(descriptor.buffer, array)

    def run(self):
        """One run with what bind prepared, complete when it returns; little but the calls of the
        interface, for timing."""
        status = self._set_and_run(
            self._handle,
            len(self._inputs),
            self._input_descriptors,
            len(self._outputs),
            self._output_descriptors,
            self._fence_pointer,
        )
        if status != SUCCESS:
            self._library.check(status, "starting the run")
        event = ctypes.c_void_p(self._fence.event)
        wait = self._wait
        if self._has_other_callers:
            self._get_state(event, self._state_pointer)
            if self._state.value == _STATE_SIGNALLED:
                wait = self._get_status
        status = wait(event)
        if status != SUCCESS:
            self._library.check(status, "running")
        self._release(event)

    def compute(self, inputs, reads=True):
        """{name: answer} of one run on {name: array}, whatever the kind: texts are arrays of str,
        sequences lists, maps dicts, an optional without its element None. The extents of the
        outputs need not be known before the run; without `reads` they are asked for, and their
        answers are None. LibraryError with the library's sentence."""
        numbers = {name: array for name, array in inputs.items() if array.dtype.kind != "O"}
        texts = [
            onnxifi_value.from_texts(name, array)
            for name, array in inputs.items()
            if array.dtype.kind == "O"
        ]
        pointers = (ctypes.POINTER(onnxifi_value.Value) * (len(texts) + 1))(
            *[ctypes.pointer(text.value) for text in texts]
        )
        library = self._library
        descriptors = _describe_arrays(numbers)
        bind = library.find(library.id, "onnxSetGraphValues")
        status = bind(
            self._handle, len(numbers), descriptors, len(texts), pointers, 0, ctypes.c_void_p()
        )
        library.check(status, "binding the inputs")
        fence, begin = _Fence(_TAG_FENCE, 0, None), _Fence(_TAG_FENCE, 0, None)
        event = ctypes.c_void_p()
        library.check(
            library.functions.onnxInitEvent(library._backend, ctypes.byref(event)),
            "making an event",
        )
        begin.event = event
        run = library.functions.onnxRunGraph
        status = run(self._handle, ctypes.byref(begin), ctypes.byref(fence))
        library.check(status, "starting the run")
        library.check(library.functions.onnxSignalEvent(event), "signalling the inputs")
        done = ctypes.c_void_p(fence.event)
        answers = {}

        def keep(_, pointer):
            if not reads:
                answers[pointer.contents.name.decode()] = None
                return
            name, answer = onnxifi_value.read(pointer.contents)
            answers[name] = answer

        try:
            library.check(self._wait(done), "running")
            values = library.find(library.id, "onnxGetRunValues")
            callback = onnxifi_value.Callback(keep)
            library.check(values(done, callback, None), "asking for the values of the outputs")
        finally:
            self._release(done)
            library.functions.onnxReleaseEvent(event)
        return answers

    def placement(self):
        """The devices that have parts of the graph, in the order of the parts; empty where the
        graph is not the auto device's."""
        keys = []

        def add(_, pointer):
            key = pointer.contents.device_key.decode()
            if key not in keys:
                keys.append(key)

        try:
            tell = self._library.find(self._library.id, "onnxGetGraphPlan")
        except LibraryError:
            return ""
        status = tell(
            self._handle, _IslandCallback(add), _CutCallback(lambda *_: None), None
        )
        return ",".join(keys) if status == SUCCESS else ""

    def profile(self):
        """The steps of the last run of a profiled graph, in the order of their start."""
        steps = []

        def add(_, pointer):
            record = pointer.contents
            steps.append(
                {
                    "node": record.node_index,
                    "family": record.family.decode(),
                    "implementation": record.implementation.decode(),
                    "detail": (record.detail or b"").decode(),
                    "extents": record.extents[: record.rank],
                    "ns": record.duration_ns,
                    "flops": record.flops,
                    "bytes": record.read_bytes + record.written_bytes,
                }
            )

        find = self._library.find(self._library.id, "onnxGetGraphProfile")
        self._library.check(find(self._handle, _StepCallback(add), None), "asking for the profile")
        return steps
