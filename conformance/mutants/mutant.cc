// SPDX-License-Identifier: Apache-2.0
//
// A library that forwards every call to another ONNXIFI library and tells one lie, chosen by name.
// mutants_test requires that the interface suite finds out each of them, tools/check_mutants.py
// that the suites of operators and models do: they are the tests of the suites.
//
// Environment: ONNXIFI_MUTANT_TARGET is the library to forward to, ONNXIFI_MUTANT_LIE one of the
// names below.

#include <dlfcn.h>
#include <onnx/onnxifi.h>
#include <onnx/onnxifi_ext.h>
#include <onnxifi/sdk.h>

#include <algorithm>
#include <cerrno>
#include <cfenv>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "conformance/mutants/model_lies.h"

namespace {

// One bound output buffer of a graph.
struct Output {
  unsigned char* data;
  size_t size_bytes;
  // Elements of the last axis.
  size_t row;
};

// What the lies need to remember.
class Mutant {
 public:
  static Mutant& Get() {
    static Mutant mutant;
    return mutant;
  }
  ~Mutant() {
    if (Tells("crashes at exit")) std::abort();
  }
  Mutant(const Mutant&) = delete;
  Mutant& operator=(const Mutant&) = delete;

  bool Tells(std::string_view lie) const { return lie_ == lie; }
  const std::string& lie() const { return lie_; }
  bool MisreadsModels() const {
    return lie_.starts_with("swallows ") || Tells("takes the next axis") ||
           Tells("changes initializers") || Tells("takes the operators of later sets");
  }

  template <typename Function>
  Function* Find(Function* /*same_name*/, const char* name) const {
    return reinterpret_cast<Function*>(dlsym(target_, name));
  }

  std::mutex mutex;
  std::map<onnxGraph, Output> outputs_of_graphs;
  std::map<onnxEvent, Output> outputs_of_events;
  std::map<onnxEvent, onnxGraph> graphs_of_events;
  // Outputs of the run before.
  std::map<onnxGraph, std::vector<float>> last_runs;
  // Graphs that draw random numbers, and those with symbols for extents.
  std::set<onnxGraph> drawing;
  std::set<onnxGraph> symbolic;
  // The thread that ran a graph first.
  std::map<onnxGraph, std::thread::id> first_threads;
  // Extents of output buffers, by name.
  std::map<onnxGraph, std::map<std::string, std::vector<int64_t>>> bounds_of_graphs;
  std::map<onnxEvent, onnxGraph> bounds_of_events;
  std::map<void*, onnxBackendID> given_ids;
  onnxGetRunValuesFunction get_run_values = nullptr;
  onnxGetRunOutputShapesFunction get_run_output_shapes = nullptr;
  onnxSetIOAndRunGraphFunction set_io_and_run_graph = nullptr;

 private:
  Mutant() {
    const char* target = std::getenv("ONNXIFI_MUTANT_TARGET");
    const char* lie = std::getenv("ONNXIFI_MUTANT_LIE");
    target_ = dlopen(target != nullptr ? target : "", RTLD_NOW | RTLD_LOCAL);
    lie_ = lie != nullptr ? lie : "";
    if (target_ == nullptr) std::abort();
  }

