/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ONNXIFI SDK's extensions of ONNXIFI: the sentence of the last error, why a node is refused,
 * output shapes, values that are no tensors of numbers, counters, profiles, device keys, what
 * became of each plugin and which device runs what. Plain C89.
 *
 * A library that lists `onnxifi_sdk` in its ONNXIFI_BACKEND_EXTENSIONS query has the functions of
 * this header. None is an exported symbol: each is found by name through
 * onnxGetExtensionFunctionAddress and cast to its type here.
 *
 * Every structure starts with its size in bytes. Fields are only ever added at the end, so a reader
 * may read what lies inside `struct_size` and takes the rest as zero. Where the caller provides the
 * structure, it sets `struct_size` to sizeof and the library writes no byte beyond it.
 *
 * Callbacks run on the calling thread before the function returns; the structures and strings that
 * they get live until the callback returns. A callback calls no ONNXIFI function and does not
 * throw.
 */

#ifndef ONNXIFI_SDK_H
#define ONNXIFI_SDK_H 1

#include "onnx/onnxifi.h"
#include "onnx/onnxifi_ext.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ONNXIFI_SDK_EXTENSION_NAME "onnxifi_sdk"

/* An extent, limit or opset that is not known. */
#define ONNXIFI_SDK_UNKNOWN (-1)

/* ---- Properties of onnxInitGraph ---- */

/*
 * Value: address of a NUL-terminated UTF-8 path, cast to uint64_t: the folder that holds the
 * model's external data. Files outside that folder are refused. The string must live until the call
 * returns. Without it, a model with external data is INVALID_MODEL.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER ((uint64_t)1 << 48)

/*
 * Value: 1 makes every run note what it does for onnxGetGraphProfile; 0 is the default and costs
 * nothing. Any other value is INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE ((uint64_t)1 << 49)

/*
 * Value: 1 says that the caller binds the graph by onnxSetGraphValues, so that its inputs and
 * outputs may be of any kind; 0 is the default: an input or output that no descriptor can carry
 * (strings, a sequence, a map, an optional) makes the answer UNSUPPORTED_DATATYPE. Any other value
 * is INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_VALUES ((uint64_t)1 << 50)

/*
 * Value: 0 has every sum of products computed as its operator defines it; 1 is the default and lets
 * convolutions be computed by algorithms with fewer multiplications, such as Winograd's, whose
 * rounding errors are within 8 times those of the definition. Any other value is INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_FAST_ALGORITHMS ((uint64_t)1 << 51)

/*
 * Value: 1 says that the model's bytes are a private mapping of a file (mmap with MAP_PRIVATE) that
 * nobody has written to. What has been copied out of it is given back to the system, so that a load
 * does not hold every weight twice; read again, the pages show the file as before. 0 is the
 * default. Any other value is INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL ((uint64_t)1 << 52)

/*
 * Value: 1 lets a run whose inputs are complete, while no other run of the graph is under way, be
 * carried out by the thread that calls onnxRunGraph or onnxSetIOAndRunGraph, so that the call may
 * return when the run has finished: for callers who would wait for it there anyway, and spare
 * threads that wake one another. The output event tells of the end as ever. 0 is the default; any
 * other value is INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS ((uint64_t)1 << 53)

/*
 * Value: 1 says that the model's bytes stay where they are, and as they are, until onnxReleaseGraph
 * has returned, so that large weights may be read there in place of copied: a load then takes less
 * time, and less memory. With MAPPED_MODEL pages whose weights were packed into another layout are
 * given back; a mapped file must not be shortened meanwhile. 0 is the default. Any other value is
 * INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL ((uint64_t)1 << 54)

/* ---- Properties of onnxInitBackend ---- */

