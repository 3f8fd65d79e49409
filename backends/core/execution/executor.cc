// SPDX-License-Identifier: Apache-2.0
//
// Executor: the walk over the segments of a plan.

#include "backends/core/execution/executor.h"

#include <array>
#include <iterator>
#include <optional>
#include <set>

#include "backends/core/device/transfer.h"
#include "backends/core/execution/control.h"
#include "backends/core/execution/device_timing.h"
#include "backends/core/host/run_host_function.h"

namespace onnxifi::execution {

using base::Code;
using base::Result;
using base::Status;
using program::Buffer;
using program::Program;

// What one run needs besides the plan; kept between runs so that the steady state allocates
// nothing.
struct Executor::Context {
  std::vector<std::byte*> addresses;  // by BufferId
  // By segment; shared with what the caller captured.
  std::vector<std::shared_ptr<device::Allocation>> arenas;
  // What tells the run from others, and the device's memory for it where that is not the host's.
  std::array<int64_t, 2> draw_numbers = {};
  std::unique_ptr<device::Allocation> draws;
  // Of this run, by BufferId; empty where the program has neither.
  std::vector<std::shared_ptr<const void>> owners;  // of dynamic tensors
  std::vector<tensor::ValueRef> values;
};

namespace {

// What lies in the device's memory, as a tensor of the host's.
Result<tensor::Tensor> ToHost(const tensor::Tensor& inside, device::Queue& queue) {
  ONNXIFI_ASSIGN_OR_RETURN(tensor::Tensor tensor,
                           tensor::Tensor::Allocate(inside.type(), inside.extents()));
  ONNXIFI_RETURN_IF_ERROR(
      device::Read(&queue, inside.data(), tensor.mutable_data(), tensor.size_bytes()));
  return tensor;
}

}  // namespace

Executor::Executor(const plan::Plan& plan)
    : plan_(plan), draws_(program::FindDraws(plan.program())) {
  const Program& program = plan.program();
  for (const program::Port& port : program.inputs) {
    keeps_values_ = keeps_values_ || program.buffers[port.buffer].value.has_value();
  }
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    keeps_values_ = keeps_values_ || program.steps[s].As<program::Host>() != nullptr;
    if (program.steps[s].As<program::Control>() == nullptr) continue;
    keeps_values_ = true;
    for (const std::unique_ptr<plan::Plan>& body : plan.bodies(s)) {
      bodies_[s].push_back(std::make_unique<Executor>(*body));
    }
  }
  FindTouchedBuffers();
}

void Executor::FindTouchedBuffers() {
  const Program& program = plan_.program();
  std::set<program::BufferId> strays;
  for (const program::Step& step : program.steps) {
    if (step.As<program::Control>() == nullptr && step.As<program::Host>() == nullptr) continue;
    for (const program::View& write : step.writes) strays.insert(write.buffer);
  }
  for (const plan::Segment& segment : plan_.segments()) {
    std::set<program::BufferId> touched;
    bool has_strays = false;
    for (int s = segment.first_step; s < segment.end_step; ++s) {
      const program::Step& step = program.steps[s];
      for (const std::vector<program::View>* views : {&step.reads, &step.writes}) {
        for (const program::View& view : *views) {
          if (view.buffer == program::kNoBuffer) continue;
          has_strays = has_strays || strays.contains(view.buffer);
          if (program.buffers[view.buffer].kind != Buffer::Kind::kConstant) {
            touched.insert(view.buffer);
          }
        }
      }
    }
    if (has_strays) touched.clear();
    touched_buffers_.emplace_back(touched.begin(), touched.end());
  }
}

Executor::~Executor() = default;

Status Executor::Run(std::span<const InputTensor> inputs, OutputAllocator& allocator,
                     RunProfile* profile, tensor::StringTable* strings, device::Queue* queue) {
  std::vector<tensor::Extents> extents;
  extents.reserve(inputs.size());
  for (const InputTensor& input : inputs) extents.push_back(input.extents);
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<int64_t> symbols, plan_.SymbolsFor(extents));

  std::unique_ptr<Context> context;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      context = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!context) {
    context = std::make_unique<Context>();
    context->arenas.resize(plan_.segments().size());
  }
  std::optional<tensor::StringTable> own_strings;
  if (strings == nullptr && keeps_values_) {
    strings = &own_strings.emplace(plan_.program().strings.get());
  }
  Status status =
      RunSegments(*context, std::move(symbols), inputs, allocator, profile, strings, queue);
  context->owners.clear();
  context->values.clear();
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(context));
  return status;
}

