// SPDX-License-Identifier: Apache-2.0
//
// CompiledGraph: binding checks shapes before anything runs; running asks the executor.

#include "backends/core/plugin/compiled_graph.h"

#include <onnxifi/sdk.h>

#include <algorithm>
#include <string>
#include <utility>

#include "backends/core/device/parallel.h"
#include "backends/core/device/usable_cpus.h"
#include "backends/core/execution/whole_run.h"
#include "backends/core/plugin/caller_memory.h"
#include "backends/core/plugin/caller_outputs.h"
#include "backends/core/plugin/graph_report.h"

namespace onnxifi::plugin {
namespace {

using abi::TensorDescriptor;
using base::Code;
using base::Result;
using base::Status;
using tensor::Extents;

// Runs of a graph that go side by side on the processor. Each has memory of its own; with two for
// each CPU, a CPU has work while a run hands its place to a thread that has to wake up. Waking up
// takes about as long as a run of 200 us, so runs of little memory do not wait for places: threads
// that the system lets run take turns by the millisecond.
RunQueue::Limits LimitsOfRuns() {
  const auto cpus = static_cast<size_t>(device::CountUsableCpus());
  constexpr int64_t kSmallBytes = int64_t{64} << 20;
  return {.at_once = 2 * cpus, .small_at_once = 8 * cpus, .small_bytes = kSmallBytes};
}

}  // namespace

Result<std::unique_ptr<CompiledGraph>> CompiledGraph::Create(
    abi::Signature signature, std::unique_ptr<program::Program> program, const Services& services,
    const abi::GraphProperties& properties, LoadTimes times, bool is_emulated,
    Specialisations::Compile compile_for_shape, const CompiledGraph* sibling) {
  std::unique_ptr<CompiledGraph> graph(new CompiledGraph(std::move(signature), std::move(program),
                                                         services.sharing, properties,
                                                         std::move(times), is_emulated));
  ++graph->counters_.lowerings;
  ONNXIFI_ASSIGN_OR_RETURN(graph->plan_, graph->load_times_.Time("build_kernels", [&] {
    return plan::Plan::Create(*graph->program_, services.device, graph->counters_);
  }));
  if (compile_for_shape != nullptr) {
    graph->specialisations_ = std::make_unique<Specialisations>(std::move(compile_for_shape),
                                                                *graph->plan_, graph->counters_);
  }
  program::DropConstants(*graph->program_);
  graph->executor_ = std::make_unique<execution::Executor>(*graph->plan_);
  ONNXIFI_ASSIGN_OR_RETURN(graph->boundary_, execution::HostBoundary::Create(*graph->executor_));
  ONNXIFI_RETURN_IF_ERROR(services.worker.Start());
  // A device's queue has one order; without one, kernels run on the threads that ask.
  const RunQueue::Limits limits =
      graph->boundary_->has_queue() ? RunQueue::Limits() : LimitsOfRuns();
  graph->queue_ =
      sibling != nullptr ? sibling->queue_ : std::make_shared<RunQueue>(services.worker, limits);
  return graph;
}

Status CompiledGraph::Prepare() {
  const std::lock_guard lock(prepare_mutex_);
  if (!preparation_) {
    // Stands if an exception passes: constants may be gone, so there is no second attempt.
    preparation_ = Status(Code::kNoSystemMemory, "The graph could not be made ready before.");
    preparation_ = plan_->Prepare();
  }
  return *preparation_;
}

Result<std::vector<Extents>> CompiledGraph::ExtentsOf(
    std::span<const TensorDescriptor> inputs) const {
  std::vector<Extents> extents;
  for (const TensorDescriptor& input : inputs) extents.push_back(plugin::ExtentsOf(input));
  if (extents.size() != program_->inputs.size()) {
    return Status(Code::kUnidentifiedName, std::to_string(extents.size()) +
                                               " inputs are given where the graph has " +
                                               std::to_string(program_->inputs.size()) + ".");
  }
  for (size_t k = 0; k < extents.size(); ++k) {
    // A non-tensor value has none of its own, be it an optional that is a tensor.
    if (program_->buffers[program_->inputs[k].buffer].value) extents[k].clear();
  }
  return extents;
}

Result<std::shared_ptr<const plan::SegmentBinding>> CompiledGraph::BindPlan(
    const std::vector<int64_t>& symbols, std::span<const Extents> inputs) {
  bool has_own = false;
  if (specialisations_ != nullptr) {
    const std::shared_ptr<const Specialisation> own = specialisations_->ForBinding(symbols, inputs);
    has_own = own != nullptr;
    if (has_own) {
      const Result<std::vector<int64_t>> numbers = own->plan->SymbolsFor(inputs);
      Result<std::shared_ptr<const plan::SegmentBinding>> bound =
          numbers.ok() ? own->plan->Bind(0, *numbers) : numbers.status();
      // Tiny runs are left to the plan for all shapes, and what this one has no memory for.
      if (bound.ok() && !(*bound)->is_tiny) return bound;
    }
  }
  ONNXIFI_RETURN_IF_ERROR(Prepare());
  Result<std::shared_ptr<const plan::SegmentBinding>> bound = plan_->Bind(0, symbols);
  // The general plan does the runs of this shape.
  if (bound.ok() && (has_own || (specialisations_ != nullptr && (*bound)->is_tiny))) {
    specialisations_->Discard(symbols);
  }
  return bound;
}

Result<std::shared_ptr<const abi::Binding>> CompiledGraph::BindWith(abi::GraphTensors tensors,
                                                                    HostMemory host_memory) {
  for (size_t k = 0; k < tensors.inputs.size(); ++k) {
    const TensorDescriptor& input = tensors.inputs[k];
    if (input.value == nullptr) continue;
    ONNXIFI_RETURN_IF_ERROR(program::CheckValue(
        *input.value, execution::TypeOf(program_->buffers[program_->inputs[k].buffer]),
        "Input '" + input.name + "'"));
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<Extents> extents, ExtentsOf(tensors.inputs));
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<int64_t> symbols, plan_->SymbolsFor(extents));
  std::vector<Extents> outputs = plan_->OutputExtents(symbols);
  for (size_t k = 0; k < outputs.size(); ++k) {
    const TensorDescriptor& descriptor = tensors.outputs[k];
    if (descriptor.is_kept) continue;
    Extents given = plugin::ExtentsOf(descriptor);
    bool fits = given.size() == outputs[k].size();
    for (size_t axis = 0; fits && axis < given.size(); ++axis) {
      fits = outputs[k][axis] < 0 || outputs[k][axis] == given[axis];
    }
    if (!fits) {
      // Of inputs that the graph refuses no output is right.
      ONNXIFI_RETURN_IF_ERROR(plan_->CheckExtents(symbols));
      return Status(Code::kMismatchingShape, "Output '" + descriptor.name + "' is bound as " +
                                                 tensor::ToString(given) + " but has shape " +
                                                 tensor::ToString(outputs[k]) +
                                                 " (-1: known after a run).");
    }
  }
  ONNXIFI_ASSIGN_OR_RETURN(
      DeviceMemory input_memory,
      ImportMemory(tensors.inputs, sharing_, device::Sharing::Access::kRead, "input"));
  ONNXIFI_ASSIGN_OR_RETURN(
      DeviceMemory output_memory,
      ImportMemory(tensors.outputs, sharing_, device::Sharing::Access::kWrite, "output"));
  if (sharing_ != nullptr && host_memory == HostMemory::kImported) {
    ImportHostMemory(tensors.inputs, /*others=*/{}, *sharing_, input_memory);
    ImportHostMemory(tensors.outputs, tensors.inputs, *sharing_, output_memory);
  }
  // What these extents need is prepared now, so that a run finds it.
  ONNXIFI_ASSIGN_OR_RETURN(const std::shared_ptr<const plan::SegmentBinding> prepared,
                           BindPlan(symbols, extents));
  if (std::shared_ptr<const abi::Binding> same = kept_bindings_.Find(tensors)) return same;
  // Going to another device and back takes longer than another thread takes to begin.
  const bool is_callers = (prepared->is_tiny || caller_runs_) && !boundary_->has_queue();
  // What numbers of the run decide has arenas of its own.
  const int64_t own_bytes =
      plan_->segments().size() == 1 ? prepared->arena_bytes : RunQueue::kUnknownBytes;
  auto binding = std::make_shared<PreparedBinding>(
      std::move(tensors), is_callers, host_memory == HostMemory::kCopied, own_bytes,
      std::move(input_memory), std::move(output_memory), boundary_->recordings());
  // A queue has all inputs before it writes the first output back.
  for (size_t k = 0; !boundary_->has_queue() && k < binding->tensors().inputs.size(); ++k) {
    const TensorDescriptor& input = binding->tensors().inputs[k];
    if (!binding->written().Overlap(input)) continue;
    ONNXIFI_ASSIGN_OR_RETURN(
        tensor::Tensor copy,
        tensor::Tensor::Allocate(static_cast<tensor::ElementType>(input.data_type),
                                 plugin::ExtentsOf(input)));
    binding->SetApart(k, std::move(copy));
  }
  // What is over before another thread begins gains nothing that compiling it costs.
  if (specialisations_ != nullptr && !prepared->is_tiny) {
    binding->SetShape(std::move(symbols), std::move(extents));
  }
  kept_bindings_.Keep(binding);
  return std::shared_ptr<const abi::Binding>(std::move(binding));
}

