// SPDX-License-Identifier: Apache-2.0
//
// ForwardedGraph: every call goes to the plugin; only the starting of runs needs care.

#include "onnxifi/plugins/forwarded_graph.h"

#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "backends/core/abi/event.h"
#include "backends/core/abi/value_record.h"
#include "onnxifi/plugins/forwarded_event.h"
#include "onnxifi/split/small_tensors.h"

namespace onnxifi::plugins {

using base::Code;
using base::Status;

namespace {

// For one run with complete inputs: handed to the plugin together with the run, each time.
class OneRunBinding final : public abi::Binding {
 public:
  using abi::Binding::Binding;
  bool ServesLaterRuns() const override { return true; }
};

onnxMemoryFenceV1 MakeFence(onnxEvent event) {
  onnxMemoryFenceV1 fence = {};
  fence.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
  fence.type = ONNXIFI_SYNCHRONIZATION_EVENT;
  fence.event = event;
  return fence;
}

onnxMemoryFenceV1 MakeImplicitFence() {
  onnxMemoryFenceV1 fence = {};
  fence.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
  fence.type = ONNXIFI_SYNCHRONIZATION_IMPLICIT;
  return fence;
}

}  // namespace

base::Result<std::unique_ptr<abi::Graph>> ForwardedGraph::Init(
    std::shared_ptr<const PluginBackend> backend, const abi::GraphRequest& request) {
  const PluginCalls& calls = backend->calls();
  const std::vector<uint64_t> properties = EncodeProperties(request.properties.given);
  const std::vector<onnxTensorDescriptorV1> weights = Describe(request.weights);
  onnxGraph handle = nullptr;
  const onnxStatus answer = calls.functions().init_graph(
      backend->handle(), properties.data(), request.model.size(), request.model.data(),
      static_cast<uint32_t>(weights.size()), weights.empty() ? nullptr : weights.data(), &handle);
  const bool is_emulated = answer == ONNXIFI_STATUS_FALLBACK;
  ONNXIFI_RETURN_IF_ERROR(calls.ToStatus(is_emulated ? ONNXIFI_STATUS_SUCCESS : answer,
                                         "onnxInitGraph", "a graph", handle));
  return std::unique_ptr<abi::Graph>(
      new ForwardedGraph(std::move(backend), handle, is_emulated, ReadShapes(calls, request)));
}

ForwardedGraph::InferredShapes ForwardedGraph::ReadShapes(const PluginCalls& calls,
                                                          const abi::GraphRequest& request) {
  if (calls.infer_output_shapes != nullptr) return std::unique_ptr<split::OutputShapes>();
  std::span<const std::byte> model = request.model;
  std::optional<std::string> completed;
  if (request.properties.base_folder) {
    ONNXIFI_ASSIGN_OR_RETURN(completed,
                             split::WithSmallTensors(model, *request.properties.base_folder));
  }
  if (completed) model = std::as_bytes(std::span(*completed));
  std::vector<split::GivenWeight> weights;
  for (const abi::TensorDescriptor& weight : request.weights) {
    const auto type = tensor::ElementTypeFromOnnx(static_cast<int64_t>(weight.data_type));
    // No such tensor decides a shape.
    if (!type || *type == tensor::ElementType::kString) continue;
    weights.push_back({weight.name,
                       *type,
                       {weight.shape.begin(), weight.shape.end()},
                       static_cast<const std::byte*>(weight.cpu_data())});
  }
  return split::OutputShapes::Read(model, weights);
}

ForwardedGraph::~ForwardedGraph() { Close(); }

Status ForwardedGraph::SetPluginBinding(const std::shared_ptr<const abi::Binding>& binding) {
  if (plugin_binding_ == binding) return base::Ok();
  plugin_binding_ = nullptr;
  const abi::GraphTensors& tensors = binding->tensors();
  if (tensors.keeps_others) {
    ONNXIFI_RETURN_IF_ERROR(SetPluginValues(tensors));
    plugin_binding_ = binding;
    return base::Ok();
  }
  const auto inputs = Describe(tensors.inputs);
  const auto outputs = Describe(tensors.outputs);
  ONNXIFI_RETURN_IF_ERROR(calls().ToStatus(
      calls().functions().set_graph_io(handle_, static_cast<uint32_t>(inputs.size()), inputs.data(),
                                       static_cast<uint32_t>(outputs.size()), outputs.data()),
      "onnxSetGraphIO"));
  plugin_binding_ = binding;
  return base::Ok();
}

Status ForwardedGraph::SetPluginValues(const abi::GraphTensors& tensors) {
  if (!calls().TakesValues()) {
    return Status(Code::kUnsupportedTag,
                  "Plugin '" + calls().plugin_name() + "' takes no values, only descriptors.");
  }
  std::vector<abi::TensorDescriptor> described;
  std::deque<abi::ValueRecord> records;
  std::vector<const onnxValue*> values;
  for (const abi::TensorDescriptor& input : tensors.inputs) {
    if (input.value == nullptr) {
      described.push_back(input);
    } else {
      values.push_back(&records.emplace_back(input.name, *input.value).get());
    }
  }
  const auto inputs = Describe(described);
  const auto outputs = Describe(tensors.outputs);
  return calls().ToStatus(
      calls().set_graph_values(handle_, static_cast<uint32_t>(inputs.size()), inputs.data(),
                               static_cast<uint32_t>(values.size()), values.data(),
                               static_cast<uint32_t>(outputs.size()), outputs.data()),
      "onnxSetGraphValues");
}

base::Result<std::shared_ptr<const abi::Binding>> ForwardedGraph::Bind(abi::GraphTensors tensors) {
  const std::shared_ptr<const abi::Binding> binding =
      std::make_shared<abi::Binding>(std::move(tensors));
  std::lock_guard lock(mutex_);
  ONNXIFI_RETURN_IF_ERROR(SetPluginBinding(binding));
  return binding;
}

base::Result<std::shared_ptr<const abi::Binding>> ForwardedGraph::BindForOneRun(
    abi::GraphTensors tensors) {
  if (calls().set_io_and_run_graph == nullptr) return Bind(std::move(tensors));
  return std::shared_ptr<const abi::Binding>(std::make_shared<OneRunBinding>(std::move(tensors)));
}

base::Result<std::shared_ptr<abi::Event>> ForwardedGraph::Run(
    std::shared_ptr<const abi::Binding> binding, std::shared_ptr<abi::Event> input) {
  onnxMemoryFenceV1 output_fence = MakeFence(nullptr);
  if (dynamic_cast<const OneRunBinding*>(binding.get()) != nullptr) {
    ONNXIFI_RETURN_IF_ERROR(RunAtOnce(*binding, output_fence));
    return OwnEvent(output_fence);
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::shared_ptr<abi::Event> start,
                           MakePluginInput(std::move(input)));
  const onnxMemoryFenceV1 input_fence =
      MakeFence(static_cast<const ForwardedEvent&>(*start).handle());
  ONNXIFI_RETURN_IF_ERROR(RunBetween(binding, input_fence, output_fence));
  return OwnEvent(output_fence);
}

base::Result<std::shared_ptr<abi::Event>> ForwardedGraph::RunAfterSharedQueue(
    std::shared_ptr<const abi::Binding> binding) {
  onnxMemoryFenceV1 output_fence = MakeFence(nullptr);
  ONNXIFI_RETURN_IF_ERROR(RunBetween(binding, MakeImplicitFence(), output_fence));
  return OwnEvent(output_fence);
}

Status ForwardedGraph::RunInSharedQueue(std::shared_ptr<const abi::Binding> binding) {
  onnxMemoryFenceV1 output_fence = MakeImplicitFence();
  if (dynamic_cast<const OneRunBinding*>(binding.get()) != nullptr) {
    return RunAtOnce(*binding, output_fence);
  }
  return RunBetween(binding, MakeImplicitFence(), output_fence);
}

Status ForwardedGraph::RunBetween(const std::shared_ptr<const abi::Binding>& binding,
                                  const onnxMemoryFenceV1& input_fence,
                                  onnxMemoryFenceV1& output_fence) {
  std::lock_guard lock(mutex_);
  ONNXIFI_RETURN_IF_ERROR(SetPluginBinding(binding));
  const onnxStatus answer = calls().functions().run_graph(handle_, &input_fence, &output_fence);
  return ToStatus(answer, "onnxRunGraph", output_fence);
}

Status ForwardedGraph::RunAtOnce(const abi::Binding& binding, onnxMemoryFenceV1& output_fence) {
  const auto inputs = Describe(binding.tensors().inputs);
  const auto outputs = Describe(binding.tensors().outputs);
  const onnxStatus answer = calls().set_io_and_run_graph(
      handle_, static_cast<uint32_t>(inputs.size()), inputs.data(),
      static_cast<uint32_t>(outputs.size()), outputs.data(), &output_fence);
  return ToStatus(answer, "onnxSetIOAndRunGraph", output_fence);
}

Status ForwardedGraph::ToStatus(onnxStatus answer, std::string_view function,
                                const onnxMemoryFenceV1& output_fence) const {
  if (output_fence.type != ONNXIFI_SYNCHRONIZATION_EVENT) return calls().ToStatus(answer, function);
  return calls().ToStatus(answer, function, "the event of the output fence", output_fence.event);
}

std::shared_ptr<abi::Event> ForwardedGraph::OwnEvent(const onnxMemoryFenceV1& output_fence) {
  return std::make_shared<ForwardedEvent>(backend_, output_fence.event);
}

base::Result<std::shared_ptr<abi::Event>> ForwardedGraph::NewPluginEvent() {
  onnxEvent handle = nullptr;
  const onnxStatus answer = calls().functions().init_event(backend_->handle(), &handle);
  ONNXIFI_RETURN_IF_ERROR(calls().ToStatus(answer, "onnxInitEvent", "an event", handle));
  return std::shared_ptr<abi::Event>(std::make_shared<ForwardedEvent>(backend_, handle));
}

base::Result<std::shared_ptr<abi::Event>> ForwardedGraph::MakePluginInput(
    std::shared_ptr<abi::Event> input) {
  const auto* forwarded = dynamic_cast<const ForwardedEvent*>(input.get());
  if (forwarded != nullptr && &forwarded->owner() == backend_.get()) return input;
  // The kit's events stay signalled; of others that is not known.
  const bool stays_signalled = calls().wait_event_for != nullptr;
  if (input == nullptr && stays_signalled) {
    const std::lock_guard lock(mutex_);
    if (signalled_ == nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<abi::Event> event, NewPluginEvent());
      ONNXIFI_RETURN_IF_ERROR(event->Signal());
      signalled_ = std::move(event);
    }
    return signalled_;
  }

  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<abi::Event> start, NewPluginEvent());
  // Holds the plugin's event until then. Where `input` fails, the event is released unsignalled,
  // which makes the plugin finish the run as failed.
  const auto finish = [start](const Status& status) {
    if (status.ok()) static_cast<void>(start->Signal().ok());
  };
  if (input == nullptr) {
    ONNXIFI_RETURN_IF_ERROR(start->Signal());
  } else if (auto* local = dynamic_cast<abi::LocalEvent*>(input.get())) {
    local->OnSignal(finish);
  } else {
    waiters_.Start([input, finish] { finish(input->Wait()); });
  }
  return start;
}

