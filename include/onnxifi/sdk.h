/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Extensions of ONNXIFI by the ONNXIFI SDK: the sentence of the last error, reasons per node,
 * output shapes, non-tensor values, events and memory of drivers, counters, profiles, device keys,
 * the discovery report, and plans. Plain C89.
 *
 * A library that lists `onnxifi_sdk` in its answer to ONNXIFI_BACKEND_EXTENSIONS has these
 * functions. They are not exported symbols: onnxGetExtensionFunctionAddress finds each by its name,
 * and the caller casts it to its type in this header.
 *
 * Every structure starts with its size in bytes. Later versions only add fields at the end. A
 * reader reads the fields that lie inside `struct_size` and takes all others as zero. If the caller
 * provides the structure, it sets `struct_size` to sizeof, and the library writes no byte beyond
 * it.
 *
 * Callbacks run on the calling thread before the function returns. Structures and strings passed to
 * a callback live until it returns. A callback must not call an ONNXIFI function and must not
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

/* An unknown extent, limit or operator set version. */
#define ONNXIFI_SDK_UNKNOWN (-1)

/* ---- Properties of onnxInitGraph ---- */

/*
 * Value: address of a NUL-terminated UTF-8 path, cast to uint64_t. It names the folder of the
 * model's external data. Files outside the folder are refused. The string must live until the call
 * returns. Without the property a model with external data is INVALID_MODEL.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER ((uint64_t)1 << 48)

/*
 * Value: 1 makes every run record its steps for onnxGetGraphProfile. 0 is the default and costs
 * nothing. Any other value is INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE ((uint64_t)1 << 49)

/*
 * Value: 1 says that the caller binds the graph by onnxSetGraphValues, so its inputs and outputs
 * may be of any kind. 0 is the default: an input or output that no descriptor can carry (strings, a
 * sequence, a map, an optional) makes the status UNSUPPORTED_DATATYPE. Any other value is
 * INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_VALUES ((uint64_t)1 << 50)

/*
 * Value: 0 has sums of products computed, and 16-bit floats rounded after each node, as operators
 * are defined. 1 is the default: sums may be those of algorithms with up to 8 times the error, as
 * Winograd's, and 16-bit floats of networks float32 between nodes. Others are INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_FAST_ALGORITHMS ((uint64_t)1 << 51)

/*
 * Value: 1 says that the model's bytes are a private mapping of a file (mmap with MAP_PRIVATE) to
 * which nobody has written. The library then returns pages to the system once it has copied them,
 * so a load does not hold every weight twice. Read again, the pages show the file. 0 is the
 * default. Any other value is INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL ((uint64_t)1 << 52)

/*
 * Value: 1 lets the thread that calls onnxRunGraph or onnxSetIOAndRunGraph compute the run, if the
 * inputs are complete and no other run of the graph is under way. The call may then return when the
 * run has finished. Use it if the caller waits for the run anyway: no other thread has to wake. The
 * output event is signalled as always. 0 is the default. Any other value is INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS ((uint64_t)1 << 53)

/*
 * Value: 1 says that the model's bytes stay at their address, unchanged, until onnxReleaseGraph has
 * returned. The library may then read large weights in place, which saves load time and memory.
 * With MAPPED_MODEL it also returns pages whose weights it has packed or computed with, and reads
 * some again for other shapes; the mapped file must not be shortened meanwhile. 0 is the default.
 * Any other value is INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL ((uint64_t)1 << 54)

/*
 * Value: ONNXIFI_SDK_PRECISION_*, a permission: the device may round the float32 operands of
 * products (matrix products, convolutions, attention) to this type, or to one that has all of its
 * values, ties to even. What a device multiplies inside of such an operator counts as an operand,
 * as the transformed images of Winograd's algorithm do. Sums are kept in float32 or better,
 * infinities and NaN stay what they are, and no tensor of the model changes its type. What is
 * beyond the largest float16 (65504) may become infinite. A device that gains nothing by it
 * computes in float32; onnxStepRecord tells what each step did. float64, narrower types and
 * constants that are folded at load time are not concerned.
 *
 * ONNXIFI_SDK_PRECISION_FLOAT32 is the default and permits nothing. The property is independent of
 * ONNXIFI_SDK_GRAPH_PROPERTY_FAST_ALGORITHMS: neither permits nor forbids what the other does, and
 * where both permit, the latter's bound is on the errors that rounded operands have by definition.
 * Any other value is INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION ((uint64_t)1 << 55)

#define ONNXIFI_SDK_PRECISION_FLOAT32 0
/* 8 bits of exponent as float32, 10 of fraction as float16. It has the values of the two below. */
#define ONNXIFI_SDK_PRECISION_TF32 1
#define ONNXIFI_SDK_PRECISION_BFLOAT16 2
#define ONNXIFI_SDK_PRECISION_FLOAT16 3

/*
 * Value: 1, a permission: where float32 rows are multiplied with constant weights of 8 bits or less
 * that are dequantized, the device may round the rows to 8 bits, with a scale for each block of a
 * row: each element by at most 1/254 of the largest in its block, or 1e-36. 0 is the default: it
 * permits only what the model itself does, as MatMulNBits by its `accuracy_level`. Neither counts
 * where FAST_ALGORITHMS is 0, and PRECISION is independent of both. A device that gains nothing by
 * it computes in float32. Any other value is INVALID_PROPERTY.
 */
#define ONNXIFI_SDK_GRAPH_PROPERTY_DYNAMIC_QUANTIZATION ((uint64_t)1 << 58)

