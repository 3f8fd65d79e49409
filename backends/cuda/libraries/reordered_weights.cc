// SPDX-License-Identifier: Apache-2.0
//
// ReorderedWeights: a Map from one order to the other, run once.

#include "backends/cuda/libraries/reordered_weights.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "backends/core/codegen/generated.h"
#include "backends/cuda/libraries/convolution_layout.h"

namespace onnxifi::cuda {

using base::Result;
using device::BoundView;
using program::Contract;

namespace {

Result<std::shared_ptr<device::Allocation>> Reorder(const BindRequest& request,
                                                    const LibraryHost& host,
                                                    bool is_channels_last) {
  const device::BoundStep& step = request.step;
  const BoundView& from = step.reads[1];
  tensor::Extents extents = {step.domain[1]};
  for (const program::Dim& dim : step.step->As<Contract>()->inner) {
    extents.push_back(step.Number(dim));
  }
  const int64_t bytes = tensor::SizeBytes(from.type, tensor::ElementCount(extents));
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<device::Allocation> held,
                           request.services.memory.Allocate(bytes));
  program::Program program;
  const program::Shape shape(extents.begin(), extents.end());
  const auto make_view = [&](int64_t offset, const std::vector<int64_t>& strides) {
    return program::View{
        .buffer = program.AddBuffer(
            {.kind = program::Buffer::Kind::kTemporary, .type = from.type, .shape = shape}),
        .type = from.type,
        .offset = offset,
        .strides = program::Dims(strides.begin(), strides.end())};
  };
  program::Step copy{.domain = shape, .reads = {}, .writes = {}, .body = program::Map{}};
  copy.reads.push_back(make_view(from.offset, from.strides));
  copy.writes.push_back(
      make_view(0, PackedStrides({extents.begin(), extents.end()}, is_channels_last)));
  program::Map map;
  map.roots = {program::Load(program.exprs, from.type, 0).id()};
  copy.body = std::move(map);
  program.steps.push_back(std::move(copy));
  ONNXIFI_ASSIGN_OR_RETURN(
      const std::unique_ptr<const codegen::Recipe> recipe,
      codegen::SelectGenerated({program, program.steps[0]}, request.capabilities));
  const std::unique_ptr<device::Kernel> kernel = recipe->Build(request.services);
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<device::BoundKernel> bound,
                           kernel->Bind(device::Bind(program, program.steps[0], /*dims=*/{}), {}));
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<device::Queue> queue, host.NewQueue());
  std::array<std::byte*, 2> addresses = {ConstantOf(request, from), held->data()};
  ONNXIFI_RETURN_IF_ERROR(bound->Enqueue(*queue, addresses));
  // The constant may be gone afterwards.
  ONNXIFI_RETURN_IF_ERROR(queue->Finish());
  return held;
}

}  // namespace

std::byte* ConstantOf(const BindRequest& request, const BoundView& view) {
  const auto buffer = static_cast<size_t>(view.buffer);
  return request.step.program->buffers[buffer].kind == program::Buffer::Kind::kConstant
             ? request.constants[buffer]
             : nullptr;
}

Result<std::shared_ptr<device::Allocation>> ReorderedWeights::Hold(const BindRequest& request,
                                                                   const LibraryHost& host,
                                                                   bool is_channels_last) {
  Order& order = orders_[is_channels_last ? 1 : 0];
  const std::lock_guard lock(order.mutex);
  std::shared_ptr<device::Allocation> held = order.held.lock();
  if (held == nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(held, Reorder(request, host, is_channels_last));
    order.held = held;
  }
  return held;
}

}  // namespace onnxifi::cuda
