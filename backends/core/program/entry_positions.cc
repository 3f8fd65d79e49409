// SPDX-License-Identifier: Apache-2.0
//
// EntryPositions: the arithmetic around a position, as Gather is lowered.

#include "backends/core/program/entry_positions.h"

namespace onnxifi::program {
namespace {

// The read that `id` loads over the domain, perhaps in another type of integers; -1 for anything
// else.
int LoadedPosition(const ExprPool& pool, ExprId id) {
  if (pool[id].op == ExprOp::kCast) id = pool[id].operands[0];
  const ExprNode& load = pool[id];
  const bool is_load = load.op == ExprOp::kLoad && load.operands.empty();
  return is_load && tensor::IsInteger(load.type) ? static_cast<int>(load.payload) : -1;
}

bool IsExtent(const ExprNode& node, Dim extent) {
  if (node.op == ExprOp::kDim) return node.dim == extent;
  return node.op == ExprOp::kConstant && extent.is_constant() &&
         static_cast<int64_t>(node.payload) == extent.constant();
}

}  // namespace

int FindPositions(const ExprPool& pool, ExprId id, Dim entries) {
  const ExprNode& select = pool[id];
  if (select.op != ExprOp::kSelect) {
    const int read = LoadedPosition(pool, id);
    const ExprId stored = select.op == ExprOp::kCast ? select.operands[0] : id;
    return read >= 0 && tensor::IsUnsigned(pool[stored].type) ? read : -1;
  }
  const ExprId position = select.operands[2];
  const ExprNode& is_negative = pool[select.operands[0]];
  const ExprNode& wrapped = pool[select.operands[1]];
  if (is_negative.op != ExprOp::kLess || is_negative.operands[0] != position ||
      !IsExtent(pool[is_negative.operands[1]], Dim(0)) || wrapped.op != ExprOp::kAdd) {
    return -1;
  }
  const bool is_first = wrapped.operands[0] == position;
  if (wrapped.operands[is_first ? 0 : 1] != position ||
      !IsExtent(pool[wrapped.operands[is_first ? 1 : 0]], entries)) {
    return -1;
  }
  return LoadedPosition(pool, position);
}

std::optional<size_t> FindGuardedAxis(const View& view) {
  if (view.guards.size() != 1) return std::nullopt;
  const Guard& guard = view.guards[0];
  std::optional<size_t> axis;
  for (size_t k = 0; k < guard.coefficients.size(); ++k) {
    if (guard.coefficients[k] == Dim(0)) continue;
    if (axis || !(guard.coefficients[k] == Dim(1))) return std::nullopt;
    axis = k;
  }
  return guard.offset == Dim(0) ? axis : std::nullopt;
}

}  // namespace onnxifi::program