/*
 * Value: a cl_command_queue cast to uint64_t, in-order, of this backend ID's device, and of the
 * context of ONNXIFI_BACKEND_OPENCL_CONTEXT where that is given too. Everything that the backend
 * does on the device goes through it, so that fences may be ONNXIFI_SYNCHRONIZATION_IMPLICIT:
 *
 * - With an implicit input fence a run reads its inputs after whatever was in the queue when
 *   onnxRunGraph was called.
 * - With implicit fences on both sides the run is in the queue when onnxRunGraph returns, and what
 *   is put into the queue afterwards finds the outputs. Nobody waits, unless the graph has numbers
 *   that shape what follows (loops, shapes that depend on data), or values. Runs of the graph whose
 *   events have not started them yet are waited for first. Errors that come after the call has
 *   returned are the queue's.
 * - An implicit output fence after an input event is UNSUPPORTED_FENCE_TYPE.
 *
 * The backend holds a reference until it is released. A queue that is none of these is
 * INVALID_PROPERTY; a value that is no queue at all cannot be told from one.
 */
#define ONNXIFI_SDK_BACKEND_PROPERTY_OPENCL_QUEUE ((uint64_t)1 << 56)

/* ---- Element types newer than the interface; numerically ONNX TensorProto.DataType ---- */

#define ONNXIFI_SDK_DATATYPE_BOOL 9
#define ONNXIFI_SDK_DATATYPE_FLOAT8E4M3FN 17
#define ONNXIFI_SDK_DATATYPE_FLOAT8E4M3FNUZ 18
#define ONNXIFI_SDK_DATATYPE_FLOAT8E5M2 19
#define ONNXIFI_SDK_DATATYPE_FLOAT8E5M2FNUZ 20
#define ONNXIFI_SDK_DATATYPE_UINT4 21
#define ONNXIFI_SDK_DATATYPE_INT4 22
#define ONNXIFI_SDK_DATATYPE_FLOAT4E2M1 23
#define ONNXIFI_SDK_DATATYPE_FLOAT8E8M0 24

/* In an onnxValue only: no descriptor carries strings. */
#define ONNXIFI_SDK_DATATYPE_STRING 8

/* ---- Last error ---- */

/*
 * Gives the sentence of the last call that failed on this thread, with its context lines; empty if
 * none failed. `*messageSize` is the capacity of `message` on entry and the exact size with the NUL
 * afterwards; with `message` NULL or too small nothing is stored and the answer is FALLBACK.
 * The text lasts until the next failing call on this thread. Found with a NULL ID.
 * Statuses: FALLBACK, INVALID_POINTER (messageSize NULL), INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetLastErrorMessageFunction)(
    char* message, size_t* messageSize);

/* ---- Explain: why a model runs or does not, node by node ---- */

/* What part of a node `subject` of a verdict names. */
#define ONNXIFI_SDK_SUBJECT_NONE 0
#define ONNXIFI_SDK_SUBJECT_OPERATOR 1
#define ONNXIFI_SDK_SUBJECT_VERSION 2
#define ONNXIFI_SDK_SUBJECT_ATTRIBUTE 3
/* Name of an input or output, and in the following two what about it. */
#define ONNXIFI_SDK_SUBJECT_INPUT 4
#define ONNXIFI_SDK_SUBJECT_OUTPUT 5
#define ONNXIFI_SDK_SUBJECT_DATATYPE 6
#define ONNXIFI_SDK_SUBJECT_DIMENSION 7

typedef struct onnxNodeVerdict {
  size_t struct_size;
  /* Position in graph.node of the main graph; nodes of sub-graphs report under their owner. */
  uint32_t node_index;
  /* ONNXIFI_STATUS_SUCCESS when the node runs, else the class of the reason. */
  onnxStatus status;
  /* As in the model; empty when the model leaves it out. */
  const char* node_name;
  /* "ai.onnx" for the default domain. */
  const char* domain;
  const char* operator_type;
  /* Version of the domain's operator set; ONNXIFI_SDK_UNKNOWN when the model imports none. */
  int64_t opset_version;
  /* ONNXIFI_SDK_SUBJECT_*; and the attribute, input or output concerned, empty if none. */
  uint32_t subject_kind;
  const char* subject;
  /* Full sentence with the actual value and the limit; empty when the node runs. */
  const char* sentence;
  /* The limit by itself, e.g. "7"; empty if there is none. */
  const char* limit;
} onnxNodeVerdict;

typedef void(ONNXIFI_ABI* onnxNodeVerdictCallback)(void* context, const onnxNodeVerdict* verdict);

