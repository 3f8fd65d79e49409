/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ONNX Interface for Framework Integration, version 1.0: the C interface that a framework
 * calls, that libonnxifi offers and that every plugin exports. Valid C89 (with <stdint.h>) and
 * valid C++; the layout is that of ONNX 1.4 to 1.12.
 *
 * Strings are UTF-8 and NUL-terminated, sizes are in bytes unless a comment says otherwise, and a
 * NULL handle is never valid. Each function lists the status codes it can answer besides SUCCESS.
 */

#ifndef ONNXIFI_H
#define ONNXIFI_H 1

/* Calling convention. */
#if defined(_WIN32) && defined(_M_IX86)
#define ONNXIFI_ABI __stdcall
#elif defined(__i386__)
#define ONNXIFI_ABI __attribute__((__cdecl__))
#else
#define ONNXIFI_ABI
#endif

/* Export of the functions; a build may define it beforehand. */
#ifndef ONNXIFI_PUBLIC
#if defined(__ELF__) || defined(__MACH__)
#define ONNXIFI_PUBLIC __attribute__((__visibility__("default")))
#elif defined(_WIN32) && defined(__GNUC__)
#ifdef ONNXIFI_BUILD_LIBRARY
#define ONNXIFI_PUBLIC __attribute__((__dllexport__))
#else
#define ONNXIFI_PUBLIC __attribute__((__dllimport__))
#endif
#elif defined(_WIN32)
#ifdef ONNXIFI_BUILD_LIBRARY
#define ONNXIFI_PUBLIC __declspec(dllexport)
#else
#define ONNXIFI_PUBLIC __declspec(dllimport)
#endif
#else
#define ONNXIFI_PUBLIC
#endif
#endif

/* Makes the compiler point at an ignored status; a build may define it beforehand. */
#ifndef ONNXIFI_CHECK_RESULT
#if defined(__GNUC__) && (__GNUC__ >= 4)
#define ONNXIFI_CHECK_RESULT __attribute__((__warn_unused_result__))
#elif defined(_MSC_VER) && (_MSC_VER >= 1700)
#define ONNXIFI_CHECK_RESULT _Check_return_
#else
#define ONNXIFI_CHECK_RESULT
#endif
#endif

#include <stddef.h>

#ifndef ONNXIFI_NO_STDINT_H
#if defined(_MSC_VER) && (_MSC_VER < 1600)
typedef signed __int8 int8_t;
typedef unsigned __int8 uint8_t;
typedef signed __int16 int16_t;
typedef unsigned __int16 uint16_t;
typedef signed __int32 int32_t;
typedef unsigned __int32 uint32_t;
typedef signed __int64 int64_t;
typedef unsigned __int64 uint64_t;
#else
#include <stdint.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Scalar types ---- */

/* One software-plus-device combination; the same value for the life of the process. */
typedef void* onnxBackendID;
typedef void* onnxBackend;
typedef void* onnxGraph;
typedef void* onnxEvent;

typedef int32_t onnxStatus;
typedef int32_t onnxEventState;
/* Selects what onnxGetBackendInfo answers. */
typedef int32_t onnxBackendInfo;
/* The low 32 bits are the standard's, the high 32 bits a vendor's, in both of the following. */
typedef uint64_t onnxEnum;
typedef uint64_t onnxBitfield;
/* An address or a handle of device memory, 64 bits wide on every platform. */
typedef uint64_t onnxPointer;

/* ---- Status codes ---- */