  void* target_;
  std::string lie_;
};

bool Tells(std::string_view lie) { return Mutant::Get().Tells(lie); }

// The target's function of the name of the exported one that calls this.
#define TARGET(name) (*Mutant::Get().Find(&(name), #name))

onnxBackendID RealId(onnxBackendID id) {
  Mutant& mutant = Mutant::Get();
  const std::lock_guard<std::mutex> lock(mutant.mutex);
  const auto given = mutant.given_ids.find(id);
  return given == mutant.given_ids.end() ? id : given->second;
}

Output FirstOutput(uint32_t count, const onnxTensorDescriptorV1* descriptors) {
  if (count == 0 || descriptors == nullptr || descriptors->dataType != ONNXIFI_DATATYPE_FLOAT32)
    return {};
  size_t size_bytes = sizeof(float);
  const uint32_t rank = descriptors->dimensions;
  for (uint32_t axis = 0; axis < descriptors->dimensions; ++axis) {
    size_bytes *= descriptors->shape[axis];
  }
  return {reinterpret_cast<unsigned char*>(descriptors->buffer), size_bytes,
          rank == 0 ? 1 : static_cast<size_t>(descriptors->shape[rank - 1])};
}

// Lies about the numbers of a run of a graph, which the output holds.
void Miscompute(const Output& output, onnxGraph graph) {
  Mutant& mutant = Mutant::Get();
  std::vector<float> values(output.size_bytes / sizeof(float));
  if (values.empty()) return;
  std::memcpy(values.data(), output.data, output.size_bytes);
  const std::vector<float> computed = values;
  std::vector<float>& last = mutant.last_runs[graph];
  if (mutant.Tells("computes the tail wrongly") && values.size() > 64) values.back() += 1;
  if (mutant.Tells("computes the tail of symbols wrongly") && mutant.symbolic.contains(graph)) {
    values.back() += 1;
  }
  if (mutant.Tells("computes rightly on one thread alone") &&
      mutant.first_threads[graph] != std::this_thread::get_id()) {
    std::ranges::fill(values, 0.0f);
  }
  if (mutant.Tells("strides rows by one element too few") && output.row > 1) {
    for (size_t k = 0; k < values.size(); ++k) values[k] = computed[k - k / output.row];
  }
  if (mutant.Tells("adds the run before") && last.size() == values.size()) {
    for (size_t k = 0; k < values.size(); ++k) values[k] += last[k];
  }
  if (mutant.Tells("keeps NaN of the run before") && last.size() == values.size()) {
    for (size_t k = 0; k < values.size(); ++k) values[k] = std::isnan(last[k]) ? NAN : values[k];
  }
  if (mutant.Tells("draws zeros") && mutant.drawing.contains(graph)) {
    std::fill(values.begin(), values.end(), 0.0f);
  }
  if (mutant.Tells("draws the same in every run") && mutant.drawing.contains(graph) &&
      last.size() == values.size()) {
    values = last;
  }
  last = mutant.Tells("draws the same in every run") ? values : computed;
  std::memcpy(output.data, values.data(), output.size_bytes);
}

// Spoils what a finished run wrote.
void Spoil(onnxEvent event) {
  Mutant& mutant = Mutant::Get();
  const std::lock_guard<std::mutex> lock(mutant.mutex);
  const onnxGraph graph = mutant.graphs_of_events[event];
  // What the lies remember of a run must not look like a leak.
  mutant.graphs_of_events.erase(event);
  const auto bound = mutant.outputs_of_events.find(event);
  if (bound == mutant.outputs_of_events.end() || bound->second.size_bytes == 0) {
    mutant.outputs_of_events.erase(event);
    return;
  }
  const Output output = bound->second;
  if (mutant.Tells("computes one element wrongly")) output.data[output.size_bytes - 2] ^= 0x40;
  if (mutant.Tells("writes behind an output")) output.data[output.size_bytes + 1] ^= 0xFF;
  Miscompute(output, graph);
  mutant.outputs_of_events.erase(bound);
}

constexpr std::string_view kRefusal = "This device runs nothing.";

onnxStatus ONNXIFI_ABI SayRefusal(char* message, size_t* size_bytes) {
  if (size_bytes == nullptr) return ONNXIFI_STATUS_INVALID_POINTER;
  const bool fits = message != nullptr && *size_bytes > kRefusal.size();
  *size_bytes = kRefusal.size() + 1;
  if (!fits) return ONNXIFI_STATUS_FALLBACK;
  std::memcpy(message, kRefusal.data(), kRefusal.size());
  message[kRefusal.size()] = '\0';
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus ONNXIFI_ABI SayNothing(char* message, size_t* size_bytes) {
  if (size_bytes == nullptr) return ONNXIFI_STATUS_INVALID_POINTER;
  const bool fits = message != nullptr && *size_bytes >= 1;
  *size_bytes = 1;
  if (!fits) return ONNXIFI_STATUS_FALLBACK;
  *message = '\0';
  return ONNXIFI_STATUS_SUCCESS;
}

// Remembers which outputs a run writes; the lock is held.
void Remember(onnxGraph graph, onnxEvent event, const Output& output) {
  Mutant& mutant = Mutant::Get();
  mutant.outputs_of_events[event] = output;
  mutant.graphs_of_events[event] = graph;
  mutant.first_threads.try_emplace(graph, std::this_thread::get_id());
  if (mutant.Tells("tells bounds as extents of outputs")) mutant.bounds_of_events[event] = graph;
}

// Whether a list of properties asks for a graph of values.
bool AsksForValues(const uint64_t* properties) {
  for (; properties != nullptr && *properties != ONNXIFI_GRAPH_PROPERTY_NONE; properties += 2) {
    if (*properties == ONNXIFI_SDK_GRAPH_PROPERTY_VALUES) return properties[1] == 1;
  }
  return false;
}

// What a callback of the caller's is to be told with.
struct Listener {
  onnxValueCallback callback;
  void* context;
};

onnxStatus ONNXIFI_ABI TellOtherNames(onnxEvent event, onnxValueCallback callback, void* context) {
  Listener listener = {callback, context};
  const onnxValueCallback rename = [](void* to, const onnxValue* value) {
    const auto& caller = *static_cast<const Listener*>(to);
    onnxValue renamed = *value;
    renamed.name = "another";
    caller.callback(caller.context, &renamed);
  };
  return Mutant::Get().get_run_values(event, rename, &listener);
}

onnxStatus ONNXIFI_ABI TellBounds(onnxEvent event, onnxTensorShapeCallback callback,
                                  void* context) {
  struct ShapeListener {
    onnxTensorShapeCallback callback;
    void* context;
    std::map<std::string, std::vector<int64_t>> bounds;
  };
  Mutant& mutant = Mutant::Get();
  ShapeListener listener = {callback, context, {}};
  {
    const std::lock_guard<std::mutex> lock(mutant.mutex);
    listener.bounds = mutant.bounds_of_graphs[mutant.bounds_of_events[event]];
  }
  const onnxTensorShapeCallback tell = [](void* to, const onnxTensorShape* shape) {
    const auto& caller = *static_cast<const ShapeListener*>(to);
    onnxTensorShape told = *shape;
    const auto bound = caller.bounds.find(shape->name);
    if (bound != caller.bounds.end()) told.extents = bound->second.data();
    caller.callback(caller.context, &told);
  };
  return mutant.get_run_output_shapes(event, tell, &listener);
}

onnxStatus ONNXIFI_ABI BindAndRun(onnxGraph graph, uint32_t inputs_count,
                                  const onnxTensorDescriptorV1* inputs, uint32_t outputs_count,
                                  const onnxTensorDescriptorV1* outputs, onnxMemoryFenceV1* fence) {
  Mutant& mutant = Mutant::Get();
  const onnxStatus status =
      mutant.set_io_and_run_graph(graph, inputs_count, inputs, outputs_count, outputs, fence);
  if (status == ONNXIFI_STATUS_SUCCESS) {
    const std::lock_guard<std::mutex> lock(mutant.mutex);
    Remember(graph, fence->event, FirstOutput(outputs_count, outputs));
  }
  return status;
}

// Where the target has the function that `name` asks for: `own` takes its place, and `kept` has it.
template <typename Function>
void Replace(std::string_view name, std::string_view wanted, Function own, Function& kept,
             onnxExtensionFunctionPointer* function) {
  if (!name.starts_with(wanted)) return;
  kept = reinterpret_cast<Function>(reinterpret_cast<void (*)()>(*function));
  *function = reinterpret_cast<onnxExtensionFunctionPointer>(reinterpret_cast<void (*)()>(own));
}

}  // namespace

extern "C" {

onnxStatus ONNXIFI_ABI onnxGetBackendIDs(onnxBackendID* ids, size_t* count) {
  const size_t capacity = count != nullptr ? *count : 0;
  const onnxStatus status = TARGET(onnxGetBackendIDs)(ids, count);
  if (Tells("stores into an array that is too small") && status == ONNXIFI_STATUS_FALLBACK &&
      ids != nullptr) {
    ids[0] = nullptr;
  }
  if (Tells("answers SUCCESS to a NULL array") && status == ONNXIFI_STATUS_FALLBACK &&
      ids == nullptr) {
    return ONNXIFI_STATUS_SUCCESS;
  }
  if (Tells("gives new IDs every time") && status == ONNXIFI_STATUS_SUCCESS && capacity != 0) {
    Mutant& mutant = Mutant::Get();
    const std::lock_guard<std::mutex> lock(mutant.mutex);
    for (size_t index = 0; index < *count; ++index) {
      void* fresh = std::malloc(1);  // Given out for good, as the lie has it.
      mutant.given_ids[fresh] = ids[index];
      ids[index] = fresh;
    }
  }
  return status;
}

onnxStatus ONNXIFI_ABI onnxReleaseBackendID(onnxBackendID id) {
  return TARGET(onnxReleaseBackendID)(RealId(id));
}

onnxStatus ONNXIFI_ABI onnxGetBackendInfo(onnxBackendID id, onnxBackendInfo query, void* value,
                                          size_t* size_bytes) {
  const onnxStatus status = TARGET(onnxGetBackendInfo)(RealId(id), query, value, size_bytes);
  if (Tells("does not count the NUL") && query == ONNXIFI_BACKEND_NAME &&
      (status == ONNXIFI_STATUS_SUCCESS || status == ONNXIFI_STATUS_FALLBACK)) {
    --*size_bytes;
  }
  if (Tells("answers unknown queries") && status == ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE) {
    return ONNXIFI_STATUS_SUCCESS;
  }
  if (Tells("changes errno")) errno = 1;
  return status;
}

onnxStatus ONNXIFI_ABI onnxGetBackendCompatibility(onnxBackendID id, size_t size_bytes,
                                                   const void* model) {
  if (Tells("refuses everything")) return ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
  const onnxStatus status = TARGET(onnxGetBackendCompatibility)(RealId(id), size_bytes, model);
  if (Tells("claims everything") && (status >> 8) == 2) return ONNXIFI_STATUS_SUCCESS;
  if (Tells("refuses with another code") && status == ONNXIFI_STATUS_UNSUPPORTED_OPERATOR) {
    return ONNXIFI_STATUS_UNSUPPORTED_SHAPE;
  }
  if (Tells("answers by the weights' values") && size_bytes != 0 && model != nullptr) {
    // 100.0f, as in the suite's initializer.
    const std::string_view bytes(static_cast<const char*>(model), size_bytes);
    if (bytes.find(std::string_view("\x00\x00\xC8\x42", 4)) != std::string_view::npos) {
      return ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
    }
  }
  return status;
}

onnxStatus ONNXIFI_ABI onnxInitBackend(onnxBackendID id, const uint64_t* properties,
                                       onnxBackend* backend) {
  if (Tells("ignores properties")) properties = nullptr;
  if (Tells("changes the locale")) std::setlocale(LC_ALL, "C.UTF-8");
  return TARGET(onnxInitBackend)(RealId(id), properties, backend);
}

onnxStatus ONNXIFI_ABI onnxReleaseBackend(onnxBackend backend) {
  return TARGET(onnxReleaseBackend)(backend);
}

onnxStatus ONNXIFI_ABI onnxInitEvent(onnxBackend backend, onnxEvent* event) {
  return TARGET(onnxInitEvent)(backend, event);
}

onnxStatus ONNXIFI_ABI onnxSignalEvent(onnxEvent event) {
  const onnxStatus status = TARGET(onnxSignalEvent)(event);
  if (Tells("lets an event be signalled twice") && status == ONNXIFI_STATUS_INVALID_STATE) {
    return ONNXIFI_STATUS_SUCCESS;
  }
  return status;
}

onnxStatus ONNXIFI_ABI onnxGetEventState(onnxEvent event, onnxEventState* state) {
  return TARGET(onnxGetEventState)(event, state);
}

onnxStatus ONNXIFI_ABI onnxWaitEvent(onnxEvent event) {
  if (Tells("does not wait")) {
    onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
    return TARGET(onnxGetEventState)(event, &state);
  }
  const onnxStatus status = TARGET(onnxWaitEvent)(event);
  Spoil(event);
  if (Tells("hides the failure of a run") && status == ONNXIFI_STATUS_INTERNAL_ERROR) {
    return ONNXIFI_STATUS_SUCCESS;
  }
  return status;
}

onnxStatus ONNXIFI_ABI onnxReleaseEvent(onnxEvent event) {
  const onnxStatus status = TARGET(onnxReleaseEvent)(event);
  if (Tells("releases any event") && status == ONNXIFI_STATUS_INVALID_EVENT) {
    return ONNXIFI_STATUS_SUCCESS;
  }
  return status;
}

onnxStatus ONNXIFI_ABI onnxInitGraph(onnxBackend backend, const uint64_t* properties,
                                     size_t size_bytes, const void* model, uint32_t weights_count,
                                     const onnxTensorDescriptorV1* weights, onnxGraph* graph) {
  if (Tells("reads a model at NULL") && model == nullptr) {
    return *static_cast<const volatile unsigned char*>(model);
  }
  if (Tells("refuses everything") && graph != nullptr) {
    *graph = nullptr;
    return ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
  }
  if (Tells("refuses graphs of values") && graph != nullptr && AsksForValues(properties)) {
    *graph = nullptr;
    return ONNXIFI_STATUS_UNSUPPORTED_PROPERTY;
  }
  if (Tells("ignores weight descriptors")) weights_count = 0;
  onnxGraph before = graph != nullptr ? *graph : nullptr;
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(model),
                                         model != nullptr ? size_bytes : 0);
  Mutant& mutant = Mutant::Get();
  const std::string misread = onnxifi::mutants::Misread(mutant.lie(), bytes);
  const bool misreads = !misread.empty() && mutant.MisreadsModels();
  const onnxStatus status = TARGET(onnxInitGraph)(
      backend, properties, misreads ? misread.size() : size_bytes,
      misreads ? static_cast<const void*>(misread.data()) : model, weights_count, weights, graph);
  if (status == ONNXIFI_STATUS_SUCCESS || status == ONNXIFI_STATUS_FALLBACK) {
    const std::lock_guard<std::mutex> lock(mutant.mutex);
    mutant.last_runs.erase(*graph);
    mutant.drawing.erase(*graph);
    mutant.symbolic.erase(*graph);
    mutant.first_threads.erase(*graph);
    if (onnxifi::mutants::DrawsNumbers(bytes)) mutant.drawing.insert(*graph);
    if (onnxifi::mutants::HasSymbols(bytes)) mutant.symbolic.insert(*graph);
  }
  if (Tells("leaves the handle after a failure") && graph != nullptr &&
      status != ONNXIFI_STATUS_SUCCESS && status != ONNXIFI_STATUS_FALLBACK) {
    *graph = before;
  }
  return status;
}

onnxStatus ONNXIFI_ABI onnxSetGraphIO(onnxGraph graph, uint32_t inputs_count,
                                      const onnxTensorDescriptorV1* inputs, uint32_t outputs_count,
                                      const onnxTensorDescriptorV1* outputs) {
  Mutant& mutant = Mutant::Get();
  // Checks without binding: the previous binding stays when the new one is refused.
  static std::map<onnxGraph, std::vector<onnxTensorDescriptorV1>> last_good;
  const onnxStatus status =
      TARGET(onnxSetGraphIO)(graph, inputs_count, inputs, outputs_count, outputs);
  const std::lock_guard<std::mutex> lock(mutant.mutex);
  if (status == ONNXIFI_STATUS_SUCCESS) {
    mutant.outputs_of_graphs[graph] = FirstOutput(outputs_count, outputs);
    auto& bounds = mutant.bounds_of_graphs[graph];
    bounds.clear();
    for (uint32_t k = 0; k < outputs_count; ++k) {
      const uint64_t* extents = outputs[k].shape;
      bounds[outputs[k].name].assign(extents, extents + outputs[k].dimensions);
    }
    if (mutant.Tells("keeps the binding after a failure") && inputs_count == 2) {
      auto& kept = last_good[graph];
      kept.assign(inputs, inputs + inputs_count);
      kept.push_back(outputs[0]);
    }
  } else if (mutant.Tells("keeps the binding after a failure") && last_good.contains(graph)) {
    const auto& kept = last_good[graph];
    // The descriptors' names and shapes live on the test's stack frame and are still there.
    (void)TARGET(onnxSetGraphIO)(graph, 2, kept.data(), 1, kept.data() + 2);
  }
  if (mutant.Tells("does not check names") && status == ONNXIFI_STATUS_INVALID_NAME) {
    return ONNXIFI_STATUS_SUCCESS;
  }
  return status;
}

onnxStatus ONNXIFI_ABI onnxRunGraph(onnxGraph graph, const onnxMemoryFenceV1* input,
                                    onnxMemoryFenceV1* output) {
  if (Tells("changes the rounding mode")) std::fesetround(FE_TOWARDZERO);
  const bool has_event = input != nullptr && input->tag == ONNXIFI_TAG_MEMORY_FENCE_V1 &&
                         input->type == ONNXIFI_SYNCHRONIZATION_EVENT;
  if (Tells("waits inside the run") && has_event) (void)TARGET(onnxWaitEvent)(input->event);
  if (Tells("ignores the input fence") && has_event) {
    (void)TARGET(onnxSignalEvent)(input->event);
  }
  if (Tells("answers a status that is not listed") && input == nullptr) {
    return ONNXIFI_STATUS_INVALID_SIZE;
  }
  if (Tells("reads the output fence") && output != nullptr && output->event != nullptr) {
    onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
    if (TARGET(onnxGetEventState)(output->event, &state) != ONNXIFI_STATUS_SUCCESS) {
      return ONNXIFI_STATUS_INVALID_EVENT;
    }
  }
  const onnxStatus status = TARGET(onnxRunGraph)(graph, input, output);
  if (status == ONNXIFI_STATUS_SUCCESS) {
    Mutant& mutant = Mutant::Get();
    const std::lock_guard<std::mutex> lock(mutant.mutex);
    Remember(graph, output->event, mutant.outputs_of_graphs[graph]);
    if (mutant.Tells("leaks a buffer in every run")) {
      static_cast<volatile char*>(std::malloc(100))[0] = 0;  // Nobody frees it, as the lie has it.
    }
  }
  return status;
}

onnxStatus ONNXIFI_ABI onnxReleaseGraph(onnxGraph graph) {
  const onnxStatus status = TARGET(onnxReleaseGraph)(graph);
  if (Tells("releases any graph") && status == ONNXIFI_STATUS_INVALID_GRAPH) {
    return ONNXIFI_STATUS_SUCCESS;
  }
  return status;
}

onnxStatus ONNXIFI_ABI onnxGetExtensionFunctionAddress(onnxBackendID id, const char* name,
                                                       onnxExtensionFunctionPointer* function) {
  const onnxStatus status = TARGET(onnxGetExtensionFunctionAddress)(RealId(id), name, function);
  if (Tells("gives no sentence") && status == ONNXIFI_STATUS_SUCCESS &&
      std::string_view(name).starts_with("onnxGetLastErrorMessage")) {
    *function =
        reinterpret_cast<onnxExtensionFunctionPointer>(reinterpret_cast<void (*)()>(SayNothing));
  }
  if (Tells("refuses everything") && status == ONNXIFI_STATUS_SUCCESS) {
    *function = std::string_view(name).starts_with("onnxGetLastErrorMessage")
                    ? reinterpret_cast<onnxExtensionFunctionPointer>(
                          reinterpret_cast<void (*)()>(SayRefusal))
                    : nullptr;
    return *function == nullptr ? ONNXIFI_STATUS_UNIDENTIFIED_NAME : status;
  }
  if (status == ONNXIFI_STATUS_SUCCESS) {
    Mutant& mutant = Mutant::Get();
    if (Tells("tells outputs by another name")) {
      Replace(name, "onnxGetRunValues", &TellOtherNames, mutant.get_run_values, function);
    }
    if (Tells("tells bounds as extents of outputs")) {
      Replace(name, "onnxGetRunOutputShapes", &TellBounds, mutant.get_run_output_shapes, function);
    }
    if (Tells("computes rightly on one thread alone")) {
      Replace(name, "onnxSetIOAndRunGraph", &BindAndRun, mutant.set_io_and_run_graph, function);
    }
  }
  if (Tells("knows one spelling only") && name != nullptr && function != nullptr &&
      std::string_view(name).ends_with("Function")) {
    *function = nullptr;
    return ONNXIFI_STATUS_UNIDENTIFIED_NAME;
  }
  return status;
}

}  // extern "C"
