// SPDX-License-Identifier: Apache-2.0
//
// ViewExtents: the domain, but for operands, reduced axes and what expressions load elsewhere.

#include "backends/core/program/view_extents.h"

#include <algorithm>

#include "backends/core/program/body_exprs.h"
#include "backends/core/program/operand_extents.h"
#include "backends/core/program/recurrent_extents.h"

namespace onnxifi::program {

namespace {

// Whether a guard says of coordinate `axis` that it is in [0, extent), and nothing else.
bool Bounds(const Guard& guard, size_t axis) {
  for (size_t k = 0; k < guard.coefficients.size(); ++k) {
    if (!(guard.coefficients[k] == Dim(k == axis ? 1 : 0))) return false;
  }
  return guard.offset == Dim(0);
}

// What a load at computed coordinates can meet: coordinates of the domain are within it, others
// within what a guard lets pass.
std::optional<Shape> ExtentsOfLoad(const Program& program, const Step& step, const ExprNode& load) {
  const View& view = step.reads[load.payload];
  Shape extents;
  for (size_t axis = 0; axis < load.operands.size(); ++axis) {
    const ExprNode& coordinate = program.exprs[load.operands[axis]];
    const auto guard = std::find_if(view.guards.begin(), view.guards.end(),
                                    [&](const Guard& each) { return Bounds(each, axis); });
    if (guard != view.guards.end()) {
      extents.push_back(guard->extent);
    } else if (coordinate.op == ExprOp::kIndex) {
      extents.push_back(step.domain[coordinate.payload]);
    } else if (const auto at = static_cast<int64_t>(coordinate.payload);
               coordinate.op == ExprOp::kConstant && at >= 0) {
      extents.push_back(at + 1);
    } else {
      return std::nullopt;
    }
  }
  return extents;
}

}  // namespace

ViewExtents::ViewExtents(const Program& program, const Step& step) : step_(step) {
  std::set<size_t> plain;  // reads that are loaded over the domain
  for (ExprId id : Reachable(program.exprs, BodyExprs(step))) {
    const ExprNode& node = program.exprs[id];
    if (node.op != ExprOp::kLoad) continue;
    const auto read = static_cast<size_t>(node.payload);
    if (node.operands.empty()) {
      plain.insert(read);
      continue;
    }
    std::optional<Shape> extents = ExtentsOfLoad(program, step, node);
    const auto [known, is_new] = computed_.emplace(read, extents);
    if (!is_new && known->second != extents) known->second = std::nullopt;
  }
  for (auto& [read, extents] : computed_) {
    if (plain.contains(read)) extents = std::nullopt;
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
  if (const auto computed = computed_.find(read); computed != computed_.end()) {
    return computed->second;
  }
  const auto operand = static_cast<int>(read);
  return operand < OperandCount(step_) ? OperandShape(step_, operand) : step_.domain;
}

std::optional<Shape> ViewExtents::OfWrite(size_t write) const {
  if (IsRunByExecution(step_)) return std::nullopt;
  if (step_.As<Recurrent>() != nullptr) return RecurrentWriteShape(step_, static_cast<int>(write));
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
