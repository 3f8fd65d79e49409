// SPDX-License-Identifier: Apache-2.0
//
// Evaluate: every buffer a tensor of its own, every step selected, built, bound and run in order.

#include "backends/core/reference/evaluate.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/reference/device.h"

namespace onnxifi::reference {
namespace {

using program::Buffer;
using tensor::Extents;
using tensor::Tensor;

std::optional<Extents> Numbers(const program::Shape& shape) {
  Extents extents;
  for (const program::Dim& dim : shape) {
    if (!dim.is_constant()) return std::nullopt;
    extents.push_back(dim.constant());
  }
  return extents;
}

base::Result<Tensor> MakeBuffer(const program::Program& program, const Buffer& buffer,
                                std::span<const Tensor> inputs) {
  if (buffer.holds != Buffer::Holds::kTensor || buffer.kind == Buffer::Kind::kDynamic ||
      buffer.type == tensor::ElementType::kString) {
    return base::Status(base::Code::kUnsupportedOperator,
                        "A program with values that are not tensors cannot be evaluated at once.");
  }
  if (buffer.kind == Buffer::Kind::kConstant) {
    return program.constants[static_cast<size_t>(buffer.index)];
  }
  const std::optional<Extents> extents = Numbers(buffer.shape);
  if (!extents) {
    return base::Status(base::Code::kUnsupportedShape,
                        "A value of extents " + tensor::ToString(buffer.shape) +
                            " cannot be evaluated; all extents must be numbers.");
  }
  if (buffer.kind == Buffer::Kind::kTemporary) return Tensor::Allocate(buffer.type, *extents);
  if (static_cast<size_t>(buffer.index) >= inputs.size()) {
    return base::Status(base::Code::kInvalidSize,
                        "Input " + std::to_string(buffer.index) + " is missing; " +
                            std::to_string(inputs.size()) + " are given.");
  }
  const Tensor& input = inputs[static_cast<size_t>(buffer.index)];
  if (input.type() != buffer.type) {
    return base::Status(base::Code::kMismatchingDatatype,
                        "Input " + std::to_string(buffer.index) + " has type " +
                            std::string(tensor::Name(input.type())) + ", not " +
                            std::string(tensor::Name(buffer.type)) + ".");
  }
  if (input.extents() != *extents) {
    return base::Status(base::Code::kMismatchingShape,
                        "Input " + std::to_string(buffer.index) + " has extents " +
                            tensor::ToString(input.extents()) + ", not " +
                            tensor::ToString(*extents) + ".");
  }
  return input;
}

}  // namespace

base::Result<std::vector<Tensor>> Evaluate(const program::Program& program,
                                           std::span<const Tensor> inputs) {
  if (program.dims->symbol_count() != 0) {
    return base::Status(base::Code::kUnsupportedShape,
                        "A program with " + std::to_string(program.dims->symbol_count()) +
                            " symbols cannot be evaluated at once; it may have none.");
  }
  std::vector<Tensor> buffers;
  for (const Buffer& buffer : program.buffers) {
    ONNXIFI_ASSIGN_OR_RETURN(Tensor value, MakeBuffer(program, buffer, inputs));
    buffers.push_back(std::move(value));
  }
  // Only the buffers made here are ever written.
  std::vector<std::byte*> addresses;
  for (Tensor& buffer : buffers) addresses.push_back(buffer.mutable_data());
  Device device;
  const std::vector<int64_t> dims;  // every Dim is a number
  for (const program::Step& step : program.steps) {
    ONNXIFI_ASSIGN_OR_RETURN(device::Selection selection, device.Select({program, step}));
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel,
                             device.Build(*selection.recipe));
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::BoundKernel> bound,
                             kernel->Bind(device::Bind(program, step, dims), addresses));
    ONNXIFI_RETURN_IF_ERROR(bound->Run(addresses));
  }
  std::vector<Tensor> outputs;
  for (const program::Port& port : program.outputs) {
    const std::optional<Extents> extents = Numbers(port.shape);
    if (!extents) {
      return base::Status(base::Code::kUnsupportedShape, "Output '" + port.name + "' has extents " +
                                                             tensor::ToString(port.shape) +
                                                             "; all must be numbers.");
    }
    outputs.push_back(buffers[static_cast<size_t>(port.buffer)].Reshaped(*extents));
  }
  return outputs;
}

}  // namespace onnxifi::reference
