// SPDX-License-Identifier: Apache-2.0
//
// Plan: kernels per step, segments between the cuts, and the cache of bindings.

#include "backends/core/plan/plan.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <numeric>

#include "backends/core/device/parallel.h"
#include "backends/core/plan/fused_steps.h"
#include "backends/core/program/cost.h"
#include "backends/core/program/host_function.h"
#include "backends/core/tensor/file_pages.h"

namespace onnxifi::plan {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::Buffer;
using program::Control;
using program::Cut;
using program::Dim;
using program::Host;
using program::Program;
using program::Step;

// Bindings kept per plan, whatever their size; a decoder meets a new one per token. Of a plan with
// more segments, those of this many shapes.
constexpr size_t kMaxCachedBindings = 128;
constexpr size_t kCachedShapes = 2;
// Bindings of few steps, as those of a loop's body, are kept beyond that number while all together
// have no more steps than these; what ends a segment counts as one.
constexpr size_t kMaxCachedSteps = 4096;

// Whether the steps from `first` on, if there are any, make maps of numbers that a step has written
// by then: no work worth a thread, as maps share them. Those of an input are copied.
bool OnlyMapsFollow(const Program& program, int first) {
  return std::all_of(program.steps.begin() + first, program.steps.end(), [&](const Step& step) {
    const auto* const host = step.As<Host>();
    return host != nullptr && std::holds_alternative<program::MakeMaps>(*host->function) &&
           std::ranges::none_of(step.reads, [&](const program::View& read) {
             return read.buffer != program::kNoBuffer &&
                    program.buffers[read.buffer].kind == Buffer::Kind::kInput;
           });
  });
}

// Of a step, and bytes of all temporaries together: what no machine has, and far from where sums
// and products of kernels overflow.
constexpr int64_t kMaxElements = int64_t{1} << 60;
constexpr int64_t kMaxArenaBytes = int64_t{1} << 60;

Status CheckElements(const device::BoundStep& step) {
  if (tensor::ElementCount(step.domain) <= kMaxElements) return base::Ok();
  return Status(Code::kNoSystemMemory, "A step over extents " + tensor::ToString(step.domain) +
                                           " exceeds the largest number of elements (" +
                                           std::to_string(kMaxElements) + ").");
}

Status CheckArena(std::span<const int64_t> sizes) {
  int64_t left = kMaxArenaBytes;
  for (const int64_t size : sizes) {
    if (size > left) {
      return Status(Code::kNoSystemMemory,
                    "The intermediate tensors of a run exceed the largest size of " +
                        std::to_string(kMaxArenaBytes) + " bytes.");
    }
    left -= size;
  }
  return base::Ok();
}

size_t CountSteps(const SegmentBinding& binding) { return binding.steps.size() + 1; }

// The extents of a buffer; an expression that comes out negative means that the extents given do
// not fit the graph.
Result<tensor::Extents> Numbers(const program::Shape& shape, std::span<const int64_t> dims) {
  tensor::Extents extents;
  for (const Dim& dim : shape) {
    extents.push_back(tensor::ValueOf(dim, dims));
    if (extents.back() < 0) {
      return Status(Code::kMismatchingShape, "The extent " + dim.ToString() + " comes out as " +
                                                 std::to_string(extents.back()) +
                                                 "; extents are at least 0.");
    }
  }
  return extents;
}

// As a tensor that was allocated is; one that is part of a model's bytes need not be.
bool IsAligned(const tensor::Tensor& tensor) {
  const auto width = static_cast<uintptr_t>(std::max(1, tensor::BitWidth(tensor.type()) / 8));
  return reinterpret_cast<uintptr_t>(tensor.data()) % width == 0;
}

// The segment in which each symbol's number is known.
std::vector<int> SymbolLevels(const Program& program) {
  std::vector<int> levels(program.dims->symbol_count(), 0);
  int segment = 0;
  for (const Step& step : program.steps) {
    if (!IsRunByExecution(step)) continue;
    ++segment;
    if (const Cut* cut = step.As<Cut>()) {
      for (int k = 0; k < cut->count; ++k) levels[cut->first_symbol + k] = segment;
    } else {
      const Host* host = step.As<Host>();
      const std::vector<int>& first = host ? host->first_symbol : step.As<Control>()->first_symbol;
      for (size_t k = 0; k < step.writes.size(); ++k) {
        int rank = static_cast<int>(program.buffers[step.writes[k].buffer].shape.size());
        if (first[k] < 0) continue;
        for (int axis = 0; axis < rank; ++axis) levels[first[k] + axis] = segment;
      }
    }
  }
  return levels;
}

}  // namespace

