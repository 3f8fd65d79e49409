// SPDX-License-Identifier: Apache-2.0
//
// C++ over ONNXIFI. Handles release themselves, memory is passed as spans, and a call returns
// either a value or an Error with its sentence. Header-only, C++20, no exceptions. Programs start
// with onnxifi::Library::Open (links onnxifi::loader) or ::Linked (links libonnxifi itself).
//
// Lifetime: every object keeps alive the library and the object from which it was made.
// Threads: as for the functions that it calls.

#ifndef ONNXIFI_ONNXIFI_HPP_
#define ONNXIFI_ONNXIFI_HPP_

#include <onnx/onnxifi.h>
#include <onnx/onnxifi_ext.h>
#include <onnx/onnxifi_loader.h>
#include <onnxifi/auto_device.h>
#include <onnxifi/sdk.h>
#include <onnxifi/statuses.h>

#if __cplusplus <= 201703L && !(defined(_MSVC_LANG) && _MSVC_LANG > 201703L)
#error "onnxifi.hpp is C++20: compile with -std=c++20 (CMake: target_compile_features, cxx_std_20)."
#endif

#ifndef _WIN32
#include <dlfcn.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace onnxifi {

// "INVALID_SHAPE" for ONNXIFI_STATUS_INVALID_SHAPE; "status <number>" for an unknown code.
inline std::string StatusName(onnxStatus status) {
  switch (status) {
#define ONNXIFI_SDK_CASE(name, code_name, meaning) \
  case ONNXIFI_STATUS_##name:                      \
    return #name;
    ONNXIFI_SDK_STATUSES(ONNXIFI_SDK_CASE)
#undef ONNXIFI_SDK_CASE
    default:
      return "status " + std::to_string(status);
  }
}

// What any library says by the status, as a sentence; empty for an unknown code.
inline std::string_view StatusMeaning(onnxStatus status) {
  switch (status) {
#define ONNXIFI_SDK_CASE(name, code_name, meaning) \
  case ONNXIFI_STATUS_##name:                      \
    return meaning;
    ONNXIFI_SDK_STATUSES(ONNXIFI_SDK_CASE)
#undef ONNXIFI_SDK_CASE
    default:
      return {};
  }
}

struct Error {
  onnxStatus status = ONNXIFI_STATUS_INTERNAL_ERROR;
  // Empty if the library gives none.
  std::string sentence;

  // The name of the status and the sentence, or what the status means where there is none.
  std::string Text() const {
    const std::string_view told = sentence.empty() ? StatusMeaning(status) : sentence;
    return StatusName(status) + (told.empty() ? "" : ": ") + std::string(told);
  }
};

// A value, or the Error that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : content_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return std::holds_alternative<T>(content_); }
  explicit operator bool() const { return ok(); }
  // Only when not ok.
  const Error& error() const { return *std::get_if<Error>(&content_); }
  // Only when ok.
  T& operator*() & { return *std::get_if<T>(&content_); }
  const T& operator*() const& { return *std::get_if<T>(&content_); }
  T&& operator*() && { return std::move(*std::get_if<T>(&content_)); }
  T* operator->() { return std::get_if<T>(&content_); }
  const T* operator->() const { return std::get_if<T>(&content_); }

 private:
  std::variant<T, Error> content_;
};

// Done, or the Error.
using Outcome = Result<std::monostate>;

// A dense tensor in memory that is lent to a call.
struct Tensor {
  std::string name;
  onnxEnum data_type = ONNXIFI_DATATYPE_FLOAT32;
  std::vector<uint64_t> shape;
  // Row-major. Written only if the tensor is an output. For memory of another type than CPU, the
  // handle that the interface names, such as a cl_mem.
  void* data = nullptr;
  onnxEnum memory_type = ONNXIFI_MEMORY_TYPE_CPU;
};

// An input or output of any kind, which owns its memory; see onnxValue.
struct Value {
  std::string name;
  uint32_t kind = ONNXIFI_SDK_VALUE_TENSOR;
  // A tensor, or the keys of a map: elements in `data`, or `strings`.
  onnxEnum data_type = ONNXIFI_DATATYPE_FLOAT32;
  std::vector<int64_t> extents;
  std::vector<std::byte> data;
  std::vector<std::string> strings;
  // A sequence, or the values of a map.
  std::vector<Value> elements;
};

struct OutputShape {
  std::string name;
  onnxEnum data_type = ONNXIFI_DATATYPE_UNDEFINED;
  bool has_rank = true;
  // ONNXIFI_SDK_UNKNOWN if the extent depends on data.
  std::vector<int64_t> extents;
};

// One reason about one node; see onnxNodeVerdict.
struct NodeVerdict {
  uint32_t node_index = 0;
  onnxStatus status = ONNXIFI_STATUS_SUCCESS;
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
  // What onnxGetBackendCompatibility answers.
  onnxStatus status = ONNXIFI_STATUS_SUCCESS;
  std::string sentence;
  std::vector<NodeVerdict> nodes;
};

// One answer of a device about one node; see onnxNodeAnswer.
struct NodeAnswer {
  NodeVerdict verdict;
  uint32_t role = ONNXIFI_SDK_NODE_WORK;
  // Key of the device that the model names for the node. Empty if none.
  std::string placement;
  // Number of the reason within the call, from 1. 0 if the node runs.
  uint32_t reason = 0;
};

// What one device answers about a model; see onnxDeviceAnswer.
struct DeviceAnswer {
  std::string device_key;
  onnxStatus status = ONNXIFI_STATUS_SUCCESS;
  std::string sentence;
  // ONNXIFI_SDK_NODES_*: how `nodes` was obtained.
  uint32_t nodes_told = ONNXIFI_SDK_NODES_EXPLAINED;
  // In the model's order. A node with several reasons is there once for each.
  std::vector<NodeAnswer> nodes;
  // Equal for devices of several plugins that are one physical device. 0 if no other is the same.
  uint64_t physical_device = 0;

  bool runs_model() const {
    return status == ONNXIFI_STATUS_SUCCESS || status == ONNXIFI_STATUS_FALLBACK;
  }
};

// What one step of a run did; see onnxStepRecord.
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

// The time of one stage of InitGraph; see onnxLoadRecord.
struct LoadRecord {
  std::string stage;
  uint64_t count = 0;
  uint64_t duration_ns = 0;
};

