// SPDX-License-Identifier: Apache-2.0
//
// RowLoads: where a Map loads at coordinates that data tells, as Gather and Resize do, and they are
// the same all along a row, or in every row: then they are computed once per row, or once for all
// rows, instead of once per element.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_ROW_LOADS_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_ROW_LOADS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "backends/core/program/step.h"

namespace onnxifi::engine {

struct RowLoads {
  // What is the same for all elements of a row and is read by loads alone, as a coordinate.
  std::vector<program::ExprId> coordinates;
  // What is the same for all rows and differs along them, likewise: positions of a table.
  std::vector<program::ExprId> columns;
  // The coordinate along the row, where loads alone read it; else kNoExpr.
  program::ExprId along = program::kNoExpr;

  bool IsColumn(program::ExprId id) const;
  // All that is not computed per element, in this order.
  std::vector<program::ExprId> Provided() const;
};

// How an expression differs between the elements of a domain that has rows along an axis.
struct Variation {
  bool is_per_row = true;     // all elements of a row have the same
  bool is_per_column = true;  // all rows have the same
};
using Variations = std::unordered_map<program::ExprId, Variation>;
// Of all nodes below `roots`.
Variations FindVariations(const program::ExprPool& pool, const program::Step& step,
                          std::span<const program::ExprId> roots, int row_axis);

// The axis along which rows would lie: the innermost in memory that the Map writes.
int RowAxis(const program::Step& step);

// Of rows along an axis of the domain. Nothing where a load has no such coordinates, or a Map has
// no such load.
std::optional<RowLoads> FindRowLoads(const program::ExprPool& pool, const program::Step& step,
                                     int row_axis);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_ROW_LOADS_H_