/* ---- Queries of onnxGetBackendInfo ---- */

/*
 * Strings. 32 hexadecimal digits, the UUID that Vulkan, OpenCL and CUDA tell of a physical device:
 * backend IDs with equal ones are one device. 16 digits: its LUID, where the system has such. Where
 * it has a PCI address, the interface's queries tell that (ONNXIFI_BACKEND_PCI_...).
 */
#define ONNXIFI_SDK_BACKEND_DEVICE_UUID 0x10000
#define ONNXIFI_SDK_BACKEND_DEVICE_LUID 0x10001
/*
 * A string of what the driver tells of the device's sizes: "name=value" with "; " between, such as
 * "heap_0=8589934592 bytes, device; subgroup_items=32". Which names there are is the plugin's.
 */
#define ONNXIFI_SDK_BACKEND_DEVICE_LIMITS 0x10002

/* ---- Properties of onnxInitBackend ---- */

/*
 * Value: a cl_command_queue cast to uint64_t. It must be in-order, belong to this backend ID's
 * device, and belong to the context of ONNXIFI_BACKEND_OPENCL_CONTEXT if that is given. All work of
 * the backend goes through this queue, so fences may be ONNXIFI_SYNCHRONIZATION_IMPLICIT:
 *
 * - With an implicit input fence a run reads its inputs after everything that was in the queue when
 *   onnxRunGraph was called.
 * - With implicit fences on both sides the run is in the queue when onnxRunGraph returns. Work that
 *   is put into the queue afterwards sees the outputs. The call does not wait, with three
 *   exceptions: numbers that decide what follows (loops, shapes that depend on data), non-tensor
 *   values, and earlier runs of the graph that their events have not started yet. Errors after the
 *   return are reported by the queue.
 * - An implicit output fence after an input event is UNSUPPORTED_FENCE_TYPE.
 *
 * The backend holds a reference until it is released. A queue that breaks one of the conditions is
 * INVALID_PROPERTY. A value that is not a queue at all cannot be detected.
 */
#define ONNXIFI_SDK_BACKEND_PROPERTY_OPENCL_QUEUE ((uint64_t)1 << 56)

/*
 * Value: address of an onnxVulkanDevice, which must live until the call returns. The backend works
 * on the caller's device and in its queue, so tensors may lie in the caller's buffers
 * (ONNXIFI_SDK_MEMORY_TYPE_VULKAN_BUFFER), events may be timeline semaphores
 * (ONNXIFI_SDK_NATIVE_EVENT_VULKAN), and fences may be ONNXIFI_SYNCHRONIZATION_IMPLICIT as with
 * ONNXIFI_SDK_BACKEND_PROPERTY_OPENCL_QUEUE. Vulkan orders commands of a queue only by barriers: a
 * run begins and ends with a barrier for all that compute shaders and transfers wrote before, and
 * the caller's commands behind it need one that waits for its compute shaders. Beside the
 * exceptions there, a run with implicit fences waits until it is done where it is profiled or has
 * outputs in the host's memory that are not used in place, and waits for the queue where its inputs
 * there are more than 32 MiB; onnxSetGraphIO may wait for it, too.
 *
 * Device and queue must live until the backend, its graphs, events and shared memory are released,
 * and exported semaphores are signalled. A structure that breaks a condition is INVALID_PROPERTY.
 * Numbers that are no handles of Vulkan cannot be detected.
 */
#define ONNXIFI_SDK_BACKEND_PROPERTY_VULKAN_DEVICE ((uint64_t)1 << 57)

typedef void(ONNXIFI_ABI* onnxQueueLockFunction)(void* context);

typedef struct onnxVulkanDevice {
  size_t struct_size;
  /* VkInstance of Vulkan 1.2 or later, and in it the VkPhysicalDevice of this backend ID, as its
   * UUID tells (ONNXIFI_SDK_BACKEND_DEVICE_UUID). */
  void* instance;
  void* physical_device;
  /* VkDevice, and a VkQueue of a family that computes. */
  void* device;
  void* queue;
  uint32_t queue_family;
  /* What the device was made with: a VkPhysicalDeviceFeatures2 with its chain. Needed are
   * bufferDeviceAddress, scalarBlockLayout, timelineSemaphore, shaderInt8, storageBuffer8BitAccess,
   * storageBuffer16BitAccess, shaderInt64 and shaderInt16, and shaderFloat64 if the device has it.
   */
  const void* features;
  /* Called around every use of the queue, on any thread, with `context`. Both are NULL if only the
   * backend and one thread use the queue, never at a time. */
  onnxQueueLockFunction lock_queue;
  onnxQueueLockFunction unlock_queue;
  void* context;
} onnxVulkanDevice;

/* ---- Memory types beyond the interface ---- */

/* Host memory that onnxSetGraphIO binds (ONNXIFI_MEMORY_TYPE_CPU) stays the caller's. A device
 * whose memory is the host's may use large tensors there in place, without a copy: they then have
 * to stay as long as they are bound and until the runs that were started with them are done.
 *
 * There, an input and an output may share memory, wholly or in part, as a decoder's new cache does
 * that takes the place of its old one. A run computes as if it read all inputs before it wrote an
 * output: it copies such an input first. The bytes that both have are the output's afterwards, so
 * that the next run of the binding reads them. Outputs share memory with one another nowhere; nor
 * do tensors of other memory types with anything that a run writes. Neither is checked. */

/* A descriptor's `buffer` is the address of an onnxVulkanBuffer, which must live as long as the
 * tensor is bound. The same holds for the VkBuffer: nobody else can keep it. */