/*
 * Calls `callback` for every node in order, and for a node with several reasons once per reason.
 * Answers what onnxGetBackendCompatibility answers for the same bytes. Where the model cannot be
 * read, there is the answer and no node. libonnxifi asks plain ONNXIFI 1.0 plugins about models of
 * one node, tells what it asked, and no node where none is refused as the whole model is.
 * Statuses: those of onnxGetBackendCompatibility.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxExplainModelFunction)(
    onnxBackendID backendID, size_t onnxModelSize, const void* onnxModel,
    onnxNodeVerdictCallback callback, void* context);

/* ---- Explain on every device in one call (libonnxifi only) ---- */

/* How a device's answers about nodes were found. */
#define ONNXIFI_SDK_NODES_EXPLAINED 0
/* Its plugin knows ONNXIFI 1.0 only and was asked about a model of each node by itself. */
#define ONNXIFI_SDK_NODES_ASKED_ALONE 1
/* There are none: the model cannot be read or cut, and the plugin does not explain. */
#define ONNXIFI_SDK_NODES_NOT_TOLD 2

typedef struct onnxDeviceAnswer {
  size_t struct_size;
  /* Counted from 0 in the order of onnxGetBackendIDs, the auto device left out. */
  uint32_t device_index;
  /* As of onnxGetBackendKey, e.g. "cpu:0". */
  const char* device_key;
  /* What onnxGetBackendCompatibility answers for the whole model; its sentence, empty for SUCCESS
   * and FALLBACK. */
  onnxStatus status;
  const char* sentence;
  /* ONNXIFI_SDK_NODES_*. */
  uint32_t nodes;
} onnxDeviceAnswer;

/* What a node is to the devices. */
#define ONNXIFI_SDK_NODE_WORK 0
/* A constant, a shape that the model fixes, or what nobody reads: no device is asked about it, and
 * its status is SUCCESS. Where it is needed, it belongs to every device that reads it. */
#define ONNXIFI_SDK_NODE_GIVEN 1

typedef struct onnxNodeAnswer {
  size_t struct_size;
  uint32_t device_index;
  /* ONNXIFI_SDK_NODE_*. */
  uint32_t role;
  /* The device that the model names for the node, as an entry "onnxifi.device" of its metadata;
   * empty if none. The auto device gives the node to no other, whatever they answer. */
  const char* placement;
  const onnxNodeVerdict* verdict;
  /* The reasons of a call are counted from 1; 0 where the node runs. Equal where the status is, and
   * the first line of the sentence but for names of the node and of what it reads and makes, on
   * whatever device. */
  uint32_t reason;
} onnxNodeAnswer;

typedef void(ONNXIFI_ABI* onnxDeviceAnswerCallback)(void* context, const onnxDeviceAnswer* answer);
typedef void(ONNXIFI_ABI* onnxNodeAnswerCallback)(void* context, const onnxNodeAnswer* answer);

/*
 * Asks every device but auto about the model and each node of it by what the auto device plans by:
 * with all shapes that the model tells, once for all nodes of a kind, remembering what was
 * answered. Calls `deviceCallback` for each device in order, and after each `nodeCallback` for
 * every node of the main graph in order, for a node with several reasons once per reason. Where a
 * model cannot be cut, the nodes are those that the device's own onnxExplainModel tells. What is
 * wrong with the model is in the devices' answers. Found with a NULL ID.
 *
 * `auxPropertiesList`: as of onnxInitGraph; NULL for none. ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER
 * is taken: small tensors that lie there, which may be extents or axes, are read. Without it they
 * are asked about by their types. Statuses: INVALID_SIZE, INVALID_POINTER, INVALID_PROPERTY,
 * UNSUPPORTED_PROPERTY, NO_SYSTEM_MEMORY, INTERNAL_ERROR; INVALID_MODEL where tensors in that
 * folder cannot be read.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxExplainModelOnDevicesFunction)(
    const uint64_t* auxPropertiesList, size_t onnxModelSize, const void* onnxModel,
    onnxDeviceAnswerCallback deviceCallback, onnxNodeAnswerCallback nodeCallback, void* context);

/* ---- Shapes of outputs ---- */

