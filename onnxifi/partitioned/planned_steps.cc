// SPDX-License-Identifier: Apache-2.0
//
// PlannedSteps: shapes are asked of each island in turn. A chain of islands stays on one thread;
// only what can run at the same time goes to others.

#include "onnxifi/partitioned/planned_steps.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

namespace onnxifi::partitioned {

using base::Code;
using base::Status;
using plugins::SharedSource;

namespace {

uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// What `work` answers; on a thread of the pool nobody else would catch what it throws.
template <typename Work>
Status Guard(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return {Code::kNoSystemMemory, "The run needs more memory than there is."};
  } catch (const std::exception& error) {
    return {Code::kInternalError,
            std::string("The run ended in an exception: ") + error.what() + "."};
  }
}

// A failure that is the device's, not the model's or the caller's.
bool IsOfTheDevice(Code code) {
  return code == Code::kBackendUnavailable || code == Code::kNoDeviceMemory ||
         code == Code::kNoDeviceResources;
}

// The shape of this name, or null.
const abi::TensorShape* FindShape(const std::vector<abi::TensorShape>& shapes,
                                  const std::string& name) {
  const auto found = std::ranges::find(shapes, name, &abi::TensorShape::name);
  return found == shapes.end() ? nullptr : &*found;
}

// Whether an input of the step may have other extents in every run.
bool VariesByRun(const PlannedStep& step, const Workspace& workspace) {
  return std::ranges::any_of(
      step.inputs, [&](int32_t value) { return workspace.places[value].varies_by_run(); });
}

// Whether all inputs of the step are known before anything runs.
bool HasKnownInputs(const PlannedStep& step, const Workspace& workspace) {
  return std::ranges::all_of(
      step.inputs, [&](int32_t value) { return workspace.places[value].has_known_extents(); });
}

std::vector<abi::TensorDescriptor> InputsFor(const PlannedStep& step, const SharedSource* device,
                                             const Workspace& workspace) {
  std::vector<abi::TensorDescriptor> inputs;
  for (const int32_t value : step.inputs) {
    inputs.push_back(workspace.places[value].DescriptorFor(device));
  }
  return inputs;
}

// Those that read what the step makes are bound again before they run: it lies elsewhere.
void MarkReadersStale(const PlannedStep& step, Workspace& workspace) {
  for (const int32_t reader : step.before) {
    std::atomic_ref(workspace.bound[reader].is_stale) = true;
  }
}

}  // namespace

