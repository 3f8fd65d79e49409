// SPDX-License-Identifier: Apache-2.0
//
// Bind: puts numbers into a step.

#include "backends/core/device/device.h"

namespace onnxifi::device {
namespace {

std::vector<int64_t> Numbers(const program::Dims& dims, std::span<const int64_t> values) {
  std::vector<int64_t> numbers;
  numbers.reserve(dims.size());
  for (const program::Dim& dim : dims) numbers.push_back(tensor::ValueOf(dim, values));
  return numbers;
}

int64_t BufferBytes(const program::Buffer& buffer, std::span<const int64_t> dims) {
  if (buffer.kind == program::Buffer::Kind::kDynamic || buffer.value) return -1;
  return tensor::SizeBytes(buffer.type, tensor::ElementCount(Numbers(buffer.shape, dims)));
}

BoundView Bind(const program::Program& program, const program::View& view,
               std::span<const int64_t> dims) {
  BoundView bound{
      view.buffer,
      view.type,
      tensor::ValueOf(view.offset, dims),
      Numbers(view.strides, dims),
      {},
      view.fill,
      // A Host or Control step may leave a read out.
      view.buffer == program::kNoBuffer ? -1 : BufferBytes(program.buffers[view.buffer], dims)};
  for (const program::Guard& guard : view.guards) {
    bound.guards.push_back({Numbers(guard.coefficients, dims), tensor::ValueOf(guard.offset, dims),
                            tensor::ValueOf(guard.extent, dims)});
  }
  return bound;
}

}  // namespace

BoundStep Bind(const program::Program& program, const program::Step& step,
               std::span<const int64_t> dims) {
  BoundStep bound{&program, &step, Numbers(step.domain, dims), {}, {}, dims};
  bound.reads.reserve(step.reads.size());
  for (const program::View& view : step.reads) bound.reads.push_back(Bind(program, view, dims));
  for (const program::View& view : step.writes) bound.writes.push_back(Bind(program, view, dims));
  return bound;
}

}  // namespace onnxifi::device
