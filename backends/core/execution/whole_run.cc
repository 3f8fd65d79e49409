// SPDX-License-Identifier: Apache-2.0
//
// WholeRun: values in and out.

#include "backends/core/execution/whole_run.h"

#include <utility>

namespace onnxifi::execution {

using base::Result;
using base::Status;
using tensor::Tensor;
using tensor::Value;
using tensor::ValueRef;

program::ValueType TypeOf(const program::Buffer& buffer) {
  return buffer.value ? *buffer.value
                      : program::ValueType::Tensor(buffer.element_type(),
                                                   static_cast<int>(buffer.shape.size()));
}

Result<InputTensor> AsInput(const program::Buffer& buffer, const ValueRef& value,
                            const std::string& what, tensor::StringTable& strings) {
  ONNXIFI_RETURN_IF_ERROR(program::CheckValue(*value, TypeOf(buffer), what));
  InputTensor input;
  if (buffer.value) {
    input.value = value;
    return input;
  }
  Tensor tensor = value->tensor;
  if (buffer.holds_strings) {
    ONNXIFI_ASSIGN_OR_RETURN(tensor, strings.NumbersOf(tensor));
  }
  input.data = tensor.data();
  input.extents = tensor.extents();
  input.owner = tensor.owner();
  return input;
}

KeptOutputs::KeptOutputs(const program::Program& program) : program_(program) {}

Result<std::byte*> KeptOutputs::Allocate(int output, const tensor::Extents& extents) {
  const auto k = static_cast<size_t>(output);
  const program::Buffer& buffer = program_.buffers[program_.outputs[k].buffer];
  if (tensors_.empty()) tensors_.resize(program_.outputs.size());
  ONNXIFI_ASSIGN_OR_RETURN(tensors_[k], Tensor::Allocate(buffer.type, extents));
  return tensors_[k].mutable_data();
}

Status KeptOutputs::Take(int output, ValueRef value) {
  if (values_.empty()) values_.resize(program_.outputs.size());
  values_[static_cast<size_t>(output)] = std::move(value);
  return base::Ok();
}

ValueRef KeptOutputs::Get(int output, const tensor::StringTable& strings) const {
  const auto k = static_cast<size_t>(output);
  const program::Buffer& buffer = program_.buffers[program_.outputs[k].buffer];
  if (buffer.value) return values_[k];
  const Tensor& tensor = tensors_[k];
  if (!buffer.holds_strings) return std::make_shared<const Value>(tensor);
  return std::make_shared<const Value>(
      strings.StringsOf(tensor.values<uint64_t>().data(), tensor.extents()));
}

}  // namespace onnxifi::execution