Status Executor::RunSegments(Context& context, std::vector<int64_t> symbols,
                             std::span<const InputTensor> inputs, OutputAllocator& allocator,
                             RunProfile* profile, tensor::StringTable* strings,
                             device::Queue* queue) {
  const Program& program = plan_.program();
  std::optional<DeviceTiming> timing;
  if (profile != nullptr) {
    profile->steps.reserve(program.steps.size());
    ONNXIFI_ASSIGN_OR_RETURN(timing, DeviceTiming::Start(*profile, queue));
  }
  context.addresses.assign(plan_.constants().begin(), plan_.constants().end());
  if (keeps_values_) {
    context.owners.resize(program.buffers.size());
    context.values.resize(program.buffers.size());
    for (size_t k = 0; k < inputs.size(); ++k) {
      context.owners[program.inputs[k].buffer] = inputs[k].owner;
      context.values[program.inputs[k].buffer] = inputs[k].value;
    }
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    // Steps never write to an input's buffer.
    context.addresses[program.inputs[k].buffer] = const_cast<std::byte*>(inputs[k].data);
  }
  ONNXIFI_RETURN_IF_ERROR(NumberDraws(context, queue));
  for (int segment = 0; segment < static_cast<int>(plan_.segments().size()); ++segment) {
    ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const plan::SegmentBinding> binding,
                             plan_.Bind(segment, symbols));
    ONNXIFI_RETURN_IF_ERROR(PrepareArena(context, segment, *binding));
    if (queue != nullptr && queue->is_captured()) {
      queue->Keep(binding);
      if (context.arenas[segment] != nullptr) queue->Keep(context.arenas[segment]);
    }
    for (const plan::SegmentBinding::Output& output : binding->outputs) {
      ONNXIFI_ASSIGN_OR_RETURN(context.addresses[program.outputs[output.index].buffer],
                               allocator.Allocate(output.index, output.extents));
    }
    if (profile != nullptr) profile->bindings.push_back(binding);
    int step = plan_.segments()[segment].first_step;
    const bool is_replayed =
        recordings_ != nullptr && queue != nullptr && profile == nullptr &&
        !touched_buffers_[segment].empty() &&
        recordings_->Enqueue(*queue, {binding, context.addresses, touched_buffers_[segment]});
    for (const std::unique_ptr<device::BoundKernel>& kernel : binding->kernels) {
      if (is_replayed) break;
      if (kernel == nullptr) {  // done with an earlier step
        ++step;
        continue;
      }
      if (timing) {
        ONNXIFI_RETURN_IF_ERROR(timing->Enqueue(*kernel, context.addresses, segment, step++));
        continue;
      }
      const StepTimer timer(profile, segment, step++);
      if (queue == nullptr) {
        ONNXIFI_RETURN_IF_ERROR(kernel->Run(context.addresses));
      } else {
        ONNXIFI_RETURN_IF_ERROR(kernel->Enqueue(*queue, context.addresses));
        if (profile != nullptr) ONNXIFI_RETURN_IF_ERROR(queue->Finish());
      }
    }
    int boundary = plan_.segments()[segment].end_step;
    if (boundary == static_cast<int>(program.steps.size())) continue;
    const StepTimer timer(profile, segment, boundary);
    if (program.steps[boundary].As<program::Cut>() != nullptr) {
      ONNXIFI_RETURN_IF_ERROR(ReadCut(context, binding->boundary, queue, symbols));
    } else if (const auto* host = program.steps[boundary].As<program::Host>()) {
      Status status = RunHost(context, binding->boundary, *strings, queue, symbols);
      if (!status.ok()) return std::move(status).Context(host->context);
    } else {
      ONNXIFI_RETURN_IF_ERROR(
          RunControl(context, boundary, binding->boundary, strings, queue, symbols));
    }
  }
  if (timing) ONNXIFI_RETURN_IF_ERROR(timing->Finish());
  for (size_t k = 0; k < program.outputs.size(); ++k) {
    const program::BufferId buffer = program.outputs[k].buffer;
    if (!program.buffers[buffer].value) continue;
    ONNXIFI_RETURN_IF_ERROR(allocator.Take(static_cast<int>(k), context.values[buffer]));
  }
  return base::Ok();
}