typedef struct onnxTensorShape {
  size_t struct_size;
  const char* name;
  onnxEnum data_type;
  /* `rank` extents; one that depends on data is ONNXIFI_SDK_UNKNOWN. */
  uint32_t rank;
  const int64_t* extents;
  /* 0 when not even the rank is known; `rank` is 0 then. */
  uint32_t has_rank;
} onnxTensorShape;

typedef void(ONNXIFI_ABI* onnxTensorShapeCallback)(void* context, const onnxTensorShape* shape);

/*
 * Calls `callback` for every output in the model's order with the shape it has for inputs of the
 * given shapes; buffers of the descriptors are not read and may be 0.
 * Statuses: INVALID_GRAPH, INVALID_POINTER, INVALID_NAME, INVALID_SHAPE, INVALID_DATATYPE,
 * UNSUPPORTED_TAG, UNSUPPORTED_SHAPE, UNSUPPORTED_DATATYPE, UNIDENTIFIED_NAME, MISMATCHING_SHAPE,
 * MISMATCHING_DATATYPE, NO_SYSTEM_MEMORY, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxInferOutputShapesFunction)(
    onnxGraph graph, uint32_t inputsCount, const onnxTensorDescriptorV1* inputDescriptors,
    onnxTensorShapeCallback callback, void* context);

/*
 * Calls `callback` for every output of the run that signalled `outputEvent`, with the shape in
 * which its data lie in the buffer. Does not wait. Statuses: INVALID_EVENT (also for an event that
 * no run made), INVALID_POINTER, INVALID_STATE (not signalled yet), NO_SYSTEM_MEMORY,
 * BACKEND_UNAVAILABLE, INTERNAL_ERROR (the run failed).
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetRunOutputShapesFunction)(
    onnxEvent outputEvent, onnxTensorShapeCallback callback, void* context);

/* ---- Values: strings, sequences, maps and optionals as inputs and outputs of graphs ---- */

/* An optional without its element; one that has it is the element. */
#define ONNXIFI_SDK_VALUE_NOTHING 0
#define ONNXIFI_SDK_VALUE_TENSOR 1
#define ONNXIFI_SDK_VALUE_SEQUENCE 2
#define ONNXIFI_SDK_VALUE_MAP 3

/* `size_bytes` bytes, which need not end in a NUL and may contain some. */
typedef struct onnxString {
  const char* data;
  size_t size_bytes;
} onnxString;

typedef struct onnxValue {
  size_t struct_size;
  /* Of the graph's input or output; not read in elements of other values. */
  const char* name;
  /* ONNXIFI_SDK_VALUE_*. */
  uint32_t kind;
  /*
   * A tensor, or the keys of a map, which have rank 1: ONNXIFI_DATATYPE_*, `rank` extents, and the
   * elements in row-major order, in `strings` for strings, else in `data`, as in the buffer of a
   * descriptor. `data` and `strings` may be NULL where there are no elements. Keys are int64
   * numbers or strings, none twice.
   */
  onnxEnum data_type;
  uint32_t rank;
  const int64_t* extents;
  const void* data;
  /* Of `data`, as densely packed elements have: 4- and 2-bit ones rounded up to a whole byte. */
  size_t data_size_bytes;
  const onnxString* strings;
  /* A sequence, or the values of a map, one per key: `element_count` values, of one kind. */
  size_t element_count;
  const struct onnxValue* const* elements;
} onnxValue;

typedef void(ONNXIFI_ABI* onnxValueCallback)(void* context, const onnxValue* value);