Result<std::unique_ptr<Plan>> Plan::Create(const Program& program, device::Device& device,
                                           Counters& counters) {
  std::unique_ptr<Plan> plan(new Plan(program, device, counters));
  ONNXIFI_RETURN_IF_ERROR(plan->BuildKernels());
  ONNXIFI_RETURN_IF_ERROR(plan->HoldConstants());
  plan->CutIntoSegments();
  return plan;
}

Status Plan::BuildKernels() {
  kernels_.resize(program_.steps.size());
  const program::BufferUses uses(program_);
  for (size_t s = 0; s < program_.steps.size(); ++s) {
    const Step& step = program_.steps[s];
    if (const Control* control = step.As<Control>()) {
      std::vector<std::unique_ptr<Plan>>& plans = bodies_[static_cast<int>(s)];
      for (const std::unique_ptr<Program>& body : control->bodies) {
        ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, Create(*body, device_, counters_));
        plans.push_back(std::move(plan));
      }
      continue;
    }
    if (IsRunByExecution(step)) continue;
    if (kernels_[s].steps == 0) continue;
    ONNXIFI_RETURN_IF_ERROR(SelectKernel(uses, static_cast<int>(s)));
    ONNXIFI_ASSIGN_OR_RETURN(kernels_[s].kernel, device_.Build(*kernels_[s].selection.recipe));
    ++counters_.kernel_builds;
  }
  return base::Ok();
}

Status Plan::SelectKernel(const program::BufferUses& uses, int step) {
  StepKernel& kernel = kernels_[step];
  std::vector<Status> rejected;
  if (const int length = CountFusableSteps(program_, uses, step); length > 1) {
    std::vector<device::Facts> fusable;
    for (int s = step; s < step + length; ++s) fusable.push_back({program_, program_.steps[s]});
    device::FusedSelection found = device_.SelectFused(fusable);
    if (found.steps > 0) {
      kernel.selection = std::move(found.selection);
      kernel.steps = found.steps;
      for (int k = 1; k < found.steps; ++k) kernels_[step + k].steps = 0;
      return base::Ok();
    }
    rejected = std::move(found.selection.rejected);
  }
  ONNXIFI_ASSIGN_OR_RETURN(kernel.selection, device_.Select({program_, program_.steps[step]}));
  std::ranges::move(rejected, std::back_inserter(kernel.selection.rejected));
  return base::Ok();
}

