# SPDX-License-Identifier: Apache-2.0
"""The C interface as ctypes: structures, numbers and signatures of include/onnx and include/onnxifi.

The only Python file that knows them; tests/interface_test.py compares it with the headers. Names are
those of C without the prefix ONNXIFI_ or ONNXIFI_SDK_.
"""

import ctypes

DATATYPE_STRING = 8

BACKEND_NAME = 1
BACKEND_EXTENSIONS = 4
BACKEND_DEVICE = 5
BACKEND_DEVICE_TYPE = 6
BACKEND_OPSET_VERSION = 8
BACKEND_GRAPH_INIT_PROPERTIES = 13
BACKEND_MEMORY_SIZE = 20

DEVICE_TYPES = {
    "NPU": 0x01, "DSP": 0x02, "GPU": 0x04, "CPU": 0x08, "FPGA": 0x10, "HETEROGENEOUS": 0x20,
}

GRAPH_PROPERTIES = {
    "BASE_FOLDER": 1 << 48,
    "PROFILE": 1 << 49,
    "VALUES": 1 << 50,
    "FAST_ALGORITHMS": 1 << 51,
    "MAPPED_MODEL": 1 << 52,
    "CALLER_RUNS": 1 << 53,
    "LASTING_MODEL": 1 << 54,
    "PRECISION": 1 << 55,
    "DYNAMIC_QUANTIZATION": 1 << 58,
    "MEASURE": 1 << 60,
    "PLACEMENT": 1 << 61,
    "FALLBACK": 1 << 62,
}
PRECISIONS = {"FLOAT32": 0, "TF32": 1, "BFLOAT16": 2, "FLOAT16": 3}
PLACEMENTS = {"AUTO": 0, "PREFER": 1, "STRICT": 2, "PLAN": 3}

MEMORY_TYPE_CPU = 0
MEMORY_TYPE_CUDA_BUFFER = 1
TAG_TENSOR_DESCRIPTOR_V1 = 0x43DFBF69
TAG_MEMORY_FENCE_V1 = 0x23E08AAB
EVENT_STATE_SIGNALLED = 0x3395

VALUE_NOTHING, VALUE_TENSOR, VALUE_SEQUENCE, VALUE_MAP = range(4)
NODE_WORK, NODE_GIVEN = range(2)
VERDICT_LOADED = 0

_SIZE_POINTER = ctypes.POINTER(ctypes.c_size_t)
_EXTENTS = ctypes.POINTER(ctypes.c_int64)


class TensorDescriptorV1(ctypes.Structure):
    _fields_ = [
        ("tag", ctypes.c_int32),
        ("name", ctypes.c_char_p),
        ("dataType", ctypes.c_uint64),
        ("memoryType", ctypes.c_uint64),
        ("dimensions", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
        ("buffer", ctypes.c_uint64),
    ]


class MemoryFenceV1(ctypes.Structure):
    _fields_ = [
        ("tag", ctypes.c_int32),
        ("type", ctypes.c_uint64),
        # In C a union of this event with what no library has.
        ("event", ctypes.c_void_p),
    ]


class String(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size_bytes", ctypes.c_size_t)]


class _Sized(ctypes.Structure):
    """A structure that begins with its size in bytes; a library of another version may know fewer fields."""

    def tell(self, name, otherwise):
        """The field, or `otherwise` where it lies beyond the size."""
        field = getattr(type(self), name)
        if field.offset + field.size > self.struct_size:
            return otherwise
        return getattr(self, name)


class Value(_Sized):
    pass


Value._fields_ = [
    ("struct_size", ctypes.c_size_t),
    ("name", ctypes.c_char_p),
    ("kind", ctypes.c_uint32),
    ("data_type", ctypes.c_uint64),
    ("rank", ctypes.c_uint32),
    ("extents", _EXTENTS),
    ("data", ctypes.c_void_p),
    ("data_size_bytes", ctypes.c_size_t),
    ("strings", ctypes.POINTER(String)),
    ("element_count", ctypes.c_size_t),
    ("elements", ctypes.POINTER(ctypes.POINTER(Value))),
]


class TensorShape(_Sized):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("data_type", ctypes.c_uint64),
        ("rank", ctypes.c_uint32),
        ("extents", _EXTENTS),
        ("has_rank", ctypes.c_uint32),
    ]


class NodeVerdict(_Sized):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("node_index", ctypes.c_uint32),
        ("status", ctypes.c_int32),
        ("node_name", ctypes.c_char_p),
        ("domain", ctypes.c_char_p),
        ("operator_type", ctypes.c_char_p),
        ("opset_version", ctypes.c_int64),
        ("subject_kind", ctypes.c_uint32),
        ("subject", ctypes.c_char_p),
        ("sentence", ctypes.c_char_p),
        ("limit", ctypes.c_char_p),
    ]


class DeviceAnswer(_Sized):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("device_index", ctypes.c_uint32),
        ("device_key", ctypes.c_char_p),
        ("status", ctypes.c_int32),
        ("sentence", ctypes.c_char_p),
        ("nodes", ctypes.c_uint32),
        ("physical_device", ctypes.c_uint64),
    ]


class NodeAnswer(_Sized):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("device_index", ctypes.c_uint32),
        ("role", ctypes.c_uint32),
        ("placement", ctypes.c_char_p),
        ("verdict", ctypes.POINTER(NodeVerdict)),
        ("reason", ctypes.c_uint32),
    ]


