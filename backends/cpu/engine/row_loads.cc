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

void AddOnce(std::vector<ExprId>& ids, ExprId id) {
  if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

}  // namespace

bool RowLoads::IsColumn(ExprId id) const {
  return std::find(columns.begin(), columns.end(), id) != columns.end();
}

std::vector<ExprId> RowLoads::Provided() const {
  std::vector<ExprId> provided = coordinates;
  provided.insert(provided.end(), columns.begin(), columns.end());
  if (along != program::kNoExpr) provided.push_back(along);
  return provided;
}

Variations FindVariations(const program::ExprPool& pool, const program::Step& step,
                          std::span<const ExprId> roots, int row_axis) {
  const auto along = static_cast<size_t>(row_axis);
  Variations variations;
  for (const ExprId id : program::Reachable(pool, roots)) {
    const ExprNode& node = pool[id];
    Variation variation;
    if (node.op == ExprOp::kIndex) {
      const bool is_along = node.payload == along;
      variation = {!is_along, is_along};
    } else if (node.op == ExprOp::kLoad && node.operands.empty()) {
      const program::Dims& strides = step.reads[node.payload].strides;
      const bool has_guards = !step.reads[node.payload].guards.empty();
      for (size_t axis = 0; axis < strides.size(); ++axis) {
        if (strides[axis] == program::Dim(0)) continue;
        (axis == along ? variation.is_per_row : variation.is_per_column) = false;
      }
      if (has_guards) variation = {false, false};
    }
    for (const ExprId operand : node.operands) {
      const Variation& of = variations.at(operand);
      variation.is_per_row = variation.is_per_row && of.is_per_row;
      variation.is_per_column = variation.is_per_column && of.is_per_column;
    }
    variations[id] = variation;
  }
  return variations;
}

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
  const Variations variations = FindVariations(pool, step, roots, row_axis);
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
    int column_count = 0;
    for (const ExprId operand : node.operands) {
      const Variation& variation = variations.at(operand);
      if (is_along(operand)) {
        ++along_count;
        loads.along = operand;
      } else if (variation.is_per_row) {
        AddOnce(loads.coordinates, operand);
      } else if (variation.is_per_column) {
        ++column_count;
        AddOnce(loads.columns, operand);
      } else {
        return std::nullopt;
      }
    }
    if (along_count > 1 || (along_count > 0 && column_count > 0)) return std::nullopt;
  }
  if (!has_loads) return std::nullopt;
  for (const std::vector<ExprId>* computed : {&loads.coordinates, &loads.columns}) {
    for (const ExprId coordinate : *computed) {
      if (in_arithmetic.contains(coordinate)) return std::nullopt;
    }
  }
  if (in_arithmetic.contains(loads.along)) loads.along = program::kNoExpr;
  return loads;
}

}  // namespace onnxifi::engine