// One island of a graph; see onnxPlanIsland.
struct PlanIsland {
  std::string device_key;
  std::vector<uint32_t> nodes;
  std::vector<uint32_t> after;
  uint64_t estimated_start_ns = 0;
  uint64_t estimated_duration_ns = 0;
  uint64_t measured_start_ns = 0;
  uint64_t measured_duration_ns = 0;
  uint64_t copies = 0;
};

// A value that crosses from one island to another; see onnxPlanCut.
struct PlanCut {
  std::string value_name;
  int64_t from_island = ONNXIFI_SDK_UNKNOWN;
  int64_t to_island = ONNXIFI_SDK_UNKNOWN;
  uint64_t size_bytes = 0;
  uint64_t copies = 0;
};

struct GraphPlan {
  std::vector<PlanIsland> islands;
  std::vector<PlanCut> cuts;
};

// The result of discovery for one candidate plugin; see onnxDiscoveryRecord.
struct DiscoveryRecord {
  std::string plugin;
  std::string path;
  std::string rule;
  uint32_t verdict = ONNXIFI_SDK_VERDICT_LOADED;
  std::string sentence;
  std::string detail;
  int32_t priority = 0;
  uint32_t device_count = 0;
  uint64_t microseconds = 0;
};

namespace detail {

// An empty span may have no address. The library says that the model has 0 bytes, not that it is
// NULL.
inline const void* AddressOf(std::span<const std::byte> model) {
  return model.empty() ? static_cast<const void*>("") : model.data();
}

// The functions of one library. Those of the SDK are null if it does not offer them.
struct Functions {
  onnxGetBackendIDsFunction get_backend_ids = nullptr;
  onnxReleaseBackendIDFunction release_backend_id = nullptr;
  onnxGetBackendInfoFunction get_backend_info = nullptr;
  onnxGetBackendCompatibilityFunction get_backend_compatibility = nullptr;
  onnxInitBackendFunction init_backend = nullptr;
  onnxReleaseBackendFunction release_backend = nullptr;
  onnxInitEventFunction init_event = nullptr;
  onnxSignalEventFunction signal_event = nullptr;
  onnxGetEventStateFunction get_event_state = nullptr;
  onnxWaitEventFunction wait_event = nullptr;
  onnxReleaseEventFunction release_event = nullptr;
  onnxInitGraphFunction init_graph = nullptr;
  onnxSetGraphIOFunction set_graph_io = nullptr;
  onnxRunGraphFunction run_graph = nullptr;
  onnxReleaseGraphFunction release_graph = nullptr;
  onnxGetExtensionFunctionAddressFunction get_extension = nullptr;
  onnxGetLastErrorMessageFunction get_last_error_message = nullptr;
  // Closed with the last object that uses the functions. Null if nothing is to be closed.
  void* system_handle = nullptr;

  Functions() = default;
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;
  ~Functions() {
#ifndef _WIN32
    if (system_handle != nullptr) dlclose(system_handle);
#endif
  }

  // The function for objects of `id`, or null.
  template <typename F>
  F Find(onnxBackendID id, const char* name) const {
    onnxExtensionFunctionPointer address = nullptr;
    if (get_extension == nullptr || get_extension(id, name, &address) != ONNXIFI_STATUS_SUCCESS) {
      return nullptr;
    }
    return reinterpret_cast<F>(reinterpret_cast<void (*)()>(address));
  }

  std::string LastErrorMessage() const {
    size_t size_bytes = 0;
    if (get_last_error_message == nullptr ||
        get_last_error_message(nullptr, &size_bytes) != ONNXIFI_STATUS_FALLBACK) {
      return std::string();
    }
    std::string text(size_bytes, '\0');
    if (get_last_error_message(text.data(), &size_bytes) != ONNXIFI_STATUS_SUCCESS) {
      return std::string();
    }
    text.resize(size_bytes - 1);
    return text;
  }

  Error MakeError(onnxStatus status) const { return {status, LastErrorMessage()}; }

  Outcome Check(onnxStatus status) const {
    if (status == ONNXIFI_STATUS_SUCCESS) return std::monostate();
    return MakeError(status);
  }
};

using FunctionsPointer = std::shared_ptr<const Functions>;

inline Error Missing(const char* function) {
  return {ONNXIFI_STATUS_UNIDENTIFIED_NAME,
          std::string("The library does not offer the extension ") + function + "."};
}

// Descriptors that point into `tensors`, which must outlive them.
inline std::vector<onnxTensorDescriptorV1> Describe(std::span<const Tensor> tensors) {
  std::vector<onnxTensorDescriptorV1> descriptors;
  descriptors.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    onnxTensorDescriptorV1 descriptor = {};
    descriptor.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
    descriptor.name = tensor.name.c_str();
    descriptor.dataType = tensor.data_type;
    descriptor.memoryType = tensor.memory_type;
    descriptor.dimensions = static_cast<uint32_t>(tensor.shape.size());
    descriptor.shape = tensor.shape.data();
    descriptor.buffer = reinterpret_cast<uintptr_t>(tensor.data);
    descriptors.push_back(descriptor);
  }
  return descriptors;
}

// Structures that point into values, which must outlive them.
class ValueList {
 public:
  explicit ValueList(std::span<const Value> values) {
    for (const Value& value : values) list_.push_back(Append(value));
  }
  ValueList(const ValueList&) = delete;
  ValueList& operator=(const ValueList&) = delete;

  const onnxValue* const* data() const { return list_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(list_.size()); }

 private:
  const onnxValue* Append(const Value& value) {
    onnxValue& record = records_.emplace_back();
    record = {};
    record.struct_size = sizeof(record);
    record.name = value.name.c_str();
    record.kind = value.kind;
    record.data_type = value.data_type;
    record.rank = static_cast<uint32_t>(value.extents.size());
    record.extents = value.extents.data();
    record.data = value.data.data();
    record.data_size_bytes = value.data.size();
    std::vector<onnxString>& strings = strings_.emplace_back();
    for (const std::string& text : value.strings) strings.push_back({text.data(), text.size()});
    record.strings = strings.data();
    std::vector<const onnxValue*>& elements = elements_.emplace_back();
    for (const Value& element : value.elements) elements.push_back(Append(element));
    record.element_count = elements.size();
    record.elements = elements.data();
    return &record;
  }

  std::vector<const onnxValue*> list_;
  // A deque, so that addresses of elements stay valid when it grows.
  std::deque<onnxValue> records_;
  std::deque<std::vector<onnxString>> strings_;
  std::deque<std::vector<const onnxValue*>> elements_;
};