class StepRecord(_Sized):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("step_index", ctypes.c_uint32),
        ("node_index", ctypes.c_int64),
        ("family", ctypes.c_char_p),
        ("implementation", ctypes.c_char_p),
        ("detail", ctypes.c_char_p),
        ("data_type", ctypes.c_uint64),
        ("rank", ctypes.c_uint32),
        ("extents", _EXTENTS),
        ("rejected_count", ctypes.c_uint32),
        ("rejected", ctypes.POINTER(ctypes.c_char_p)),
        ("start_ns", ctypes.c_uint64),
        ("duration_ns", ctypes.c_uint64),
        ("flops", ctypes.c_uint64),
        ("read_bytes", ctypes.c_uint64),
        ("written_bytes", ctypes.c_uint64),
        ("precision", ctypes.c_uint32),
    ]


class DiscoveryRecord(_Sized):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("plugin", ctypes.c_char_p),
        ("path", ctypes.c_char_p),
        ("rule", ctypes.c_char_p),
        ("verdict", ctypes.c_uint32),
        ("sentence", ctypes.c_char_p),
        ("detail", ctypes.c_char_p),
        ("priority", ctypes.c_int32),
        ("device_count", ctypes.c_uint32),
        ("microseconds", ctypes.c_uint64),
    ]


class PlanIsland(_Sized):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("island_index", ctypes.c_uint32),
        ("device_key", ctypes.c_char_p),
        ("node_count", ctypes.c_uint32),
        ("nodes", ctypes.POINTER(ctypes.c_uint32)),
        ("after_count", ctypes.c_uint32),
        ("after", ctypes.POINTER(ctypes.c_uint32)),
        ("estimated_start_ns", ctypes.c_uint64),
        ("estimated_duration_ns", ctypes.c_uint64),
        ("measured_start_ns", ctypes.c_uint64),
        ("measured_duration_ns", ctypes.c_uint64),
        ("copies", ctypes.c_uint64),
    ]


class DeviceNodes(_Sized):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("device_key", ctypes.c_char_p),
        ("node_count", ctypes.c_uint32),
        ("nodes", ctypes.POINTER(ctypes.c_uint32)),
    ]


class Placement(_Sized):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("kind", ctypes.c_uint32),
        ("device_count", ctypes.c_uint32),
        ("device_keys", ctypes.POINTER(ctypes.c_char_p)),
        ("group_count", ctypes.c_uint32),
        ("groups", ctypes.POINTER(ctypes.POINTER(DeviceNodes))),
    ]


def callback_of(structure):
    """The type of a callback that gets a pointer to the structure."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(structure))


ShapeCallback = callback_of(TensorShape)
# Gets the address of a Value.
ValueCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
DeviceAnswerCallback = callback_of(DeviceAnswer)
NodeAnswerCallback = callback_of(NodeAnswer)
StepCallback = callback_of(StepRecord)
DiscoveryCallback = callback_of(DiscoveryRecord)
IslandCallback = callback_of(PlanIsland)
CutCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)

_HANDLE, _TO, _COUNT = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32

# By name: the types of the arguments. What is written to is any pointer.
FUNCTIONS = {
    "onnxGetBackendIDs": (_TO, _SIZE_POINTER),
    "onnxGetBackendInfo": (_HANDLE, ctypes.c_int32, _TO, _SIZE_POINTER),
    "onnxGetBackendCompatibility": (_HANDLE, ctypes.c_size_t, _TO),
    "onnxInitBackend": (_HANDLE, _TO, _TO),
    "onnxReleaseBackend": (_HANDLE,),
    "onnxInitEvent": (_HANDLE, _TO),
    "onnxSignalEvent": (_HANDLE,),
    "onnxGetEventState": (_HANDLE, _TO),
    "onnxWaitEvent": (_HANDLE,),
    "onnxReleaseEvent": (_HANDLE,),
    "onnxInitGraph": (_HANDLE, _TO, ctypes.c_size_t, _TO, _COUNT, _TO, _TO),
    "onnxRunGraph": (_HANDLE, _TO, _TO),
    "onnxReleaseGraph": (_HANDLE,),
    "onnxGetExtensionFunctionAddress": (_HANDLE, ctypes.c_char_p, _TO),
}

# The same of extensions, which onnxGetExtensionFunctionAddress finds.
EXTENSIONS = {
    "onnxGetLastErrorMessage": (_TO, _SIZE_POINTER),
    "onnxGetBackendKey": (_HANDLE, _TO, _SIZE_POINTER),
    "onnxGetBackendValueCompatibility": (_HANDLE, ctypes.c_size_t, _TO),
    "onnxExplainModelOnDevices": (
        _TO, ctypes.c_size_t, _TO, DeviceAnswerCallback, NodeAnswerCallback, _TO,
    ),
    "onnxInferOutputShapes": (_HANDLE, _COUNT, _TO, ShapeCallback, _TO),
    "onnxSetIOAndRunGraph": (_HANDLE, _COUNT, _TO, _COUNT, _TO, _TO),
    "onnxWaitEventFor": (_HANDLE, _COUNT, _TO, _TO, _TO, _SIZE_POINTER),
    "onnxSetGraphValues": (_HANDLE, _COUNT, _TO, _COUNT, _TO, _COUNT, _TO),
    "onnxGetRunValues": (_HANDLE, ValueCallback, _TO),
    "onnxGetGraphProfile": (_HANDLE, StepCallback, _TO),
    "onnxGetGraphPlan": (_HANDLE, IslandCallback, CutCallback, _TO),
    "onnxGetDiscoveryReport": (DiscoveryCallback, _TO),
}


def text_of(content):
    return content.decode(errors="replace") if content else ""