/*
 * onnxGetBackendCompatibility for a graph that is initialised with
 * ONNXIFI_SDK_GRAPH_PROPERTY_VALUES.
 * Statuses: those of onnxGetBackendCompatibility.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetBackendValueCompatibilityFunction)(
    onnxBackendID backendID, size_t onnxModelSize, const void* onnxModel);

/*
 * onnxSetGraphIO where inputs may be values and outputs need no memory of the caller's. Every input
 * is in one of the two input arrays; an input that is a tensor of numbers may be in either. Outputs
 * without a descriptor are kept by each run, for onnxGetRunValues. onnxRunGraph runs the graph as
 * after onnxSetGraphIO, any number of times, until either is called again. What `inputValues`
 * points to is copied before the function returns; the buffers of descriptors are used as by
 * onnxSetGraphIO.
 * Statuses: those of onnxSetGraphIO; INVALID_SIZE (a struct_size that does not hold the kind,
 * or a data_size_bytes that is not that of the elements) and INVALID_DATATYPE (a kind, an element
 * type or keys that there are not), UNSUPPORTED_TAG (a plain ONNXIFI 1.0 plugin behind libonnxifi).
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxSetGraphValuesFunction)(
    onnxGraph graph, uint32_t inputsCount, const onnxTensorDescriptorV1* inputDescriptors,
    uint32_t inputValuesCount, const onnxValue* const* inputValues, uint32_t outputsCount,
    const onnxTensorDescriptorV1* outputDescriptors);

/*
 * Calls `callback` for every output that the run which signalled `outputEvent` kept, in the model's
 * order. They are kept until the event is released; what the callback gets lives until it returns.
 * Does not wait. Statuses: INVALID_EVENT (also for an event that no run made), INVALID_POINTER,
 * INVALID_STATE (not signalled yet), NO_SYSTEM_MEMORY, BACKEND_UNAVAILABLE, INTERNAL_ERROR (the run
 * failed).
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetRunValuesFunction)(
    onnxEvent outputEvent, onnxValueCallback callback, void* context);

/* ---- Events of drivers ---- */

/* `handle` is a cl_event. */
#define ONNXIFI_SDK_NATIVE_EVENT_OPENCL 1

typedef struct onnxNativeEvent {
  size_t struct_size;
  /* ONNXIFI_SDK_NATIVE_EVENT_*. */
  uint32_t kind;
  onnxPointer handle;
} onnxNativeEvent;

/*
 * Makes an event that is signalled when the driver's event is complete, so that a run may have it
 * in its input fence. If that ends in an error, runs that wait for it end with BACKEND_UNAVAILABLE.
 * The driver's event is of the backend's context (ONNXIFI_BACKEND_OPENCL_CONTEXT) and may be
 * released when this returns; `*event` is to be released by onnxReleaseEvent. Does not wait.
 * Statuses: INVALID_BACKEND, INVALID_POINTER, INVALID_SIZE (a struct_size that does not hold the
 * handle), INVALID_FENCE_TYPE (a kind that there is not), UNSUPPORTED_FENCE_TYPE (one that this
 * backend does not take), INVALID_EVENT (a handle that is 0 or of another context),
 * NO_SYSTEM_MEMORY, NO_DEVICE_RESOURCES, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxImportEventFunction)(
    onnxBackend backend, const onnxNativeEvent* native, onnxEvent* event);

/*
 * Makes an event of the driver's that is complete when `event`, a run's or the caller's own, is
 * signalled; work of the driver's may wait for it at once. If the run fails, it ends in an error.
 * The caller sets `native->struct_size` and `native->kind`, gets `native->handle`, and releases
 * that as the driver says (clReleaseEvent). Does not wait.
 * Statuses: INVALID_EVENT, INVALID_POINTER, INVALID_SIZE, INVALID_FENCE_TYPE,
 * UNSUPPORTED_FENCE_TYPE, NO_SYSTEM_MEMORY, NO_DEVICE_RESOURCES, BACKEND_UNAVAILABLE,
 * INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxExportEventFunction)(
    onnxEvent event, onnxNativeEvent* native);

/* ---- Memory that the host and a device share ---- */

typedef struct onnxSharedMemory {
  size_t struct_size;
  /* For the host: what descriptors of ONNXIFI_MEMORY_TYPE_CPU carry. Aligned to 64 bytes or more,
   * not cleared. */
  onnxPointer address;
  /* For graphs of the backend: what descriptors of the same bytes carry. */
  onnxEnum memory_type;
  onnxPointer buffer;
} onnxSharedMemory;

