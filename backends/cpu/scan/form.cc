// SPDX-License-Identifier: Apache-2.0
//
// Form: a walk over the updates.

#include "backends/cpu/scan/form.h"

#include <algorithm>
#include <string>
#include <utility>

namespace onnxifi::scan {
namespace {

using base::Code;
using base::Status;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;

bool IsState(const ExprNode& node, uint64_t number) {
  return node.op == ExprOp::kState && node.payload == number;
}

bool ReadsState(const program::ExprPool& pool, ExprId root) {
  const std::vector<ExprId> nodes = program::Reachable(pool, std::span(&root, 1));
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](ExprId id) { return pool[id].op == ExprOp::kState; });
}

}  // namespace

base::Result<Form> FindForm(const device::Facts& facts) {
  const auto* scan = facts.step.As<program::Scan>();
  if (scan == nullptr) return Status(Code::kUnsupportedOperator, "The step is no scan.");
  ONNXIFI_RETURN_IF_ERROR(engine::CheckStep(facts));
  const program::ExprPool& pool = facts.program.exprs;
  Form form;
  for (const program::Reduction::State& state : scan->reduction.states) {
    const ExprNode& update = pool[state.update];
    const std::string name = "The update of state " + std::to_string(form.states.size());
    const Loop loop = FindLoop(update.op, state.type, scan->exclusive);
    if (loop == nullptr || update.operands.size() != 2) {
      return Status(Code::kUnsupportedOperator, name + " is no sum, product, minimum or maximum.");
    }
    // Sums and products may have the state second, too. Of a minimum or maximum the order decides
    // between zeros.
    ExprId first = update.operands[0];
    ExprId second = update.operands[1];
    const bool may_swap = update.op == ExprOp::kAdd || update.op == ExprOp::kMul;
    if (may_swap && !IsState(pool[first], form.states.size())) std::swap(first, second);
    if (!IsState(pool[first], form.states.size()) || ReadsState(pool, second)) {
      return Status(Code::kUnsupportedOperator,
                    name + " does not combine the state with what no state enters.");
    }
    form.states.push_back({state.type, loop, state.init, second});
  }
  form.writes_state =
      form.states.size() == 1 && scan->roots.size() == 1 && IsState(pool[scan->roots[0]], 0);
  return form;
}

FormCode FormCode::Compile(const device::Facts& facts, Form form, engine::LoopSet loops) {
  const program::ExprPool& pool = facts.program.exprs;
  std::vector<ExprId> init, elements;
  for (const Form::State& state : form.states) {
    init.push_back(state.init);
    elements.push_back(state.element);
  }
  return {std::move(form), engine::Code::Compile(pool, init, loops),
          engine::Code::Compile(pool, elements, loops),
          engine::Code::Compile(pool, facts.step.As<program::Scan>()->roots, loops)};
}

}  // namespace onnxifi::scan