Result<std::shared_ptr<abi::Event>> CompiledGraph::Run(std::shared_ptr<const abi::Binding> binding,
                                                       std::shared_ptr<abi::Event> input) {
  // Events of this backend are local: NewEvent and Run make no others.
  auto local = std::static_pointer_cast<abi::LocalEvent>(std::move(input));
  // So are bindings: Bind makes no others.
  const auto& prepared = static_cast<const PreparedBinding&>(*binding);
  return std::shared_ptr<abi::Event>(queue_->Add(
      [this, binding](abi::RunOutputs& outputs) {
        return Execute(*binding, execution::HostBoundary::End::kFinished, outputs);
      },
      std::move(local),
      prepared.is_callers() ? RunQueue::RunsOn::kCaller : RunQueue::RunsOn::kWorker,
      prepared.is_of_one_run() ? &prepared : nullptr));
}

Status CompiledGraph::RunInSharedQueue(std::shared_ptr<const abi::Binding> binding) {
  queue_->Drain();
  // What lives in the host's memory for this call only is to be read or written before it ends.
  const abi::GraphTensors& tensors = binding->tensors();
  const bool has_values =
      std::ranges::any_of(tensors.inputs, [](const auto& input) { return input.value != nullptr; });
  const bool keeps_any =
      std::ranges::any_of(tensors.outputs, [](const auto& output) { return output.is_kept; });
  abi::RunOutputs nobody_asks;
  return Execute(*binding,
                 has_values || keeps_any ? execution::HostBoundary::End::kFinished
                                         : execution::HostBoundary::End::kQueued,
                 nobody_asks);
}

