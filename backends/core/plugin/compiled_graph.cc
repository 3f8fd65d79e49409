// SPDX-License-Identifier: Apache-2.0
//
// CompiledGraph: binding checks shapes before anything runs; running asks the executor.

#include "backends/core/plugin/compiled_graph.h"

#include <onnxifi/sdk.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <list>
#include <map>
#include <string>
#include <utility>

#include "backends/core/device/parallel.h"
#include "backends/core/device/usable_cpus.h"
#include "backends/core/execution/whole_run.h"
#include "backends/core/plugin/caller_memory.h"
#include "backends/core/program/cost.h"
#include "backends/core/program/host_function.h"

namespace onnxifi::plugin {
namespace {

using abi::TensorDescriptor;
using base::Code;
using base::Result;
using base::Status;
using tensor::Extents;

// Puts outputs into the caller's buffers and notes the extents they turn out to have; those that
// the run keeps go to memory of their own.
class CallerOutputs : public execution::OutputAllocator {
 public:
  // `memory[k]` is that of output k where it lies in the device, else null.
  CallerOutputs(const program::Program& program, std::span<const TensorDescriptor> outputs,
                std::span<const std::shared_ptr<device::Allocation>> memory)
      : program_(program),
        outputs_(outputs),
        memory_(memory),
        actual_(outputs.size()),
        kept_(program) {}

  Result<std::byte*> Allocate(int output, const Extents& extents) override {
    const TensorDescriptor& descriptor = outputs_[output];
    actual_[output] = extents;
    if (descriptor.is_kept) return kept_.Allocate(output, extents);
    Extents bound = ExtentsOf(descriptor);
    if (extents != bound && tensor::ElementCount(extents) > tensor::ElementCount(bound)) {
      return Status(Code::kMismatchingShape,
                    "Output '" + descriptor.name + "' has shape " + tensor::ToString(extents) +
                        ", more than the bound shape " + tensor::ToString(bound) + " can hold.");
    }
    if (memory_[output] != nullptr) return memory_[output]->data();
    return static_cast<std::byte*>(descriptor.mutable_cpu_data());
  }

  bool IsInside(int output) const override { return memory_[output] != nullptr; }

  Status Take(int output, tensor::ValueRef value) override {
    return kept_.Take(output, std::move(value));
  }

  // No shapes when every output has that of its descriptor.
  abi::RunOutputs Outputs(const tensor::StringTable& strings) const {
    abi::RunOutputs told;
    bool differs = false;
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const TensorDescriptor& output = outputs_[k];
      const program::Buffer& buffer = program_.buffers[program_.outputs[k].buffer];
      differs = differs || output.is_kept || actual_[k] != ExtentsOf(output);
      told.shapes.push_back({output.name,
                             buffer.value ? onnxEnum{ONNXIFI_DATATYPE_UNDEFINED}
                                          : static_cast<onnxEnum>(buffer.element_type()),
                             !buffer.value, actual_[k]});
      if (output.is_kept) {
        told.kept.push_back({output.name, kept_.Get(static_cast<int>(k), strings)});
      }
    }
    if (!differs) told.shapes.clear();
    return told;
  }

 private:
  const program::Program& program_;
  std::span<const TensorDescriptor> outputs_;
  std::span<const std::shared_ptr<device::Allocation>> memory_;
  std::vector<Extents> actual_;
  execution::KeptOutputs kept_;
};

// A binding that has the caller's memory on the device, and knows whether its runs are best carried
// out by the thread that starts them.
class PreparedBinding : public abi::Binding, public RunQueue::Footprint {
 public:
  // `is_of_one_run`: whether nothing but that run is told of it, so that nobody counts on the order
  // of runs of other threads.
  PreparedBinding(abi::GraphTensors bound, bool is_callers, bool is_of_one_run, DeviceMemory inputs,
                  DeviceMemory outputs, std::shared_ptr<execution::Recordings> recordings)
      : abi::Binding(std::move(bound)),
        is_callers_(is_callers),
        is_of_one_run_(is_of_one_run),
        written_(tensors().outputs),
        recordings_({std::move(recordings)}),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {
    NoteImports(tensors().inputs, inputs_);
    NoteImports(tensors().outputs, outputs_);
  }
  ~PreparedBinding() override {
    for (const DeviceMemory* tensors : {&inputs_, &outputs_}) {
      for (const std::shared_ptr<device::Allocation>& memory : *tensors) {
        if (memory == nullptr) continue;
        for (const auto& recordings : recordings_) {
          recordings->Forget(memory->data(), memory->size_bytes());
        }
      }
    }
  }
  PreparedBinding(const PreparedBinding&) = delete;
  PreparedBinding& operator=(const PreparedBinding&) = delete;

