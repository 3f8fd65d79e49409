// SPDX-License-Identifier: Apache-2.0
//
// ValueType: what is known, before a run, of a value that a buffer holds as a whole: a sequence, a
// map, or an optional of anything. Tensors that are surely there have a buffer of elements instead.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_VALUE_TYPE_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_VALUE_TYPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backends/core/base/status.h"
#include "backends/core/tensor/element_type.h"
#include "backends/core/tensor/value.h"

namespace onnxifi::program {

struct ValueType {
  enum class Kind : uint8_t { kTensor, kSequence, kMap };
  static constexpr int kAnyRank = -1;
  // Of the tensors of a sequence that has none yet.
  static constexpr int kNoRank = -2;
  static constexpr int64_t kAnyExtent = -1;

  Kind kind = Kind::kTensor;
  bool may_be_missing = false;  // an optional
  // kTensor: its elements, kString for strings; kMap: its keys.
  tensor::ElementType element = tensor::ElementType::kUndefined;
  int rank = kAnyRank;  // kTensor
  // kTensor: by axis, the extent, or kAnyExtent; empty where no extent is known.
  std::vector<int64_t> extents;
  std::vector<ValueType> inner;  // kSequence: its elements; kMap: its values; one

  static ValueType Tensor(tensor::ElementType element, int rank);
  static ValueType Sequence(ValueType of);
  static ValueType Map(tensor::ElementType key, ValueType of);
  // The same, but sure to be there or possibly missing.
  ValueType Present() const;
  ValueType Optional() const;

  bool is_tensor() const { return kind == Kind::kTensor; }
  bool is_sequence() const { return kind == Kind::kSequence; }
  bool operator==(const ValueType&) const = default;
};

// "sequence of tensors of float", "optional tensor of int64", ... for messages.
std::string ToString(const ValueType& type);

// What holds values of both types, where they differ in ranks, in extents or in what may be missing
// only: the ranks and extents that both have, or any. MISMATCHING_DATATYPE: "`what` is ... and
// ...".
base::Result<ValueType> Join(const ValueType& a, const ValueType& b, const std::string& what);

// Whether a value is of the type. MISMATCHING_DATATYPE, MISMATCHING_SHAPE: "`what` ...".
base::Status CheckValue(const tensor::Value& value, const ValueType& type, const std::string& what);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_VALUE_TYPE_H_