#define ONNXIFI_SDK_MEMORY_TYPE_VULKAN_BUFFER ((uint64_t)1 << 48)

typedef struct onnxVulkanBuffer {
  size_t struct_size;
  /* VkDevice that made the buffer: that of ONNXIFI_SDK_BACKEND_PROPERTY_VULKAN_DEVICE. */
  void* device;
  /* VkBuffer, bound to memory that was allocated with VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT. */
  uint64_t buffer;
  /* Where the tensor begins, a multiple of 16, and the bytes from there that may be used: at least
   * those of the tensor, rounded up to 4 for an output of elements narrower than a byte. */
  uint64_t offset;
  uint64_t size_bytes;
  /* VkBufferUsageFlags that the buffer was made with, as Vulkan does not tell them: needed are
   * SHADER_DEVICE_ADDRESS, STORAGE_BUFFER, TRANSFER_SRC and TRANSFER_DST. */
  uint32_t usage;
} onnxVulkanBuffer;

/* A descriptor's `buffer` is the address of an onnxOpaqueFd, which is read during the call. Memory
 * that another device, instance or process of the same driver made is used in place
 * (VK_KHR_external_memory_fd). No queue orders the work of both: what others write has to be
 * complete before the run starts, and others may read an output once the run has finished. The
 * device's answer to ONNXIFI_BACKEND_MEMORY_TYPES tells whether it takes such;
 * UNSUPPORTED_MEMORY_TYPE where it does not, or where a device of the caller's was made without the
 * extension. What does not fit, or the driver refuses, is INVALID_MEMORY_LOCATION. */
#define ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD ((uint64_t)1 << 49)

typedef struct onnxOpaqueFd {
  size_t struct_size;
  /* Of vkGetMemoryFdKHR with VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, for memory that is no
   * dedicated allocation. It stays the caller's, who may close it when the call has returned: the
   * library has a duplicate. A descriptor of something else cannot always be detected. */
  int32_t fd;
  /* memoryTypeIndex and allocationSize that the memory was allocated with. */
  uint32_t memory_type_index;
  uint64_t allocation_bytes;
  /* Where the tensor begins, a multiple of 16, and the bytes from there that may be used: at least
   * those of the tensor, rounded up to 4 for an output of elements narrower than a byte. */
  uint64_t offset;
  uint64_t size_bytes;
  /* deviceUUID and driverUUID of VkPhysicalDeviceIDProperties, where the memory was allocated. */
  uint8_t device_uuid[16];
  uint8_t driver_uuid[16];
} onnxOpaqueFd;

/*
 * ---- Element types newer than the interface; numerically ONNX TensorProto.DataType ----
 *
 * Elements narrower than a byte lie in a tensor's memory as in ONNX's raw_data: one behind the
 * other without gaps, each from its lowest bit on, the first in the low bits of the first byte. Of
 * 2 bits four fill a byte, of 4 bits two; of 6 bits four fill three bytes, and an element may begin
 * in one byte and end in the next. A tensor has as many bytes as its bits need. Bits behind the
 * last element are ignored in inputs and undefined in outputs.
 */

#define ONNXIFI_SDK_DATATYPE_BOOL 9
#define ONNXIFI_SDK_DATATYPE_FLOAT8E4M3FN 17
#define ONNXIFI_SDK_DATATYPE_FLOAT8E4M3FNUZ 18
#define ONNXIFI_SDK_DATATYPE_FLOAT8E5M2 19
#define ONNXIFI_SDK_DATATYPE_FLOAT8E5M2FNUZ 20
#define ONNXIFI_SDK_DATATYPE_UINT4 21
#define ONNXIFI_SDK_DATATYPE_INT4 22
#define ONNXIFI_SDK_DATATYPE_FLOAT4E2M1 23
#define ONNXIFI_SDK_DATATYPE_FLOAT8E8M0 24
#define ONNXIFI_SDK_DATATYPE_UINT2 25
#define ONNXIFI_SDK_DATATYPE_INT2 26
#define ONNXIFI_SDK_DATATYPE_FLOAT6E2M3 27
#define ONNXIFI_SDK_DATATYPE_FLOAT6E3M2 28

/* Only for an onnxValue: no descriptor carries strings. */
#define ONNXIFI_SDK_DATATYPE_STRING 8

/* ---- Last error ---- */

/*
 * Copies the sentence of the last call that failed on this thread, with its context lines. It is
 * empty if none failed. `*messageSize` is the capacity of `message` on entry and the exact size
 * with the NUL on return. If `message` is NULL or too small, nothing is stored and the status is
 * FALLBACK. The text lasts until the next failing call on this thread. Found with a NULL ID.
 * Statuses: FALLBACK, INVALID_POINTER (messageSize NULL), INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetLastErrorMessageFunction)(
    char* message, size_t* messageSize);

/* ---- Explain: why a model runs or does not, node by node ---- */

/* The part of a node that `subject` of a verdict names. */
#define ONNXIFI_SDK_SUBJECT_NONE 0
#define ONNXIFI_SDK_SUBJECT_OPERATOR 1
#define ONNXIFI_SDK_SUBJECT_VERSION 2
#define ONNXIFI_SDK_SUBJECT_ATTRIBUTE 3
/* INPUT and OUTPUT name one. DATATYPE and DIMENSION concern the one that is named. */
#define ONNXIFI_SDK_SUBJECT_INPUT 4
#define ONNXIFI_SDK_SUBJECT_OUTPUT 5
#define ONNXIFI_SDK_SUBJECT_DATATYPE 6
#define ONNXIFI_SDK_SUBJECT_DIMENSION 7