inline Value CopyOf(const onnxValue& record) {
  Value value;
  value.name = record.name != nullptr ? record.name : "";
  value.kind = record.kind;
  value.data_type = record.data_type;
  value.extents.assign(record.extents, record.extents + record.rank);
  const auto* data = static_cast<const std::byte*>(record.data);
  value.data.assign(data, data + record.data_size_bytes);
  const bool has_elements =
      record.kind == ONNXIFI_SDK_VALUE_TENSOR || record.kind == ONNXIFI_SDK_VALUE_MAP;
  if (has_elements && record.data_type == ONNXIFI_SDK_DATATYPE_STRING) {
    int64_t count = 1;
    for (const int64_t extent : value.extents) count *= extent;
    for (int64_t k = 0; k < count; ++k) {
      value.strings.emplace_back(record.strings[k].data, record.strings[k].size_bytes);
    }
  }
  for (size_t k = 0; k < record.element_count; ++k) {
    value.elements.push_back(CopyOf(*record.elements[k]));
  }
  return value;
}

template <typename Visit>
void ONNXIFI_ABI VisitValue(void* visit, const onnxValue* value) {
  (*static_cast<Visit*>(visit))(*value);
}

inline void ONNXIFI_ABI AppendShape(void* shapes, const onnxTensorShape* shape) {
  static_cast<std::vector<OutputShape>*>(shapes)->push_back(
      {shape->name, shape->data_type, shape->has_rank != 0,
       std::vector<int64_t>(shape->extents, shape->extents + shape->rank)});
}

inline NodeVerdict CopyOf(const onnxNodeVerdict& verdict) {
  return {verdict.node_index,    verdict.status,        verdict.node_name,    verdict.domain,
          verdict.operator_type, verdict.opset_version, verdict.subject_kind, verdict.subject,
          verdict.sentence,      verdict.limit};
}

inline void ONNXIFI_ABI AppendVerdict(void* nodes, const onnxNodeVerdict* verdict) {
  static_cast<std::vector<NodeVerdict>*>(nodes)->push_back(CopyOf(*verdict));
}

inline void ONNXIFI_ABI AppendDeviceAnswer(void* devices, const onnxDeviceAnswer* answer) {
  constexpr size_t kEnd =
      offsetof(onnxDeviceAnswer, physical_device) + sizeof(answer->physical_device);
  static_cast<std::vector<DeviceAnswer>*>(devices)->push_back(
      {answer->device_key,
       answer->status,
       answer->sentence,
       answer->nodes,
       {},
       answer->struct_size >= kEnd ? answer->physical_device : 0});
}

inline void ONNXIFI_ABI AppendNodeAnswer(void* devices, const onnxNodeAnswer* answer) {
  static_cast<std::vector<DeviceAnswer>*>(devices)->back().nodes.push_back(
      {CopyOf(*answer->verdict), answer->role, answer->placement, answer->reason});
}

inline void ONNXIFI_ABI AppendStep(void* steps, const onnxStepRecord* step) {
  static_cast<std::vector<StepRecord>*>(steps)->push_back(
      {step->node_index, step->family, step->implementation, step->detail, step->data_type,
       std::vector<int64_t>(step->extents, step->extents + step->rank),
       std::vector<std::string>(step->rejected, step->rejected + step->rejected_count),
       step->start_ns, step->duration_ns, step->flops, step->read_bytes, step->written_bytes,
       // Libraries that know no precisions have shorter records.
       step->struct_size >= offsetof(onnxStepRecord, precision) + sizeof(step->precision)
           ? step->precision
           : ONNXIFI_SDK_PRECISION_FLOAT32});
}

inline void ONNXIFI_ABI AppendStage(void* stages, const onnxLoadRecord* stage) {
  static_cast<std::vector<LoadRecord>*>(stages)->push_back(
      {stage->stage, stage->count, stage->duration_ns});
}

inline void ONNXIFI_ABI AppendIsland(void* plan, const onnxPlanIsland* island) {
  static_cast<GraphPlan*>(plan)->islands.push_back(
      {island->device_key, std::vector<uint32_t>(island->nodes, island->nodes + island->node_count),
       std::vector<uint32_t>(island->after, island->after + island->after_count),
       island->estimated_start_ns, island->estimated_duration_ns, island->measured_start_ns,
       island->measured_duration_ns, island->copies});
}

inline void ONNXIFI_ABI AppendCut(void* plan, const onnxPlanCut* cut) {
  static_cast<GraphPlan*>(plan)->cuts.push_back(
      {cut->value_name, cut->from_island, cut->to_island, cut->size_bytes, cut->copies});
}

inline void ONNXIFI_ABI AppendRecord(void* records, const onnxDiscoveryRecord* record) {
  static_cast<std::vector<DiscoveryRecord>*>(records)->push_back(
      {record->plugin, record->path, record->rule, record->verdict, record->sentence,
       record->detail, record->priority, record->device_count, record->microseconds});
}

// A handle, the function that releases it, and the object that must outlive it. Move-only.
template <typename ReleaseFunction>
class Handle {
 public:
  Handle() = default;
  Handle(void* value, ReleaseFunction release, FunctionsPointer functions,
         std::shared_ptr<void> parent = nullptr)
      : value_(value),
        release_(release),
        functions_(std::move(functions)),
        parent_(std::move(parent)) {}
  Handle(Handle&& other) noexcept
      : value_(std::exchange(other.value_, nullptr)),
        release_(other.release_),
        functions_(std::move(other.functions_)),
        parent_(std::move(other.parent_)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      Reset();
      value_ = std::exchange(other.value_, nullptr);
      release_ = other.release_;
      functions_ = std::move(other.functions_);
      parent_ = std::move(other.parent_);
    }
    return *this;
  }
  ~Handle() { Reset(); }

  void* get() const { return value_; }
  const FunctionsPointer& functions() const { return functions_; }
  const std::shared_ptr<void>& parent() const { return parent_; }

  void Reset() {
    if (value_ != nullptr) static_cast<void>(release_(std::exchange(value_, nullptr)));
    parent_.reset();
  }

 private:
  void* value_ = nullptr;
  ReleaseFunction release_ = nullptr;
  FunctionsPointer functions_;
  std::shared_ptr<void> parent_;
};

}  // namespace detail