Status Plan::HoldConstants() {
  constants_.assign(program_.buffers.size(), nullptr);
  held_.resize(program_.buffers.size());
  // By buffer: whether all who read it do.
  std::vector<bool> takes_any_address(program_.buffers.size(), true);
  const device::Recipe* recipe = nullptr;
  int number = 0;  // of the read, as the recipe counts
  for (size_t s = 0; s < program_.steps.size(); ++s) {
    if (kernels_[s].steps > 0) {
      recipe = kernels_[s].selection.recipe.get();
      number = 0;
    }
    for (const program::View& read : program_.steps[s].reads) {
      const bool takes_any = recipe != nullptr && recipe->TakesAnyAddress(number++);
      if (read.buffer != program::kNoBuffer && !takes_any) takes_any_address[read.buffer] = false;
    }
  }
  for (size_t b = 0; b < program_.buffers.size(); ++b) {
    const Buffer& buffer = program_.buffers[b];
    if (buffer.kind != Buffer::Kind::kConstant) continue;
    const tensor::Tensor& constant = program_.constants[buffer.index];
    if (IsAligned(constant) || takes_any_address[b]) {
      ONNXIFI_ASSIGN_OR_RETURN(held_[b], device_.memory().Hold(constant));
    } else {
      ONNXIFI_ASSIGN_OR_RETURN(tensor::Tensor copy,
                               tensor::Tensor::Allocate(constant.type(), constant.extents()));
      std::memcpy(copy.mutable_data(), constant.data(), static_cast<size_t>(constant.size_bytes()));
      ONNXIFI_ASSIGN_OR_RETURN(held_[b], device_.memory().Hold(copy));
      if (constant.backing() == tensor::Backing::kFile) tensor::GiveBackPages(constant.bytes());
    }
    constants_[b] = held_[b]->data();
  }
  return base::Ok();
}

Status Plan::Prepare() {
  for (const auto& [step, plans] : bodies_) {
    for (const std::unique_ptr<Plan>& plan : plans) ONNXIFI_RETURN_IF_ERROR(plan->Prepare());
  }
  if (program_.dims->symbol_count() != 0) return base::Ok();
  // For each constant, who may still have to see it: steps that are not bound or read it when they
  // run, segments' ends, and callers. Each step is bound once only, since there are no symbols.
  std::vector<std::atomic<int>> users(program_.buffers.size());
  for (int s = 0; s < static_cast<int>(program_.steps.size()); ++s) {
    for (const program::BufferId constant : ConstantsOf(s)) ++users[constant];
  }
  for (const program::Port& port : program_.outputs) ++users[port.buffer];
  std::atomic<bool> is_given_back = false;
  const OnBound give_back = [&](int s, const device::BoundKernel& kernel) {
    for (const program::BufferId constant : ConstantsOf(s)) {
      if (ReadsAtRun(s, kernel, constant) || --users[constant] != 0) continue;
      is_given_back = true;
      constants_[constant] = nullptr;
      held_[constant].reset();
    }
  };
  for (int segment = 0; segment < static_cast<int>(segments_.size()); ++segment) {
    Result<std::shared_ptr<const SegmentBinding>> binding = MakeBinding(segment, {}, give_back);
    if (!binding.ok()) {
      // A requirement that does not hold is told to who binds, as for any other extents.
      if (!is_given_back) {
        prepared_.clear();
        return base::Ok();
      }
      return std::move(binding).status();
    }
    prepared_.push_back(*std::move(binding));
  }
  ++counters_.bindings;
  return base::Ok();
}