Status Executor::NumberDraws(Context& context, device::Queue* queue) const {
  if (draws_ == program::kNoBuffer) return base::Ok();
  program::DrawCount& draws = *plan_.program().draws;
  const auto number = static_cast<uint64_t>(draws.next.fetch_add(1, std::memory_order_relaxed));
  const auto start = static_cast<uint64_t>(draws.start.value_or(0));
  // Wraps where the two together exceed the type.
  context.draw_numbers = {static_cast<int64_t>(number), static_cast<int64_t>(start + number)};
  const auto numbers = std::as_writable_bytes(std::span(context.draw_numbers));
  if (queue == nullptr) {
    context.addresses[draws_] = numbers.data();
    return base::Ok();
  }
  if (context.draws == nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(context.draws, plan_.device().memory().Allocate(std::ssize(numbers)));
    ++plan_.counters().allocations;
  }
  context.addresses[draws_] = context.draws->data();
  ++plan_.counters().copies;
  // The run may be under way when the next one changes the numbers.
  return queue->UploadCopy(numbers, context.draws->data());
}

Status Executor::PrepareArena(Context& context, int segment, const plan::SegmentBinding& binding) {
  std::shared_ptr<device::Allocation>& arena = context.arenas[segment];
  if (binding.arena_bytes > 0 && (!arena || arena->size_bytes() < binding.arena_bytes)) {
    if (arena != nullptr && recordings_ != nullptr) {
      recordings_->Forget(arena->data(), arena->size_bytes());
    }
    arena.reset();
    ONNXIFI_ASSIGN_OR_RETURN(arena, plan_.device().memory().Allocate(binding.arena_bytes));
    ++plan_.counters().allocations;
  }
  std::byte* base = arena ? arena->data() : nullptr;
  for (const plan::SegmentBinding::Placement& placement : binding.placements) {
    context.addresses[placement.buffer] = base ? base + placement.offset_bytes : nullptr;
  }
  return base::Ok();
}

Status Executor::ReadCut(const Context& context, const device::BoundStep& step,
                         device::Queue* queue, std::vector<int64_t>& symbols) const {
  const program::Cut& cut = *step.step->As<program::Cut>();
  const device::BoundView& view = step.reads[0];
  const std::byte* data = context.addresses[view.buffer];
  for (int64_t k = 0; k < cut.count; ++k) {
    bool is_inside = true;
    for (const device::BoundGuard& guard : view.guards) {
      int64_t position = guard.offset + guard.coefficients[0] * k;
      is_inside = is_inside && position >= 0 && position < guard.extent;
    }
    int64_t& number = symbols[cut.first_symbol + k];
    number = view.fill.i;
    if (!is_inside) continue;
    constexpr int64_t kBytes = sizeof(number);
    ONNXIFI_RETURN_IF_ERROR(device::Download(queue,
                                             data + (view.offset + view.strides[0] * k) * kBytes,
                                             reinterpret_cast<std::byte*>(&number), kBytes));
  }
  if (queue != nullptr) ++plan_.counters().waits;
  return device::Finish(queue);
}

Status Executor::RunControl(Context& context, int step, const device::BoundStep& bound,
                            tensor::StringTable* strings, device::Queue* queue,
                            std::vector<int64_t>& symbols) {
  const program::Control& control = *bound.step->As<program::Control>();
  std::vector<InputTensor> reads(bound.reads.size());
  for (size_t k = 0; k < reads.size(); ++k) {
    const program::BufferId buffer = bound.reads[k].buffer;
    if (buffer == program::kNoBuffer) continue;
    reads[k].data = context.addresses[buffer];
    reads[k].owner = context.owners[buffer];
    reads[k].value = context.values[buffer];
    for (const program::Dim& dim : control.read_shapes[k]) {
      reads[k].extents.push_back(bound.Number(dim));
    }
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<OwnedTensor> outputs,
                           RunControlStep(control, bodies_.at(step), reads, strings, queue));
  for (size_t k = 0; k < outputs.size(); ++k) {
    const program::BufferId buffer = bound.writes[k].buffer;
    if (control.first_symbol[k] >= 0) {
      std::ranges::copy(outputs[k].extents, symbols.begin() + control.first_symbol[k]);
    }
    context.addresses[buffer] = const_cast<std::byte*>(outputs[k].data());
    context.owners[buffer] = std::move(outputs[k].memory);
    context.values[buffer] = std::move(outputs[k].value);
  }
  return base::Ok();
}