// Memory that the host and a backend's device share, from Backend::AllocateSharedMemory. Copies
// refer to the same memory, which is released with the last copy. No graph may have it bound then.
class SharedMemory {
 public:
  // The address for the host and for descriptors of ONNXIFI_MEMORY_TYPE_CPU. Aligned to at least 64
  // bytes.
  void* data() const { return reinterpret_cast<void*>(memory_.address); }
  // A tensor in it for graphs of the backend.
  Tensor MakeTensor(const char* name, onnxEnum data_type, std::vector<uint64_t> shape) const {
    return {name, data_type, std::move(shape), reinterpret_cast<void*>(memory_.buffer),
            memory_.memory_type};
  }

 private:
  friend class Backend;
  SharedMemory(const onnxSharedMemory& memory, std::shared_ptr<const void> owner)
      : memory_(memory), owner_(std::move(owner)) {}

  onnxSharedMemory memory_ = {};
  std::shared_ptr<const void> owner_;
};

// A single-shot event. Backend::NewEvent makes events that start runs; a run makes the event that
// it signals at its end.
class Event {
 public:
  onnxEvent handle() const { return handle_.get(); }

  Outcome Signal() const {
    return handle_.functions()->Check(handle_.functions()->signal_event(handle_.get()));
  }
  // Blocks. Returns the error of the run that signals the event.
  Outcome Wait() const {
    return handle_.functions()->Check(handle_.functions()->wait_event(handle_.get()));
  }
  Result<bool> IsSignalled() const {
    onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
    const onnxStatus status = handle_.functions()->get_event_state(handle_.get(), &state);
    if (status != ONNXIFI_STATUS_SUCCESS) return handle_.functions()->MakeError(status);
    return state == ONNXIFI_EVENT_STATE_SIGNALLED;
  }
  // The handle of a new driver's event (ONNXIFI_SDK_NATIVE_EVENT_...) that is complete when this
  // one is signalled; see onnxExportEvent.
  Result<onnxPointer> Export(uint32_t kind) const {
    const auto function =
        handle_.functions()->Find<onnxExportEventFunction>(id_, "onnxExportEvent");
    if (function == nullptr) return detail::Missing("onnxExportEvent");
    onnxNativeEvent native = {};
    native.struct_size = sizeof(native);
    native.kind = kind;
    const onnxStatus status = function(handle_.get(), &native);
    if (status != ONNXIFI_STATUS_SUCCESS) return handle_.functions()->MakeError(status);
    return native.handle;
  }
  // The shapes of a finished run's outputs.
  Result<std::vector<OutputShape>> OutputShapes() const {
    const auto function =
        handle_.functions()->Find<onnxGetRunOutputShapesFunction>(id_, "onnxGetRunOutputShapes");
    if (function == nullptr) return detail::Missing("onnxGetRunOutputShapes");
    std::vector<OutputShape> shapes;
    const onnxStatus status = function(handle_.get(), detail::AppendShape, &shapes);
    if (status != ONNXIFI_STATUS_SUCCESS) return handle_.functions()->MakeError(status);
    return shapes;
  }
  // The outputs that a finished run kept: those for which Graph::SetValues got no tensor.
  Result<std::vector<Value>> Values() const {
    std::vector<Value> values;
    const Outcome visited =
        VisitValues([&values](const onnxValue& value) { values.push_back(detail::CopyOf(value)); });
    if (!visited) return visited.error();
    return values;
  }
  // The same without a copy: calls `visit` with each as a const onnxValue&, which lives until it
  // returns.
  template <typename Visit>
  Outcome VisitValues(Visit visit) const {
    const auto function =
        handle_.functions()->Find<onnxGetRunValuesFunction>(id_, "onnxGetRunValues");
    if (function == nullptr) return detail::Missing("onnxGetRunValues");
    return handle_.functions()->Check(function(handle_.get(), detail::VisitValue<Visit>, &visit));
  }

 private:
  friend class Backend;
  friend class Graph;
  using HandleType = detail::Handle<onnxReleaseEventFunction>;
  Event(HandleType handle, onnxBackendID id) : handle_(std::move(handle)), id_(id) {}

  HandleType handle_;
  onnxBackendID id_ = nullptr;
};

class Graph {
 public:
  onnxGraph handle() const { return handle_.get(); }
  // The device answered FALLBACK: it runs the graph by emulation, slowly.
  bool is_emulated() const { return is_emulated_; }

  // Binds memory for the following runs. The memory must stay valid until they have finished.
  Outcome SetIO(std::span<const Tensor> inputs, std::span<const Tensor> outputs) const {
    const auto in = detail::Describe(inputs);
    const auto out = detail::Describe(outputs);
    return functions().Check(
        functions().set_graph_io(handle_.get(), static_cast<uint32_t>(in.size()), in.data(),
                                 static_cast<uint32_t>(out.size()), out.data()));
  }

  // Like SetIO, but inputs may be values of any kind, which are copied, and each run keeps the
  // outputs that are not listed, for Event::Values. A graph with an input or output that is not a
  // tensor of numbers must be initialised with GraphOptions::values.
  Outcome SetValues(std::span<const Value> values, std::span<const Tensor> inputs = {},
                    std::span<const Tensor> outputs = {}) const {
    const auto function = functions().Find<onnxSetGraphValuesFunction>(id_, "onnxSetGraphValues");
    if (function == nullptr) return detail::Missing("onnxSetGraphValues");
    const detail::ValueList list(values);
    const auto in = detail::Describe(inputs);
    const auto out = detail::Describe(outputs);
    return functions().Check(function(handle_.get(), static_cast<uint32_t>(in.size()), in.data(),
                                      list.size(), list.data(), static_cast<uint32_t>(out.size()),
                                      out.data()));
  }

  // Starts a run that waits for `input`, and returns the event that the run will signal.
  Result<Event> Run(const Event& input) const {
    onnxMemoryFenceV1 input_fence = {};
    input_fence.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
    input_fence.type = ONNXIFI_SYNCHRONIZATION_EVENT;
    input_fence.event = input.handle();
    onnxMemoryFenceV1 output_fence = input_fence;
    output_fence.event = nullptr;
    const onnxStatus status = functions().run_graph(handle_.get(), &input_fence, &output_fence);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions().MakeError(status);
    return Event(
        {output_fence.event, functions().release_event, handle_.functions(), handle_.parent()},
        id_);
  }