PlannedSteps::PlannedSteps(std::vector<PlannedStep> steps, std::vector<CrossingValue> values,
                           std::vector<int32_t> inputs, std::vector<int32_t> outputs,
                           TaskPool& pool, Runner runner, size_t most_runs)
    : steps_(std::move(steps)),
      values_(std::move(values)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      pool_(pool),
      runner_(runner),
      most_runs_(std::max<size_t>(most_runs, 1)),
      copies_(values_.size()) {
  running_.reserve(most_runs_);
}

uint64_t PlannedSteps::copies() const {
  uint64_t sum = 0;
  for (const std::atomic<uint64_t>& count : copies_) sum += count;
  return sum;
}

uint64_t PlannedSteps::CopiesOf(const std::string& value) const {
  for (size_t k = 0; k < values_.size(); ++k) {
    if (values_[k].name == value) return copies_[k];
  }
  return 0;
}

std::vector<PlannedSteps::StepTime> PlannedSteps::LastTimes() {
  std::lock_guard lock(mutex_);
  return last_times_;
}

abi::Graph& PlannedSteps::GraphOf(size_t index, Workspace& workspace) const {
  const PlannedStep& step = steps_[index];
  bool& is_fallback = workspace.bound[index].is_fallback;
  is_fallback = is_fallback || (step.fallback != nullptr && step.fallback->has_taken_over());
  return is_fallback ? *step.fallback->graph() : *step.graph;
}

base::Result<std::vector<abi::TensorShape>> PlannedSteps::ShapesOf(
    const PlannedStep& step, abi::Graph& graph,
    std::span<const abi::TensorDescriptor> inputs) const {
  std::vector<abi::TensorShape> shapes;
  // A fallback graph always tells.
  if (step.tells_shapes || &graph != step.graph.get()) {
    ONNXIFI_ASSIGN_OR_RETURN(shapes, graph.InferOutputShapes(inputs));
    for (const int32_t output : step.outputs) {
      const CrossingValue& value = values_[output];
      const abi::TensorShape* const told = FindShape(shapes, value.name);
      if (told == nullptr) return Contradiction(value.name, "is not among its outputs");
      if (!told->has_rank) continue;
      ONNXIFI_RETURN_IF_ERROR(value.Check(told->data_type, told->extents));
    }
    return shapes;
  }
  for (const int32_t output : step.outputs) {
    const CrossingValue& value = values_[output];
    shapes.push_back({value.name, value.data_type, value.has_extents, value.extents});
  }
  return shapes;
}

Status PlannedSteps::ReplaceDevice(size_t index, Workspace& workspace, Status failure) const {
  FallbackGraph* const fallback = steps_[index].fallback.get();
  if (!IsOfTheDevice(failure.code()) || workspace.bound[index].is_fallback) return failure;
  if (fallback == nullptr) return failure.Context("and no other device takes these nodes");
  const auto graph = fallback->Get(failure);
  if (!graph.ok()) {
    return failure.Context("and no other device takes over: " + graph.status().Text());
  }
  // What has too little memory for these tensors may have enough for others.
  if (failure.code() == Code::kBackendUnavailable) fallback->TakeOver();
  workspace.bound[index] = {.binding = nullptr, .is_fallback = true};
  return base::Ok();
}

Status PlannedSteps::Prepare(size_t index, Workspace& workspace) {
  Status status = PrepareOnce(index, workspace);
  if (status.ok()) return status;
  ONNXIFI_RETURN_IF_ERROR(ReplaceDevice(index, workspace, std::move(status)));
  return PrepareOnce(index, workspace);
}

std::vector<const SharedSource*> PlannedSteps::SourcesOf(size_t index, int32_t value) const {
  std::vector<const SharedSource*> sources;
  const auto add = [&](const PlannedStep& step) {
    const SharedSource* const source = step.shared_source.get();
    if (source != nullptr && std::ranges::find(sources, source) == sources.end()) {
      sources.push_back(source);
    }
  };
  add(steps_[index]);
  for (const int32_t reader : steps_[index].before) {
    const std::vector<int32_t>& inputs = steps_[static_cast<size_t>(reader)].inputs;
    if (std::ranges::find(inputs, value) != inputs.end()) add(steps_[static_cast<size_t>(reader)]);
  }
  return sources;
}

Status PlannedSteps::PrepareOnce(size_t index, Workspace& workspace) {
  const PlannedStep& step = steps_[index];
  abi::Graph& graph = GraphOf(index, workspace);
  std::atomic_ref(workspace.bound[index].is_stale) = false;
  // What the first device shares is of no use to another.
  const SharedSource* const device =
      &graph == step.graph.get() ? step.shared_source.get() : nullptr;
  abi::GraphTensors tensors;
  tensors.inputs = InputsFor(step, device, workspace);
  ONNXIFI_RETURN_IF_ERROR(PlaceOutputs(index, graph, tensors.inputs, workspace));
  AddOutputs(step, graph, device, workspace, tensors);
  ONNXIFI_ASSIGN_OR_RETURN(workspace.bound[index].binding, graph.Bind(std::move(tensors)));
  return base::Ok();
}

Status PlannedSteps::PlaceOutputs(size_t index, abi::Graph& graph,
                                  std::span<const abi::TensorDescriptor> inputs,
                                  Workspace& workspace) const {
  const PlannedStep& step = steps_[index];
  const bool varies = VariesByRun(step, workspace);
  // Extents of what the caller alone reads are the caller's to say, unless they may differ from run
  // to run.
  std::vector<int32_t> inferred;
  for (const int32_t value : step.outputs) {
    const bool is_in_callers_memory = workspace.places[value].location == Location::kCallerMemory;
    if (values_[value].is_handed_on || (varies && is_in_callers_memory)) inferred.push_back(value);
  }
  if (inferred.empty()) return base::Ok();
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<abi::TensorShape> shapes,
                           ShapesOf(step, graph, inputs));
  bool has_moved = false;
  for (const int32_t value : inferred) {
    TensorStorage& place = workspace.places[value];
    const onnxPointer old_buffer = place.descriptor.buffer;
    const std::vector<uint64_t> old_shape = place.descriptor.shape;
    ONNXIFI_RETURN_IF_ERROR(
        PlaceOutput(index, value, FindShape(shapes, values_[value].name), varies, place));
    // What a run keeps is looked up in each.
    has_moved = has_moved || (!place.is_kept() && (place.descriptor.buffer != old_buffer ||
                                                   place.descriptor.shape != old_shape));
  }
  if (has_moved) MarkReadersStale(step, workspace);
  return base::Ok();
}