void ForwardedGraph::Close() {
  {
    std::lock_guard lock(mutex_);
    if (is_closed_) return;
    is_closed_ = true;
  }
  waiters_.Join();
  signalled_ = nullptr;
  static_cast<void>(calls().functions().release_graph(handle_));
}

base::Result<std::vector<abi::TensorShape>> ForwardedGraph::InferOutputShapes(
    std::span<const abi::TensorDescriptor> inputs) {
  if (calls().infer_output_shapes == nullptr) return InferByModel(inputs);
  const auto descriptors = Describe(inputs);
  Told<abi::TensorShape> shapes;
  const onnxStatus status = calls().infer_output_shapes(
      handle_, static_cast<uint32_t>(descriptors.size()), descriptors.data(), AppendShape, &shapes);
  ONNXIFI_RETURN_IF_ERROR(shapes.ToStatus(calls(), status, "onnxInferOutputShapes"));
  return std::move(shapes.items);
}

base::Result<std::vector<abi::TensorShape>> ForwardedGraph::InferByModel(
    std::span<const abi::TensorDescriptor> inputs) const {
  if (!inferred_shapes_.ok()) {
    Status refusal = inferred_shapes_.status();
    return refusal.Context("and plugin '" + calls().plugin_name() +
                           "' does not offer onnxInferOutputShapes");
  }
  std::vector<split::InputShape> extents;
  for (const abi::TensorDescriptor& input : inputs) {
    extents.push_back({input.name, {input.shape.begin(), input.shape.end()}});
  }
  ONNXIFI_ASSIGN_OR_RETURN(const auto inferred, (*inferred_shapes_)->Infer(extents));
  std::vector<abi::TensorShape> shapes;
  for (const split::OutputShape& shape : inferred) {
    shapes.push_back(
        {shape.name, static_cast<onnxEnum>(shape.type), shape.has_rank, shape.extents});
  }
  return shapes;
}

