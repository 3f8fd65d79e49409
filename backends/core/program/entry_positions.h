// SPDX-License-Identifier: Apache-2.0
//
// EntryPositions: how loads select entries of a tensor by positions that are data: what passes and
// kernels look for.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_ENTRY_POSITIONS_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_ENTRY_POSITIONS_H_

#include <cstddef>
#include <optional>

#include "backends/core/program/expr.h"
#include "backends/core/program/view.h"

namespace onnxifi::program {

// The read of integers that coordinate `id` is, where negative ones count from the end of
// `entries`; -1 for any other arithmetic.
int FindPositions(const ExprPool& pool, ExprId id, Dim entries);

// The axis whose coordinate the only guard of a view bounds by [0, extent); nothing for other
// guards.
std::optional<size_t> FindGuardedAxis(const View& view);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_ENTRY_POSITIONS_H_