typedef struct onnxNodeVerdict {
  size_t struct_size;
  /* Position in graph.node of the main graph. A node of a subgraph reports under its owner. */
  uint32_t node_index;
  /* ONNXIFI_STATUS_SUCCESS when the node runs, FALLBACK when it runs by emulation, which is much
   * slower: the device has no kernel of its own for it. Else the class of the reason. */
  onnxStatus status;
  /* The model's name of the node. Empty if it has none. */
  const char* node_name;
  /* "ai.onnx" for the default domain. */
  const char* domain;
  const char* operator_type;
  /* Version of the domain's operator set. ONNXIFI_SDK_UNKNOWN if the model imports none. */
  int64_t opset_version;
  /* ONNXIFI_SDK_SUBJECT_*, and the name of the attribute, input or output. Empty if none. */
  uint32_t subject_kind;
  const char* subject;
  /* A full sentence with the actual value and the limit. Empty if the node runs. */
  const char* sentence;
  /* The limit alone, such as "7". Empty if there is none. */
  const char* limit;
} onnxNodeVerdict;

typedef void(ONNXIFI_ABI* onnxNodeVerdictCallback)(void* context, const onnxNodeVerdict* verdict);

/*
 * Calls `callback` for every node in order, once per reason if a node has several. Returns what
 * onnxGetBackendCompatibility returns for the same bytes. If the model cannot be read, no node is
 * reported. libonnxifi asks a plain ONNXIFI 1.0 plugin about models of one node, and the sentence
 * says so. It reports no node if none is refused alone as the whole model is.
 * Statuses: those of onnxGetBackendCompatibility.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxExplainModelFunction)(
    onnxBackendID backendID, size_t onnxModelSize, const void* onnxModel,
    onnxNodeVerdictCallback callback, void* context);

/* ---- Explain on every device in one call (libonnxifi only) ---- */

/* How a device's answers about nodes were obtained: by onnxExplainModel. */
#define ONNXIFI_SDK_NODES_EXPLAINED 0
/* The plugin knows ONNXIFI 1.0 only. It was asked about a model of each node alone. */
#define ONNXIFI_SDK_NODES_ASKED_ALONE 1
/* No answers: the model cannot be read or partitioned, and the plugin does not explain. */
#define ONNXIFI_SDK_NODES_NOT_TOLD 2

typedef struct onnxDeviceAnswer {
  size_t struct_size;
  /* Position in the order of onnxGetBackendIDs, from 0, without the auto device. */
  uint32_t device_index;
  /* As of onnxGetBackendKey, e.g. "cpu:0". */
  const char* device_key;
  /* Status of onnxGetBackendCompatibility for the whole model, and its sentence. The sentence is
   * empty for SUCCESS and FALLBACK. */
  onnxStatus status;
  const char* sentence;
  /* ONNXIFI_SDK_NODES_*. */
  uint32_t nodes;
  /* A number that devices of several plugins share if they are one physical device: equal UUIDs,
   * or else LUIDs or PCI addresses, or the machine's processor. The auto device cuts a model
   * between such only for nodes that no other device takes, for a gain that it has measured, or as
   * its caller wants. 0 if no other device is the same. */
  uint64_t physical_device;
} onnxDeviceAnswer;

/* The role of a node: a device computes it. */
#define ONNXIFI_SDK_NODE_WORK 0
/* A constant, a shape that the model fixes, or a node that nobody reads. No device is asked about
 * it, and its status is SUCCESS. Every island that reads it has it. */
#define ONNXIFI_SDK_NODE_GIVEN 1

typedef struct onnxNodeAnswer {
  size_t struct_size;
  uint32_t device_index;
  /* ONNXIFI_SDK_NODE_*. */
  uint32_t role;
  /* The device that the model names in an entry "onnxifi.device" of the node's metadata. Empty if
   * none. The auto device gives the node to no other device. */
  const char* placement;
  const onnxNodeVerdict* verdict;
  /* Number of the reason, from 1. 0 if the node runs. Two answers of a call, on whatever devices,
   * have the same number if their statuses are equal and the first lines of their sentences differ
   * only in the names of the node, its inputs and its outputs. */
  uint32_t reason;
} onnxNodeAnswer;

typedef void(ONNXIFI_ABI* onnxDeviceAnswerCallback)(void* context, const onnxDeviceAnswer* answer);
typedef void(ONNXIFI_ABI* onnxNodeAnswerCallback)(void* context, const onnxNodeAnswer* answer);

/*
 * Asks every device except auto about the model and each of its nodes. The answers are those by
 * which the auto device plans: all shapes that the model fixes are known, equal nodes are asked
 * about once, and answers are kept. Calls `deviceCallback` for each device in order, and after each
 * of them `nodeCallback` for every node of the main graph in order, once per reason. If a model
 * cannot be partitioned, the nodes are those of the device's own onnxExplainModel. Faults of the
 * model are in the devices' answers. Found with a NULL ID.
 *
 * `auxPropertiesList`: as of onnxInitGraph, or NULL. Only ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER is
 * accepted. With it, small tensors in that folder are read, since they may be extents or axes.
 * Without it, only their types are known.
 * Statuses: INVALID_SIZE, INVALID_POINTER, INVALID_PROPERTY, UNSUPPORTED_PROPERTY,
 * NO_SYSTEM_MEMORY, INTERNAL_ERROR; INVALID_MODEL if tensors in that folder cannot be read.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxExplainModelOnDevicesFunction)(
    const uint64_t* auxPropertiesList, size_t onnxModelSize, const void* onnxModel,
    onnxDeviceAnswerCallback deviceCallback, onnxNodeAnswerCallback nodeCallback, void* context);

/* ---- Shapes of outputs ---- */

