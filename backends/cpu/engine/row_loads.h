// SPDX-License-Identifier: Apache-2.0
//
// RowLoads: where a Map loads at coordinates that data tells, as Gather does, and whole rows lie
// together in memory: then its coordinates are computed once per row instead of once per element.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_ROW_LOADS_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_ROW_LOADS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/core/program/step.h"

namespace onnxifi::engine {

struct RowLoads {
  // What is the same for all elements of a row and is read by loads alone, as a coordinate.
  std::vector<program::ExprId> coordinates;
  // The coordinate along the row, where loads alone read it; else kNoExpr.
  program::ExprId along = program::kNoExpr;
};

// The axis along which rows would lie: the innermost in memory that the Map writes.
int RowAxis(const program::Step& step);

// Of rows along an axis of the domain. Nothing where a load has no such coordinates, or a Map has
// no such load.
std::optional<RowLoads> FindRowLoads(const program::ExprPool& pool, const program::Step& step,
                                     int row_axis);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_ROW_LOADS_H_
