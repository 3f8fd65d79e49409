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

// Maps of the same keys, one per row of a matrix: what classifiers say of many samples. As values
// of their own they would take more memory and time than all that computes the numbers.
struct MapRows {
  Tensor keys;                   // as those of Value::Map
  Tensor numbers;                // [rows, columns], each of whole bytes, with an owner
  std::vector<int64_t> columns;  // where the number of each key is

  int64_t row_count() const { return numbers.extents()[0]; }
  // The value of key `key` in the map of row `row`.
  const std::byte* NumberAt(int64_t row, size_t key) const;
};

// Immutable once shared. An optional that has an element is that element.
struct Value {
  enum class Kind : uint8_t { kNothing, kTensor, kSequence, kMap };

  Value() = default;
  explicit Value(Tensor of) : kind(Kind::kTensor), tensor(std::move(of)) {}
  static Value Sequence(std::vector<ValueRef> elements);
  static Value Sequence(MapRows maps);
  // `keys` has one axis of as many int64 numbers or strings as there are values, none twice.
  static Value Map(Tensor keys, std::vector<ValueRef> values);

  Kind kind = Kind::kNothing;
  Tensor tensor;  // kTensor; kMap: the keys

  bool is_tensor() const { return kind == Kind::kTensor; }
  // Of a sequence, or of a map: one value per key. Those of MapRows are made by the first call.
  const std::vector<ValueRef>& elements() const;
  size_t element_count() const;
  // What a sequence was made from, if it was from such maps; else null.
  const MapRows* map_rows() const;

 private:
  struct Unrolled;

  std::vector<ValueRef> elements_;
  std::shared_ptr<const Unrolled> maps_;
};

// "a tensor of float of shape [2, 3]", "a sequence of 3", ... for messages.
std::string Describe(const Value& value);

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_VALUE_H_