typedef struct onnxTensorShape {
  size_t struct_size;
  const char* name;
  onnxEnum data_type;
  /* `rank` extents. One that depends on data is ONNXIFI_SDK_UNKNOWN. */
  uint32_t rank;
  const int64_t* extents;
  /* 0 if the rank is unknown. `rank` is 0 then. */
  uint32_t has_rank;
} onnxTensorShape;

typedef void(ONNXIFI_ABI* onnxTensorShapeCallback)(void* context, const onnxTensorShape* shape);

/*
 * Calls `callback` for every output, in the model's order, with its shape for inputs of the given
 * shapes. Buffers of the descriptors are not read and may be 0.
 * Statuses: INVALID_GRAPH, INVALID_POINTER, INVALID_NAME, INVALID_SHAPE, INVALID_DATATYPE,
 * UNSUPPORTED_TAG, UNSUPPORTED_SHAPE, UNSUPPORTED_DATATYPE, UNIDENTIFIED_NAME, MISMATCHING_SHAPE,
 * MISMATCHING_DATATYPE, NO_SYSTEM_MEMORY, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxInferOutputShapesFunction)(
    onnxGraph graph, uint32_t inputsCount, const onnxTensorDescriptorV1* inputDescriptors,
    onnxTensorShapeCallback callback, void* context);

/*
 * Calls `callback` for every output of the run that signalled `outputEvent`, with the shape of the
 * data in its buffer. Does not wait.
 * Statuses: INVALID_EVENT (also for an event that no run made), INVALID_POINTER, INVALID_STATE (not
 * signalled yet), NO_SYSTEM_MEMORY, BACKEND_UNAVAILABLE, INTERNAL_ERROR (the run failed).
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetRunOutputShapesFunction)(
    onnxEvent outputEvent, onnxTensorShapeCallback callback, void* context);

/* ---- Values: strings, sequences, maps and optionals as inputs and outputs of graphs ---- */

/* An optional without its element. An optional with one is the element itself. */
#define ONNXIFI_SDK_VALUE_NOTHING 0
#define ONNXIFI_SDK_VALUE_TENSOR 1
#define ONNXIFI_SDK_VALUE_SEQUENCE 2
#define ONNXIFI_SDK_VALUE_MAP 3

/* `size_bytes` bytes. They need not end in a NUL and may contain NULs. */
typedef struct onnxString {
  const char* data;
  size_t size_bytes;
} onnxString;

typedef struct onnxValue {
  size_t struct_size;
  /* Name of the graph's input or output. Ignored in elements of other values. */
  const char* name;
  /* ONNXIFI_SDK_VALUE_*. */
  uint32_t kind;
  /*
   * For a tensor, or the keys of a map: ONNXIFI_DATATYPE_*, `rank` extents, and the elements in
   * row-major order. Strings lie in `strings`, all others in `data`, in the layout of a
   * descriptor's buffer. Both may be NULL if there are no elements. Keys have rank 1, are int64
   * numbers or strings, and are distinct.
   */
  onnxEnum data_type;
  uint32_t rank;
  const int64_t* extents;
  const void* data;
  /* Size of `data`. Elements are packed; those narrower than a byte end in a whole byte. */
  size_t data_size_bytes;
  const onnxString* strings;
  /* For a sequence, or the values of a map, one per key: `element_count` values of one kind. */
  size_t element_count;
  const struct onnxValue* const* elements;
} onnxValue;

typedef void(ONNXIFI_ABI* onnxValueCallback)(void* context, const onnxValue* value);

/*
 * Like onnxGetBackendCompatibility, for a graph that will be initialised with
 * ONNXIFI_SDK_GRAPH_PROPERTY_VALUES.
 * Statuses: those of onnxGetBackendCompatibility.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetBackendValueCompatibilityFunction)(
    onnxBackendID backendID, size_t onnxModelSize, const void* onnxModel);

/*
 * Like onnxSetGraphIO, but inputs may be values, and outputs need no memory of the caller's. Every
 * input is in one of the two input arrays; a tensor of numbers may be in either. Each run keeps the
 * outputs that have no descriptor, for onnxGetRunValues. onnxRunGraph then runs the graph any
 * number of times, until this function or onnxSetGraphIO is called again. What `inputValues` points
 * to is copied before the function returns. Buffers of descriptors are used as by onnxSetGraphIO.
 * Statuses: those of onnxSetGraphIO; INVALID_SIZE (a struct_size that does not hold the kind, or a
 * data_size_bytes that does not fit the elements), INVALID_DATATYPE (an unknown kind, element type
 * or type of keys), UNSUPPORTED_TAG (a plain ONNXIFI 1.0 plugin behind libonnxifi).
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxSetGraphValuesFunction)(
    onnxGraph graph, uint32_t inputsCount, const onnxTensorDescriptorV1* inputDescriptors,
    uint32_t inputValuesCount, const onnxValue* const* inputValues, uint32_t outputsCount,
    const onnxTensorDescriptorV1* outputDescriptors);

/*
 * Calls `callback` for every output that the run of `outputEvent` kept, in the model's order. They
 * are kept until the event is released, which the callback does not do. What the callback gets
 * lives until it returns; behind a failure it may have been called for some of them. Does not wait.
 * Statuses: INVALID_EVENT (also for an event that no run made), INVALID_POINTER, INVALID_STATE (not
 * signalled yet), NO_SYSTEM_MEMORY, BACKEND_UNAVAILABLE, INTERNAL_ERROR (the run failed).
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetRunValuesFunction)(
    onnxEvent outputEvent, onnxValueCallback callback, void* context);

/* ---- Events of drivers ---- */