void Plan::CutIntoSegments() {
  int step_count = static_cast<int>(program_.steps.size());
  std::vector<int> segment_of_step(program_.steps.size());
  segments_.emplace_back();
  for (int s = 0; s < step_count; ++s) {
    segment_of_step[s] = static_cast<int>(segments_.size()) - 1;
    if (!IsRunByExecution(program_.steps[s])) continue;
    segments_.back().end_step = s;
    segments_.emplace_back().first_step = s + 1;
  }
  segments_.back().end_step = step_count;

  std::vector<int> symbol_levels = SymbolLevels(program_);
  node_levels_.assign(program_.dims->node_count(), 0);
  for (int id = 0; id < program_.dims->node_count(); ++id) {
    const tensor::DimNode& node = program_.dims->node(id);
    int& level = node_levels_[id];
    if (node.kind == tensor::DimNode::Kind::kSymbol) level = symbol_levels[node.symbol];
    for (const tensor::DimNode::Term& term : node.terms) {
      for (const tensor::DimNode* atom : term.atoms)
        level = std::max(level, node_levels_[atom->id]);
    }
    for (const Dim& operand : node.operands) {
      if (!operand.is_constant()) level = std::max(level, node_levels_[operand.node()->id]);
    }
    segments_[level].dim_nodes.push_back(id);
  }
  for (size_t k = 0; k < program_.requirements.size(); ++k) {
    const Dim& condition = program_.requirements[k].condition;
    int level = condition.is_constant() ? 0 : node_levels_[condition.node()->id];
    segments_[level].requirements.push_back(static_cast<int>(k));
  }
  std::map<program::BufferId, int> arena_of;
  std::vector<BufferLifetime> lifetimes = FindLifetimes(program_);
  for (int s = 0; s < step_count; ++s) {
    if (kernels_[s].steps > 1) JoinLifetimes(program_, s, s + kernels_[s].steps, lifetimes);
  }
  for (BufferLifetime& lifetime : lifetimes) {
    int segment = segment_of_step[lifetime.first_write];
    arena_of[lifetime.buffer] = segment;
    // Each segment has an arena of its own, so memory is not handed on from one to the next.
    if (lifetime.shares != program::kNoBuffer && arena_of[lifetime.shares] != segment) {
      lifetime.shares = program::kNoBuffer;
    }
    segments_[segment].temporaries.push_back(lifetime);
  }
  for (size_t k = 0; k < program_.outputs.size(); ++k) {
    // A non-tensor value needs no place.
    if (program_.buffers[program_.outputs[k].buffer].value) continue;
    // An output that no step writes has no elements; it is placed by the last segment.
    int segment = static_cast<int>(segments_.size()) - 1;
    for (int s = step_count - 1; s >= 0; --s) {
      for (const program::View& write : program_.steps[s].writes) {
        if (write.buffer == program_.outputs[k].buffer) segment = segment_of_step[s];
      }
    }
    segments_[segment].outputs.push_back(static_cast<int>(k));
  }
}

std::string_view Plan::implementation(int step) const {
  const StepKernel& kernel = kernels_[step];
  return kernel.selection.recipe ? kernel.selection.recipe->implementation() : std::string_view();
}

tensor::Precision Plan::precision(int step) const {
  const StepKernel& kernel = kernels_[step];
  return kernel.selection.recipe ? kernel.selection.recipe->precision()
                                 : tensor::Precision::kFloat32;
}

Result<std::vector<int64_t>> Plan::SymbolsFor(std::span<const tensor::Extents> inputs) const {
  std::vector<int64_t> symbols(program_.dims->symbol_count(), 0);
  std::vector<bool> is_known(symbols.size(), false);
  for (size_t k = 0; k < program_.inputs.size(); ++k) {
    const program::Port& port = program_.inputs[k];
    if (inputs[k].size() != port.shape.size()) {
      return Status(Code::kMismatchingShape,
                    "Input '" + port.name + "' has " + std::to_string(inputs[k].size()) +
                        " axes where the graph has " + std::to_string(port.shape.size()) + ".");
    }
    for (size_t axis = 0; axis < port.shape.size(); ++axis) {
      const Dim& dim = port.shape[axis];
      int64_t given = inputs[k][axis];
      int64_t expected = given;
      if (dim.is_constant()) {
        expected = dim.constant();
      } else if (int symbol = dim.node()->symbol; symbol >= 0 && is_known[symbol]) {
        expected = symbols[symbol];
      } else if (symbol >= 0) {
        symbols[symbol] = given;
        is_known[symbol] = true;
      }
      if (given != expected) {
        return Status(Code::kMismatchingShape,
                      "Axis " + std::to_string(axis) + " of input '" + port.name + "' is " +
                          std::to_string(given) + " where the graph has " +
                          std::to_string(expected) +
                          (dim.is_constant() ? "" : " (" + dim.ToString() + ")") + ".");
      }
    }
  }
  return symbols;
}