Status Executor::RunHost(Context& context, const device::BoundStep& bound,
                         tensor::StringTable& strings, device::Queue* queue,
                         std::vector<int64_t>& symbols) {
  const Program& program = plan_.program();
  const program::Host& host = *bound.step->As<program::Host>();
  std::vector<tensor::ValueRef> inputs(bound.reads.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    const program::BufferId id = bound.reads[k].buffer;
    if (id == program::kNoBuffer) continue;
    if (program.buffers[id].value) {
      inputs[k] = context.values[id];
      continue;
    }
    tensor::Extents extents;
    for (const program::Dim& dim : host.read_shapes[k]) extents.push_back(bound.Number(dim));
    tensor::Tensor tensor = tensor::Tensor::Borrow(bound.reads[k].type, std::move(extents),
                                                   context.addresses[id], context.owners[id]);
    if (queue != nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(tensor, ToHost(tensor, *queue));
      ++plan_.counters().copies;
      ++plan_.counters().waits;
    }
    inputs[k] = std::make_shared<const tensor::Value>(
        program.buffers[id].holds_strings
            ? strings.StringsOf(reinterpret_cast<const uint64_t*>(tensor.data()), tensor.extents())
            : std::move(tensor));
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<tensor::ValueRef> outputs,
                           host::RunHostFunction(*host.function, inputs));
  for (size_t k = 0; k < outputs.size(); ++k) {
    const program::BufferId id = bound.writes[k].buffer;
    const Buffer& buffer = program.buffers[id];
    const std::string what = "Output " + std::to_string(k);
    if (buffer.value) {
      ONNXIFI_RETURN_IF_ERROR(program::CheckValue(*outputs[k], *buffer.value, what));
      context.values[id] = std::move(outputs[k]);
      continue;
    }
    const auto type =
        program::ValueType::Tensor(buffer.element_type(), static_cast<int>(buffer.shape.size()));
    ONNXIFI_RETURN_IF_ERROR(program::CheckValue(*outputs[k], type, what));
    tensor::Tensor tensor = outputs[k]->tensor;
    // What reads the tensor counts on the extents that were known before.
    for (size_t axis = 0; axis < buffer.shape.size(); ++axis) {
      const program::Dim& dim = buffer.shape[axis];
      if (host.first_symbol[k] >= 0) {
        const int symbol = host.first_symbol[k] + static_cast<int>(axis);
        symbols[symbol] = tensor.extents()[axis];
        if (!dim.is_constant() && dim.node()->symbol == symbol) continue;
      }
      if (bound.Number(dim) != tensor.extents()[axis]) {
        return {Code::kMismatchingShape, what + " has shape " + tensor::ToString(tensor.extents()) +
                                             "; its axis " + std::to_string(axis) + " must be " +
                                             std::to_string(bound.Number(dim)) + "."};
      }
    }
    if (buffer.holds_strings) {
      ONNXIFI_ASSIGN_OR_RETURN(tensor, strings.NumbersOf(tensor));
    }
    context.addresses[id] = const_cast<std::byte*>(tensor.data());
    context.owners[id] = tensor.owner();
    if (queue != nullptr && tensor.size_bytes() > 0) {
      ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<device::Allocation> copy, ToDevice(tensor, *queue));
      context.addresses[id] = copy->data();
      context.owners[id] = std::move(copy);
    }
  }
  return base::Ok();
}

Result<std::shared_ptr<device::Allocation>> Executor::ToDevice(const tensor::Tensor& tensor,
                                                               device::Queue& queue) {
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<device::Allocation> copy,
                           plan_.device().memory().Allocate(tensor.size_bytes()));
  ++plan_.counters().allocations;
  ++plan_.counters().copies;
  ONNXIFI_RETURN_IF_ERROR(queue.Upload(tensor.data(), copy->data(), tensor.size_bytes()));
  // The tensor goes when this step is over.
  ++plan_.counters().waits;
  ONNXIFI_RETURN_IF_ERROR(queue.Finish());
  return copy;
}

}  // namespace onnxifi::execution