  // Binds memory for one run and starts it. The binding of SetIO stays, and several threads may
  // call this at once. The inputs must be complete. All memory must stay valid until the run has
  // finished.
  Result<Event> RunWith(std::span<const Tensor> inputs, std::span<const Tensor> outputs) const {
    const auto function =
        functions().Find<onnxSetIOAndRunGraphFunction>(id_, "onnxSetIOAndRunGraph");
    if (function == nullptr) return detail::Missing("onnxSetIOAndRunGraph");
    const auto in = detail::Describe(inputs);
    const auto out = detail::Describe(outputs);
    onnxMemoryFenceV1 output_fence = {};
    output_fence.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
    output_fence.type = ONNXIFI_SYNCHRONIZATION_EVENT;
    const onnxStatus status =
        function(handle_.get(), static_cast<uint32_t>(in.size()), in.data(),
                 static_cast<uint32_t>(out.size()), out.data(), &output_fence);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions().MakeError(status);
    return Event(
        {output_fence.event, functions().release_event, handle_.functions(), handle_.parent()},
        id_);
  }

  // Puts a run into the queue that the backend shares with the caller, behind the work that is in
  // it; see ONNXIFI_SDK_BACKEND_PROPERTY_OPENCL_QUEUE.
  Outcome RunInSharedQueue() const {
    onnxMemoryFenceV1 input_fence = {};
    input_fence.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
    input_fence.type = ONNXIFI_SYNCHRONIZATION_IMPLICIT;
    onnxMemoryFenceV1 output_fence = input_fence;
    return functions().Check(functions().run_graph(handle_.get(), &input_fence, &output_fence));
  }

  // Runs with the binding of SetIO and returns when the outputs are complete.
  Outcome RunAndWait() const {
    onnxEvent input = nullptr;
    const onnxStatus status = functions().init_event(backend_, &input);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions().MakeError(status);
    const Event event({input, functions().release_event, handle_.functions(), handle_.parent()},
                      id_);
    if (Outcome signalled = event.Signal(); !signalled) return signalled;
    Result<Event> output = Run(event);
    if (!output) return output.error();
    return output->Wait();
  }

  // Shapes of the outputs for inputs of these shapes. The inputs' data may be null.
  Result<std::vector<OutputShape>> InferOutputShapes(std::span<const Tensor> inputs) const {
    const auto function =
        functions().Find<onnxInferOutputShapesFunction>(id_, "onnxInferOutputShapes");
    if (function == nullptr) return detail::Missing("onnxInferOutputShapes");
    const auto in = detail::Describe(inputs);
    std::vector<OutputShape> shapes;
    const onnxStatus status = function(handle_.get(), static_cast<uint32_t>(in.size()), in.data(),
                                       detail::AppendShape, &shapes);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions().MakeError(status);
    return shapes;
  }

  Result<onnxGraphCounters> Counters() const {
    const auto function =
        functions().Find<onnxGetGraphCountersFunction>(id_, "onnxGetGraphCounters");
    if (function == nullptr) return detail::Missing("onnxGetGraphCounters");
    onnxGraphCounters counters = {};
    counters.struct_size = sizeof(counters);
    const onnxStatus status = function(handle_.get(), &counters);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions().MakeError(status);
    return counters;
  }

  // The steps of the run that finished last, of a graph initialised with GraphOptions::profile.
  Result<std::vector<StepRecord>> Profile() const {
    const auto function = functions().Find<onnxGetGraphProfileFunction>(id_, "onnxGetGraphProfile");
    if (function == nullptr) return detail::Missing("onnxGetGraphProfile");
    std::vector<StepRecord> steps;
    const onnxStatus status = function(handle_.get(), detail::AppendStep, &steps);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions().MakeError(status);
    return steps;
  }

  // Which device runs which nodes: the plan of libonnxifi, with the times of the last run.
  Result<GraphPlan> Plan() const {
    const auto function = functions().Find<onnxGetGraphPlanFunction>(id_, "onnxGetGraphPlan");
    if (function == nullptr) return detail::Missing("onnxGetGraphPlan");
    GraphPlan plan;
    const onnxStatus status =
        function(handle_.get(), detail::AppendIsland, detail::AppendCut, &plan);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions().MakeError(status);
    return plan;
  }

  // The stages of InitGraph.
  Result<std::vector<LoadRecord>> LoadProfile() const {
    const auto function =
        functions().Find<onnxGetGraphLoadProfileFunction>(id_, "onnxGetGraphLoadProfile");
    if (function == nullptr) return detail::Missing("onnxGetGraphLoadProfile");
    std::vector<LoadRecord> stages;
    const onnxStatus status = function(handle_.get(), detail::AppendStage, &stages);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions().MakeError(status);
    return stages;
  }

 private:
  friend class Backend;
  using HandleType = detail::Handle<onnxReleaseGraphFunction>;
  Graph(HandleType handle, onnxBackend backend, onnxBackendID id, bool is_emulated)
      : handle_(std::move(handle)), backend_(backend), id_(id), is_emulated_(is_emulated) {}

  const detail::Functions& functions() const { return *handle_.functions(); }

  HandleType handle_;
  onnxBackend backend_ = nullptr;
  onnxBackendID id_ = nullptr;
  bool is_emulated_ = false;
};

// Where the auto device may run which nodes of a graph; see onnxPlacement.
struct Placement {
  struct Group {
    std::string device_key;
    std::vector<uint32_t> nodes;
  };

  // ONNXIFI_SDK_PLACEMENT_*.
  uint32_t kind = ONNXIFI_SDK_PLACEMENT_AUTO;
  std::vector<std::string> device_keys;
  std::vector<Group> groups;

  // Partitions the graph as this plan does.
  static Placement Replay(const GraphPlan& plan) {
    Placement placement;
    placement.kind = ONNXIFI_SDK_PLACEMENT_PLAN;
    for (const PlanIsland& island : plan.islands) {
      placement.groups.push_back({island.device_key, island.nodes});
    }
    return placement;
  }
};