/* `handle` is a cl_event. */
#define ONNXIFI_SDK_NATIVE_EVENT_OPENCL 1
/* `handle` is a timeline VkSemaphore of the backend's device
 * (ONNXIFI_SDK_BACKEND_PROPERTY_VULKAN_DEVICE). It is complete when it reaches `value`. */
#define ONNXIFI_SDK_NATIVE_EVENT_VULKAN 2
/* `handle` is a CUevent or cudaEvent_t, of any device. One that is imported stands for the work
 * that it was recorded behind by then. One that is exported is the receiver's to destroy; it is
 * complete also if the run failed, as CUDA has no event that ends in an error. */
#define ONNXIFI_SDK_NATIVE_EVENT_CUDA 3

typedef struct onnxNativeEvent {
  size_t struct_size;
  /* ONNXIFI_SDK_NATIVE_EVENT_*. */
  uint32_t kind;
  onnxPointer handle;
  /* Of a timeline semaphore. Other kinds ignore it. */
  uint64_t value;
} onnxNativeEvent;

/*
 * Makes an event that is signalled when the driver's event is complete, for use in input fences. If
 * the driver's event ends in an error, runs that wait for it end with BACKEND_UNAVAILABLE. The
 * driver's event must belong to the backend's context (ONNXIFI_BACKEND_OPENCL_CONTEXT). The caller
 * may release it when this returns, and releases `*event` by onnxReleaseEvent. A VkSemaphore has no
 * owners, so it must live until it reached the value or the backend is released. What still waits
 * when onnxReleaseBackend is called, graphs and events left or not, ends with BACKEND_UNAVAILABLE.
 * Does not wait.
 * Statuses: INVALID_BACKEND, INVALID_POINTER, INVALID_SIZE (a struct_size that does not hold the
 * handle), INVALID_FENCE_TYPE (an unknown kind), UNSUPPORTED_FENCE_TYPE (a kind that this backend
 * does not support), INVALID_EVENT (a handle that is 0 or of another context), NO_SYSTEM_MEMORY,
 * NO_DEVICE_RESOURCES, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxImportEventFunction)(
    onnxBackend backend, const onnxNativeEvent* native, onnxEvent* event);

/*
 * Makes a driver's event that is complete when `event`, a run's or the caller's own, is signalled.
 * Work of the driver may wait for it at once. If the run fails, the driver's event ends in an
 * error. The caller sets `native->struct_size` and `native->kind`, gets `native->handle`, and
 * releases that by the driver's function (clReleaseEvent, vkDestroySemaphore). Does not wait.
 *
 * A VkSemaphore goes from 0 to `native->value`, which is 1, or to 2 if the run fails: Vulkan has no
 * error that a semaphore could end in. The caller destroys it after it was signalled.
 * Statuses: INVALID_EVENT, INVALID_POINTER, INVALID_SIZE, INVALID_FENCE_TYPE,
 * UNSUPPORTED_FENCE_TYPE, NO_SYSTEM_MEMORY, NO_DEVICE_RESOURCES, BACKEND_UNAVAILABLE,
 * INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxExportEventFunction)(
    onnxEvent event, onnxNativeEvent* native);

/* ---- Memory that the host and a device share ---- */

typedef struct onnxSharedMemory {
  size_t struct_size;
  /* Address for the host, and for descriptors of ONNXIFI_MEMORY_TYPE_CPU. Aligned to at least 64
   * bytes. Not cleared. */
  onnxPointer address;
  /* Memory type and buffer for descriptors of the same bytes, for graphs of the backend. */
  onnxEnum memory_type;
  onnxPointer buffer;
} onnxSharedMemory;

/*
 * Allocates memory that the host and the backend's device both use in place, so that tensors are
 * not copied between them. A run sees what the host wrote before the run started. The host sees
 * what the run wrote once the run has finished. `size_bytes` is at least 1. The caller sets
 * `memory->struct_size` and gets the rest. The memory lives until onnxReleaseSharedMemory, or until
 * its backend is released.
 * Statuses: INVALID_BACKEND, INVALID_POINTER, INVALID_SIZE (no bytes, or a struct_size that does
 * not hold the buffer), UNSUPPORTED_MEMORY_TYPE (the device has no such memory), NO_SYSTEM_MEMORY,
 * NO_DEVICE_MEMORY, NO_SYSTEM_RESOURCES, NO_DEVICE_RESOURCES, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxAllocateSharedMemoryFunction)(
    onnxBackend backend, uint64_t size_bytes, onnxSharedMemory* memory);

/*
 * Releases the memory at `address`. No run may use it any more, and every graph that had it bound
 * must be bound to other tensors or released.
 * Statuses: INVALID_BACKEND, INVALID_POINTER (NULL, or not an address of the backend's shared
 * memory), INTERNAL_ERROR.
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
#define ONNXIFI_SDK_FAMILY_ATTENTION "Attention"
#define ONNXIFI_SDK_FAMILY_RECURRENT "Recurrent"
#define ONNXIFI_SDK_FAMILY_HOST "Host"
#define ONNXIFI_SDK_FAMILY_CONTROL "Control"

/* ---- Counters of a graph, since it was initialised ---- */

