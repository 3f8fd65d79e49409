// SPDX-License-Identifier: Apache-2.0
//
// FuseWidenings: a cast that keeps every value moves into the product that reads its result, so
// that the product has its operand as it is in memory.

#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/program/body_exprs.h"
#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/operand_extents.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/product_operand.h"

namespace onnxifi::program {
namespace {

// What `map`, a Map that does nothing but widen, widens, where that lies element for element as the
// result does; null for any other step.
const View* FindWidened(const Program& program, const BufferUses& uses, const Step& step) {
  const Map* map = step.As<Map>();
  if (map == nullptr || map->roots.size() != 1) return nullptr;
  const View& result = step.writes[0];
  const Buffer& buffer = program.buffers[result.buffer];
  if (buffer.kind != Buffer::Kind::kTemporary || uses.IsOutput(result.buffer) ||
      buffer.type != result.type || buffer.shape != step.domain ||
      !IsDense({result, step.domain})) {
    return nullptr;
  }
  const ExprNode& cast = program.exprs[map->roots[0]];
  if (cast.op != ExprOp::kCast || !IsWidening(program.exprs[cast.operands[0]].type, cast.type)) {
    return nullptr;
  }
  const ExprNode& load = program.exprs[cast.operands[0]];
  if (load.op != ExprOp::kLoad || !load.operands.empty()) return nullptr;
  const View& source = step.reads[load.payload];
  return IsDense({source, step.domain}) ? &source : nullptr;
}

// `step` with reads of `result` put on `source`; nothing where one of its views cannot be.
std::optional<Step> Replaced(Program& program, const Step& step, const View& result,
                             const View& source) {
  Step replaced;
  replaced.domain = step.domain;
  replaced.reads = step.reads;
  replaced.writes = step.writes;
  replaced.body = *step.As<Contract>();
  replaced.node = step.node;
  std::vector<bool> is_replaced(step.reads.size(), false);
  for (size_t read = 0; read < step.reads.size(); ++read) {
    View& view = replaced.reads[read];
    if (view.buffer != result.buffer) continue;
    // Padding is a value of the wider type, and elements under another type are none.
    if (!view.guards.empty() || view.type != result.type) return std::nullopt;
    is_replaced[read] = true;
    view.buffer = source.buffer;
    view.type = source.type;
  }
  std::unordered_map<ExprId, ExprId> done;
  std::function<ExprId(ExprId)> replace = [&](ExprId id) -> ExprId {
    ExprNode node = program.exprs[id];
    if (node.op != ExprOp::kLoad || !is_replaced[node.payload]) return kNoExpr;
    for (ExprId& operand : node.operands) {
      operand = Rewrite(program.exprs, operand, replace, done);
    }
    node.type = source.type;
    const Expr load(&program.exprs, program.exprs.Add(std::move(node)));
    return Cast(load, result.type).id();
  };
  for (ExprId* id : BodyExprs(replaced)) *id = Rewrite(program.exprs, *id, replace, done);
  return replaced;
}

// The first operand of product `number` that is widened before, if there is one.
bool FuseOneWidening(Program& program, BufferUses& uses, int number,
                     const PrefersNarrowOperands& prefers) {
  const Step& step = program.steps[number];
  for (int operand = 0; operand < OperandCount(step); ++operand) {
    const BufferId buffer = step.reads[operand].buffer;
    const int producer_number = uses.OnlyWriter(buffer);
    if (producer_number == BufferUses::kNoStep || producer_number >= number ||
        uses.OnlyReader(buffer) != number) {
      continue;
    }
    const Step& producer = program.steps[producer_number];
    const View* source = FindWidened(program, uses, producer);
    if (source == nullptr || uses.ReadsWhatIsWrittenAfter(producer_number, producer)) continue;
    std::optional<Step> replaced = Replaced(program, step, producer.writes[0], *source);
    if (!replaced || !prefers(program, *replaced)) continue;
    JoinSteps(program, uses, producer_number, number, *std::move(replaced));
    return true;
  }
  return false;
}

}  // namespace

void FuseWidenings(Program& program, const PrefersNarrowOperands& prefers) {
  BufferUses uses(program);
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    if (program.steps[s].As<Contract>() == nullptr) continue;
    while (FuseOneWidening(program, uses, s, prefers)) {
    }
  }
  RemoveDeadSteps(program);
}

}  // namespace onnxifi::program