Status PlannedSteps::PlaceOutput(size_t index, int32_t value, const abi::TensorShape* told,
                                 bool varies, TensorStorage& place) const {
  place.TakeInference(told, varies);
  // Whether the caller's shape is right is for the device to say where it is the same in every run.
  const bool takes_shape =
      place.location == Location::kWorkspace || (place.location == Location::kCallerMemory &&
                                                 place.extent_source == ExtentSource::kInference);
  if (!takes_shape) return base::Ok();
  place.descriptor.data_type = told->data_type;
  place.descriptor.shape.assign(told->extents.begin(), told->extents.end());
  return place.Reserve(SourcesOf(index, value));
}

void PlannedSteps::AddOutputs(const PlannedStep& step, const abi::Graph& graph,
                              const SharedSource* device, const Workspace& workspace,
                              abi::GraphTensors& tensors) const {
  for (const int32_t value : step.outputs) {
    const TensorStorage& place = workspace.places[value];
    if (!place.is_kept()) {
      tensors.outputs.push_back(place.DescriptorFor(device));
      continue;
    }
    tensors.keeps_others = true;
    // A graph that knows its outputs wants an entry for each.
    if (graph.signature() == nullptr) continue;
    abi::TensorDescriptor& kept = tensors.outputs.emplace_back();
    kept.name = values_[value].name;
    kept.is_kept = true;
  }
}

Status PlannedSteps::TakeCallersTensors(const std::vector<int32_t>& positions,
                                        const std::vector<abi::TensorDescriptor>& descriptors,
                                        Workspace& workspace) {
  for (size_t k = 0; k < positions.size(); ++k) {
    TensorStorage& place = workspace.places[positions[k]];
    place.descriptor = descriptors[k];
    // The binding keeps it; a device gets it as the tensor that it is.
    place.descriptor.value = nullptr;
    place.location = descriptors[k].is_kept ? Location::kCallerResult : Location::kCallerMemory;
    if (place.is_kept()) continue;
    ONNXIFI_ASSIGN_OR_RETURN(place.capacity_bytes, SizeBytes(place.descriptor));
  }
  return base::Ok();
}

base::Result<std::shared_ptr<const Binding>> PlannedSteps::Bind(abi::GraphTensors tensors) {
  auto binding = std::make_shared<Binding>(std::move(tensors));
  Workspace& workspace = binding->workspace();
  workspace.places.resize(values_.size());
  workspace.bound.resize(steps_.size());
  for (size_t value = 0; value < values_.size(); ++value) {
    workspace.places[value].descriptor.name = values_[value].name;
  }
  ONNXIFI_RETURN_IF_ERROR(TakeCallersTensors(inputs_, binding->tensors().inputs, workspace));
  ONNXIFI_RETURN_IF_ERROR(TakeCallersTensors(outputs_, binding->tensors().outputs, workspace));
  for (const int32_t value : inputs_) {
    workspace.places[value].extent_source = ExtentSource::kBinding;
  }
  const abi::HostRanges written(binding->tensors().outputs);
  for (size_t k = 0; k < inputs_.size(); ++k) {
    if (!written.Overlap(binding->tensors().inputs[k])) continue;
    TensorStorage& place = workspace.places[inputs_[k]];
    place.location = Location::kWorkspace;
    ONNXIFI_RETURN_IF_ERROR(place.Reserve());
    workspace.apart.push_back(k);
  }
  for (size_t step = 0; step < steps_.size(); ++step) {
    if (!HasKnownInputs(steps_[step], workspace)) continue;
    Status status = Prepare(step, workspace);
    if (!status.ok()) return std::move(status).Context("in " + steps_[step].description);
  }
  return std::shared_ptr<const Binding>(std::move(binding));
}

base::Result<std::vector<abi::TensorShape>> PlannedSteps::ShapesOfAnyDevice(
    const PlannedStep& step, std::span<const abi::TensorDescriptor> inputs) const {
  FallbackGraph* const fallback = step.fallback.get();
  if (fallback == nullptr) return ShapesOf(step, *step.graph, inputs);
  if (fallback->has_taken_over()) return ShapesOf(step, *fallback->graph(), inputs);
  auto told = ShapesOf(step, *step.graph, inputs);
  if (told.ok() || told.status().code() != Code::kBackendUnavailable) return told;
  const auto made = fallback->Get(told.status());
  if (!made.ok()) return told;
  fallback->TakeOver();
  return ShapesOf(step, **made, inputs);
}