typedef struct onnxGraphCounters {
  size_t struct_size;
  /* Number of times a graph was lowered to a tensor program. */
  uint64_t lowerings;
  /* Number of shapes for which extents, offsets and memory were computed. */
  uint64_t bindings;
  /* Number of blocks of device or host memory that were allocated for runs. */
  uint64_t allocations;
  /* Number of copies of whole tensors that no operator requested: staging, conversion, round trips
   * to the host. */
  uint64_t copies;
  uint64_t kernel_builds;
  uint64_t runs;
  /*
   * Number of steps per family (ONNXIFI_SDK_FAMILY_...), subgraphs included. Constants and views
   * need none. All bits are set if a library does not report it.
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
   * Number of times a run waited for its device before its end: for numbers that decide what
   * follows, the condition of a branch or loop, or a host function. 0 if the device is the host.
   */
  uint64_t waits;
  /*
   * Number of times runs handed work to the driver of their device. 0 if the device is the host.
   * All bits are set if a library does not report it.
   */
  uint64_t submissions;
  /*
   * Number of times work of a run was recorded for later runs, which then hand it over as a whole.
   * It stands still while the same few shapes and buffers come again. 0 if the device records
   * nothing.
   */
  uint64_t recordings;
  /* Steps of the family ONNXIFI_SDK_FAMILY_ATTENTION, as those of the others above. */
  uint64_t attention_steps;
  /* Likewise of ONNXIFI_SDK_FAMILY_RECURRENT. */
  uint64_t recurrent_steps;
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
  /* Node in graph.node of the main graph that the step computes, the first of several.
   * ONNXIFI_SDK_UNKNOWN if the step computes none by itself. */
  int64_t node_index;
  /* The step family, ONNXIFI_SDK_FAMILY_..., or a name of the library's own. */
  const char* family;
  /* The implementation, such as "onednn convolution", and what it chose for these extents, such as
   * the name of a library's kernel. `detail` is empty if there is nothing to add. */
  const char* implementation;
  const char* detail;
  /* Element type of the first result, and the `rank` extents that the step iterates over. */
  onnxEnum data_type;
  uint32_t rank;
  const int64_t* extents;
  /* Implementations that come before this one and were rejected, one sentence with the reason
   * each. */
  uint32_t rejected_count;
  const char* const* rejected;
  /* Time since the run started. Steps may overlap. */
  uint64_t start_ns;
  uint64_t duration_ns;
  /* Work by definition, whatever the implementation does: floating-point operations (a multiply-add
   * is two), and bytes that must be read and written once. */
  uint64_t flops;
  uint64_t read_bytes;
  uint64_t written_bytes;
  /* ONNXIFI_SDK_PRECISION_*: to what the step rounded float32 operands of its products. */
  uint32_t precision;
} onnxStepRecord;

typedef void(ONNXIFI_ABI* onnxStepRecordCallback)(void* context, const onnxStepRecord* record);

/*
 * Calls `callback` for every step of the run that finished last, in the order of their start. A
 * loop or branch is one step; the steps inside it are not reported.
 * Statuses: INVALID_GRAPH, INVALID_POINTER, INVALID_STATE (initialised without
 * ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE, or no run has finished), NO_SYSTEM_MEMORY,
 * BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetGraphProfileFunction)(
    onnxGraph graph, onnxStepRecordCallback callback, void* context);

/* ---- Load profile: what making a graph ready took ---- */

typedef struct onnxLoadRecord {
  size_t struct_size;
  /* Name of the stage, the library's own, such as "import" or that of a pass. */
  const char* stage;
  /* Number of times the stage ran, and its time in all. */
  uint64_t count;
  uint64_t duration_ns;
} onnxLoadRecord;

typedef void(ONNXIFI_ABI* onnxLoadRecordCallback)(void* context, const onnxLoadRecord* record);

/*
 * Calls `callback` for every stage of onnxInitGraph, in the order in which they first ended. Stages
 * do not overlap. Works for every graph, without a property.
 * Statuses: INVALID_GRAPH, INVALID_POINTER, NO_SYSTEM_MEMORY, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetGraphLoadProfileFunction)(
    onnxGraph graph, onnxLoadRecordCallback callback, void* context);

/* ---- Names of devices ---- */

/*
 * Copies the device key by which tools select the ID: "auto", or "plugin:index" such as "cpu:0".
 * `*keySize` and the statuses are as for strings of onnxGetBackendInfo.
 * Statuses: FALLBACK, INVALID_ID, INVALID_POINTER, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetBackendKeyFunction)(
    onnxBackendID backendID, char* key, size_t* keySize);

/* ---- Discovery report: what became of each candidate plugin (libonnxifi only) ---- */