  // Of the host's memory there are addresses alone.
  bool ServesLaterRuns() const override {
    const auto is_null = [](const auto& memory) { return memory == nullptr; };
    return std::ranges::all_of(inputs_, is_null) && std::ranges::all_of(outputs_, is_null);
  }

  // For runs that may have a plan of their own: symbols, and extents of the inputs.
  void SetShape(std::vector<int64_t> symbols, std::vector<Extents> extents) {
    symbols_ = std::move(symbols);
    extents_ = std::move(extents);
  }
  const std::vector<int64_t>& symbols() const { return symbols_; }
  std::span<const Extents> extents() const { return extents_; }

  bool is_callers() const { return is_callers_; }
  bool is_of_one_run() const { return is_of_one_run_; }
  // What lies in the host's memory of the outputs.
  const abi::HostRanges& written() const { return written_; }
  bool IsApartFrom(const RunQueue::Footprint& other) const override {
    // Bind makes no others.
    const auto& that = static_cast<const PreparedBinding&>(other);
    const auto is_written = [](const PreparedBinding& by) {
      return [&by](const TensorDescriptor& tensor) { return by.written_.Overlap(tensor); };
    };
    return std::ranges::none_of(tensors().inputs, is_written(that)) &&
           std::ranges::none_of(tensors().outputs, is_written(that)) &&
           std::ranges::none_of(that.tensors().inputs, is_written(*this));
  }
  const DeviceMemory& inputs() const { return inputs_; }
  const DeviceMemory& outputs() const { return outputs_; }
  // To be called before a run by another plan, whose recordings go before the memory, too.
  void NoteRecordings(const std::shared_ptr<execution::Recordings>& recordings) const {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(recordings_, recordings) == recordings_.end()) {
      recordings_.push_back(recordings);
    }
  }
  // The inputs that share memory with an output, and where each is copied before a run writes.
  void SetApart(size_t input, tensor::Tensor copy) { apart_.emplace(input, std::move(copy)); }
  // What a run reads of input `k`, which lies in the host's memory.
  const std::byte* HostData(size_t k) const {
    const auto copy = apart_.find(k);
    const auto* data = static_cast<const std::byte*>(tensors().inputs[k].cpu_data());
    if (copy == apart_.end()) return data;
    std::memcpy(copy->second.mutable_data(), data, static_cast<size_t>(copy->second.size_bytes()));
    return copy->second.data();
  }
  // Those of them that the driver's objects are ours of.
  std::span<const std::shared_ptr<const void>> imports() const { return imports_; }

 private:
  void NoteImports(std::span<const TensorDescriptor> tensors, const DeviceMemory& memory) {
    for (size_t k = 0; k < tensors.size(); ++k) {
      const bool is_ours = tensors[k].memory_type == ONNXIFI_MEMORY_TYPE_CPU ||
                           tensors[k].memory_type == ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD;
      if (is_ours && memory[k] != nullptr) imports_.push_back(memory[k]);
    }
  }

  const bool is_callers_;
  const bool is_of_one_run_;
  const abi::HostRanges written_;
  std::vector<int64_t> symbols_;  // none where there is one plan for all runs
  std::vector<Extents> extents_;
  // Written at the start of each run. Runs that write the same memory follow one another.
  mutable std::map<size_t, tensor::Tensor> apart_;
  mutable std::mutex mutex_;
  // Of every plan that has run with the memory. Guarded by mutex_ while there are runs.
  mutable std::vector<std::shared_ptr<execution::Recordings>> recordings_;
  const DeviceMemory inputs_;
  const DeviceMemory outputs_;
  std::vector<std::shared_ptr<const void>> imports_;
};

