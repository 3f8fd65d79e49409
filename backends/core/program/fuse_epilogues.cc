// SPDX-License-Identifier: Apache-2.0
//
// FuseEpilogues: bias, activation, residual addition and casts move into the contraction or window
// that feeds them.

#include <optional>
#include <utility>

#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/kept_precision.h"
#include "backends/core/program/passes.h"

namespace onnxifi::program {
namespace {

// The roots to which an epilogue can be added; null for other families.
ExprIds* EpilogueRoots(Step& step) {
  if (Contract* contract = step.As<Contract>()) return &contract->roots;
  if (Window* window = step.As<Window>()) return &window->roots;
  return nullptr;
}

// The producer with the Map's expression as its epilogue; nothing when the Map does not follow it
// element for element.
std::optional<Step> Joined(Program& program, const Step& producer, const Step& consumer) {
  const Map* map = consumer.As<Map>();
  if (map == nullptr || map->roots.size() != 1 || consumer.domain != producer.domain) {
    return std::nullopt;
  }
  const View& result = producer.writes[0];
  Step joined;
  joined.domain = producer.domain;
  joined.reads = producer.reads;
  joined.node = producer.node;
  if (const Contract* contract = producer.As<Contract>()) joined.body = *contract;
  if (const Window* window = producer.As<Window>()) joined.body = *window;
  ExprIds& roots = *EpilogueRoots(joined);
  ExprId accumulated = roots[0];

  std::vector<int> new_read(consumer.reads.size(), -1);
  for (size_t r = 0; r < consumer.reads.size(); ++r) {
    const View& read = consumer.reads[r];
    if (read.buffer == result.buffer) {
      if (!SameOver(joined.domain, read, result)) return std::nullopt;
      continue;
    }
    new_read[r] = static_cast<int>(joined.reads.size());
    joined.reads.push_back(read);
  }
  for (ExprId id : Reachable(program.exprs, map->roots)) {
    const ExprNode& node = program.exprs[id];
    bool is_plain_load = node.op == ExprOp::kLoad && node.operands.empty();
    if (node.op == ExprOp::kIndex || (node.op == ExprOp::kLoad && !is_plain_load))
      return std::nullopt;
  }
  const KeptPrecision kept(program, consumer);
  const auto loads_result = [&](const ExprNode& node) {
    return node.op == ExprOp::kLoad && new_read[node.payload] < 0;
  };
  std::unordered_map<ExprId, ExprId> done;
  auto replace = [&](ExprId id) {
    ExprNode node = program.exprs[id];
    if (node.op == ExprOp::kCast && loads_result(program.exprs[node.operands[0]])) {
      return kept.Unrounded(id, producer, accumulated);
    }
    if (node.op != ExprOp::kLoad) return kNoExpr;
    if (loads_result(node)) return accumulated;
    const int read = new_read[node.payload];
    node.payload = static_cast<uint64_t>(read);
    return program.exprs.Add(std::move(node));
  };
  roots[0] = Rewrite(program.exprs, map->roots[0], replace, done);
  joined.writes = consumer.writes;
  return joined;
}

// The step that reads alone what step `number`, a Contract or Window, alone writes; kNoStep where
// there is no such step or the two may not be joined.
int FindConsumer(const Program& program, const BufferUses& uses, int number) {
  const Step& step = program.steps[number];
  if (step.writes.size() != 1) return BufferUses::kNoStep;
  const BufferId result = step.writes[0].buffer;
  if (program.buffers[result].kind != Buffer::Kind::kTemporary || uses.IsOutput(result) ||
      uses.OnlyWriter(result) != number || uses.ReadsWhatIsWrittenAfter(number, step)) {
    return BufferUses::kNoStep;
  }
  return uses.OnlyReader(result);
}

}  // namespace

void FuseEpilogues(Program& program, const Accepts& accepts) {
  BufferUses uses(program);
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    Step& step = program.steps[s];
    if (EpilogueRoots(step) == nullptr) continue;
    const int number = FindConsumer(program, uses, s);
    if (number <= s) continue;
    // At the consumer's place, where all that it reads has been computed; from there the next Map
    // of a chain is tried.
    std::optional<Step> joined = Joined(program, step, program.steps[number]);
    if (!joined || !accepts(program, step, *joined)) continue;
    JoinSteps(program, uses, s, number, *std::move(joined));
  }
  RemoveDeadSteps(program);
}

}  // namespace onnxifi::program
