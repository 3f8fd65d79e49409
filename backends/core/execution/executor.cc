// SPDX-License-Identifier: Apache-2.0
//
// Executor: the walk over the stages of a plan.

#include "backends/core/execution/executor.h"

#include <cstring>

#include "backends/core/execution/control.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::execution {

using base::Code;
using base::Result;
using base::Status;
using program::Buffer;
using program::Program;

// What one run needs besides the plan; kept between runs so that the steady state allocates
// nothing.
struct Executor::Context {
  std::vector<std::byte*> addresses;                        // by BufferId
  std::vector<std::unique_ptr<device::Allocation>> arenas;  // by stage
  std::vector<OwnedTensor> dynamic;                         // what control steps made in this run
};

Executor::Executor(const plan::Plan& plan) : plan_(plan) {
  const Program& program = plan.program();
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    if (program.steps[s].As<program::Control>() == nullptr) continue;
    for (const std::unique_ptr<plan::Plan>& body : plan.bodies(s)) {
      bodies_[s].push_back(std::make_unique<Executor>(*body));
    }
  }
}

Executor::~Executor() = default;

Status Executor::Run(std::span<const InputTensor> inputs, OutputPlaces& places,
                     RunProfile* profile) {
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
    context->arenas.resize(plan_.stages().size());
  }
  Status status = RunStages(*context, std::move(symbols), inputs, places, profile);
  context->dynamic.clear();
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(context));
  return status;
}

Status Executor::RunStages(Context& context, std::vector<int64_t> symbols,
                           std::span<const InputTensor> inputs, OutputPlaces& places,
                           RunProfile* profile) {
  const Program& program = plan_.program();
  if (profile != nullptr) profile->steps.reserve(program.steps.size());
  context.addresses.assign(plan_.constants().begin(), plan_.constants().end());
  for (size_t k = 0; k < inputs.size(); ++k) {
    // Steps never write to an input's buffer.
    context.addresses[program.inputs[k].buffer] = const_cast<std::byte*>(inputs[k].data);
  }
  for (int stage = 0; stage < static_cast<int>(plan_.stages().size()); ++stage) {
    ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const plan::StageBinding> binding,
                             plan_.Bind(stage, symbols));
    ONNXIFI_RETURN_IF_ERROR(PrepareArena(context, stage, *binding));
    for (const plan::StageBinding::Output& output : binding->outputs) {
      ONNXIFI_ASSIGN_OR_RETURN(context.addresses[program.outputs[output.index].buffer],
                               places.Place(output.index, output.extents));
    }
    if (profile != nullptr) profile->bindings.push_back(binding);
    int step = plan_.stages()[stage].first_step;
    for (const std::unique_ptr<device::BoundKernel>& kernel : binding->kernels) {
      const StepTimer timer(profile, stage, step++);
      ONNXIFI_RETURN_IF_ERROR(kernel->Run(context.addresses));
    }
    int boundary = plan_.stages()[stage].end_step;
    if (boundary == static_cast<int>(program.steps.size())) continue;
    const StepTimer timer(profile, stage, boundary);
    if (program.steps[boundary].As<program::Cut>() != nullptr) {
      ONNXIFI_RETURN_IF_ERROR(ReadCut(context, binding->boundary, symbols));
    } else {
      ONNXIFI_RETURN_IF_ERROR(RunControl(context, boundary, binding->boundary, symbols));
    }
  }
  return base::Ok();
}

Status Executor::PrepareArena(Context& context, int stage, const plan::StageBinding& binding) {
  std::unique_ptr<device::Allocation>& arena = context.arenas[stage];
  if (binding.arena_bytes > 0 && (!arena || arena->size_bytes() < binding.arena_bytes)) {
    arena.reset();
    ONNXIFI_ASSIGN_OR_RETURN(arena, plan_.device().memory().Allocate(binding.arena_bytes));
    ++plan_.counters().allocations;
  }
  std::byte* base = arena ? arena->data() : nullptr;
  for (const plan::StageBinding::Placement& placement : binding.placements) {
    context.addresses[placement.buffer] = base ? base + placement.offset_bytes : nullptr;
  }
  return base::Ok();
}

Status Executor::ReadCut(const Context& context, const device::BoundStep& step,
                         std::vector<int64_t>& symbols) const {
  const program::Cut& cut = *step.step->As<program::Cut>();
  const device::BoundView& view = step.reads[0];
  const std::byte* data = context.addresses[view.buffer];
  for (int64_t k = 0; k < cut.count; ++k) {
    bool is_inside = true;
    for (const device::BoundGuard& guard : view.guards) {
      int64_t position = guard.offset + guard.coefficients[0] * k;
      is_inside = is_inside && position >= 0 && position < guard.extent;
    }
    symbols[cut.first_symbol + k] =
        is_inside ? LoadScalar(view.type, data, view.offset + view.strides[0] * k).i : view.fill.i;
  }
  return base::Ok();
}

Status Executor::RunControl(Context& context, int step, const device::BoundStep& bound,
                            std::vector<int64_t>& symbols) {
  const program::Control& control = *bound.step->As<program::Control>();
  std::vector<InputTensor> reads(bound.reads.size());
  for (size_t k = 0; k < reads.size(); ++k) {
    if (bound.reads[k].buffer == program::kNoBuffer) continue;
    reads[k].data = context.addresses[bound.reads[k].buffer];
    for (const program::Dim& dim : control.read_shapes[k]) {
      reads[k].extents.push_back(bound.Number(dim));
    }
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<OwnedTensor> outputs,
                           RunControlStep(control, bodies_.at(step), reads));
  for (size_t k = 0; k < outputs.size(); ++k) {
    for (size_t axis = 0; axis < outputs[k].extents.size(); ++axis) {
      symbols[control.first_symbol[k] + axis] = outputs[k].extents[axis];
    }
    context.addresses[bound.writes[k].buffer] = const_cast<std::byte*>(outputs[k].data());
    context.dynamic.push_back(std::move(outputs[k]));
  }
  return base::Ok();
}

}  // namespace onnxifi::execution