// As many as callers have buffers in turn. Each has recordings of its own in every segment, of
// which execution keeps some more.
constexpr size_t kMaxKeptBindings = 4;
static_assert(kMaxKeptBindings < execution::Recordings::kMaxRecordings);

// Whether all tensors are addresses of the device's memory, of which a binding keeps nothing.
bool IsOfAddresses(const abi::GraphTensors& tensors) {
  const auto is_address = [](const TensorDescriptor& tensor) {
    return tensor.memory_type == ONNXIFI_MEMORY_TYPE_CUDA_BUFFER && tensor.owner == nullptr &&
           tensor.value == nullptr && !tensor.is_kept;
  };
  return !tensors.keeps_others && std::ranges::all_of(tensors.inputs, is_address) &&
         std::ranges::all_of(tensors.outputs, is_address);
}

// Counts the steps of a program and of the bodies in it, each under its family.
class FamilyCounter {
 public:
  explicit FamilyCounter(abi::GraphCounters& counters) : counters_(counters) {}

  void Count(const program::Program& program) {
    for (const program::Step& step : program.steps) std::visit(*this, step.body);
  }

  void operator()(const program::Map&) { ++counters_.map_steps; }
  void operator()(const program::Reduce&) { ++counters_.reduce_steps; }
  void operator()(const program::Row&) { ++counters_.row_steps; }
  void operator()(const program::Scan&) { ++counters_.scan_steps; }
  void operator()(const program::Contract&) { ++counters_.contract_steps; }
  void operator()(const program::Window&) { ++counters_.window_steps; }
  void operator()(const program::Attention&) { ++counters_.attention_steps; }
  void operator()(const program::Recurrent&) { ++counters_.recurrent_steps; }
  void operator()(const program::Index&) { ++counters_.index_steps; }
  // Numbers that execution reads are no work of their own.
  void operator()(const program::Cut&) {}
  void operator()(const program::Host&) { ++counters_.host_steps; }
  void operator()(const program::Control& control) {
    ++counters_.control_steps;
    for (const std::unique_ptr<program::Program>& body : control.bodies) Count(*body);
  }

 private:
  abi::GraphCounters& counters_;
};

// Runs of a graph that go side by side on the processor. Each has memory of its own; with two for
// each CPU, a CPU has work while a run hands its place to a thread that has to wake up.
int CountRunsAtOnce() { return 2 * device::CountUsableCpus(); }

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
  const int max_at_once = graph->boundary_->has_queue() ? 1 : CountRunsAtOnce();
  graph->queue_ = sibling != nullptr ? sibling->queue_
                                     : std::make_shared<RunQueue>(services.worker, max_at_once);
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
  if (specialisations_ != nullptr) {
    const std::shared_ptr<const Specialisation> own = specialisations_->ForBinding(symbols, inputs);
    if (own != nullptr) {
      const Result<std::vector<int64_t>> numbers = own->plan->SymbolsFor(inputs);
      Result<std::shared_ptr<const plan::SegmentBinding>> bound =
          numbers.ok() ? own->plan->Bind(0, *numbers) : numbers.status();
      // Tiny runs are left to the plan for all shapes, and what this one has no memory for.
      if (bound.ok() && !(*bound)->is_tiny) return bound;
    }
  }
  ONNXIFI_RETURN_IF_ERROR(Prepare());
  return plan_->Bind(0, symbols);
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
  if (std::shared_ptr<const abi::Binding> same = FindSameBinding(tensors)) return same;
  // Going to another device and back takes longer than another thread takes to begin.
  const bool is_callers = (prepared->is_tiny || caller_runs_) && !boundary_->has_queue();
  auto binding = std::make_shared<PreparedBinding>(
      std::move(tensors), is_callers, host_memory == HostMemory::kCopied, std::move(input_memory),
      std::move(output_memory), boundary_->recordings());
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
  if (IsOfAddresses(binding->tensors())) KeepBinding(binding);
  return std::shared_ptr<const abi::Binding>(std::move(binding));
}