namespace detail {

// The C structures of a Placement, which point into it.
class PlacementRecord {
 public:
  explicit PlacementRecord(const Placement& placement) {
    for (const std::string& key : placement.device_keys) keys_.push_back(key.c_str());
    groups_.reserve(placement.groups.size());
    for (const Placement::Group& group : placement.groups) {
      onnxDeviceNodes& record = groups_.emplace_back();
      record = {};
      record.struct_size = sizeof(record);
      record.device_key = group.device_key.c_str();
      record.node_count = static_cast<uint32_t>(group.nodes.size());
      record.nodes = group.nodes.data();
      pointers_.push_back(&record);
    }
    record_.struct_size = sizeof(record_);
    record_.kind = placement.kind;
    record_.device_count = static_cast<uint32_t>(keys_.size());
    record_.device_keys = keys_.data();
    record_.group_count = static_cast<uint32_t>(pointers_.size());
    record_.groups = pointers_.data();
  }
  PlacementRecord(const PlacementRecord&) = delete;
  PlacementRecord& operator=(const PlacementRecord&) = delete;

  const onnxPlacement& get() const { return record_; }

 private:
  std::vector<const char*> keys_;
  std::vector<onnxDeviceNodes> groups_;
  std::vector<const onnxDeviceNodes*> pointers_;
  onnxPlacement record_ = {};
};

}  // namespace detail

struct GraphOptions {
  // Weights that are not in the model. InitGraph copies them.
  std::span<const Tensor> weights;
  // Folder of the model's external data.
  std::optional<std::string> base_folder;
  // Runs record their steps for Graph::Profile.
  bool profile = false;
  // Inputs and outputs may be of any kind and are bound by Graph::SetValues.
  bool values = false;
  // Products, bfloat16 and float16 may be rounded otherwise than operators are defined.
  bool fast_algorithms = true;
  // ONNXIFI_SDK_PRECISION_*: to what operands of products may be rounded.
  uint32_t precision = ONNXIFI_SDK_PRECISION_FLOAT32;
  // Rows may be rounded to 8 bits in blocks before products with weights of 8 bits or less.
  bool dynamic_quantization = false;
  // The model is a private mapping of a file to which nobody has written. Its pages may be returned
  // to the system once they are copied.
  bool mapped_model = false;
  // The model's bytes stay unchanged until the graph is released, so large weights may be read in
  // place.
  bool lasting_model = false;
  // The thread that starts a run may compute it, if the inputs are complete.
  bool caller_runs = false;
  // InitGraph, or what first gives open extents, may take seconds to find the fastest devices and
  // implementations, which are kept; see ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE.
  bool measure = false;
  // For the auto device only: where nodes run, and whether a fallback graph replaces a device that
  // has the whole graph and fails in a run.
  std::optional<Placement> placement;
  bool fallback = false;
};

class Backend {
 public:
  onnxBackend handle() const { return handle_->get(); }

  // `model` is a serialised ModelProto. It need not stay after the call, except with
  // options.lasting_model.
  Result<Graph> InitGraph(std::span<const std::byte> model,
                          const GraphOptions& options = {}) const {
    const auto weights = detail::Describe(options.weights);
    std::vector<uint64_t> properties;
    if (options.base_folder) {
      properties.push_back(ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER);
      properties.push_back(reinterpret_cast<uintptr_t>(options.base_folder->c_str()));
    }
    if (options.profile) {
      properties.push_back(ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE);
      properties.push_back(1);
    }
    if (options.values) {
      properties.push_back(ONNXIFI_SDK_GRAPH_PROPERTY_VALUES);
      properties.push_back(1);
    }
    if (!options.fast_algorithms) {
      properties.push_back(ONNXIFI_SDK_GRAPH_PROPERTY_FAST_ALGORITHMS);
      properties.push_back(0);
    }
    if (options.precision != ONNXIFI_SDK_PRECISION_FLOAT32) {
      properties.push_back(ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION);
      properties.push_back(options.precision);
    }
    if (options.dynamic_quantization) {
      properties.push_back(ONNXIFI_SDK_GRAPH_PROPERTY_DYNAMIC_QUANTIZATION);
      properties.push_back(1);
    }
    if (options.mapped_model) {
      properties.push_back(ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL);
      properties.push_back(1);
    }
    if (options.lasting_model) {
      properties.push_back(ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL);
      properties.push_back(1);
    }
    if (options.caller_runs) {
      properties.push_back(ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS);
      properties.push_back(1);
    }
    if (options.measure) {
      properties.push_back(ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE);
      properties.push_back(1);
    }
    if (options.fallback) {
      properties.push_back(ONNXIFI_SDK_GRAPH_PROPERTY_FALLBACK);
      properties.push_back(1);
    }
    std::optional<detail::PlacementRecord> placement;
    if (options.placement) {
      placement.emplace(*options.placement);
      properties.push_back(ONNXIFI_SDK_GRAPH_PROPERTY_PLACEMENT);
      properties.push_back(reinterpret_cast<uintptr_t>(&placement->get()));
    }
    properties.push_back(ONNXIFI_GRAPH_PROPERTY_NONE);
    onnxGraph graph = nullptr;
    const onnxStatus status = functions().init_graph(
        handle_->get(), properties.data(), model.size(), detail::AddressOf(model),
        static_cast<uint32_t>(weights.size()), weights.data(), &graph);
    if (status != ONNXIFI_STATUS_SUCCESS && status != ONNXIFI_STATUS_FALLBACK) {
      return functions().MakeError(status);
    }
    return Graph({graph, functions().release_graph, handle_->functions(), handle_}, handle_->get(),
                 id_, status == ONNXIFI_STATUS_FALLBACK);
  }

  // An event that is signalled when the driver's event is complete; see onnxImportEvent.
  Result<Event> ImportEvent(uint32_t kind, onnxPointer handle, uint64_t value = 0) const {
    const auto function = functions().Find<onnxImportEventFunction>(id_, "onnxImportEvent");
    if (function == nullptr) return detail::Missing("onnxImportEvent");
    onnxNativeEvent native = {};
    native.struct_size = sizeof(native);
    native.kind = kind;
    native.handle = handle;
    native.value = value;
    onnxEvent event = nullptr;
    const onnxStatus status = function(handle_->get(), &native, &event);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions().MakeError(status);
    return Event({event, functions().release_event, handle_->functions(), handle_}, id_);
  }

