// SPDX-License-Identifier: Apache-2.0
//
// Value: anything that ONNX lets an edge of a graph carry: a tensor, of numbers or of strings, a
// sequence, a map, or nothing (an optional without its element). Lives in host memory. What crosses
// the boundary as such a value, what host functions work on, and what tests compare.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_VALUE_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_VALUE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/core/tensor/tensor.h"

namespace onnxifi::tensor {

struct Value;
// Shared because sequences that differ by one insertion have the rest in common; never null.
using ValueRef = std::shared_ptr<const Value>;

// Immutable once shared. An optional that has an element is that element.
struct Value {
  enum class Kind : uint8_t { kNothing, kTensor, kSequence, kMap };

  Value() = default;
  explicit Value(Tensor of) : kind(Kind::kTensor), tensor(std::move(of)) {}
  static Value Sequence(std::vector<ValueRef> elements);
  // `keys` has one axis of as many int64 numbers or strings as there are values, none twice.
  static Value Map(Tensor keys, std::vector<ValueRef> values);

  Kind kind = Kind::kNothing;
  Tensor tensor;                   // kTensor; kMap: the keys
  std::vector<ValueRef> elements;  // kSequence; kMap: one value per key

  bool is_tensor() const { return kind == Kind::kTensor; }
};

// "a tensor of float of shape [2, 3]", "a sequence of 3", ... for messages.
std::string Describe(const Value& value);

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_VALUE_H_
