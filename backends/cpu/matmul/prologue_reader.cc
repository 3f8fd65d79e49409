// SPDX-License-Identifier: Apache-2.0
//
// PrologueReader: follows the coordinates of a load along the axes of its view.

#include "backends/cpu/matmul/prologue_reader.h"

#include <optional>
#include <string>
#include <utility>

#include "backends/core/program/entry_positions.h"
#include "backends/core/program/operand_extents.h"
#include "backends/core/program/product_operand.h"

namespace onnxifi::matmul {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;

// What `id` is before casts that keep every value.
ExprId BeforeWidening(const program::ExprPool& pool, ExprId id) {
  while (pool[id].op == ExprOp::kCast &&
         program::IsWidening(pool[pool[id].operands[0]].type, pool[id].type)) {
    id = pool[id].operands[0];
  }
  return id;
}

Status Refuse(std::string sentence) {
  return Status(Code::kUnsupportedAttribute, std::move(sentence));
}

}  // namespace

ExprId DifferenceOf(const program::ExprPool& pool, ExprId id) {
  const ExprId from = pool[id].op == ExprOp::kCast ? pool[id].operands[0] : id;
  const bool holds = pool[from].type == ElementType::kInt32 ||
                     pool[from].type == ElementType::kInt64 ||
                     pool[from].type == ElementType::kFloat32;
  return pool[from].op == ExprOp::kSub && holds ? from : id;
}

Result<PerBlock> PrologueReader::Describe(ExprId id) const {
  const ExprNode& load = pool_[BeforeWidening(pool_, id)];
  if (load.op != ExprOp::kLoad) {
    return Refuse("The matrix, a scale or a zero point is computed (" + std::string(Name(load.op)) +
                  ").");
  }
  PerBlock found{static_cast<int>(load.payload), matrix_.depth, 0, 0};
  const program::View& view = step_.reads[load.payload];
  if (!HasOwnBounds(view, load)) {
    return Refuse("The matrix, a scale or a zero point is padded by its view.");
  }
  for (int axis = 0; axis < view.rank(); ++axis) {
    const program::Dim& stride = view.strides[axis];
    if (!stride.is_constant()) return Refuse("A stride is known only once the inputs are.");
    ONNXIFI_RETURN_IF_ERROR(load.operands.empty()
                                ? Walk(static_cast<size_t>(axis), 1, stride.constant(), found)
                                : WalkBy(load.operands[axis], stride.constant(), found));
  }
  return found;
}

Status PrologueReader::WalkBy(ExprId id, int64_t stride, PerBlock& found) const {
  const ExprNode& node = pool_[id];
  if (position_ != program::kNoExpr && id == position_) {
    found.entry_stride = stride;
    return base::Ok();
  }
  if (stride == 0 || node.op == ExprOp::kConstant) {
    const bool is_first = stride == 0 || node.payload == 0;
    return is_first ? base::Ok() : Refuse("A scale or zero point is at another place.");
  }
  if (node.op == ExprOp::kIndex) return Walk(node.payload, 1, stride, found);
  if (node.op == ExprOp::kDiv && pool_[node.operands[0]].op == ExprOp::kIndex &&
      pool_[node.operands[1]].op == ExprOp::kConstant) {
    const auto block = static_cast<int64_t>(pool_[node.operands[1]].payload);
    return Walk(pool_[node.operands[0]].payload, block, stride, found);
  }
  return Refuse("A scale or zero point is found by other arithmetic (" +
                std::string(Name(node.op)) + ").");
}

Status PrologueReader::Walk(size_t axis, int64_t block, int64_t stride, PerBlock& found) const {
  if (stride == 0) return base::Ok();
  if (axis == matrix_.column_axis && block == 1) {
    found.column_stride = stride;
  } else if (axis == matrix_.inner_axis) {
    if (matrix_.depth <= block) return base::Ok();
    found.block = block;
    found.block_stride = stride;
  } else if (!(program::OperandShape(step_, 1)[axis] == program::Dim(1))) {
    return Refuse("A scale or zero point belongs to another axis.");
  }
  return base::Ok();
}

bool PrologueReader::HasOwnBounds(const program::View& view, const ExprNode& load) const {
  if (view.guards.empty()) return true;
  const std::optional<size_t> axis = program::FindGuardedAxis(view);
  return axis && *axis < load.operands.size() && load.operands[*axis] == position_ &&
         view.guards[0].extent == entries_;
}

}  // namespace onnxifi::matmul
