// SPDX-License-Identifier: Apache-2.0
//
// Provider: what a library must implement to export ONNXIFI. core/abi does everything that the
// interface asks of every library (argument checks in the documented order, handles, status tables,
// exceptions, last error) and calls this. core/plugin implements it for plugins, and the dispatcher
// for libonnxifi.
//
// Who calls what:  onnxGetBackendIDs -> Provider::EnumerateBackendIds
//                  onnxGetBackendInfo/Compatibility, onnxInitBackend -> BackendId
//                  onnxInitGraph, onnxInitEvent -> Backend
//                  onnxSetGraphIO -> Graph::Bind,  onnxRunGraph -> Graph::Run
//
// A status returned from here reaches the caller unchanged if the interface lists its code for the
// exported function; any other code becomes INTERNAL_ERROR with the sentence kept. Functions may be
// called from several threads at once unless they say otherwise.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_PROVIDER_H_
#define ONNXIFI_BACKENDS_CORE_ABI_PROVIDER_H_

#include <onnx/onnxifi.h>
#include <onnx/onnxifi_ext.h>
#include <onnxifi/auto_device.h>
#include <onnxifi/sdk.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "backends/core/abi/event.h"
#include "backends/core/abi/tensor_descriptor.h"
#include "backends/core/base/log.h"
#include "backends/core/base/result.h"
#include "backends/core/base/status.h"
#include "backends/core/tensor/permissions.h"

