// SPDX-License-Identifier: Apache-2.0
//
// ResultsKernel: a step over the sums, with numbers for all extents.

#include "backends/cuda/libraries/results_kernel.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include "backends/core/codegen/generated.h"

namespace onnxifi::cuda {
namespace {

using device::BoundView;
using program::ExprId;

program::Dims Constants(std::span<const int64_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

program::View ToView(const BoundView& bound) {
  program::View view{.buffer = bound.buffer,
                     .type = bound.type,
                     .offset = bound.offset,
                     .strides = Constants(bound.strides),
                     .guards = {},
                     .fill = bound.fill};
  for (const device::BoundGuard& guard : bound.guards) {
    view.guards.push_back({Constants(guard.coefficients), guard.offset, guard.extent});
  }
  return view;
}

}  // namespace

BoundView SumsOf(const device::BoundStep& step, bool is_channels_last) {
  const auto type = step.step->As<program::Contract>()->accumulator;
  BoundView sums{.buffer = static_cast<program::BufferId>(step.program->buffers.size()),
                 .type = type,
                 .offset = 0,
                 .buffer_bytes = tensor::SizeBytes(type, tensor::ElementCount(step.domain))};
  sums.strides.assign(step.domain.size(), 1);
  int64_t stride = 1;
  const auto lay = [&](size_t axis) {
    sums.strides[axis] = stride;
    stride *= std::max<int64_t>(step.domain[axis], 1);
  };
  if (is_channels_last) lay(1);
  for (size_t axis = step.domain.size(); axis-- > 0;) {
    if (axis != 1 || !is_channels_last) lay(axis);
  }
  return sums;
}

base::Result<std::unique_ptr<device::BoundKernel>> BindResults(const BindRequest& request,
                                                               const BoundView& sums) {
  const device::BoundStep& of = request.step;
  program::Program program;
  program.exprs = of.program->exprs;
  program.buffers = of.program->buffers;
  program.AddBuffer({.kind = program::Buffer::Kind::kTemporary,
                     .type = sums.type,
                     .shape = Constants(of.domain)});
  program::Map map;
  std::unordered_map<ExprId, ExprId> done;
  for (const ExprId root : of.step->As<program::Contract>()->roots) {
    map.roots.push_back(program::Rewrite(
        program.exprs, root,
        [&](ExprId id) {
          return program.exprs[id].op == program::ExprOp::kAccumulator
                     ? program::Load(program.exprs, sums.type, 0).id()
                     : program::kNoExpr;
        },
        done));
  }
  device::BoundStep bound = of;
  // Nothing reads the operands any more.
  bound.reads[0] = bound.reads[1] = sums;
  program::Step step{
      .domain = Constants(of.domain), .reads = {}, .writes = {}, .body = std::move(map)};
  for (const BoundView& view : bound.reads) step.reads.push_back(ToView(view));
  for (const BoundView& view : bound.writes) step.writes.push_back(ToView(view));
  program.steps.push_back(std::move(step));
  bound.program = &program;
  bound.step = &program.steps[0];
  ONNXIFI_ASSIGN_OR_RETURN(
      const std::unique_ptr<const codegen::Recipe> recipe,
      codegen::SelectGenerated({program, program.steps[0]}, request.capabilities));
  return recipe->Build(request.services)->Bind(bound, {});
}

}  // namespace onnxifi::cuda
