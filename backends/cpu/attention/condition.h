// SPDX-License-Identifier: Apache-2.0
//
// Condition: a bool of coordinates and extents alone, as a causal mask or a window is, asked about
// a whole block of them. How attention learns that a block of scores is masked, or that none of it
// is, before it computes any.

#ifndef ONNXIFI_BACKENDS_CPU_ATTENTION_CONDITION_H_
#define ONNXIFI_BACKENDS_CPU_ATTENTION_CONDITION_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "backends/core/device/device.h"
#include "backends/core/program/expr.h"
#include "backends/cpu/engine/geometry.h"

namespace onnxifi::attention {

// Coordinates [first[axis], last[axis]] of a domain.
struct CoordinateRange {
  std::array<int64_t, engine::kMaxAxes> first{};
  std::array<int64_t, engine::kMaxAxes> last{};
};

enum class Truth : uint8_t { kNever, kAlways, kUnknown };

class Condition {
 public:
  // Whether the expression is made of coordinates, Dims and constants by operations known here, and
  // is no longer than a mask is.
  static bool IsOne(const program::ExprPool& pool, program::ExprId id);
  // Of such an expression. Copies it.
  Condition(const program::ExprPool& pool, program::ExprId id);

  // With the numbers of its Dims.
  void Bind(const device::BoundStep& step);
  // What holds at all coordinates of the range. kUnknown where both happen, or may happen.
  Truth Over(const CoordinateRange& range) const;

 private:
  struct Node {
    program::ExprOp op;
    tensor::ElementType type;
    int64_t number = 0;  // kConstant, kDim; the axis of kIndex
    tensor::Dim dim;
    std::array<int, 3> operands{};
  };
  std::vector<Node> nodes_;  // operands first
};

}  // namespace onnxifi::attention

#endif  // ONNXIFI_BACKENDS_CPU_ATTENTION_CONDITION_H_