Status Plan::CheckRequirements(const Segment& segment, std::span<const int64_t> dims) const {
  for (int k : segment.requirements) {
    const program::Requirement& requirement = program_.requirements[k];
    if (tensor::ValueOf(requirement.condition, dims) != 0) continue;
    Status violation = requirement.violation;
    std::string found;
    for (const Dim& dim : requirement.shown) {
      found += (found.empty() ? "found " : ", ") + dim.ToString() + " = " +
               std::to_string(tensor::ValueOf(dim, dims));
    }
    if (!found.empty()) violation.Context(found);
    return violation;
  }
  return base::Ok();
}

Status Plan::CheckExtents(const std::vector<int64_t>& symbols) const {
  std::vector<int64_t> dims(program_.dims->node_count(), 0);
  for (int id : segments_[0].dim_nodes) program_.dims->EvaluateNode(id, symbols, dims);
  return CheckRequirements(segments_[0], dims);
}

std::vector<tensor::Extents> Plan::OutputExtents(const std::vector<int64_t>& symbols) const {
  std::vector<int64_t> dims(program_.dims->node_count(), 0);
  for (int id : segments_[0].dim_nodes) program_.dims->EvaluateNode(id, symbols, dims);
  std::vector<tensor::Extents> outputs;
  for (const program::Port& port : program_.outputs) {
    tensor::Extents& extents = outputs.emplace_back();
    for (const Dim& dim : port.shape) {
      bool is_known = dim.is_constant() || node_levels_[dim.node()->id] == 0;
      extents.push_back(is_known ? tensor::ValueOf(dim, dims) : -1);
    }
  }
  return outputs;
}

Result<std::shared_ptr<const SegmentBinding>> Plan::Bind(
    int segment, const std::vector<int64_t>& symbols) const {
  if (!prepared_.empty()) return prepared_[segment];
  Key key(segment, symbols);
  bool is_first = false;
  {
    std::lock_guard lock(mutex_);
    was_bound_.resize(segments_.size());
    is_first = !was_bound_[segment];
    was_bound_[segment] = true;
    if (auto found = cache_.find(key); found != cache_.end()) {
      return cached_[found->second].binding;
    }
  }
  // Once per segment: later bindings may read constants again, at the price of fetching them, and
  // ask for the same packed ones mostly.
  OnBound on_bound;
  if (is_first) {
    on_bound = [this](int step, const device::BoundKernel& kernel) { RestConstants(step, kernel); };
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const SegmentBinding> binding,
                           MakeBinding(segment, symbols, on_bound));
  std::lock_guard lock(mutex_);
  if (cache_.contains(key)) return binding;
  if (segment == 0) ++counters_.bindings;
  const size_t kept = std::max(kMaxCachedBindings, kCachedShapes * segments_.size());
  while (cached_.size() >= kept && cached_steps_ + CountSteps(*binding) > kMaxCachedSteps) {
    // At random: the oldest would be the one that a loop over more positions than the cache holds
    // needs next, in every iteration.
    TakeOut(eviction_random_() % cached_.size());
  }
  cached_steps_ += CountSteps(*binding);
  cache_.emplace(key, cached_.size());
  cached_.push_back({std::move(key), binding});
  return binding;
}

std::shared_ptr<const SegmentBinding> Plan::TakeOut(size_t position) const {
  std::shared_ptr<const SegmentBinding> binding = std::move(cached_[position].binding);
  cached_steps_ -= CountSteps(*binding);
  cache_.erase(cached_[position].key);
  if (position + 1 < cached_.size()) {
    cached_[position] = std::move(cached_.back());
    cache_[cached_[position].key] = position;
  }
  cached_.pop_back();
  return binding;
}

void Plan::Forget(const std::vector<int64_t>& symbols) const {
  // Ends behind the lock, with the weights that were packed for it.
  std::vector<std::shared_ptr<const SegmentBinding>> forgotten;
  const std::lock_guard lock(mutex_);
  const auto is_of = [](int64_t number, int64_t wanted) { return wanted == 0 || number == wanted; };
  for (size_t position = cached_.size(); position-- > 0;) {
    if (std::ranges::equal(cached_[position].key.second, symbols, is_of)) {
      forgotten.push_back(TakeOut(position));
    }
  }
  // Constants rest again once they are packed again.
  was_bound_.assign(was_bound_.size(), false);
  for (const Cached& left : cached_) was_bound_[left.key.first] = true;
}

