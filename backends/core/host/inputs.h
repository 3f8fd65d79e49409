// SPDX-License-Identifier: Apache-2.0
//
// What host functions ask of their inputs, and how they give outputs.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_INPUTS_H_
#define ONNXIFI_BACKENDS_CORE_HOST_INPUTS_H_

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/tensor/value.h"

namespace onnxifi::host {

using Inputs = std::span<const tensor::ValueRef>;
using Outputs = base::Result<std::vector<tensor::ValueRef>>;

inline bool Has(Inputs inputs, size_t k) { return k < inputs.size() && inputs[k] != nullptr; }

inline base::Status WrongInput(Inputs inputs, size_t k, const std::string& required) {
  return {base::Code::kMismatchingDatatype,
          "Input " + std::to_string(k) + " is " +
              (Has(inputs, k) ? tensor::Describe(*inputs[k]) : std::string("omitted")) + "; " +
              required + " is required."};
}

inline base::Result<const tensor::Tensor*> TensorInput(Inputs inputs, size_t k) {
  if (!Has(inputs, k) || !inputs[k]->is_tensor()) return WrongInput(inputs, k, "a tensor");
  return &inputs[k]->tensor;
}

inline base::Result<const std::vector<tensor::ValueRef>*> SequenceInput(Inputs inputs, size_t k) {
  if (!Has(inputs, k) || inputs[k]->kind != tensor::Value::Kind::kSequence) {
    return WrongInput(inputs, k, "a sequence");
  }
  return &inputs[k]->elements();
}

// The value for keeps: a borrowed tensor is copied.
inline base::Result<tensor::ValueRef> Kept(const tensor::ValueRef& value) {
  if (!value->is_tensor()) return value;
  const tensor::Tensor& tensor = value->tensor;
  if (tensor.owner() != nullptr || tensor.size_bytes() == 0) return value;
  ONNXIFI_ASSIGN_OR_RETURN(tensor::Tensor copy,
                           tensor::Tensor::Allocate(tensor.type(), tensor.extents()));
  std::memcpy(copy.mutable_data(), tensor.data(), static_cast<size_t>(tensor.size_bytes()));
  return std::make_shared<const tensor::Value>(std::move(copy));
}

inline Outputs One(tensor::Value value) {
  std::vector<tensor::ValueRef> outputs;
  outputs.push_back(std::make_shared<const tensor::Value>(std::move(value)));
  return outputs;
}

inline Outputs One(tensor::Tensor tensor) { return One(tensor::Value(std::move(tensor))); }

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_INPUTS_H_