#define ONNXIFI_STATUS_SUCCESS 0x0000
#define ONNXIFI_STATUS_FALLBACK 0x0001
/* An argument is malformed or unknown. */
#define ONNXIFI_STATUS_INVALID_ID 0x0101
#define ONNXIFI_STATUS_INVALID_SIZE 0x0102
#define ONNXIFI_STATUS_INVALID_POINTER 0x0103
#define ONNXIFI_STATUS_INVALID_PROTOBUF 0x0104
#define ONNXIFI_STATUS_INVALID_MODEL 0x0105
#define ONNXIFI_STATUS_INVALID_BACKEND 0x0106
#define ONNXIFI_STATUS_INVALID_GRAPH 0x0107
#define ONNXIFI_STATUS_INVALID_EVENT 0x0108
#define ONNXIFI_STATUS_INVALID_STATE 0x0109
#define ONNXIFI_STATUS_INVALID_NAME 0x010A
#define ONNXIFI_STATUS_INVALID_SHAPE 0x010B
#define ONNXIFI_STATUS_INVALID_DATATYPE 0x010C
#define ONNXIFI_STATUS_INVALID_MEMORY_TYPE 0x010D
#define ONNXIFI_STATUS_INVALID_MEMORY_LOCATION 0x010E
#define ONNXIFI_STATUS_INVALID_FENCE_TYPE 0x010F
#define ONNXIFI_STATUS_INVALID_PROPERTY 0x0110
/* Well-formed, but beyond this backend. */
#define ONNXIFI_STATUS_UNSUPPORTED_TAG 0x0201
#define ONNXIFI_STATUS_UNSUPPORTED_VERSION 0x0202
#define ONNXIFI_STATUS_UNSUPPORTED_OPERATOR 0x0203
#define ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE 0x0204
#define ONNXIFI_STATUS_UNSUPPORTED_SHAPE 0x0205
#define ONNXIFI_STATUS_UNSUPPORTED_DATATYPE 0x0206
#define ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE 0x0207
#define ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE 0x0208
#define ONNXIFI_STATUS_UNSUPPORTED_PROPERTY 0x0209
/* Arguments disagree with the model or with each other. */
#define ONNXIFI_STATUS_UNIDENTIFIED_NAME 0x0301
#define ONNXIFI_STATUS_MISMATCHING_SHAPE 0x0302
#define ONNXIFI_STATUS_MISMATCHING_DATATYPE 0x0303
/* Resources and internal faults. */
#define ONNXIFI_STATUS_NO_SYSTEM_MEMORY 0x0401
#define ONNXIFI_STATUS_NO_DEVICE_MEMORY 0x0402
#define ONNXIFI_STATUS_NO_SYSTEM_RESOURCES 0x0403
#define ONNXIFI_STATUS_NO_DEVICE_RESOURCES 0x0404
#define ONNXIFI_STATUS_BACKEND_UNAVAILABLE 0x0405
#define ONNXIFI_STATUS_INTERNAL_ERROR 0x0406

/* ---- Event states ---- */

#define ONNXIFI_EVENT_STATE_INVALID 0
#define ONNXIFI_EVENT_STATE_NONSIGNALLED 0x16BD
#define ONNXIFI_EVENT_STATE_SIGNALLED 0x3395

/* ---- Device types: the value of ONNXIFI_BACKEND_DEVICE_TYPE ---- */

#define ONNXIFI_DEVICE_TYPE_NPU 0x01
#define ONNXIFI_DEVICE_TYPE_DSP 0x02
#define ONNXIFI_DEVICE_TYPE_GPU 0x04
#define ONNXIFI_DEVICE_TYPE_CPU 0x08
#define ONNXIFI_DEVICE_TYPE_FPGA 0x10
#define ONNXIFI_DEVICE_TYPE_HETEROGENEOUS 0x20

/* ---- Capabilities: bits of ONNXIFI_BACKEND_CAPABILITIES ---- */

/* Objects may be used from any thread; without it, only from the one that made the backend. */
#define ONNXIFI_CAPABILITY_THREAD_SAFE 0x01
/* The outermost dimension of graph inputs and outputs may be symbolic. */
#define ONNXIFI_CAPABILITY_SYMBOLIC_BATCH_SIZE 0x02
/* Any dimension of graph inputs and outputs may be symbolic. */
#define ONNXIFI_CAPABILITY_SYMBOLIC_SIZE_TENSORS 0x04
/* The outermost dimension of an output may depend on data; the descriptor gives an upper bound. */
#define ONNXIFI_CAPABILITY_VARIABLE_BATCH_SIZE 0x08
/* Whole output shapes may depend on data; the descriptor gives an upper bound. */
#define ONNXIFI_CAPABILITY_VARIABLE_SIZE_OUTPUTS 0x10
/* The device may vanish; calls then answer ONNXIFI_STATUS_BACKEND_UNAVAILABLE. */
#define ONNXIFI_CAPABILITY_HOT_PLUGGABLE 0x20