Status CompiledGraph::Execute(const abi::Binding& binding, execution::HostBoundary::End end,
                              abi::RunOutputs& outputs) {
  // Bind makes no others.
  const auto& prepared = static_cast<const PreparedBinding&>(binding);
  std::shared_ptr<const Specialisation> specialisation;
  if (!prepared.symbols().empty()) {
    specialisation = specialisations_->ForRun(prepared.symbols(), prepared.extents());
  }
  const program::Program& program = specialisation ? *specialisation->program : *program_;
  execution::HostBoundary& boundary = specialisation ? *specialisation->boundary : *boundary_;
  if (specialisation != nullptr) {
    prepared.NoteRecordings(boundary.recordings());
  } else if (!prepared.symbols().empty()) {
    // The shape was bound to a plan of its own, which may be gone by now.
    ONNXIFI_RETURN_IF_ERROR(Prepare());
  }
  tensor::StringTable strings(program.strings.get());
  std::vector<execution::InputTensor> inputs;
  for (size_t k = 0; k < program.inputs.size(); ++k) {
    const TensorDescriptor& input = binding.tensors().inputs[k];
    const program::Buffer& buffer = program.buffers[program.inputs[k].buffer];
    if (buffer.value || buffer.holds_strings) {
      ONNXIFI_ASSIGN_OR_RETURN(
          execution::InputTensor value,
          execution::AsInput(buffer, input.value, "Input '" + input.name + "'", strings));
      inputs.push_back(std::move(value));
    } else {
      const auto& memory = prepared.inputs()[k];
      inputs.push_back(
          {memory != nullptr ? memory->data() : prepared.HostData(k), plugin::ExtentsOf(input)});
      inputs.back().is_inside = memory != nullptr;
    }
  }
  CallerOutputs places(program, binding.tensors().outputs, prepared.outputs());
  const device::Parallel::Caller caller(plan_->device().parallel());
  ++counters_.runs;
  // A run that is in the queue when this returns may outlive the binding.
  std::span<const std::shared_ptr<const void>> kept;
  if (end == execution::HostBoundary::End::kQueued) kept = prepared.imports();
  if (!is_profiled_) {
    ONNXIFI_RETURN_IF_ERROR(boundary.Run(inputs, places, /*profile=*/nullptr, &strings, end, kept));
  } else {
    auto profile = std::make_shared<execution::RunProfile>();
    ONNXIFI_RETURN_IF_ERROR(boundary.Run(inputs, places, profile.get(), &strings, end, kept));
    const std::lock_guard lock(mutex_);
    last_profile_ = std::move(profile);
    last_specialisation_ = std::move(specialisation);
  }
  outputs = places.Outputs(strings);
  return base::Ok();
}