base::Result<std::vector<abi::TensorShape>> PlannedSteps::InferOutputShapes(
    std::span<const abi::TensorDescriptor> inputs) {
  std::vector<abi::TensorShape> shapes(values_.size());
  for (size_t value = 0; value < values_.size(); ++value) {
    shapes[value] = {values_[value].name, values_[value].data_type, /*has_rank=*/false, {}};
  }
  // Those whose extents are known, without data.
  std::vector<std::optional<abi::TensorDescriptor>> known(values_.size());
  for (size_t k = 0; k < inputs_.size(); ++k) known[inputs_[k]] = inputs[k];
  for (const PlannedStep& step : steps_) {
    std::vector<abi::TensorDescriptor> step_inputs;
    for (const int32_t value : step.inputs) {
      if (known[value]) step_inputs.push_back(*known[value]);
    }
    if (step_inputs.size() < step.inputs.size()) continue;
    auto told = ShapesOfAnyDevice(step, step_inputs);
    if (!told.ok()) return std::move(told).status().Context("in " + step.description);
    for (const int32_t value : step.outputs) {
      const abi::TensorShape* const shape = FindShape(*told, values_[value].name);
      if (shape == nullptr) continue;
      shapes[value] = *shape;
      if (!IsKnown(*shape)) continue;
      abi::TensorDescriptor& tensor = known[value].emplace();
      tensor.name = shape->name;
      tensor.data_type = shape->data_type;
      tensor.shape.assign(shape->extents.begin(), shape->extents.end());
    }
  }
  std::vector<abi::TensorShape> outputs;
  for (const int32_t value : outputs_) outputs.push_back(shapes[value]);
  return outputs;
}

std::shared_ptr<abi::Event> PlannedSteps::Run(std::shared_ptr<const Binding> binding,
                                              std::shared_ptr<abi::Event> input) {
  auto run = std::make_shared<RunState>();
  run->binding = std::move(binding);
  run->output = std::make_shared<abi::LocalEvent>(abi::LocalEvent::Origin::kRun);
  run->times.resize(steps_.size());
  run->shapes.resize(steps_.size());
  for (const PlannedStep& step : steps_) run->needs.push_back(step.needs);
  run->unfinished = steps_.size();
  run->tasks = std::vector<RunTask>(steps_.size());
  for (size_t step = 0; step < steps_.size(); ++step) run->tasks[step].step = step;
  if (input != nullptr) {
    const base::Result<bool> is_signalled = input->IsSignalled();
    if (is_signalled.ok() && *is_signalled) {
      run->status = input->Wait();
      input = nullptr;
    }
  }
  bool starts_here = false;
  {
    const std::lock_guard lock(mutex_);
    run->is_ready = input == nullptr;
    starts_here = runner_ == Runner::kCaller && waiting_.empty() && MayStart(*run);
    if (starts_here) {
      running_.push_back(run);
    } else {
      waiting_.push_back(run);
      StartNext();
    }
  }
  if (starts_here) {
    Start(run);
  } else if (input != nullptr) {
    const Status status = Guard([&] {
      AwaitInput(run, input);
      return base::Ok();
    });
    // It is among those that wait.
    if (!status.ok()) MarkReady(run, status);
  }
  return run->output;
}

void PlannedSteps::AwaitInput(const RunRef& run, const std::shared_ptr<abi::Event>& input) {
  if (auto* local = dynamic_cast<abi::LocalEvent*>(input.get())) {
    local->OnSignal(
        [self = shared_from_this(), run](const Status& status) { self->MarkReady(run, status); });
  } else {
    waiters_.Start(
        [self = shared_from_this(), run, input] { self->MarkReady(run, input->Wait()); });
  }
}

void PlannedSteps::MarkReady(const RunRef& run, const Status& input_status) {
  const std::lock_guard lock(mutex_);
  run->status = input_status;
  run->is_ready = true;
  StartNext();
}

bool PlannedSteps::MayStart(const RunState& run) const {
  return run.is_ready && running_.size() < most_runs_ &&
         std::ranges::all_of(running_, [&](const RunRef& other) {
           return run.binding->IsIndependentOf(*other->binding);
         });
}

// Those that wait, as far as the first that may not start.
void PlannedSteps::StartNext() {
  while (!waiting_.empty() && MayStart(*waiting_.front())) {
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    Submit(running_.back(), running_.back()->start);
  }
}