  // Memory that host and device both use in place, so that tensors in it are not copied; see
  // onnxAllocateSharedMemory.
  Result<SharedMemory> AllocateSharedMemory(uint64_t size_bytes) const {
    const auto allocate =
        functions().Find<onnxAllocateSharedMemoryFunction>(id_, "onnxAllocateSharedMemory");
    const auto release =
        functions().Find<onnxReleaseSharedMemoryFunction>(id_, "onnxReleaseSharedMemory");
    if (allocate == nullptr || release == nullptr) {
      return detail::Missing("onnxAllocateSharedMemory");
    }
    onnxSharedMemory memory = {};
    memory.struct_size = sizeof(memory);
    const onnxStatus status = allocate(handle_->get(), size_bytes, &memory);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions().MakeError(status);
    return SharedMemory(
        memory, std::shared_ptr<const void>(reinterpret_cast<const void*>(memory.address),
                                            [backend = handle_, release,
                                             address = memory.address](const void* /*address*/) {
                                              static_cast<void>(release(backend->get(), address));
                                            }));
  }

  Result<Event> NewEvent() const {
    onnxEvent event = nullptr;
    const onnxStatus status = functions().init_event(handle_->get(), &event);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions().MakeError(status);
    return Event({event, functions().release_event, handle_->functions(), handle_}, id_);
  }

 private:
  friend class Device;
  using HandleType = detail::Handle<onnxReleaseBackendFunction>;
  // Shared, because graphs and events must be released before their backend.
  Backend(std::shared_ptr<HandleType> handle, onnxBackendID id)
      : handle_(std::move(handle)), id_(id) {}

  const detail::Functions& functions() const { return *handle_->functions(); }

  std::shared_ptr<HandleType> handle_;
  onnxBackendID id_ = nullptr;
};

// One backend ID: a plugin's device. Copies stand for the same device.
class Device {
 public:
  onnxBackendID id() const { return id_; }

  // The key by which tools select it: "auto" or "plugin:index".
  Result<std::string> Key() const {
    const auto function = functions_->Find<onnxGetBackendKeyFunction>(id_, "onnxGetBackendKey");
    if (function == nullptr) return detail::Missing("onnxGetBackendKey");
    return Text(
        [&](char* buffer, size_t* size_bytes) { return function(id_, buffer, size_bytes); });
  }

  // The answer to a query for text, such as ONNXIFI_BACKEND_NAME.
  Result<std::string> TextInfo(onnxBackendInfo query) const {
    return Text([&](char* buffer, size_t* size_bytes) {
      return functions_->get_backend_info(id_, query, buffer, size_bytes);
    });
  }

  // The answer to a query for a number, such as ONNXIFI_BACKEND_DEVICE_TYPE.
  Result<uint64_t> NumberInfo(onnxBackendInfo query) const {
    uint64_t number = 0;
    size_t size_bytes = sizeof(number);
    const onnxStatus status = functions_->get_backend_info(id_, query, &number, &size_bytes);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions_->MakeError(status);
    if (size_bytes != sizeof(number)) {
      return Error{ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE,
                   "Query " + std::to_string(query) + " does not answer a number."};
    }
    return number;
  }

  // An Error of status FALLBACK says that the device runs the model, by emulation.
  Outcome CheckCompatibility(std::span<const std::byte> model) const {
    return functions_->Check(
        functions_->get_backend_compatibility(id_, model.size(), detail::AddressOf(model)));
  }

  // The same for a graph that is initialised with GraphOptions::values.
  Outcome CheckValueCompatibility(std::span<const std::byte> model) const {
    const auto function = functions_->Find<onnxGetBackendValueCompatibilityFunction>(
        id_, "onnxGetBackendValueCompatibility");
    if (function == nullptr) return detail::Missing("onnxGetBackendValueCompatibility");
    return functions_->Check(function(id_, model.size(), detail::AddressOf(model)));
  }

  // Why each node of the model runs here or not.
  Result<Explanation> Explain(std::span<const std::byte> model) const {
    const auto function = functions_->Find<onnxExplainModelFunction>(id_, "onnxExplainModel");
    if (function == nullptr) return detail::Missing("onnxExplainModel");
    Explanation explanation;
    explanation.status = function(id_, model.size(), detail::AddressOf(model),
                                  detail::AppendVerdict, &explanation.nodes);
    if (explanation.status != ONNXIFI_STATUS_SUCCESS) {
      explanation.sentence = functions_->LastErrorMessage();
    }
    return explanation;
  }

  // `properties` are keys and values in turns, without the mark of the end.
  Result<Backend> InitBackend(std::span<const uint64_t> properties = {}) const {
    std::vector<uint64_t> list(properties.begin(), properties.end());
    list.push_back(ONNXIFI_BACKEND_PROPERTY_NONE);
    onnxBackend backend = nullptr;
    const onnxStatus status = functions_->init_backend(id_, list.data(), &backend);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions_->MakeError(status);
    return Backend(
        std::make_shared<Backend::HandleType>(backend, functions_->release_backend, functions_),
        id_);
  }

  // The extension function for objects of this device, or null.
  template <typename F>
  F FindFunction(const char* name) const {
    return functions_->Find<F>(id_, name);
  }

 private:
  friend class Library;
  Device(onnxBackendID id, detail::FunctionsPointer functions)
      : id_(id), functions_(std::move(functions)) {}

  template <typename Query>
  Result<std::string> Text(Query query) const {
    size_t size_bytes = 0;
    onnxStatus status = query(nullptr, &size_bytes);
    if (status != ONNXIFI_STATUS_FALLBACK) return functions_->MakeError(status);
    std::string text(size_bytes, '\0');
    status = query(text.data(), &size_bytes);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions_->MakeError(status);
    // Some libraries count the NUL in the size, others do not.
    text.resize(std::min(size_bytes, text.size()));
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
  }

  onnxBackendID id_ = nullptr;
  detail::FunctionsPointer functions_;
};

