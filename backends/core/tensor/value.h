// SPDX-License-Identifier: Apache-2.0
//
// Value: what an edge of a graph can hold at run time: a tensor (of strings too), a sequence, an
// optional or a map.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_VALUE_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_VALUE_H_

#include <memory>
#include <variant>
#include <vector>

#include "backends/core/tensor/tensor.h"

namespace onnxifi::tensor {

class Value;

struct Sequence {
  std::vector<Value> elements;
};

struct Optional {
  std::shared_ptr<const Value> element;  // null: absent
};

// Keys are integers or strings (a rank-1 tensor), values one tensor or sequence entry per key.
struct Map {
  Tensor keys;
  std::vector<Value> values;
};

class Value {
 public:
  Value() = default;
  Value(Tensor tensor) : held_(std::move(tensor)) {}        // NOLINT(google-explicit-constructor)
  Value(Sequence sequence) : held_(std::move(sequence)) {}  // NOLINT(google-explicit-constructor)
  Value(Optional optional) : held_(std::move(optional)) {}  // NOLINT(google-explicit-constructor)
  Value(Map map) : held_(std::move(map)) {}                 // NOLINT(google-explicit-constructor)

  const Tensor* tensor() const { return std::get_if<Tensor>(&held_); }
  const Sequence* sequence() const { return std::get_if<Sequence>(&held_); }
  const Optional* optional() const { return std::get_if<Optional>(&held_); }
  const Map* map() const { return std::get_if<Map>(&held_); }

 private:
  std::variant<Tensor, Sequence, Optional, Map> held_;
};

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_VALUE_H_