void PlannedSteps::Submit(const RunRef& run, RunTask& task) {
  task.owner = shared_from_this();
  task.run = run;
  pool_.Submit(task);
}

void PlannedSteps::RunTask::Perform() {
  // The task is the run's.
  const std::shared_ptr<PlannedSteps> kept_owner = std::move(owner);
  const RunRef kept_run = std::move(run);
  if (step) {
    kept_owner->Advance(kept_run, *step);
  } else {
    kept_owner->Start(kept_run);
  }
}

void PlannedSteps::Start(const RunRef& run) {
  run->started_ns = NowNs();
  const Workspace& workspace = run->binding->workspace();
  for (const size_t k : workspace.apart) {
    const std::span<const std::byte> bytes = abi::HostBytesOf(run->binding->tensors().inputs[k]);
    const TensorStorage& place = workspace.places[inputs_[k]];
    std::memcpy(place.descriptor.mutable_cpu_data(), bytes.data(), bytes.size());
  }
  // Everything that may begin, the last of it here.
  std::optional<size_t> last;
  for (size_t step = 0; step < steps_.size(); ++step) {
    if (steps_[step].needs != 0) continue;
    if (last) Submit(run, run->tasks[*last]);
    last = step;
  }
  Advance(run, *last);
}

void PlannedSteps::Advance(const RunRef& run, size_t step) {
  while (true) {
    bool has_failed = false;
    {
      std::lock_guard lock(run->mutex);
      has_failed = !run->status.ok();
    }
    // What comes after a failure is only counted.
    Status status = has_failed ? base::Ok() : Guard([&] { return Execute(*run, step); });
    // The first of those that may begin now; the others go to the pool.
    std::optional<size_t> ready;
    {
      std::lock_guard lock(run->mutex);
      if (!status.ok() && run->status.ok()) {
        run->status =
            Guard([&] { return std::move(status).Context("in " + steps_[step].description); });
      }
      for (const int32_t next : steps_[step].before) {
        if (--run->needs[next] > 0) continue;
        const auto index = static_cast<size_t>(next);
        if (ready) {
          Submit(run, run->tasks[index]);
        } else {
          ready = index;
        }
      }
      if (--run->unfinished > 0 && !ready) return;
    }
    if (!ready) break;
    step = *ready;
  }
  Finish(run);
}

Status PlannedSteps::Execute(RunState& run, size_t index) {
  Status status = ExecuteOnce(run, index);
  if (status.ok()) return status;
  // Its inputs are still what the steps before made.
  ONNXIFI_RETURN_IF_ERROR(ReplaceDevice(index, run.binding->workspace(), std::move(status)));
  return ExecuteOnce(run, index);
}

Status PlannedSteps::ExecuteOnce(RunState& run, size_t index) {
  Workspace& workspace = run.binding->workspace();
  Workspace::Bound& bound = workspace.bound[index];
  StepTime& time = run.times[index];
  time.start_ns = NowNs() - run.started_ns;
  const bool was_fallback = bound.is_fallback;
  abi::Graph& graph = GraphOf(index, workspace);
  if (bound.binding == nullptr || VariesByRun(steps_[index], workspace) ||
      bound.is_fallback != was_fallback || std::atomic_ref(bound.is_stale)) {
    ONNXIFI_RETURN_IF_ERROR(PrepareOnce(index, workspace));
  }
  time.is_fallback = bound.is_fallback;
  ONNXIFI_ASSIGN_OR_RETURN(const std::shared_ptr<abi::Event> event,
                           graph.Run(bound.binding, /*input=*/nullptr));
  ONNXIFI_RETURN_IF_ERROR(event->Wait());
  Status status = TakeOutputs(*event, run, index);
  time.duration_ns = NowNs() - run.started_ns - time.start_ns;
  return status;
}

Status PlannedSteps::TakeOutputs(abi::Event& event, RunState& run, size_t index) {
  Workspace& workspace = run.binding->workspace();
  const PlannedStep& step = steps_[index];
  ONNXIFI_ASSIGN_OR_RETURN(run.shapes[index], event.OutputShapes());
  ONNXIFI_RETURN_IF_ERROR(TakeShapes(step, run.shapes[index], workspace));
  const bool keeps = std::ranges::any_of(
      step.outputs, [&](int32_t value) { return workspace.places[value].is_kept(); });
  return keeps ? TakeKept(step, event, workspace) : base::Ok();
}

