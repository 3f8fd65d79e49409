// SPDX-License-Identifier: Apache-2.0
//
// WeightProducts: a Map that dequantizes constant weights moves into the product that reads them,
// so that the product has the integers.

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/dequantization.h"
#include "backends/core/program/inlined_operand.h"
#include "backends/core/program/operand_extents.h"
#include "backends/core/program/passes.h"

namespace onnxifi::program {
namespace {

constexpr ElementType kReal = ElementType::kFloat32;

// The product with B's dequantization in its prologue, of `halves` in place of the numbers that the
// Map reads if that is given.
std::optional<Step> WithDequantization(Program& program, const Step& step,
                                       const Dequantization& found,
                                       std::optional<BufferId> halves) {
  const Contract& contract = *step.As<Contract>();
  const Shape operand = OperandShape(step, 1);
  const Shape& made = found.step->domain;
  const std::optional<std::vector<int>> axes = MatchAxes(step.reads[1], operand, made);
  if (!axes) return std::nullopt;
  Step joined;
  joined.domain = step.domain;
  joined.reads = step.reads;
  joined.writes = step.writes;
  joined.node = step.node;
  Contract body = contract;
  // Where each read of the Map is now; views over its domain become views over the operand.
  std::vector<int> places;
  std::vector<bool> is_over_domain(found.step->reads.size(), true);
  ExprPool& pool = program.exprs;
  const ExprId root = found.step->As<Map>()->roots[0];
  for (const ExprId id : Reachable(pool, std::span(&root, 1))) {
    const ExprNode& node = pool[id];
    if (node.op == ExprOp::kLoad && !node.operands.empty()) is_over_domain[node.payload] = false;
  }
  for (size_t read = 0; read < found.step->reads.size(); ++read) {
    View view = found.step->reads[read];
    if (is_over_domain[read]) {
      if (!view.guards.empty()) return std::nullopt;
      view = OverOperand(std::move(view), operand, made, *axes);
    }
    if (static_cast<int>(read) == found.quantized) {
      places.push_back(1);
      if (halves) {
        view.buffer = *halves;
        view.type = ElementType::kUint4;
      }
      joined.reads[1] = std::move(view);
    } else {
      places.push_back(static_cast<int>(joined.reads.size()));
      joined.reads.push_back(std::move(view));
    }
  }
  std::unordered_map<ExprId, ExprId> done;
  std::function<ExprId(ExprId)> replace = [&](ExprId id) -> ExprId {
    ExprNode node = pool[id];
    if (node.op == ExprOp::kIndex) {
      const int axis = (*axes)[node.payload];
      return axis < 0 ? IntConstant(pool, node.type, 0).id() : Coordinate(pool, axis).id();
    }
    if (node.op != ExprOp::kLoad) return kNoExpr;
    node.payload = static_cast<uint64_t>(places[node.payload]);
    const ElementType stored = joined.reads[node.payload].type;
    if (stored != node.type) {  // halves of bytes
      const ElementType before = std::exchange(node.type, stored);
      return Cast(Expr(&pool, pool.Add(std::move(node))), before).id();
    }
    for (ExprId& coordinate : node.operands) coordinate = Rewrite(pool, coordinate, replace, done);
    return pool.Add(std::move(node));
  };
  body.b_prologue = Rewrite(pool, root, replace, done);
  joined.body = std::move(body);
  return joined;
}

}  // namespace

void MakeWeightProducts(Program& program, const PrefersQuantizedWeights& prefers) {
  BufferUses uses(program);
  const std::vector<bool> is_constant = FindConstants(program);
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    const Step& step = program.steps[s];
    const Contract* contract = step.As<Contract>();
    if (contract == nullptr || contract->accumulator != kReal ||
        contract->b_prologue != Load(program.exprs, kReal, 1).id()) {
      continue;
    }
    const ExprId b = contract->b_prologue;
    const bool is_read_elsewhere = std::ranges::any_of(Reachable(program.exprs, contract->roots),
                                                       [&](ExprId id) { return id == b; });
    const std::optional<Dequantization> found =
        is_read_elsewhere ? std::nullopt
                          : FindDequantization(program, uses, is_constant, step.reads[1].buffer);
    if (!found) continue;
    std::optional<Step> joined = WithDequantization(program, step, *found, std::nullopt);
    if (!joined || !prefers(program, *joined)) continue;
    const View& numbers = found->step->reads[static_cast<size_t>(found->quantized)];
    if (const auto bytes = FindHalvedBytes(program, uses, numbers.buffer)) {
      joined = WithDequantization(program, step, *found, AddHalves(program, *bytes));
    }
    uses.Remove(s, program.steps[s]);
    program.steps[s] = *std::move(joined);
    uses.Add(s, program.steps[s]);
  }
  RemoveDeadSteps(program);
}

}  // namespace onnxifi::program