/* ---- Information queries; the type of the value is in the comment ---- */

/* uint64_t: major version in the high, minor in the low 32 bits. */
#define ONNXIFI_BACKEND_ONNXIFI_VERSION 0
/* char[]: product name without the vendor. */
#define ONNXIFI_BACKEND_NAME 1
/* char[] */
#define ONNXIFI_BACKEND_VENDOR 2
/* char[]: software version, US-ASCII. */
#define ONNXIFI_BACKEND_VERSION 3
/* char[]: extension names separated by single spaces. */
#define ONNXIFI_BACKEND_EXTENSIONS 4
/* char[]: device model name. */
#define ONNXIFI_BACKEND_DEVICE 5
/* onnxEnum: ONNXIFI_DEVICE_TYPE_*. */
#define ONNXIFI_BACKEND_DEVICE_TYPE 6
/* char[]: supported IR versions, e.g. "3 4 5". */
#define ONNXIFI_BACKEND_ONNX_IR_VERSION 7
/* char[]: "domain:highest version" pairs, e.g. "ai.onnx:17 ai.onnx.ml:3". */
#define ONNXIFI_BACKEND_OPSET_VERSION 8
/* onnxBitfield: ONNXIFI_CAPABILITY_*. */
#define ONNXIFI_BACKEND_CAPABILITIES 10
/* onnxBitfield: vendor-specific keys of onnxInitBackend. */
#define ONNXIFI_BACKEND_INIT_PROPERTIES 11
/* onnxBitfield: ONNXIFI_MEMORY_TYPE_*. */
#define ONNXIFI_BACKEND_MEMORY_TYPES 12
/* onnxBitfield: vendor-specific keys of onnxInitGraph. */
#define ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES 13
/* onnxBitfield: ONNXIFI_SYNCHRONIZATION_*. */
#define ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES 14
/* uint64_t: bytes the backend can use at most. */
#define ONNXIFI_BACKEND_MEMORY_SIZE 20
/* uint64_t: largest total size of network parameters, bytes. */
#define ONNXIFI_BACKEND_MAX_GRAPH_SIZE 21
/* uint64_t: how many graphs can exist at once. */
#define ONNXIFI_BACKEND_MAX_GRAPH_COUNT 22
/* uint64_t: FP32 multiply-accumulates per second. */
#define ONNXIFI_BACKEND_MACS_FP32 30
/* uint64_t: FP16 multiply-accumulates per second. */
#define ONNXIFI_BACKEND_MACS_FP16 31
/* uint64_t: device memory, bytes per second. */
#define ONNXIFI_BACKEND_MEMORY_BANDWIDTH 35
/* uint64_t: CPU memory to device, bytes per second. */
#define ONNXIFI_BACKEND_CPU_MEMORY_READ_BANDWIDTH 36
/* uint64_t: device to CPU memory, bytes per second. */
#define ONNXIFI_BACKEND_CPU_MEMORY_WRITE_BANDWIDTH 37
/* uint64_t */
#define ONNXIFI_BACKEND_PCI_BUS_ID 40
/* uint64_t */
#define ONNXIFI_BACKEND_PCI_DEVICE_ID 41
/* uint64_t: PCI domain/function. */
#define ONNXIFI_BACKEND_PCI_DOMAIN_ID 42
/* LUID (8 bytes) */
#define ONNXIFI_BACKEND_DIRECTX_ID 43
/* uint64_t: CUDA device ordinal. */
#define ONNXIFI_BACKEND_CUDA_INDEX 44
/* cl_platform_id */
#define ONNXIFI_BACKEND_OPENCL_PLATFORM_ID 45
/* cl_device_id */
#define ONNXIFI_BACKEND_OPENCL_DEVICE_ID 46

