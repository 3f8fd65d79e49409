// SPDX-License-Identifier: Apache-2.0
//
// FuseEpilogues: bias, activation, residual addition and casts move into the contraction or window
// that feeds them.

#include <algorithm>

#include "backends/core/program/passes.h"

namespace onnxifi::program {
namespace {

// The roots to which an epilogue can be added; null for other families.
std::vector<ExprId>* EpilogueRoots(Step& step) {
  if (Contract* contract = step.As<Contract>()) return &contract->roots;
  if (Window* window = step.As<Window>()) return &window->roots;
  return nullptr;
}

bool IsOutput(const Program& program, BufferId buffer) {
  return std::any_of(program.outputs.begin(), program.outputs.end(),
                     [buffer](const Port& port) { return port.buffer == buffer; });
}

// The only step that touches `buffer` after step `producer`; -1 if there is none or more than one.
int OnlyReader(const Program& program, size_t producer, BufferId buffer) {
  int reader = -1;
  for (size_t s = 0; s < program.steps.size(); ++s) {
    if (s == producer) continue;
    auto touches = [buffer](const View& view) { return view.buffer == buffer; };
    const Step& step = program.steps[s];
    if (std::any_of(step.writes.begin(), step.writes.end(), touches)) return -1;
    if (std::none_of(step.reads.begin(), step.reads.end(), touches)) continue;
    if (reader >= 0) return -1;
    reader = static_cast<int>(s);
  }
  return reader;
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
  std::vector<ExprId>& roots = *EpilogueRoots(joined);
  ExprId accumulated = roots[0];

  std::vector<int> new_read(consumer.reads.size(), -1);
  for (size_t r = 0; r < consumer.reads.size(); ++r) {
    const View& read = consumer.reads[r];
    if (read.buffer == result.buffer) {
      if (!(read == result)) return std::nullopt;
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
  std::unordered_map<ExprId, ExprId> done;
  auto replace = [&](ExprId id) {
    ExprNode node = program.exprs[id];
    if (node.op != ExprOp::kLoad) return kNoExpr;
    int read = new_read[node.payload];
    if (read < 0) return accumulated;
    node.payload = static_cast<uint64_t>(read);
    return program.exprs.Add(std::move(node));
  };
  roots[0] = Rewrite(program.exprs, map->roots[0], replace, done);
  joined.writes = consumer.writes;
  return joined;
}

}  // namespace

void FuseEpilogues(Program& program, const Accepts& accepts) {
  for (size_t s = 0; s < program.steps.size();) {
    Step& step = program.steps[s];
    bool is_fused = false;
    if (EpilogueRoots(step) != nullptr && step.writes.size() == 1 &&
        program.buffers[step.writes[0].buffer].kind == Buffer::Kind::kTemporary &&
        !IsOutput(program, step.writes[0].buffer)) {
      int reader = OnlyReader(program, s, step.writes[0].buffer);
      if (reader > static_cast<int>(s)) {
        std::optional<Step> joined = Joined(program, step, program.steps[reader]);
        if (joined && accepts(program, step, *joined)) {
          // At the reader's place, where all that it reads has been computed.
          program.steps[reader] = *std::move(joined);
          program.steps.erase(program.steps.begin() + static_cast<std::ptrdiff_t>(s));
          is_fused = true;
        }
      }
    }
    if (!is_fused) ++s;
  }
}

}  // namespace onnxifi::program
