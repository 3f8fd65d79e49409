// SPDX-License-Identifier: Apache-2.0
//
// FindRowLoads: every load at computed coordinates has to have them per row, for the walk over
// tiles is one for the whole Map.

#include "backends/cpu/engine/row_loads.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace onnxifi::engine {
namespace {

using program::ExprId;
using program::ExprNode;
using program::ExprOp;

bool IsLoadAt(const ExprNode& node) { return node.op == ExprOp::kLoad && !node.operands.empty(); }

}  // namespace

int RowAxis(const program::Step& step) {
  const auto rank = static_cast<int>(step.domain.size());
  for (int axis = rank; axis-- > 0;) {
    const program::Dim& extent = step.domain[static_cast<size_t>(axis)];
    if (extent == program::Dim(1)) continue;
    if (step.writes[0].strides[static_cast<size_t>(axis)] == program::Dim(1)) return axis;
  }
  return rank - 1;
}

std::optional<RowLoads> FindRowLoads(const program::ExprPool& pool, const program::Step& step,
                                     int row_axis) {
  if (step.domain.empty()) return std::nullopt;
  const auto along = static_cast<size_t>(row_axis);
  const program::ExprIds& roots = step.As<program::Map>()->roots;
  const std::vector<ExprId> nodes = program::Reachable(pool, roots);
  auto is_along = [&](ExprId id) {
    return pool[id].op == ExprOp::kIndex && pool[id].payload == along;
  };
  // Whether all elements of a row have the same.
  std::unordered_map<ExprId, bool> is_per_row;
  for (const ExprId id : nodes) {
    const ExprNode& node = pool[id];
    bool is_same = !is_along(id);
    if (node.op == ExprOp::kLoad && node.operands.empty()) {
      const program::Dims& strides = step.reads[node.payload].strides;
      const bool has_guards = !step.reads[node.payload].guards.empty();
      is_same = !has_guards && (strides.size() <= along || strides[along] == program::Dim(0));
    }
    for (const ExprId operand : node.operands) is_same = is_same && is_per_row.at(operand);
    is_per_row[id] = is_same;
  }
  RowLoads loads;
  bool has_loads = false;
  // The nodes that are computed per element, from the roots down.
  std::unordered_set<ExprId> is_met(roots.begin(), roots.end());
  std::unordered_set<ExprId> in_arithmetic(roots.begin(), roots.end());
  for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
    if (!is_met.contains(*id)) continue;
    const ExprNode& node = pool[*id];
    if (!IsLoadAt(node)) {
      is_met.insert(node.operands.begin(), node.operands.end());
      in_arithmetic.insert(node.operands.begin(), node.operands.end());
      continue;
    }
    has_loads = true;
    int along_count = 0;
    for (const ExprId operand : node.operands) {
      if (is_along(operand)) {
        ++along_count;
        loads.along = operand;
      } else if (!is_per_row.at(operand)) {
        return std::nullopt;
      } else if (std::find(loads.coordinates.begin(), loads.coordinates.end(), operand) ==
                 loads.coordinates.end()) {
        loads.coordinates.push_back(operand);
      }
    }
    if (along_count > 1) return std::nullopt;
  }
  if (!has_loads) return std::nullopt;
  for (const ExprId coordinate : loads.coordinates) {
    if (in_arithmetic.contains(coordinate)) return std::nullopt;
  }
  if (in_arithmetic.contains(loads.along)) loads.along = program::kNoExpr;
  return loads;
}

}  // namespace onnxifi::engine