/* ---- Element types: numerically ONNX TensorProto.DataType ---- */

#define ONNXIFI_DATATYPE_UNDEFINED 0
#define ONNXIFI_DATATYPE_FLOAT32 1
#define ONNXIFI_DATATYPE_UINT8 2
#define ONNXIFI_DATATYPE_INT8 3
#define ONNXIFI_DATATYPE_UINT16 4
#define ONNXIFI_DATATYPE_INT16 5
#define ONNXIFI_DATATYPE_INT32 6
#define ONNXIFI_DATATYPE_INT64 7
#define ONNXIFI_DATATYPE_FLOAT16 10
#define ONNXIFI_DATATYPE_FLOAT64 11
#define ONNXIFI_DATATYPE_UINT32 12
#define ONNXIFI_DATATYPE_UINT64 13
#define ONNXIFI_DATATYPE_COMPLEX64 14
#define ONNXIFI_DATATYPE_COMPLEX128 15
#define ONNXIFI_DATATYPE_BFLOAT16 16

/* ---- Memory types: what a descriptor's buffer is ---- */

/* Address of cacheable CPU memory; always supported. */
#define ONNXIFI_MEMORY_TYPE_CPU 0
/* CUDA device address. */
#define ONNXIFI_MEMORY_TYPE_CUDA_BUFFER 1
/* cl_mem of a buffer in the context given with ONNXIFI_BACKEND_OPENCL_CONTEXT. */
#define ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER 2
/* Name of a 2-D texture. */
#define ONNXIFI_MEMORY_TYPE_OPENGLES_TEXTURE_2D 4
#define ONNXIFI_MEMORY_TYPE_D3D_RESOURCE 8

/* ---- Synchronisation types: what a fence is ---- */

/* Single-shot onnxEvent; always supported. */
#define ONNXIFI_SYNCHRONIZATION_EVENT 0
/* Ordering comes from something shared outside the call, such as one CUDA stream. */
#define ONNXIFI_SYNCHRONIZATION_IMPLICIT 2

/* ---- Properties of onnxInitBackend: a list of key, value, key, value, ..., 0 ---- */

/* Ends the list. */
#define ONNXIFI_BACKEND_PROPERTY_NONE 0
/* Value: ONNXIFI_OPTIMIZATION_*. */
#define ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION 1
/* Value: ONNXIFI_LOG_LEVEL_*; WARNING without it. */
#define ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL 2
/* Value: a cudaStream_t or CUstream cast to uint64_t. */
#define ONNXIFI_BACKEND_CUDA_STREAM 4
/* Value: a cl_context cast to uint64_t. */
#define ONNXIFI_BACKEND_OPENCL_CONTEXT 8

/* ---- Properties of onnxInitGraph ---- */

/* Ends the list. */
#define ONNXIFI_GRAPH_PROPERTY_NONE 0

/* ---- Optimisation targets ---- */

#define ONNXIFI_OPTIMIZATION_HIGH_THROUGHPUT 0
#define ONNXIFI_OPTIMIZATION_LOW_LATENCY 1
#define ONNXIFI_OPTIMIZATION_LOW_POWER 2
#define ONNXIFI_OPTIMIZATION_LOW_DELAY 3

/* ---- Log levels: a larger number logs less ---- */

#define ONNXIFI_LOG_LEVEL_ERROR 4
#define ONNXIFI_LOG_LEVEL_WARNING 3
#define ONNXIFI_LOG_LEVEL_INFO 2
#define ONNXIFI_LOG_LEVEL_DEBUG 1

/* ---- Structures ---- */

#define ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1 0x43DFBF69
#define ONNXIFI_TAG_MEMORY_FENCE_V1 0x23E08AAB