Result<std::shared_ptr<const SegmentBinding>> Plan::MakeBinding(int segment_number,
                                                                const std::vector<int64_t>& symbols,
                                                                const OnBound& on_bound) const {
  const Segment& segment = segments_[segment_number];
  auto binding = std::make_shared<SegmentBinding>();
  binding->dims.assign(program_.dims->node_count(), 0);
  for (int level = 0; level <= segment_number; ++level) {
    for (int id : segments_[level].dim_nodes)
      program_.dims->EvaluateNode(id, symbols, binding->dims);
  }
  ONNXIFI_RETURN_IF_ERROR(CheckRequirements(segment, binding->dims));

  std::vector<int64_t> sizes;
  for (const BufferLifetime& lifetime : segment.temporaries) {
    const Buffer& buffer = program_.buffers[lifetime.buffer];
    ONNXIFI_ASSIGN_OR_RETURN(tensor::Extents extents, Numbers(buffer.shape, binding->dims));
    const int64_t count = tensor::ElementCount(extents);
    constexpr int64_t kMaxElementBytes = 16;
    sizes.push_back(count > kMaxArenaBytes / kMaxElementBytes
                        ? INT64_MAX
                        : tensor::SizeBytes(buffer.type, count));
  }
  ONNXIFI_RETURN_IF_ERROR(CheckArena(sizes));
  ArenaLayout layout = LayOutArena(segment.temporaries, sizes);
  binding->arena_bytes = layout.size_bytes;
  for (size_t k = 0; k < segment.temporaries.size(); ++k) {
    binding->placements.push_back({segment.temporaries[k].buffer, layout.offsets[k]});
  }
  for (int output : segment.outputs) {
    ONNXIFI_ASSIGN_OR_RETURN(tensor::Extents extents,
                             Numbers(program_.outputs[output].shape, binding->dims));
    binding->outputs.push_back({output, std::move(extents)});
  }
  for (int s = segment.first_step; s < segment.end_step; ++s) {
    binding->steps.push_back(device::Bind(program_, program_.steps[s], binding->dims));
    ONNXIFI_RETURN_IF_ERROR(CheckElements(binding->steps.back()));
  }
  ONNXIFI_RETURN_IF_ERROR(BindKernels(segment, on_bound, *binding));
  if (segment.end_step < static_cast<int>(program_.steps.size())) {
    binding->boundary = device::Bind(program_, program_.steps[segment.end_step], binding->dims);
  }
  binding->is_tiny =
      segment.first_step == 0 && OnlyMapsFollow(program_, segment.end_step) && IsTiny(*binding);
  return std::shared_ptr<const SegmentBinding>(std::move(binding));
}

void Plan::RestConstants(int s, const device::BoundKernel& kernel) const {
  for (const program::BufferId constant : ConstantsOf(s)) {
    if (held_[constant] != nullptr && !ReadsAtRun(s, kernel, constant)) held_[constant]->Rest();
  }
}

std::vector<program::BufferId> Plan::ConstantsOf(int step) const {
  std::vector<program::BufferId> constants;
  // What ends a segment has no kernel and stands for itself.
  for (int s = step; s < step + kernels_[step].steps; ++s) {
    for (const program::View& read : program_.steps[s].reads) {
      if (read.buffer == program::kNoBuffer ||
          program_.buffers[read.buffer].kind != Buffer::Kind::kConstant ||
          std::ranges::find(constants, read.buffer) != constants.end()) {
        continue;
      }
      constants.push_back(read.buffer);
    }
  }
  return constants;
}