// An ONNXIFI library: libonnxifi with all plugins behind it, or one plugin by its path.
class Library {
 public:
#ifndef _WIN32
  // Opens the library at `path`. Without a path, opens the libonnxifi that the system's linker
  // finds.
  static Result<Library> Open(const std::optional<std::string>& path = std::nullopt) {
    struct onnxifi_library table;
    const char* file = path ? path->c_str() : nullptr;
    if (onnxifi_load(ONNXIFI_LOADER_FLAG_VERSION_1_0, file, &table) == 0) {
      // The loader does not keep the reason. The system's linker gives it when asked again.
      void* handle = dlopen(path ? path->c_str() : "libonnxifi.so", RTLD_NOW | RTLD_LOCAL);
      std::string reason = handle == nullptr ? dlerror() : "it lacks a function of ONNXIFI 1.0.";
      if (handle != nullptr) dlclose(handle);
      return Error{
          ONNXIFI_STATUS_BACKEND_UNAVAILABLE,
          "The library '" + path.value_or("libonnxifi.so") + "' cannot be opened: " + reason};
    }
    auto functions = std::make_shared<detail::Functions>();
    functions->system_handle = table.handle;
    functions->get_backend_ids = table.onnxGetBackendIDs;
    functions->release_backend_id = table.onnxReleaseBackendID;
    functions->get_backend_info = table.onnxGetBackendInfo;
    functions->get_backend_compatibility = table.onnxGetBackendCompatibility;
    functions->init_backend = table.onnxInitBackend;
    functions->release_backend = table.onnxReleaseBackend;
    functions->init_event = table.onnxInitEvent;
    functions->signal_event = table.onnxSignalEvent;
    functions->get_event_state = table.onnxGetEventState;
    functions->wait_event = table.onnxWaitEvent;
    functions->release_event = table.onnxReleaseEvent;
    functions->init_graph = table.onnxInitGraph;
    functions->set_graph_io = table.onnxSetGraphIO;
    functions->run_graph = table.onnxRunGraph;
    functions->release_graph = table.onnxReleaseGraph;
    functions->get_extension = reinterpret_cast<onnxGetExtensionFunctionAddressFunction>(
        dlsym(table.handle, "onnxGetExtensionFunctionAddress"));
    return Library(std::move(functions));
  }
#endif

  // The library that this program is linked with.
  static Library Linked() {
    auto functions = std::make_shared<detail::Functions>();
    functions->get_backend_ids = onnxGetBackendIDs;
    functions->release_backend_id = onnxReleaseBackendID;
    functions->get_backend_info = onnxGetBackendInfo;
    functions->get_backend_compatibility = onnxGetBackendCompatibility;
    functions->init_backend = onnxInitBackend;
    functions->release_backend = onnxReleaseBackend;
    functions->init_event = onnxInitEvent;
    functions->signal_event = onnxSignalEvent;
    functions->get_event_state = onnxGetEventState;
    functions->wait_event = onnxWaitEvent;
    functions->release_event = onnxReleaseEvent;
    functions->init_graph = onnxInitGraph;
    functions->set_graph_io = onnxSetGraphIO;
    functions->run_graph = onnxRunGraph;
    functions->release_graph = onnxReleaseGraph;
    functions->get_extension = onnxGetExtensionFunctionAddress;
    return Library(std::move(functions));
  }

  Result<std::vector<Device>> Devices() const {
    size_t count = 0;
    onnxStatus status = functions_->get_backend_ids(nullptr, &count);
    std::vector<onnxBackendID> ids;
    // Devices may appear in the meantime; ask again with room for all.
    while (status == ONNXIFI_STATUS_FALLBACK) {
      ids.resize(std::max<size_t>(count, 1));
      count = ids.size();
      status = functions_->get_backend_ids(ids.data(), &count);
    }
    if (status != ONNXIFI_STATUS_SUCCESS) return functions_->MakeError(status);
    ids.resize(count);
    std::vector<Device> devices;
    for (onnxBackendID id : ids) devices.push_back(Device(id, functions_));
    return devices;
  }

  // `name` is "auto", a key such as "cpu:1", or a plugin such as "cpu" for its first device.
  Result<Device> FindDevice(std::string_view name) const {
    Result<std::vector<Device>> devices = Devices();
    if (!devices) return devices.error();
    std::string keys;
    for (const Device& device : *devices) {
      const Result<std::string> key = device.Key();
      if (!key) return key.error();
      if (*key == name || std::string_view(*key).substr(0, key->find(':')) == name) return device;
      keys += (keys.empty() ? "" : ", ") + *key;
    }
    std::string sentence = "There is no device '" + std::string(name) + "'; the " +
                           std::to_string(devices->size()) + " present are: " + keys + ".";
    // A plugin without devices may say why.
    const std::string_view plugin = name.substr(0, name.find(':'));
    if (const Result<std::vector<DiscoveryRecord>> report = DiscoveryReport()) {
      for (const DiscoveryRecord& record : *report) {
        if (record.plugin == plugin && record.device_count == 0 && !record.detail.empty()) {
          sentence += " " + record.detail;
          break;
        }
      }
    }
    return Error{ONNXIFI_STATUS_INVALID_ID, std::move(sentence)};
  }

  // The answer of every device except auto about the model and each of its nodes. Only libonnxifi
  // offers it. `base_folder` holds the model's external data.
  Result<std::vector<DeviceAnswer>> ExplainOnDevices(
      std::span<const std::byte> model,
      const std::optional<std::string>& base_folder = std::nullopt) const {
    const auto function =
        functions_->Find<onnxExplainModelOnDevicesFunction>(nullptr, "onnxExplainModelOnDevices");
    if (function == nullptr) return detail::Missing("onnxExplainModelOnDevices");
    std::vector<uint64_t> properties;
    if (base_folder) {
      properties = {ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER,
                    reinterpret_cast<uintptr_t>(base_folder->c_str())};
    }
    properties.push_back(ONNXIFI_GRAPH_PROPERTY_NONE);
    std::vector<DeviceAnswer> devices;
    const onnxStatus status =
        function(properties.data(), model.size(), detail::AddressOf(model),
                 detail::AppendDeviceAnswer, detail::AppendNodeAnswer, &devices);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions_->MakeError(status);
    return devices;
  }

  // The result of discovery for each candidate plugin. Only libonnxifi offers it.
  Result<std::vector<DiscoveryRecord>> DiscoveryReport() const {
    const auto function =
        functions_->Find<onnxGetDiscoveryReportFunction>(nullptr, "onnxGetDiscoveryReport");
    if (function == nullptr) return detail::Missing("onnxGetDiscoveryReport");
    std::vector<DiscoveryRecord> records;
    const onnxStatus status = function(detail::AppendRecord, &records);
    if (status != ONNXIFI_STATUS_SUCCESS) return functions_->MakeError(status);
    return records;
  }

 private:
  explicit Library(std::shared_ptr<detail::Functions> functions) {
    functions->get_last_error_message =
        functions->Find<onnxGetLastErrorMessageFunction>(nullptr, "onnxGetLastErrorMessage");
    functions_ = std::move(functions);
  }

  detail::FunctionsPointer functions_;
};

}  // namespace onnxifi

#endif  // ONNXIFI_ONNXIFI_HPP_
