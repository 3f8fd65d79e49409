# SPDX-License-Identifier: Apache-2.0
"""An ONNXIFI library through ctypes: devices, one graph, its runs. Numpy arrays in and out.

Everything a run needs is prepared once, so that a timed run is the calls of the interface and
little else: onnxSetIOAndRunGraph, onnxWaitEvent, onnxReleaseEvent.
"""

import ctypes
import mmap

import numpy
import onnx

_SUCCESS, _FALLBACK = 0, 1
_TAG_TENSOR, _TAG_FENCE = 0x43DFBF69, 0x23E08AAB


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


def _describe(arrays):
    """Descriptors of {name: array}; they point into the arrays, which must outlive them."""
    descriptors = (_Descriptor * max(len(arrays), 1))()
    for descriptor, (name, array) in zip(descriptors, arrays.items()):
        if not array.flags.c_contiguous:
            raise ValueError(f"The array for '{name}' is not dense.")
        descriptor.tag = _TAG_TENSOR
        descriptor.name = name.encode()
        descriptor.data_type = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        descriptor.dimensions = array.ndim
        descriptor.shape = (ctypes.c_uint64 * max(array.ndim, 1))(*array.shape)
        descriptor.buffer = array.ctypes.data
    return descriptors


class Library:
    """A loaded library and one of its devices, by key ("cpu:0") or plugin name ("cpu")."""

    def __init__(self, path, device):
        self.functions = ctypes.CDLL(str(path))
        self._last_error = self._find(None, "onnxGetLastErrorMessage")
        count = ctypes.c_size_t(0)
        self.functions.onnxGetBackendIDs(None, ctypes.byref(count))
        ids = (ctypes.c_void_p * max(count.value, 1))()
        self._check(self.functions.onnxGetBackendIDs(ids, ctypes.byref(count)), "listing devices")
        keys = []
        for value in ids[: count.value]:
            self.id = ctypes.c_void_p(value)
            text, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
            key_of = self._find(self.id, "onnxGetBackendKey")
            self._check(key_of(self.id, text, ctypes.byref(size)), "asking for a device's key")
            keys.append(text.value.decode())
            if device in (keys[-1], keys[-1].split(":")[0]):
                break
        else:
            raise LibraryError(f"There is no device '{device}'; present are {', '.join(keys)}.")
        self.key = keys[-1]
        self._backend = ctypes.c_void_p()
        status = self.functions.onnxInitBackend(self.id, None, ctypes.byref(self._backend))
        self._check(status, "initialising the device")

    def _find(self, backend_id, name):
        address = ctypes.c_void_p()
        status = self.functions.onnxGetExtensionFunctionAddress(
            backend_id, name.encode(), ctypes.byref(address)
        )
        if status != _SUCCESS:
            raise LibraryError(f"The library has no function '{name}'.")
        return ctypes.CFUNCTYPE(ctypes.c_int32)(address.value)

    def _check(self, status, doing):
        if status == _SUCCESS:
            return
        text, size = ctypes.create_string_buffer(4096), ctypes.c_size_t(4096)
        self._last_error(text, ctypes.byref(size))
        sentence = text.value.decode(errors="replace") or "no reason given"
        raise LibraryError(f"{doing}: {sentence} (status 0x{status & 0xFFFF:04x})")

    def open_graph(self, path):
        """The graph of a model file, which is mapped for the time of the call."""
        graph = ctypes.c_void_p()
        with open(path, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        start = ctypes.c_char.from_buffer(content)
        status = self.functions.onnxInitGraph(
            self._backend,
            None,
            ctypes.c_size_t(len(content)),
            ctypes.byref(start),
            0,
            None,
            ctypes.byref(graph),
        )
        del start
        content.close()
        if status != _FALLBACK:
            self._check(status, "initialising the model")
        return Graph(self, graph)


class Graph:
    def __init__(self, library, handle):
        self._library = library
        self._handle = handle
        self._set_and_run = library._find(library.id, "onnxSetIOAndRunGraph")
        self._infer = library._find(library.id, "onnxInferOutputShapes")
        self._wait = library.functions.onnxWaitEvent
        self._release = library.functions.onnxReleaseEvent
        self._fence = _Fence(_TAG_FENCE, 0, None)
        self._fence_pointer = ctypes.byref(self._fence)

    def bind(self, inputs):
        """Prepares runs on {name: array} and returns {name: array} that the runs will fill."""
        self._inputs = inputs
        self._input_descriptors = _describe(inputs)
        shapes = {}

        def add(_, pointer):
            shape = pointer.contents
            shapes[shape.name.decode()] = (shape.data_type, shape.extents[: shape.rank])

        status = self._infer(
            self._handle, len(inputs), self._input_descriptors, _ShapeCallback(add), None
        )
        self._library._check(status, "asking for the shapes of the outputs")
        self._outputs = {}
        for name, (data_type, extents) in shapes.items():
            if any(extent < 0 for extent in extents):
                raise LibraryError(f"The shape of output '{name}' is known only after a run.")
            dtype = onnx.helper.tensor_dtype_to_np_dtype(data_type)
            self._outputs[name] = numpy.zeros(extents, dtype)
        self._output_descriptors = _describe(self._outputs)
        return self._outputs

    def run(self):
        """One run with what bind prepared, complete when it returns."""
        status = self._set_and_run(
            self._handle,
            len(self._inputs),
            self._input_descriptors,
            len(self._outputs),
            self._output_descriptors,
            self._fence_pointer,
        )
        if status != _SUCCESS:
            self._library._check(status, "starting the run")
        event = ctypes.c_void_p(self._fence.event)
        status = self._wait(event)
        if status != _SUCCESS:
            self._library._check(status, "running")
        self._release(event)