#define ONNXIFI_SDK_VERDICT_LOADED 0
/* The file or folder does not exist or cannot be read. */
#define ONNXIFI_SDK_VERDICT_NOT_FOUND 1
/* The manifest beside it is wrong. */
#define ONNXIFI_SDK_VERDICT_BAD_MANIFEST 2
/* The system's linker refuses it. `detail` is the linker's message. */
#define ONNXIFI_SDK_VERDICT_NOT_LOADABLE 3
/* It lacks one of the fifteen functions. */
#define ONNXIFI_SDK_VERDICT_MISSING_FUNCTION 4
/* One of its functions lies in another library. */
#define ONNXIFI_SDK_VERDICT_FOREIGN_FUNCTION 5
/* It is libonnxifi itself, or another wrapper of plugins. */
#define ONNXIFI_SDK_VERDICT_IS_LOADER 6
/* The file was found before, by another rule. */
#define ONNXIFI_SDK_VERDICT_DUPLICATE 7
/* It loads, but cannot list its devices. */
#define ONNXIFI_SDK_VERDICT_NOT_ENUMERABLE 8
/* Its manifest names a dialect or version of the interface that libonnxifi does not support. */
#define ONNXIFI_SDK_VERDICT_WRONG_INTERFACE 9
/* An environment variable that is ignored because the process runs with raised privileges. */
#define ONNXIFI_SDK_VERDICT_IGNORED 10
/* A call into it failed as no call into a plugin may: it threw an exception, or it asked for more
 * than a limit allows. `sentence` names the function. Nothing more is asked of the plugin. */
#define ONNXIFI_SDK_VERDICT_QUARANTINED 11
/* ONNXIFI_DISABLE names it. It is not opened. */
#define ONNXIFI_SDK_VERDICT_DISABLED 12

typedef struct onnxDiscoveryRecord {
  size_t struct_size;
  /* Name of the plugin, e.g. "cpu". */
  const char* plugin;
  /* The absolute path, resolved. If it cannot be resolved, the path as given. */
  const char* path;
  /* The rule that made it a candidate, such as "ONNXIFI_BACKENDS" or "beside libonnxifi". */
  const char* rule;
  /* ONNXIFI_SDK_VERDICT_*. */
  uint32_t verdict;
  /* Full sentence. */
  const char* sentence;
  /* The message of the system's linker, verbatim. Empty if there is none. */
  const char* detail;
  /* Priority of its manifest, 0 without one. Smaller comes first. */
  int32_t priority;
  uint32_t device_count;
  uint64_t microseconds;
} onnxDiscoveryRecord;

typedef void(ONNXIFI_ABI* onnxDiscoveryRecordCallback)(void* context,
                                                       const onnxDiscoveryRecord* record);

/*
 * Calls `callback` for every candidate, in the order in which they were tried. Found with a NULL
 * ID.
 * Statuses: INVALID_POINTER, NO_SYSTEM_MEMORY, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetDiscoveryReportFunction)(
    onnxDiscoveryRecordCallback callback, void* context);

/* ---- Plan: which device runs what of a graph (libonnxifi only) ---- */

typedef struct onnxPlanIsland {
  size_t struct_size;
  /* Number of the island, from 0, in an order in which they can run. */
  uint32_t island_index;
  /* Key of onnxGetBackendKey, such as "cpu:0". After that device failed, the keys of the devices of
   * its fallback graph, separated by spaces. */
  const char* device_key;
  /* Nodes in graph.node of the main graph, ascending. None if its device has the graph whole.
   * Constants, and shapes that the model fixes, belong to every island that reads them. */
  uint32_t node_count;
  const uint32_t* nodes;
  /* Islands that produce the inputs of this one, ascending. */
  uint32_t after_count;
  const uint32_t* after;
  /* Times from the start of a run: those of the plan, and those of the run that finished last. 0 if
   * devices were not compared, or no run has finished. */
  uint64_t estimated_start_ns;
  uint64_t estimated_duration_ns;
  uint64_t measured_start_ns;
  uint64_t measured_duration_ns;
  /* Number of copies of whole tensors that its device made so far, as in onnxGraphCounters. All
   * bits are set if its library does not report it. */
  uint64_t copies;
} onnxPlanIsland;

typedef struct onnxPlanCut {
  size_t struct_size;
  const char* value_name;
  /* Numbers of islands. ONNXIFI_SDK_UNKNOWN is the caller, who provides inputs and takes
   * outputs. */
  int64_t from_island;
  int64_t to_island;
  /* Size of the tensor. Unknown extents count as 1. */
  uint64_t size_bytes;
  /* Number of times libonnxifi copied the value so far, counted at its first cut. Memory that both
   * sides can use is not copied. */
  uint64_t copies;
} onnxPlanCut;

typedef void(ONNXIFI_ABI* onnxPlanIslandCallback)(void* context, const onnxPlanIsland* island);
typedef void(ONNXIFI_ABI* onnxPlanCutCallback)(void* context, const onnxPlanCut* cut);

/*
 * Calls `islandCallback` for every island of the graph in order, then `cutCallback` for every value
 * that crosses from one island to another. A graph that one device has whole is one island without
 * cuts.
 * Statuses: INVALID_GRAPH, INVALID_POINTER, NO_SYSTEM_MEMORY, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetGraphPlanFunction)(
    onnxGraph graph, onnxPlanIslandCallback islandCallback, onnxPlanCutCallback cutCallback,
    void* context);

/* ---- Timed wait, as published by the foxi fork ---- */

/*
 * Waits until the event is signalled or `timeoutMs` milliseconds have passed (0: no limit), and
 * writes the event's state to `*eventState`. If it is signalled, `*eventStatus` is the result of
 * the work and `message` its sentence. `*messageLength` is the capacity on entry, and on return the
 * bytes used with the NUL, or 0 without a message. A longer sentence is truncated.
 * Statuses: INVALID_EVENT, INVALID_POINTER, BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxWaitEventForFunction)(
    onnxEvent event, uint32_t timeoutMs, onnxEventState* eventState, onnxStatus* eventStatus,
    char* message, size_t* messageLength);

#ifdef __cplusplus
}
#endif

#endif /* ONNXIFI_SDK_H */
