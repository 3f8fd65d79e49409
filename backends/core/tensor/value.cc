// SPDX-License-Identifier: Apache-2.0
//
// Value: its makers and its text.

#include "backends/core/tensor/value.h"

#include <utility>

namespace onnxifi::tensor {

Value Value::Sequence(std::vector<ValueRef> elements) {
  Value value;
  value.kind = Kind::kSequence;
  value.elements = std::move(elements);
  return value;
}

Value Value::Map(Tensor keys, std::vector<ValueRef> values) {
  Value value;
  value.kind = Kind::kMap;
  value.tensor = std::move(keys);
  value.elements = std::move(values);
  return value;
}

std::string Describe(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNothing:
      return "an optional without element";
    case Value::Kind::kTensor:
      return "a tensor of " + std::string(Name(value.tensor.type())) + " of shape " +
             ToString(value.tensor.extents());
    case Value::Kind::kSequence:
      return "a sequence of " + std::to_string(value.elements.size());
    case Value::Kind::kMap:
      return "a map of " + std::to_string(value.elements.size());
  }
  return "a value";
}

}  // namespace onnxifi::tensor
