// SPDX-License-Identifier: Apache-2.0
//
// ViewExtents: the domain, but for operands, reduced axes and what expressions load elsewhere.

#include "backends/core/program/view_extents.h"

#include "backends/core/program/body_exprs.h"
#include "backends/core/program/operand_extents.h"

namespace onnxifi::program {

ViewExtents::ViewExtents(const Program& program, const Step& step) : step_(step) {
  for (ExprId id : Reachable(program.exprs, BodyExprs(step))) {
    const ExprNode& node = program.exprs[id];
    if (node.op == ExprOp::kLoad && !node.operands.empty()) {
      elsewhere_.insert(static_cast<size_t>(node.payload));
    }
  }
  // Of what is not evaluated over the domain.
  ExprIds others;
  if (const Contract* contract = step.As<Contract>()) {
    others = {contract->a_prologue, contract->b_prologue};
  } else if (const Attention* attention = step.As<Attention>()) {
    others = {attention->query_prologue, attention->key_prologue, attention->value_prologue,
              attention->score};
  }
  const auto operands = static_cast<uint64_t>(OperandCount(step));
  for (ExprId id : Reachable(program.exprs, others)) {
    const ExprNode& node = program.exprs[id];
    if (node.op == ExprOp::kLoad && node.payload >= operands) {
      elsewhere_.insert(static_cast<size_t>(node.payload));
    }
  }
}

std::optional<Shape> ViewExtents::OfRead(size_t read) const {
  if (IsRunByExecution(step_) || elsewhere_.contains(read)) return std::nullopt;
  const auto operand = static_cast<int>(read);
  return operand < OperandCount(step_) ? OperandShape(step_, operand) : step_.domain;
}

std::optional<Shape> ViewExtents::OfWrites() const {
  if (IsRunByExecution(step_)) return std::nullopt;
  if (const Index* index = step_.As<Index>()) {
    if (index->kind == Index::Kind::kScatter) return index->target;
    if (index->kind == Index::Kind::kSuppress) return step_.domain;
    return std::nullopt;
  }
  Shape written = step_.domain;
  if (const Reduce* reduce = step_.As<Reduce>()) {
    written.resize(written.size() - static_cast<size_t>(reduce->axes));
  }
  return written;
}

}  // namespace onnxifi::program