namespace onnxifi::abi {

// Answer to an information query; numbers cover onnxEnum and onnxBitfield, pointers the OpenCL IDs.
using InfoValue = std::variant<uint64_t, std::string, void*>;

// One entry of a property list.
struct Property {
  uint64_t key = 0;
  uint64_t value = 0;
};

struct BackendProperties {
  // ONNXIFI_OPTIMIZATION_*.
  onnxEnum optimization = ONNXIFI_OPTIMIZATION_HIGH_THROUGHPUT;
  base::LogLevel log_level = base::LogLevel::kWarning;
  // The whole list as given, the two above included, in order.
  std::vector<Property> given;
};

struct GraphProperties : tensor::Permissions {
  // Folder of the model's external data; without it such a model is refused.
  std::optional<std::string> base_folder;
  // Runs keep what Graph::Profile tells.
  bool is_profiled = false;
  // Inputs and outputs may be of any kind: they are bound as values.
  bool takes_values = false;
  // The model is a private mapping of a file that nobody has written to.
  bool is_mapped_model = false;
  // The model's bytes stay, unchanged, for as long as the graph.
  bool is_lasting_model = false;
  // A run that may start at once is carried out by the thread that starts it.
  bool caller_runs = false;
  // The whole list as given, in order.
  std::vector<Property> given;
};

// What onnxInitGraph asks for. Everything in it is valid during the call only.
struct GraphRequest {
  // At least one byte.
  std::span<const std::byte> model;
  // Names unique and not empty, CPU memory, known element types. Left to the receiver, who knows
  // the model: whether the name exists (INVALID_NAME), whether an extent of 0 is declared
  // (INVALID_SHAPE), type and shape against the model.
  std::span<const TensorDescriptor> weights;
  GraphProperties properties;
  // Of the backend, repeated here for the stages that see only the request.
  onnxEnum optimization = ONNXIFI_OPTIMIZATION_HIGH_THROUGHPUT;
  base::LogLevel log_level = base::LogLevel::kWarning;
};

// One reason about one node; the C++ side of onnxNodeVerdict, field by field.
struct NodeVerdict {
  uint32_t node_index = 0;
  base::Code code = base::Code::kOk;
  std::string node_name;
  std::string domain;
  std::string operator_type;
  int64_t opset_version = ONNXIFI_SDK_UNKNOWN;
  uint32_t subject_kind = ONNXIFI_SDK_SUBJECT_NONE;
  std::string subject;
  std::string sentence;
  std::string limit;
};

struct Explanation {
  // Same answer as CheckCompatibility for the same bytes.
  base::Status verdict;
  // Every node in order; a node with several reasons has several entries.
  std::vector<NodeVerdict> nodes;
};

struct GraphCounters {
  uint64_t lowerings = 0;
  uint64_t bindings = 0;
  uint64_t allocations = 0;
  uint64_t copies = 0;
  uint64_t kernel_builds = 0;
  uint64_t runs = 0;
  // Steps of the tensor program by family; kUnknown where they cannot be told.
  static constexpr uint64_t kUnknown = ~uint64_t{0};
  uint64_t map_steps = kUnknown;
  uint64_t reduce_steps = kUnknown;
  uint64_t row_steps = kUnknown;
  uint64_t scan_steps = kUnknown;
  uint64_t contract_steps = kUnknown;
  uint64_t window_steps = kUnknown;
  uint64_t index_steps = kUnknown;
  uint64_t host_steps = kUnknown;
  uint64_t control_steps = kUnknown;
  uint64_t attention_steps = kUnknown;
  uint64_t recurrent_steps = kUnknown;
  uint64_t waits = 0;
  uint64_t submissions = 0;  // kUnknown where the queue does not tell
  uint64_t recordings = 0;
};

// What one step of a run did; the C++ side of onnxStepRecord, field by field.
struct StepRecord {
  int64_t node_index = ONNXIFI_SDK_UNKNOWN;
  std::string family;
  std::string implementation;
  std::string detail;
  onnxEnum data_type = ONNXIFI_DATATYPE_UNDEFINED;
  std::vector<int64_t> extents;
  std::vector<std::string> rejected;
  uint64_t start_ns = 0;
  uint64_t duration_ns = 0;
  uint64_t flops = 0;
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
  uint32_t precision = ONNXIFI_SDK_PRECISION_FLOAT32;
};

// What one stage of making a graph ready took; the C++ side of onnxLoadRecord.
struct LoadRecord {
  std::string stage;
  uint64_t count = 0;
  uint64_t duration_ns = 0;
};

// Memory of one set of inputs and outputs, in the order of the graph's signature (in the caller's
// order when the graph has none).
struct GraphTensors {
  std::vector<TensorDescriptor> inputs;
  std::vector<TensorDescriptor> outputs;
  // Outputs that are not listed, where the graph has no signature, are kept by the run.
  bool keeps_others = false;
};

// What Graph::Bind made of a GraphTensors. Immutable; derive from it to keep what was computed.
class Binding {
 public:
  explicit Binding(GraphTensors tensors) : tensors_(std::move(tensors)) {}
  virtual ~Binding() = default;
  const GraphTensors& tensors() const { return tensors_; }
  // Whether what was bound for one run serves later ones with the same descriptors as well: nothing
  // of it depends on what lies at their addresses, or is kept of that.
  virtual bool ServesLaterRuns() const { return false; }

 private:
  const GraphTensors tensors_;
};

class Graph {
 public:
  // Called when no call is under way, after Close if a run was ever accepted.
  virtual ~Graph() = default;

  // The tensors to bind, or nullptr when somebody behind this graph checks names, types and shapes.
  // Never changes.
  virtual const Signature* signature() const = 0;
  // True makes onnxInitGraph answer FALLBACK with the valid graph.
  virtual bool is_emulated() const { return false; }

  // Prepares runs with these tensors, which are checked against the signature: one for each entry,
  // in its order, one number for each symbol. Statuses: UNSUPPORTED_SHAPE, MISMATCHING_SHAPE for
  // what inference finds, resources. Shared because runs in flight keep theirs when it is replaced.
  virtual base::Result<std::shared_ptr<const Binding>> Bind(GraphTensors tensors) = 0;