bool Plan::ReadsAtRun(int step, const device::BoundKernel& kernel,
                      program::BufferId constant) const {
  int number = 0;
  for (int s = step; s < step + kernels_[step].steps; ++s) {
    for (const program::View& read : program_.steps[s].reads) {
      if (read.buffer == constant && kernel.ReadsAtRun(number)) return true;
      ++number;
    }
  }
  return false;
}

int64_t Plan::ConstantBytes(int step) const {
  int64_t bytes = 0;
  for (const program::BufferId constant : ConstantsOf(step)) {
    if (held_[constant] != nullptr) bytes += held_[constant]->size_bytes();
  }
  return bytes;
}

Status Plan::BindKernels(const Segment& segment, const OnBound& on_bound,
                         SegmentBinding& binding) const {
  binding.kernels.resize(binding.steps.size());
  const auto bind = [&](int position) -> Status {
    const int step = segment.first_step + position;
    const auto count = static_cast<size_t>(kernels_[step].steps);
    const std::span<const device::BoundStep> steps(binding.steps);
    device::Kernel& kernel = *kernels_[step].kernel;
    ONNXIFI_ASSIGN_OR_RETURN(binding.kernels[position],
                             count == 1
                                 ? kernel.Bind(steps[position], constants_)
                                 : kernel.BindFused(steps.subspan(position, count), constants_));
    if (on_bound) on_bound(step, *binding.kernels[position]);
    return base::Ok();
  };
  std::vector<int> positions;
  for (int s = segment.first_step; s < segment.end_step; ++s) {
    if (kernels_[s].steps > 0) positions.push_back(s - segment.first_step);
  }
  // Fewer are not worth waking a thread.
  constexpr size_t kFewKernels = 8;
  device::Parallel* const parallel = device_.parallel();
  if (parallel == nullptr || positions.size() < kFewKernels) {
    for (const int position : positions) ONNXIFI_RETURN_IF_ERROR(bind(position));
    return base::Ok();
  }
  // What has most weights to pack comes first, so that threads end together; a step that has a
  // large part of them all packs them on all threads itself.
  constexpr int64_t kLargePart = 8;
  std::vector<int64_t> bytes;
  for (int s = segment.first_step; s < segment.end_step; ++s) {
    bytes.push_back(ConstantBytes(s));
  }
  std::ranges::stable_sort(positions,
                           [&](int left, int right) { return bytes[left] > bytes[right]; });
  const int64_t whole = std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
  const auto first_small = std::ranges::find_if(
      positions, [&](int position) { return bytes[position] <= whole / kLargePart; });
  for (auto large = positions.begin(); large != first_small; ++large) {
    ONNXIFI_RETURN_IF_ERROR(bind(*large));
  }
  std::vector<Status> statuses(binding.steps.size());
  device::ForEach(*parallel, std::span<const int>(first_small, positions.end()),
                  [&](int position) { statuses[position] = bind(position); });
  for (Status& status : statuses) ONNXIFI_RETURN_IF_ERROR(std::move(status));
  return base::Ok();
}

bool Plan::IsTiny(const SegmentBinding& binding) const {
  // Some ten microseconds of work on a processor of today, for plain loops some hundred.
  constexpr int64_t kMaxFlops = 1'000'000;
  constexpr int64_t kMaxBytes = int64_t{1} << 20;
  int64_t flops = 0, bytes = 0;
  for (const device::BoundStep& step : binding.steps) {
    const program::StepCost cost = program::CostOf(program_, *step.step, binding.dims);
    // Each of them may be as large as an int64_t.
    if (cost.flops > kMaxFlops || cost.read_bytes > kMaxBytes || cost.written_bytes > kMaxBytes) {
      return false;
    }
    flops += cost.flops;
    bytes += cost.read_bytes + cost.written_bytes;
    if (flops > kMaxFlops || bytes > kMaxBytes) return false;
  }
  return true;
}

}  // namespace onnxifi::plan