/*
 * Makes memory on which both the host and the backend's device work where it lies, so that tensors
 * which one makes and the other reads are not copied. What the host wrote before a run started the
 * run reads, and what the run wrote the host reads once the run has finished, without more.
 * `size_bytes` is at least 1. The caller sets `memory->struct_size` and gets the rest; the memory
 * lives until onnxReleaseSharedMemory, or until its backend is released.
 * Statuses: INVALID_BACKEND, INVALID_POINTER, INVALID_SIZE (no bytes, or a struct_size that does
 * not hold the buffer), UNSUPPORTED_MEMORY_TYPE (the device has no such memory), NO_SYSTEM_MEMORY,
 * NO_DEVICE_MEMORY, NO_SYSTEM_RESOURCES, NO_DEVICE_RESOURCES, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxAllocateSharedMemoryFunction)(
    onnxBackend backend, uint64_t size_bytes, onnxSharedMemory* memory);

/*
 * Gives the memory at `address` back: no run uses it any more, and every graph that had it bound is
 * bound to other tensors or released.
 * Statuses: INVALID_BACKEND, INVALID_POINTER (NULL, or no address of the backend's shared memory),
 * INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxReleaseSharedMemoryFunction)(
    onnxBackend backend, onnxPointer address);

/* ---- Families of steps: the kinds of work that a graph is lowered to ---- */

#define ONNXIFI_SDK_FAMILY_MAP "Map"
#define ONNXIFI_SDK_FAMILY_REDUCE "Reduce"
#define ONNXIFI_SDK_FAMILY_ROW "Row"
#define ONNXIFI_SDK_FAMILY_SCAN "Scan"
#define ONNXIFI_SDK_FAMILY_CONTRACT "Contract"
#define ONNXIFI_SDK_FAMILY_WINDOW "Window"
#define ONNXIFI_SDK_FAMILY_INDEX "Index"
#define ONNXIFI_SDK_FAMILY_HOST "Host"
#define ONNXIFI_SDK_FAMILY_CONTROL "Control"

/* ---- Counters of a graph, since it was initialised ---- */

typedef struct onnxGraphCounters {
  size_t struct_size;
  /* Times a graph was lowered to a tensor program. */
  uint64_t lowerings;
  /* Shape signatures for which extents, offsets and memory were computed. */
  uint64_t bindings;
  /* Device or host memory blocks allocated for runs. */
  uint64_t allocations;
  /* Whole-tensor copies that no operator asked for: staging, conversion, host round trips. */
  uint64_t copies;
  uint64_t kernel_builds;
  uint64_t runs;
  /*
   * Steps that the graph was lowered to, by family (ONNXIFI_SDK_FAMILY_...), those of sub-graphs
   * included; constants and views need none. All bits are set where a library does not tell.
   */
  uint64_t map_steps;
  uint64_t reduce_steps;
  uint64_t row_steps;
  uint64_t scan_steps;
  uint64_t contract_steps;
  uint64_t window_steps;
  uint64_t index_steps;
  uint64_t host_steps;
  uint64_t control_steps;
  /*
   * Times a run waited for its device before its end: for numbers that shape what follows, the
   * condition of a branch or loop, or a function of the host's. 0 where the device is the host.
   */
  uint64_t waits;
} onnxGraphCounters;

/*
 * Fills `*counters` up to its `struct_size`.
 * Statuses: INVALID_GRAPH, INVALID_POINTER, INVALID_SIZE (struct_size too small to hold itself),
 * BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetGraphCountersFunction)(
    onnxGraph graph, onnxGraphCounters* counters);

/* ---- Profile: the steps of a graph's last run ---- */

typedef struct onnxStepRecord {
  size_t struct_size;
  /* Position in the run. */
  uint32_t step_index;
  /* Node of the main graph's graph.node that the step does, the first of several;
   * ONNXIFI_SDK_UNKNOWN when it does none by itself. */
  int64_t node_index;
  /* What kind of work it is: one of ONNXIFI_SDK_FAMILY_..., or a name of the library's own. */
  const char* family;
  /* The implementation that does it, e.g. "onednn convolution", and what that has chosen for these
   * extents, e.g. the name of a library's kernel; empty if it says nothing more. */
  const char* implementation;
  const char* detail;
  /* Element type of the (first) result and the `rank` extents that the work runs over. */
  onnxEnum data_type;
  uint32_t rank;
  const int64_t* extents;
  /* Implementations that come before this one and were passed over, a sentence with the reason
   * each. */
  uint32_t rejected_count;
  const char* const* rejected;
  /* Since the run started. Steps may overlap. */
  uint64_t start_ns;
  uint64_t duration_ns;
  /* What the work takes by definition, whatever the implementation does: floating-point operations
   * (a multiply-add is two) and bytes that have to be read and written once. */
  uint64_t flops;
  uint64_t read_bytes;
  uint64_t written_bytes;
} onnxStepRecord;