  // The same for exactly one Run whose `input` is null, so that a graph which only forwards can
  // hand over binding and run in one step.
  virtual base::Result<std::shared_ptr<const Binding>> BindForOneRun(GraphTensors tensors) {
    return Bind(std::move(tensors));
  }

  // Accepts one run and returns without waiting for `input`, which is an event of this backend
  // (Backend::NewEvent or an earlier Run) or null when the inputs are complete. Runs start in the
  // order of the calls. The event returned is signalled when the outputs are complete, with the
  // run's status; if `input` finishes with an error, the run finishes with it, unstarted. The
  // caller of onnxWaitEvent sees BACKEND_UNAVAILABLE or INTERNAL_ERROR, of onnxWaitEventFor the
  // code itself.
  virtual base::Result<std::shared_ptr<Event>> Run(std::shared_ptr<const Binding> binding,
                                                   std::shared_ptr<Event> input) = 0;

  // As Run, where the inputs are complete once everything is that the queue which the backend
  // shares with the caller holds by now.
  virtual base::Result<std::shared_ptr<Event>> RunAfterSharedQueue(
      std::shared_ptr<const Binding> binding) {
    return Run(std::move(binding), /*input=*/nullptr);
  }
  // Accepts one run whose inputs and outputs are ordered by a queue that the backend shares with
  // the caller: when this returns, the run is in that queue. UNSUPPORTED_FENCE_TYPE without one.
  virtual base::Status RunInSharedQueue(std::shared_ptr<const Binding> /*binding*/) {
    return base::Status(base::Code::kUnsupportedFenceType,
                        "The backend shares no queue with the caller, which implicit"
                        " synchronisation needs.");
  }

  // Blocks until every accepted run has finished. Called once, before the destructor.
  virtual void Close() = 0;

  // Shapes of all outputs in order, for inputs as in Bind whose buffers are not read.
  virtual base::Result<std::vector<TensorShape>> InferOutputShapes(
      std::span<const TensorDescriptor> inputs) = 0;
  virtual base::Result<GraphCounters> Counters() = 0;
  // The steps of the run that finished last. INVALID_STATE if none has, or without
  // GraphProperties::is_profiled.
  virtual base::Result<std::vector<StepRecord>> Profile() = 0;
  // The stages of Backend::InitGraph.
  virtual base::Result<std::vector<LoadRecord>> LoadProfile() = 0;
};

// Memory on which the host and a device both work where it lies.
struct SharedMemory {
  onnxPointer address = 0;
  // As descriptors of the backend's graphs carry it.
  onnxEnum memory_type = ONNXIFI_MEMORY_TYPE_CPU;
  onnxPointer buffer = 0;
  std::shared_ptr<const void> owner = nullptr;
};

// An event of a driver: a kind of ONNXIFI_SDK_NATIVE_EVENT_..., and the handle with its value.
struct NativeEvent {
  uint32_t kind = 0;
  onnxPointer handle = 0;
  uint64_t value = 0;
};

class Backend {
 public:
  // Called when all its graphs, events and shared memory are gone.
  virtual ~Backend() = default;

  // The caller has released it; its graphs and events may be left. Called once. What waits for an
  // event of a driver's ends with BACKEND_UNAVAILABLE.
  virtual void Release() {}

  virtual base::Result<std::unique_ptr<Graph>> InitGraph(const GraphRequest& request) = 0;
  // An event of the caller's. Plugins return a LocalEvent of Origin::kCaller.
  virtual base::Result<std::shared_ptr<Event>> NewEvent() = 0;

  // An event that is signalled with one of the driver's. UNSUPPORTED_FENCE_TYPE for a kind that it
  // does not take, INVALID_EVENT.
  virtual base::Result<std::shared_ptr<Event>> ImportEvent(const NativeEvent& native);
  // The other way round: a new event of the driver's, which the caller releases. `event` is one of
  // this backend's. UNSUPPORTED_FENCE_TYPE.
  virtual base::Result<NativeEvent> ExportEvent(uint32_t kind, std::shared_ptr<Event> event);
  // Whether fences may be implicit; where this is true, the graph's functions with shared queues
  // are called, which may still refuse.
  virtual bool TakesImplicitFences() const { return false; }