/* A dense, row-major tensor, outermost dimension first. Only the buffer outlives the call. */
typedef struct onnxTensorDescriptorV1 {
  /* ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1; read before any other field. */
  int32_t tag;
  /* Name of a graph input or output, matched exactly. */
  const char* name;
  onnxEnum dataType;
  onnxEnum memoryType;
  /* Rank; 0 for a scalar. */
  uint32_t dimensions;
  /* `dimensions` extents; may be NULL for a scalar. */
  const uint64_t* shape;
  onnxPointer buffer;
} onnxTensorDescriptorV1;

#if defined(__GNUC__)
/* Unnamed unions are part of the layout; this keeps -pedantic quiet about them. */
#define ONNXIFI_UNNAMED_ __extension__
#else
#define ONNXIFI_UNNAMED_
#endif

/* Says when inputs may be read or when outputs are complete. */
typedef struct onnxMemoryFenceV1 {
  /* ONNXIFI_TAG_MEMORY_FENCE_V1; read before any other field. */
  int32_t tag;
  onnxEnum type;
  ONNXIFI_UNNAMED_ union {
    /* For ONNXIFI_SYNCHRONIZATION_EVENT. */
    onnxEvent event;
  };
} onnxMemoryFenceV1;

/* ---- Function types ---- */

typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetBackendIDsFunction)(
    onnxBackendID* backendIDs, size_t* numBackends);
typedef onnxStatus(ONNXIFI_ABI* onnxReleaseBackendIDFunction)(onnxBackendID backendID);
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetBackendInfoFunction)(
    onnxBackendID backendID, onnxBackendInfo infoType, void* infoValue, size_t* infoValueSize);
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetBackendCompatibilityFunction)(
    onnxBackendID backendID, size_t onnxModelSize, const void* onnxModel);
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxInitBackendFunction)(
    onnxBackendID backendID, const uint64_t* auxPropertiesList, onnxBackend* backend);
typedef onnxStatus(ONNXIFI_ABI* onnxReleaseBackendFunction)(onnxBackend backend);
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxInitEventFunction)(onnxBackend backend,
                                                                            onnxEvent* event);
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxSignalEventFunction)(onnxEvent event);
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetEventStateFunction)(
    onnxEvent event, onnxEventState* state);
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxWaitEventFunction)(onnxEvent event);
typedef onnxStatus(ONNXIFI_ABI* onnxReleaseEventFunction)(onnxEvent event);
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxInitGraphFunction)(
    onnxBackend backend, const uint64_t* auxPropertiesList, size_t onnxModelSize,
    const void* onnxModel, uint32_t weightsCount, const onnxTensorDescriptorV1* weightDescriptors,
    onnxGraph* graph);
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxSetGraphIOFunction)(
    onnxGraph graph, uint32_t inputsCount, const onnxTensorDescriptorV1* inputDescriptors,
    uint32_t outputsCount, const onnxTensorDescriptorV1* outputDescriptors);
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxRunGraphFunction)(
    onnxGraph graph, const onnxMemoryFenceV1* inputFence, onnxMemoryFenceV1* outputFence);
typedef onnxStatus(ONNXIFI_ABI* onnxReleaseGraphFunction)(onnxGraph graph);

/* ---- Functions ---- */

/*
 * Lists the backends present now. `*numBackends` is the capacity of `backendIDs` in elements on
 * entry and the number of IDs afterwards. With `backendIDs` NULL or too small nothing is stored,
 * the number is written and the answer is FALLBACK.
 * Statuses: FALLBACK, INVALID_POINTER, NO_SYSTEM_MEMORY, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC ONNXIFI_CHECK_RESULT onnxStatus ONNXIFI_ABI
onnxGetBackendIDs(onnxBackendID* backendIDs, size_t* numBackends);

/*
 * Says that the caller no longer needs the ID; its backends, graphs and events are released
 * before.
 * Statuses: INVALID_ID, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC onnxStatus ONNXIFI_ABI onnxReleaseBackendID(onnxBackendID backendID);

/*
 * Answers a query. `*infoValueSize` is the capacity of `infoValue` on entry and the exact size
 * afterwards; the size of a string counts its NUL. With `infoValue` NULL or too small nothing is
 * stored and the answer is FALLBACK.
 * Statuses: FALLBACK, INVALID_ID, INVALID_POINTER, UNSUPPORTED_ATTRIBUTE (unknown query),
 * BACKEND_UNAVAILABLE.
 */