std::shared_ptr<const abi::Binding> CompiledGraph::FindSameBinding(
    const abi::GraphTensors& tensors) {
  if (!IsOfAddresses(tensors)) return nullptr;
  const auto is_same = [](const TensorDescriptor& a, const TensorDescriptor& b) {
    return a.name == b.name && a.data_type == b.data_type && a.memory_type == b.memory_type &&
           a.shape == b.shape && a.buffer == b.buffer;
  };
  const std::lock_guard lock(kept_bindings_mutex_);
  const auto found = std::ranges::find_if(kept_bindings_, [&](const auto& kept) {
    return std::ranges::equal(kept->tensors().inputs, tensors.inputs, is_same) &&
           std::ranges::equal(kept->tensors().outputs, tensors.outputs, is_same);
  });
  if (found == kept_bindings_.end()) return nullptr;
  kept_bindings_.splice(kept_bindings_.begin(), kept_bindings_, found);
  return kept_bindings_.front();
}

void CompiledGraph::KeepBinding(std::shared_ptr<const abi::Binding> binding) {
  // What is kept no longer ends behind the lock.
  std::list<std::shared_ptr<const abi::Binding>> oldest;
  const std::lock_guard lock(kept_bindings_mutex_);
  kept_bindings_.push_front(std::move(binding));
  if (kept_bindings_.size() > kMaxKeptBindings) {
    oldest.splice(oldest.begin(), kept_bindings_, std::prev(kept_bindings_.end()));
  }
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
  counters.map_steps = counters.reduce_steps = counters.row_steps = counters.scan_steps = 0;
  counters.contract_steps = counters.window_steps = counters.index_steps = 0;
  counters.control_steps = 0;
  counters.host_steps = 0;
  counters.attention_steps = counters.recurrent_steps = 0;
  FamilyCounter(counters).Count(*program_);
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
  std::vector<abi::StepRecord> records;
  for (const execution::RunProfile::Step& timing : profile->steps) {
    const program::Step& step = program.steps[timing.step];
    const plan::Segment& segment = plan.segments()[timing.segment];
    const plan::SegmentBinding& binding = *profile->bindings[timing.segment];
    const bool is_boundary = timing.step == segment.end_step;
    const size_t position = timing.step - segment.first_step;
    abi::StepRecord& record = records.emplace_back();
    if (step.node >= 0) record.node_index = step.node;
    record.family = program::FamilyName(step);
    // What ends a segment is done by no device.
    record.implementation = is_boundary ? "execution" : plan.implementation(timing.step);
    if (!is_boundary) record.detail = binding.kernels[position]->Detail();
    if (const auto* host = step.As<program::Host>()) {
      record.detail = program::Name(*host->function);
    }
    for (const program::View& write : step.writes) {
      if (write.buffer == program::kNoBuffer) continue;
      record.data_type = static_cast<onnxEnum>(program.buffers[write.buffer].element_type());
      break;
    }
    const int count = plan.step_count(timing.step);
    record.extents = (is_boundary ? binding.boundary : binding.steps[position + count - 1]).domain;
    for (const Status& reason : plan.rejected(timing.step)) {
      record.rejected.push_back(reason.Text());
    }
    record.start_ns = static_cast<uint64_t>(timing.start_ns);
    record.duration_ns = static_cast<uint64_t>(timing.duration_ns);
    // What fused steps pass to each other is neither written nor read.
    int64_t intermediate_bytes = 0;
    for (int k = 0; k < count; ++k) {
      const program::StepCost cost =
          program::CostOf(program, program.steps[timing.step + k], binding.dims);
      record.flops += static_cast<uint64_t>(cost.flops);
      record.read_bytes +=
          static_cast<uint64_t>(std::max<int64_t>(0, cost.read_bytes - intermediate_bytes));
      intermediate_bytes = cost.written_bytes;
    }
    record.written_bytes = static_cast<uint64_t>(intermediate_bytes);
    if (!is_boundary) record.precision = static_cast<uint32_t>(plan.precision(timing.step));
  }
  return records;
}

}  // namespace onnxifi::plugin