  // `size_bytes` > 0. UNSUPPORTED_MEMORY_TYPE where the device has no such memory; resource codes.
  virtual base::Result<SharedMemory> AllocateSharedMemory(int64_t size_bytes);

  // Whether descriptors may carry this element type. A type of the interface that is not taken is
  // UNSUPPORTED_DATATYPE, any other INVALID_DATATYPE.
  virtual bool TakesDataType(onnxEnum data_type) const = 0;
  // Whether input and output buffers may be of this memory type.
  virtual bool TakesMemoryType(onnxEnum memory_type) const {
    return memory_type == ONNXIFI_MEMORY_TYPE_CPU;
  }
};

// One software-plus-device combination. Cheap, const, starts no device runtime.
class BackendId {
 public:
  virtual ~BackendId() = default;

  // How tools select it: "auto" or "plugin:index".
  virtual std::string key() const = 0;
  // UNSUPPORTED_ATTRIBUTE for a query that it does not answer. core/abi answers ONNXIFI_VERSION
  // itself, puts the extensions that it implements in front of the EXTENSIONS given here (empty
  // for most) and adds the SDK's own keys to GRAPH_INIT_PROPERTIES where they are taken.
  virtual base::Result<InfoValue> Info(onnxBackendInfo query) const = 0;
  // Ok, FALLBACK, or why not; see onnxGetBackendCompatibility.
  virtual base::Status CheckCompatibility(std::span<const std::byte> model) const = 0;
  // The same where inputs and outputs may be of any kind; see onnxGetBackendValueCompatibility.
  virtual base::Status CheckValueCompatibility(std::span<const std::byte> model) const {
    return CheckCompatibility(model);
  }
  virtual base::Result<Explanation> Explain(std::span<const std::byte> model) const = 0;
  virtual base::Result<std::unique_ptr<Backend>> InitBackend(
      const BackendProperties& properties) const = 0;

  // Keys beyond OPTIMIZATION and LOG_LEVEL that InitBackend takes, and those that InitGraph takes.
  // Any other key is UNSUPPORTED_PROPERTY.
  virtual bool TakesBackendProperty(uint64_t /*key*/) const { return false; }
  virtual bool TakesGraphProperty(uint64_t key) const {
    return key == ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER ||
           key == ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE || key == ONNXIFI_SDK_GRAPH_PROPERTY_VALUES ||
           key == ONNXIFI_SDK_GRAPH_PROPERTY_FAST_ALGORITHMS ||
           key == ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION ||
           key == ONNXIFI_SDK_GRAPH_PROPERTY_DYNAMIC_QUANTIZATION ||
           key == ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL ||
           key == ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL ||
           key == ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS ||
           key == ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE;
  }
  // A function beyond those of core/abi, good for objects of this ID; nullptr when there is none.
  virtual onnxExtensionFunctionPointer FindFunction(std::string_view /*name*/) const {
    return nullptr;
  }
};

class Provider {
 public:
  virtual ~Provider() = default;

  // The IDs present now, in the order of onnxGetBackendIDs. Every pointer ever returned stays valid
  // as long as the Provider and stands for the same device.
  virtual base::Result<std::vector<const BackendId*>> EnumerateBackendIds() = 0;
  // A function of the whole library beyond those of core/abi; nullptr when there is none.
  virtual onnxExtensionFunctionPointer FindFunction(std::string_view /*name*/) const {
    return nullptr;
  }
};

// Supplied by the library that links core/abi; called once, on the first exported call. Must be
// cheap: the process may only want to know whether there is a device.
std::unique_ptr<Provider> MakeProvider();

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_PROVIDER_H_