base::Result<abi::GraphCounters> ForwardedGraph::Counters() {
  if (calls().get_graph_counters == nullptr) return calls().Missing("onnxGetGraphCounters");
  // What an older plugin does not know of stays unknown.
  onnxGraphCounters counters;
  std::memset(&counters, 0xFF, sizeof(counters));
  counters.struct_size = sizeof(counters);
  ONNXIFI_RETURN_IF_ERROR(
      calls().ToStatus(calls().get_graph_counters(handle_, &counters), "onnxGetGraphCounters"));
  return abi::GraphCounters{
      .lowerings = counters.lowerings,
      .bindings = counters.bindings,
      .allocations = counters.allocations,
      .copies = counters.copies,
      .kernel_builds = counters.kernel_builds,
      .runs = counters.runs,
      .map_steps = counters.map_steps,
      .reduce_steps = counters.reduce_steps,
      .row_steps = counters.row_steps,
      .scan_steps = counters.scan_steps,
      .contract_steps = counters.contract_steps,
      .window_steps = counters.window_steps,
      .index_steps = counters.index_steps,
      .host_steps = counters.host_steps,
      .control_steps = counters.control_steps,
      .attention_steps = counters.attention_steps,
      .recurrent_steps = counters.recurrent_steps,
      .waits = counters.waits,
      .submissions = counters.submissions,
      .recordings = counters.recordings,
  };
}

base::Result<std::vector<abi::StepRecord>> ForwardedGraph::Profile() {
  if (calls().get_graph_profile == nullptr) return calls().Missing("onnxGetGraphProfile");
  Told<abi::StepRecord> steps;
  const onnxStatus status = calls().get_graph_profile(handle_, AppendStep, &steps);
  ONNXIFI_RETURN_IF_ERROR(steps.ToStatus(calls(), status, "onnxGetGraphProfile"));
  return std::move(steps.items);
}

base::Result<std::vector<abi::LoadRecord>> ForwardedGraph::LoadProfile() {
  if (calls().get_graph_load_profile == nullptr) return calls().Missing("onnxGetGraphLoadProfile");
  Told<abi::LoadRecord> stages;
  const onnxStatus status = calls().get_graph_load_profile(handle_, AppendStage, &stages);
  ONNXIFI_RETURN_IF_ERROR(stages.ToStatus(calls(), status, "onnxGetGraphLoadProfile"));
  return std::move(stages.items);
}

}  // namespace onnxifi::plugins