Status PlannedSteps::TakeShapes(const PlannedStep& step,
                                const std::vector<abi::TensorShape>& shapes,
                                Workspace& workspace) const {
  for (const abi::TensorShape& shape : shapes) {
    const auto output = std::ranges::find_if(
        step.outputs, [&](int32_t value) { return values_[value].name == shape.name; });
    if (output == step.outputs.end()) return Contradiction(shape.name, "is none of its outputs");
    ONNXIFI_RETURN_IF_ERROR(values_[*output].Check(shape.data_type, shape.extents));
    const TensorStorage& place = workspace.places[*output];
    if (!place.is_kept()) ONNXIFI_RETURN_IF_ERROR(place.CheckAfterRun(shape));
  }
  for (const int32_t value : step.outputs) {
    TensorStorage& place = workspace.places[value];
    if (place.location != Location::kCallerMemory || !place.varies_by_run()) continue;
    // The caller's memory may hold more than there is this time.
    const abi::TensorShape* const shape = FindShape(shapes, values_[value].name);
    if (shape == nullptr) continue;
    place.descriptor.shape.assign(shape->extents.begin(), shape->extents.end());
  }
  return base::Ok();
}

Status PlannedSteps::TakeKept(const PlannedStep& step, abi::Event& event, Workspace& workspace) {
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<abi::KeptValue> kept, event.OutputValues());
  // What the run before kept is no answer to this one.
  for (const int32_t value : step.outputs) workspace.places[value].kept = nullptr;
  for (abi::KeptValue& told : kept) {
    const auto output = std::ranges::find_if(step.outputs, [&](int32_t value) {
      return values_[value].name == told.name && workspace.places[value].is_kept();
    });
    if (output == step.outputs.end()) continue;
    if (!told.value->is_tensor()) return Contradiction(told.name, "turns out to be no tensor");
    const tensor::Tensor& tensor = told.value->tensor;
    ONNXIFI_RETURN_IF_ERROR(values_[*output].Check(
        static_cast<onnxEnum>(tensor.type()), {tensor.extents().begin(), tensor.extents().end()}));
    TensorStorage& place = workspace.places[*output];
    place.descriptor.data_type = static_cast<onnxEnum>(tensor.type());
    place.descriptor.shape.assign(tensor.extents().begin(), tensor.extents().end());
    place.descriptor.buffer = reinterpret_cast<onnxPointer>(tensor.data());
    place.kept = std::move(told.value);
    ++copies_[*output];
  }
  for (const int32_t value : step.outputs) {
    const TensorStorage& place = workspace.places[value];
    if (place.is_kept() && place.kept == nullptr) {
      return Contradiction(values_[value].name, "is not there after a run that was to keep it");
    }
  }
  return base::Ok();
}

abi::RunOutputs PlannedSteps::OutputsOf(const RunState& run) const {
  const Workspace& workspace = run.binding->workspace();
  abi::RunOutputs outputs;
  bool differs = false;
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const abi::TensorDescriptor& bound = run.binding->tensors().outputs[k];
    // As it is bound, or as its island was bound in this run.
    const abi::TensorDescriptor& actual = workspace.places[outputs_[k]].descriptor;
    abi::TensorShape& shape = outputs.shapes.emplace_back();
    shape.name = bound.name;
    shape.data_type = actual.data_type;
    shape.extents.assign(actual.shape.begin(), actual.shape.end());
    differs = differs || actual.shape != bound.shape;
    for (const std::vector<abi::TensorShape>& told : run.shapes) {
      for (const abi::TensorShape& late : told) {
        if (late.name != shape.name) continue;
        differs = differs || late.extents != shape.extents;
        shape = late;
      }
    }
    if (!bound.is_kept) continue;
    differs = true;
    outputs.kept.push_back({bound.name, workspace.places[outputs_[k]].kept});
  }
  if (!differs) outputs.shapes.clear();
  return outputs;
}

void PlannedSteps::Finish(const RunRef& run) {
  abi::RunOutputs outputs;
  if (run->status.ok()) {
    run->status = Guard([&] {
      outputs = OutputsOf(*run);
      return base::Ok();
    });
  }
  {
    const std::lock_guard lock(mutex_);
    std::swap(last_times_, run->times);
  }
  run->output->Complete(run->status, std::move(outputs));
  const std::lock_guard lock(mutex_);
  std::erase(running_, run);
  StartNext();
  emptied_.notify_all();
}

void PlannedSteps::Close() {
  waiters_.Join();
  std::unique_lock lock(mutex_);
  emptied_.wait(lock, [this] { return waiting_.empty() && running_.empty(); });
}

}  // namespace onnxifi::partitioned
