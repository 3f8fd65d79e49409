// SPDX-License-Identifier: Apache-2.0
//
// FindGathering: one load at coordinates of the domain and one position.

#include "backends/core/program/gathering.h"

#include "backends/core/program/entry_positions.h"
#include "backends/core/program/operand_extents.h"

namespace onnxifi::program {

std::optional<Gathering> FindGathering(const Program& program, const BufferUses& uses,
                                       BufferId buffer) {
  const int number = uses.OnlyWriter(buffer);
  if (number == BufferUses::kNoStep || uses.IsOutput(buffer)) return std::nullopt;
  const Step& step = program.steps[number];
  const Map* map = step.As<Map>();
  const Buffer& made = program.buffers[buffer];
  if (map == nullptr || map->roots.size() != 1 || made.type != ElementType::kFloat32 ||
      made.kind != Buffer::Kind::kTemporary || made.shape != step.domain ||
      !IsDense({step.writes[0], step.domain}) || uses.ReadsWhatIsWrittenAfter(number, step)) {
    return std::nullopt;
  }
  const ExprPool& pool = program.exprs;
  const ExprNode& load = pool[map->roots[0]];
  if (load.op != ExprOp::kLoad || load.operands.empty() || load.type != ElementType::kFloat32)
    return std::nullopt;
  const auto source = static_cast<int>(load.payload);
  const View& view = step.reads[static_cast<size_t>(source)];
  const std::optional<size_t> entry_axis = FindGuardedAxis(view);
  if (!entry_axis || view.type != ElementType::kFloat32) return std::nullopt;
  Gathering found{&step, source, *entry_axis, view.guards[0].extent, -1, {}};
  found.positions = FindPositions(pool, load.operands[*entry_axis], found.entries);
  if (found.positions < 0) return std::nullopt;
  const View& positions = step.reads[static_cast<size_t>(found.positions)];
  if (!positions.guards.empty()) return std::nullopt;
  std::vector<bool> is_taken(step.domain.size(), false);
  for (size_t axis = 0; axis < load.operands.size(); ++axis) {
    found.domain_axes.push_back(-1);
    if (axis == *entry_axis) continue;
    const ExprNode& coordinate = pool[load.operands[axis]];
    if (coordinate.op != ExprOp::kIndex) return std::nullopt;
    const auto domain_axis = static_cast<size_t>(coordinate.payload);
    const bool is_other = is_taken[domain_axis] || (!(positions.strides[domain_axis] == Dim(0)) &&
                                                    !(step.domain[domain_axis] == Dim(1)));
    if (is_other) return std::nullopt;
    is_taken[domain_axis] = true;
    found.domain_axes.back() = static_cast<int>(domain_axis);
  }
  return found;
}

}  // namespace onnxifi::program
