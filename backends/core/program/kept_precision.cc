// SPDX-License-Identifier: Apache-2.0
//
// KeptPrecision: which operations are continuous, and whose rounding is the model's own.

#include "backends/core/program/kept_precision.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "backends/core/program/body_exprs.h"
#include "backends/core/program/product_operand.h"

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

// Those of `nodes`, operands first, that may change with elements of `type`.
std::unordered_set<ExprId> FindVarying(const ExprPool& pool, const std::vector<ExprId>& nodes,
                                       ElementType type) {
  std::unordered_set<ExprId> varying;
  for (const ExprId id : nodes) {
    const ExprNode& node = pool[id];
    // What a reduction has so far is made of its elements.
    const bool is_element = node.op == ExprOp::kLoad && node.type == type;
    const bool is_of_elements = node.op == ExprOp::kState || node.op == ExprOp::kOther ||
                                node.op == ExprOp::kRow || node.op == ExprOp::kAccumulator;
    if (is_element || is_of_elements || std::ranges::any_of(node.operands, [&](ExprId operand) {
          return varying.contains(operand);
        })) {
      varying.insert(id);
    }
  }
  return varying;
}

bool IsContinuous(const ExprPool& pool, const std::vector<ExprId>& nodes, ElementType type) {
  const std::unordered_set<ExprId> varying = FindVarying(pool, nodes, type);
  std::unordered_set<ExprId> conditions;  // that only choose between sides which meet
  for (const ExprId id : nodes) {
    if (pool[id].op == ExprOp::kSelect && IsLeaky(pool, pool[id])) {
      conditions.insert(pool[id].operands[0]);
    }
  }
  return std::ranges::all_of(varying, [&](ExprId id) {
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
      // Their domains end where rounded numbers lie: beside 1 there is none.
      case ExprOp::kAcos:
      case ExprOp::kAsin:
      case ExprOp::kAcosh:
      case ExprOp::kAtanh:
        return false;
      case ExprOp::kLess:
        return conditions.contains(id);
      case ExprOp::kSelect:
        return !varying.contains(node.operands[0]) || IsLeaky(pool, node);
      case ExprOp::kCast:
        return tensor::IsFloat(node.type) || !tensor::IsFloat(pool[node.operands[0]].type);
      default:
        return true;
    }
  });
}

}  // namespace

bool KeptPrecision::IsKept(ElementType type, Scope scope) {
  return type == ElementType::kBfloat16 ||
         (type == ElementType::kFloat16 && scope == Scope::kNetwork);
}

KeptPrecision::KeptPrecision(const Program& program, const Step& reader, Scope scope)
    : program_(program), reader_(reader) {
  if (!program.has_fast_algorithms || reader.writes.empty()) return;
  const ElementType type = reader.writes[0].type;
  may_read_unrounded_ =
      IsKept(type, scope) &&
      std::ranges::all_of(reader.writes, [&](const View& write) { return write.type == type; }) &&
      IsContinuous(program.exprs, Reachable(program.exprs, BodyExprs(reader)), type);
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
  const ElementType type = reader_.reads[number].type;
  if (!may_read_unrounded_ || type != reader_.writes[0].type) return false;
  const ExprIds roots = BodyExprs(reader_);
  // The elements, and what chooses among them and others.
  std::unordered_set<ExprId> elements;
  return std::ranges::all_of(Reachable(pool, roots), [&](ExprId id) {
    const ExprNode& node = pool[id];
    const auto is_element = [&](ExprId operand) { return elements.contains(operand); };
    const bool is_load = node.op == ExprOp::kLoad && node.payload == number;
    const bool is_choice = node.op == ExprOp::kSelect && node.type == type &&
                           std::ranges::any_of(node.operands, is_element);
    if (is_load || is_choice) {
      elements.insert(id);
      return std::ranges::find(roots, id) == roots.end() || reader_.As<Map>() != nullptr;
    }
    if (std::ranges::none_of(node.operands, is_element)) return true;
    return node.op == ExprOp::kCast && IsWidening(type, node.type) && node.type != type;
  });
}

}  // namespace onnxifi::program