ONNXIFI_PUBLIC ONNXIFI_CHECK_RESULT onnxStatus ONNXIFI_ABI onnxGetBackendInfo(
    onnxBackendID backendID, onnxBackendInfo infoType, void* infoValue, size_t* infoValueSize);

/*
 * Says whether the whole serialised ModelProto would run; the answer does not depend on weight
 * values.
 * Statuses: FALLBACK (runs with a substantial loss), INVALID_ID, INVALID_SIZE, INVALID_POINTER,
 * INVALID_PROTOBUF, INVALID_MODEL, UNSUPPORTED_VERSION, UNSUPPORTED_OPERATOR,
 * UNSUPPORTED_ATTRIBUTE, UNSUPPORTED_SHAPE, UNSUPPORTED_DATATYPE, MISMATCHING_SHAPE,
 * MISMATCHING_DATATYPE, NO_SYSTEM_MEMORY, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC ONNXIFI_CHECK_RESULT onnxStatus ONNXIFI_ABI
onnxGetBackendCompatibility(onnxBackendID backendID, size_t onnxModelSize, const void* onnxModel);

/*
 * Initialises a backend. `auxPropertiesList` may be NULL. `*backend` is NULL after a failure.
 * Statuses: INVALID_ID, INVALID_POINTER, INVALID_PROPERTY, UNSUPPORTED_PROPERTY, NO_SYSTEM_MEMORY,
 * NO_DEVICE_MEMORY, NO_SYSTEM_RESOURCES, NO_DEVICE_RESOURCES, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC ONNXIFI_CHECK_RESULT onnxStatus ONNXIFI_ABI
onnxInitBackend(onnxBackendID backendID, const uint64_t* auxPropertiesList, onnxBackend* backend);

/*
 * Releases a backend; the caller releases its graphs and events before.
 * Statuses: INVALID_BACKEND, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC onnxStatus ONNXIFI_ABI onnxReleaseBackend(onnxBackend backend);

/*
 * Makes a single-shot event, not signalled, for use with graphs of `backend`. `*event` is NULL
 * after a failure.
 * Statuses: INVALID_POINTER, INVALID_BACKEND, NO_SYSTEM_MEMORY, NO_DEVICE_MEMORY,
 * NO_SYSTEM_RESOURCES, NO_DEVICE_RESOURCES, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC ONNXIFI_CHECK_RESULT onnxStatus ONNXIFI_ABI onnxInitEvent(onnxBackend backend,
                                                                         onnxEvent* event);

/*
 * Signals an event: waiters wake and runs that wait for it may start.
 * Statuses: INVALID_EVENT, INVALID_STATE (already signalled), BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC ONNXIFI_CHECK_RESULT onnxStatus ONNXIFI_ABI onnxSignalEvent(onnxEvent event);

/*
 * Writes ONNXIFI_EVENT_STATE_* without blocking; `*state` is INVALID after a failure.
 * Statuses: INVALID_POINTER, INVALID_EVENT, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC ONNXIFI_CHECK_RESULT onnxStatus ONNXIFI_ABI onnxGetEventState(onnxEvent event,
                                                                             onnxEventState* state);

/*
 * Returns once the event is signalled. On the output event of a run that failed it answers that
 * failure.
 * Statuses: INVALID_EVENT, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC ONNXIFI_CHECK_RESULT onnxStatus ONNXIFI_ABI onnxWaitEvent(onnxEvent event);

/*
 * Releases an event made by onnxInitEvent or onnxRunGraph.
 * Statuses: INVALID_EVENT, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC onnxStatus ONNXIFI_ABI onnxReleaseEvent(onnxEvent event);

/*
 * Makes a graph from a serialised ModelProto. Weights are in the model or in descriptors of CPU
 * memory; everything is copied before the call returns. `*graph` is NULL after a failure; FALLBACK
 * comes with a valid graph.
 * Statuses: FALLBACK, INVALID_BACKEND, INVALID_POINTER, INVALID_SIZE, INVALID_PROTOBUF,
 * INVALID_MODEL, INVALID_NAME, INVALID_SHAPE, INVALID_DATATYPE, INVALID_MEMORY_TYPE,
 * INVALID_MEMORY_LOCATION, INVALID_PROPERTY, UNSUPPORTED_TAG, UNSUPPORTED_VERSION,
 * UNSUPPORTED_OPERATOR, UNSUPPORTED_ATTRIBUTE, UNSUPPORTED_SHAPE, UNSUPPORTED_DATATYPE,
 * UNSUPPORTED_MEMORY_TYPE, UNSUPPORTED_PROPERTY, MISMATCHING_SHAPE, MISMATCHING_DATATYPE,
 * NO_SYSTEM_MEMORY, NO_DEVICE_MEMORY, NO_SYSTEM_RESOURCES, NO_DEVICE_RESOURCES,
 * BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC ONNXIFI_CHECK_RESULT onnxStatus ONNXIFI_ABI
onnxInitGraph(onnxBackend backend, const uint64_t* auxPropertiesList, size_t onnxModelSize,
              const void* onnxModel, uint32_t weightsCount,
              const onnxTensorDescriptorV1* weightDescriptors, onnxGraph* graph);

/*
 * Binds memory to the graph's inputs (those that are not weights) and outputs, matched by name,
 * for the following runs. A failed call leaves the graph without a binding. Only the buffers must
 * outlive the call.
 * Statuses: INVALID_GRAPH, INVALID_POINTER, INVALID_SIZE, INVALID_NAME, INVALID_SHAPE,
 * INVALID_DATATYPE, INVALID_MEMORY_TYPE, INVALID_MEMORY_LOCATION, UNSUPPORTED_TAG,
 * UNSUPPORTED_SHAPE, UNSUPPORTED_DATATYPE, UNSUPPORTED_MEMORY_TYPE, UNIDENTIFIED_NAME,
 * MISMATCHING_SHAPE, MISMATCHING_DATATYPE, NO_SYSTEM_MEMORY, NO_DEVICE_MEMORY,
 * NO_SYSTEM_RESOURCES, NO_DEVICE_RESOURCES, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC ONNXIFI_CHECK_RESULT onnxStatus ONNXIFI_ABI onnxSetGraphIO(
    onnxGraph graph, uint32_t inputsCount, const onnxTensorDescriptorV1* inputDescriptors,
    uint32_t outputsCount, const onnxTensorDescriptorV1* outputDescriptors);

/*
 * Starts one run and returns. Inputs are read after the input fence's event is signalled; the call
 * stores a new event in `outputFence->event`, signalled when the outputs are complete, which the
 * caller releases.
 * Statuses: INVALID_GRAPH, INVALID_POINTER, INVALID_EVENT, INVALID_FENCE_TYPE, UNSUPPORTED_TAG,
 * UNSUPPORTED_FENCE_TYPE, UNIDENTIFIED_NAME (no binding), NO_SYSTEM_MEMORY, NO_DEVICE_MEMORY,
 * NO_SYSTEM_RESOURCES, NO_DEVICE_RESOURCES, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC ONNXIFI_CHECK_RESULT onnxStatus ONNXIFI_ABI
onnxRunGraph(onnxGraph graph, const onnxMemoryFenceV1* inputFence, onnxMemoryFenceV1* outputFence);

/*
 * Blocks until the graph's runs have finished, then releases it; their output events stay valid.
 * Statuses: INVALID_GRAPH, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC onnxStatus ONNXIFI_ABI onnxReleaseGraph(onnxGraph graph);

#ifdef __cplusplus
}
#endif

#endif /* ONNXIFI_H */
