// SPDX-License-Identifier: Apache-2.0
//
// CompileNumberEpilogue, CopyNumber: copies the expressions, and puts numbers in place of loads.

#include "backends/cpu/integer/number_epilogue.h"

#include <unordered_map>
#include <utility>
#include <vector>

namespace onnxifi::integer {
namespace {

// The element of a view that has only one, over `domain`; nothing for other views.
bool HasOneElement(const device::BoundView& view, const tensor::Extents& domain) {
  if (!view.guards.empty() || view.strides.size() != domain.size()) return false;
  for (size_t axis = 0; axis < domain.size(); ++axis) {
    if (domain[axis] != 1 && view.strides[axis] != 0) return false;
  }
  return true;
}

}  // namespace

std::optional<program::ExprId> CopyNumber(const program::ExprNode& node,
                                          const device::BoundStep& step,
                                          device::Addresses constants, program::ExprPool& own) {
  if (node.op != program::ExprOp::kLoad || !node.operands.empty()) return std::nullopt;
  const device::BoundView& view = step.reads[node.payload];
  const std::byte* constant = constants[view.buffer];
  if (constant == nullptr || !HasOneElement(view, step.domain)) return std::nullopt;
  const tensor::Scalar number = tensor::LoadScalar(view.type, constant, view.offset);
  return program::ScalarConstant(own, node.type, number).id();
}

engine::Code CompileNumberEpilogue(const device::BoundStep& step, device::Addresses constants,
                                   engine::LoopSet loops) {
  const program::ExprPool& pool = step.program->exprs;
  const program::ExprIds& roots = step.step->As<program::Contract>()->roots;
  program::ExprPool own;
  std::unordered_map<program::ExprId, program::ExprId> copies;
  std::vector<program::ExprId> accumulators;
  for (const program::ExprId id : program::Reachable(pool, roots)) {
    program::ExprNode node = pool[id];
    if (const std::optional<program::ExprId> number = CopyNumber(node, step, constants, own)) {
      copies[id] = *number;
      continue;
    }
    for (program::ExprId& operand : node.operands) operand = copies.at(operand);
    const bool is_accumulator = node.op == program::ExprOp::kAccumulator;
    copies[id] = own.Add(std::move(node));
    if (is_accumulator) accumulators.push_back(copies[id]);
  }
  program::ExprIds own_roots;
  for (const program::ExprId root : roots) own_roots.push_back(copies.at(root));
  return engine::Code::Compile(own, own_roots, loops, accumulators);
}

}  // namespace onnxifi::integer
