// SPDX-License-Identifier: Apache-2.0
//
// KeptPrecision: which operations are continuous, and whose rounding is the model's own.

#include "backends/core/program/kept_precision.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "backends/core/program/body_exprs.h"

namespace onnxifi::program {
namespace {

bool IsZero(const ExprNode& node) {
  return node.op == ExprOp::kConstant && tensor::IsFloat(node.type) &&
         std::bit_cast<double>(node.payload) == 0;
}

// x < 0 ? k * x : x, whose sides meet.
bool IsLeaky(const ExprPool& pool, const ExprNode& select) {
  const ExprNode& condition = pool[select.operands[0]];
  const ExprNode& below = pool[select.operands[1]];
  const ExprId x = select.operands[2];
  return condition.op == ExprOp::kLess && condition.operands[0] == x &&
         IsZero(pool[condition.operands[1]]) && below.op == ExprOp::kMul &&
         std::ranges::find(below.operands, x) != below.operands.end();
}

bool IsContinuous(const ExprPool& pool, const std::vector<ExprId>& nodes) {
  std::unordered_set<ExprId> conditions;  // that only choose between sides which meet
  for (const ExprId id : nodes) {
    if (pool[id].op == ExprOp::kSelect && IsLeaky(pool, pool[id])) {
      conditions.insert(pool[id].operands[0]);
    }
  }
  return std::ranges::all_of(nodes, [&](ExprId id) {
    const ExprNode& node = pool[id];
    switch (node.op) {
      case ExprOp::kSign:
      case ExprOp::kFloor:
      case ExprOp::kCeil:
      case ExprOp::kRoundEven:
      case ExprOp::kTrunc:
      case ExprOp::kIsNan:
      case ExprOp::kMod:
      case ExprOp::kFmod:
      case ExprOp::kEqual:
      case ExprOp::kLessEqual:
      case ExprOp::kBitcast:
        return false;
      case ExprOp::kLess:
        return conditions.contains(id);
      case ExprOp::kSelect:
        return !conditions.contains(node.operands[0]) || IsLeaky(pool, node);
      case ExprOp::kCast:
        return tensor::IsFloat(node.type) || !tensor::IsFloat(pool[node.operands[0]].type);
      default:
        return true;
    }
  });
}

}  // namespace

bool KeptPrecision::IsKept(ElementType type) { return type == ElementType::kBfloat16; }

KeptPrecision::KeptPrecision(const Program& program, const Step& reader)
    : program_(program), reader_(reader) {
  if (!program.has_fast_algorithms || reader.writes.empty()) return;
  const ElementType type = reader.writes[0].type;
  may_read_unrounded_ =
      IsKept(type) &&
      std::ranges::all_of(reader.writes, [&](const View& write) { return write.type == type; }) &&
      IsContinuous(program.exprs, Reachable(program.exprs, BodyExprs(reader)));
}

ExprId KeptPrecision::Unrounded(ExprId cast, const Step& producer, ExprId root) const {
  const ExprPool& pool = program_.exprs;
  const ExprNode& widening = pool[cast];
  const ExprNode& rounding = pool[root];
  if (!may_read_unrounded_ || widening.op != ExprOp::kCast || rounding.op != ExprOp::kCast ||
      rounding.type != reader_.writes[0].type) {
    return kNoExpr;
  }
  const bool is_of_type = std::ranges::all_of(producer.reads, [&](const View& read) {
    return read.buffer == kNoBuffer || read.type == rounding.type ||
           program_.buffers[read.buffer].kind == Buffer::Kind::kConstant;
  });
  const ExprId exact = rounding.operands[0];
  const bool is_same = tensor::IsFloat(widening.type) && pool[exact].type == widening.type;
  return is_of_type && is_same ? exact : kNoExpr;
}

bool KeptPrecision::MayWiden(size_t number) const {
  const ExprPool& pool = program_.exprs;
  if (!may_read_unrounded_ || reader_.reads[number].type != reader_.writes[0].type) return false;
  const ExprIds roots = BodyExprs(reader_);
  const auto is_load = [&](ExprId id) {
    return pool[id].op == ExprOp::kLoad && pool[id].payload == number;
  };
  return std::ranges::all_of(Reachable(pool, roots), [&](ExprId id) {
    const ExprNode& node = pool[id];
    if (is_load(id)) {
      const bool is_root = std::ranges::find(roots, id) != roots.end();
      return node.operands.empty() && (!is_root || reader_.As<Map>() != nullptr);
    }
    if (std::ranges::none_of(node.operands, is_load)) return true;
    return node.op == ExprOp::kCast && tensor::IsFloat(node.type) && !IsKept(node.type);
  });
}

}  // namespace onnxifi::program