typedef void(ONNXIFI_ABI* onnxStepRecordCallback)(void* context, const onnxStepRecord* record);

/*
 * Calls `callback` for every step of the run that finished last, in the order of their start. The
 * steps inside a loop or branch count as the one step that runs it.
 * Statuses: INVALID_GRAPH, INVALID_POINTER, INVALID_STATE (initialised without
 * ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE, or no run has finished), NO_SYSTEM_MEMORY,
 * BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetGraphProfileFunction)(
    onnxGraph graph, onnxStepRecordCallback callback, void* context);

/* ---- Load profile: what making a graph ready took ---- */

typedef struct onnxLoadRecord {
  size_t struct_size;
  /* A name of the library's own, e.g. "import" or that of a pass. */
  const char* stage;
  /* How often the stage ran, and how long altogether. */
  uint64_t count;
  uint64_t duration_ns;
} onnxLoadRecord;

typedef void(ONNXIFI_ABI* onnxLoadRecordCallback)(void* context, const onnxLoadRecord* record);

/*
 * Calls `callback` for every stage of onnxInitGraph, in the order in which they first ended. They
 * do not overlap. Known for every graph, without a property. Statuses: INVALID_GRAPH,
 * INVALID_POINTER, NO_SYSTEM_MEMORY, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetGraphLoadProfileFunction)(
    onnxGraph graph, onnxLoadRecordCallback callback, void* context);

/* ---- Names of devices ---- */

/*
 * Gives the name by which tools select the ID: "auto", or "plugin:index" such as "cpu:0".
 * `*keySize` and the answers as for strings of onnxGetBackendInfo.
 * Statuses: FALLBACK, INVALID_ID, INVALID_POINTER, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetBackendKeyFunction)(
    onnxBackendID backendID, char* key, size_t* keySize);

/* ---- Discovery report: what became of each candidate plugin (libonnxifi only) ---- */

#define ONNXIFI_SDK_VERDICT_LOADED 0
/* The file or folder does not exist or cannot be read. */
#define ONNXIFI_SDK_VERDICT_NOT_FOUND 1
/* A manifest that cannot be understood. */
#define ONNXIFI_SDK_VERDICT_BAD_MANIFEST 2
/* The system's linker refuses it; `detail` is what the linker says. */
#define ONNXIFI_SDK_VERDICT_NOT_LOADABLE 3
/* It lacks one of the fifteen functions. */
#define ONNXIFI_SDK_VERDICT_MISSING_FUNCTION 4
/* One of its functions lies in another library. */
#define ONNXIFI_SDK_VERDICT_FOREIGN_FUNCTION 5
/* It is libonnxifi itself, or another wrapper of plugins. */
#define ONNXIFI_SDK_VERDICT_IS_LOADER 6
/* It was found before under another rule. */
#define ONNXIFI_SDK_VERDICT_DUPLICATE 7
/* It loads, but listing its devices fails. */
#define ONNXIFI_SDK_VERDICT_NOT_ENUMERABLE 8
/* Its manifest names a dialect or version of the interface that is not spoken here. */
#define ONNXIFI_SDK_VERDICT_WRONG_INTERFACE 9
/* An environment variable that is ignored because the process runs with raised privileges. */
#define ONNXIFI_SDK_VERDICT_IGNORED 10