Status CompiledGraph::CheckExtents(std::span<const TensorDescriptor> inputs) const {
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<Extents> extents, ExtentsOf(inputs));
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<int64_t> symbols, plan_->SymbolsFor(extents));
  return plan_->CheckExtents(symbols);
}

void CompiledGraph::Close() { queue_->Drain(); }

Result<std::vector<abi::TensorShape>> CompiledGraph::InferOutputShapes(
    std::span<const TensorDescriptor> inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<Extents> extents, ExtentsOf(inputs));
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<int64_t> symbols, plan_->SymbolsFor(extents));
  ONNXIFI_RETURN_IF_ERROR(plan_->CheckExtents(symbols));
  std::vector<Extents> outputs = plan_->OutputExtents(symbols);
  std::vector<abi::TensorShape> shapes;
  for (size_t k = 0; k < outputs.size(); ++k) {
    const program::Port& port = program_->outputs[k];
    shapes.push_back({port.name,
                      static_cast<onnxEnum>(program_->buffers[port.buffer].element_type()),
                      !program_->buffers[port.buffer].value, outputs[k]});
  }
  return shapes;
}

Result<abi::GraphCounters> CompiledGraph::Counters() {
  abi::GraphCounters counters;
  counters.lowerings = counters_.lowerings;
  counters.bindings = counters_.bindings;
  counters.allocations = counters_.allocations;
  counters.copies = counters_.copies;
  counters.kernel_builds = counters_.kernel_builds;
  counters.runs = counters_.runs;
  counters.waits = counters_.waits;
  if (boundary_->has_queue() && !boundary_->counts_submissions()) {
    counters.submissions = abi::GraphCounters::kUnknown;
  } else {
    counters.submissions = counters_.submissions;
  }
  counters.recordings = counters_.recordings;
  CountSteps(*program_, counters);
  return counters;
}

Result<std::vector<abi::LoadRecord>> CompiledGraph::LoadProfile() {
  std::vector<abi::LoadRecord> records;
  for (const LoadTimes::LoadStage& stage : load_times_.stages()) {
    records.push_back({stage.name, stage.count, static_cast<uint64_t>(stage.duration.count())});
  }
  return records;
}

Result<std::vector<abi::StepRecord>> CompiledGraph::Profile() {
  std::shared_ptr<const execution::RunProfile> profile;
  std::shared_ptr<const Specialisation> specialisation;
  {
    const std::lock_guard lock(mutex_);
    profile = last_profile_;
    specialisation = last_specialisation_;
  }
  if (profile == nullptr) {
    return Status(Code::kInvalidState, is_profiled_
                                           ? "No run of the graph has finished."
                                           : "The graph was initialised without profiling.");
  }
  const program::Program& program = specialisation ? *specialisation->program : *program_;
  const plan::Plan& plan = specialisation ? *specialisation->plan : *plan_;
  return DescribeSteps(program, plan, *profile);
}

}  // namespace onnxifi::plugin
