// SPDX-License-Identifier: Apache-2.0
//
// KeptPrecision: which operations are continuous.

#include "backends/core/program/kept_precision.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "backends/core/program/body_exprs.h"

namespace onnxifi::program {
namespace {

bool IsZero(const ExprNode& node) {
  return node.op == ExprOp::kConstant && tensor::IsFloat(node.type) &&
         std::bit_cast<double>(node.payload) == 0;
}

// Of a float that depends on what is read. Both sides of a comparison with zero meet there in the
// activations that are made of it.
bool IsContinuous(const ExprPool& pool, const ExprNode& node) {
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
      return std::ranges::any_of(node.operands, [&](ExprId id) { return IsZero(pool[id]); });
    case ExprOp::kCast:
      return tensor::IsFloat(node.type) || !tensor::IsFloat(pool[node.operands[0]].type);
    default:
      return true;
  }
}

}  // namespace

bool KeptPrecision::IsNarrow(ElementType type) {
  return type == ElementType::kFloat16 || type == ElementType::kBfloat16;
}

KeptPrecision::KeptPrecision(const Program& program, const Step& reader)
    : program_(program), reader_(reader) {
  const ExprPool& pool = program.exprs;
  const ExprIds roots = BodyExprs(reader);
  may_drop_ = program.has_fast_algorithms &&
              std::ranges::all_of(Reachable(pool, roots),
                                  [&](ExprId id) { return IsContinuous(pool, pool[id]); });
  // Whatever a Row or Reduce keeps in between, it is narrow in the end.
  const bool writes_narrow =
      std::ranges::all_of(reader.writes, [](const View& write) { return IsNarrow(write.type); });
  if (!may_drop_ || writes_narrow) return;
  std::vector<ExprId> open(roots.begin(), roots.end());
  while (!open.empty()) {
    const ExprId id = open.back();
    open.pop_back();
    if (IsNarrow(pool[id].type) || !exposed_.insert(id).second) continue;
    open.insert(open.end(), pool[id].operands.begin(), pool[id].operands.end());
  }
}

ExprId KeptPrecision::Unrounded(ExprId cast, ExprId root) const {
  const ExprNode& widening = program_.exprs[cast];
  const ExprNode& rounding = program_.exprs[root];
  if (!may_drop_ || widening.op != ExprOp::kCast || rounding.op != ExprOp::kCast ||
      !IsNarrow(rounding.type) || exposed_.contains(cast)) {
    return kNoExpr;
  }
  const ExprId exact = rounding.operands[0];
  const bool is_same = program_.exprs[exact].type == widening.type;
  return is_same && tensor::IsFloat(widening.type) ? exact : kNoExpr;
}

bool KeptPrecision::MayWiden(size_t number) const {
  const ExprPool& pool = program_.exprs;
  const ExprIds roots = BodyExprs(reader_);
  const auto is_load = [&](ExprId id) {
    return pool[id].op == ExprOp::kLoad && pool[id].payload == number;
  };
  if (!may_drop_) return false;
  for (ExprId id : Reachable(pool, roots)) {
    const ExprNode& node = pool[id];
    if (is_load(id)) {
      const bool is_root = std::ranges::find(roots, id) != roots.end();
      if (!node.operands.empty() || (is_root && reader_.As<Map>() == nullptr)) return false;
      continue;
    }
    if (std::ranges::none_of(node.operands, is_load)) continue;
    const bool is_widening = node.op == ExprOp::kCast && tensor::IsFloat(node.type) &&
                             !IsNarrow(node.type) && !exposed_.contains(id);
    if (!is_widening) return false;
  }
  return true;
}

}  // namespace onnxifi::program