typedef struct onnxDiscoveryRecord {
  size_t struct_size;
  /* Name of the plugin, e.g. "cpu". */
  const char* plugin;
  /* Resolved absolute path, or what was given when it does not resolve. */
  const char* path;
  /* What made it a candidate, e.g. "ONNXIFI_BACKENDS" or "beside libonnxifi". */
  const char* rule;
  /* ONNXIFI_SDK_VERDICT_*. */
  uint32_t verdict;
  /* Full sentence. */
  const char* sentence;
  /* Text of the system's linker, verbatim; empty if it said nothing. */
  const char* detail;
  /* Priority from its manifest, 0 without one; smaller comes first. */
  int32_t priority;
  uint32_t device_count;
  uint64_t microseconds;
} onnxDiscoveryRecord;

typedef void(ONNXIFI_ABI* onnxDiscoveryRecordCallback)(void* context,
                                                       const onnxDiscoveryRecord* record);

/*
 * Calls `callback` for every candidate in the order in which they were tried. Found with a NULL ID.
 * Statuses: INVALID_POINTER, NO_SYSTEM_MEMORY, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetDiscoveryReportFunction)(
    onnxDiscoveryRecordCallback callback, void* context);

/* ---- Plan: which device runs what of a graph (libonnxifi only) ---- */

typedef struct onnxPlanIsland {
  size_t struct_size;
  /* Islands are numbered from 0, in an order in which they can run. */
  uint32_t island_index;
  /* As of onnxGetBackendKey, e.g. "cpu:0"; where others stand in for a device that fails, theirs,
   * separated by spaces. */
  const char* device_key;
  /* Nodes of the main graph's graph.node, ascending; none for a graph that its device has whole.
   * Constants, and shapes that the model fixes, belong to every island that reads them. */
  uint32_t node_count;
  const uint32_t* nodes;
  /* Islands that make what this one reads, ascending. */
  uint32_t after_count;
  const uint32_t* after;
  /* Of a run, from its start: as planned, where several devices were weighed; and of the run that
   * finished last. 0 where there is no plan, and where no run has finished. */
  uint64_t estimated_start_ns;
  uint64_t estimated_duration_ns;
  uint64_t measured_start_ns;
  uint64_t measured_duration_ns;
  /* Whole-tensor copies that its device made so far, as in onnxGraphCounters: into and out of
   * memory of its own. All bits are set where its library does not tell. */
  uint64_t copies;
} onnxPlanIsland;

typedef struct onnxPlanCut {
  size_t struct_size;
  const char* value_name;
  /* Islands; ONNXIFI_SDK_UNKNOWN for the caller, who gives inputs and takes outputs. */
  int64_t from_island;
  int64_t to_island;
  /* Extents that are not numbers are taken as 1. */
  uint64_t size_bytes;
  /* Times that libonnxifi copied the value so far; of several cuts of one value, the first counts.
   * Memory that both sides can use is handed on without a copy. */
  uint64_t copies;
} onnxPlanCut;

typedef void(ONNXIFI_ABI* onnxPlanIslandCallback)(void* context, const onnxPlanIsland* island);
typedef void(ONNXIFI_ABI* onnxPlanCutCallback)(void* context, const onnxPlanCut* cut);

/*
 * Calls `islandCallback` for every island of the graph in order, then `cutCallback` for every value
 * on its way from one to another; a graph that one device has whole is one island without cuts.
 * Statuses: INVALID_GRAPH, INVALID_POINTER, NO_SYSTEM_MEMORY, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetGraphPlanFunction)(
    onnxGraph graph, onnxPlanIslandCallback islandCallback, onnxPlanCutCallback cutCallback,
    void* context);

/* ---- Timed wait, as published by the foxi fork ---- */

/*
 * Waits until the event is signalled or `timeoutMs` milliseconds have passed (0: no limit) and
 * writes to `*eventState` which it was. When signalled, `*eventStatus` is the result of the work
 * and `message` its sentence. `*messageLength` is the capacity on entry and the bytes used with the
 * NUL afterwards, 0 without a message; a longer sentence is cut. Statuses: INVALID_EVENT,
 * INVALID_POINTER, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxWaitEventForFunction)(
    onnxEvent event, uint32_t timeoutMs, onnxEventState* eventState, onnxStatus* eventStatus,
    char* message, size_t* messageLength);

#ifdef __cplusplus
}
#endif

#endif /* ONNXIFI_SDK_H */
