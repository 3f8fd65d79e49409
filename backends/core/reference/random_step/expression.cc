// SPDX-License-Identifier: Apache-2.0
//
// StepMaker: expressions from typed grammars, over loads, coordinates, symbols and constants.

#include "backends/core/reference/random_step/step_maker.h"

namespace onnxifi::reference {

using program::Dim;
using program::Expr;
using program::ExprOp;
using program::Operand;
using program::Shape;
using program::View;
using tensor::ElementType;
using tensor::Extents;

Expr StepMaker::MakeLoad(const AllowedLeaves& place, ElementType type) {
  // A storage type may stand in for the type it is computed in.
  ElementType stored = type;
  if (type == kFloat32 && Chance(40)) {
    stored = Pick({ElementType::kFloat16, ElementType::kBfloat16, ElementType::kFloat8E4M3Fn,
                   ElementType::kFloat8E4M3Fnuz, ElementType::kFloat8E5M2,
                   ElementType::kFloat8E5M2Fnuz, ElementType::kFloat8E8M0, ElementType::kFloat4E2M1,
                   ElementType::kFloat6E2M3, ElementType::kFloat6E3M2});
  }
  if (type == ElementType::kInt8 && Chance(40)) {
    stored = Pick({ElementType::kInt4, ElementType::kInt2});
  }
  if (type == ElementType::kUint8 && Chance(40)) {
    stored = Pick({ElementType::kUint4, ElementType::kUint2});
  }
  if (!place.domain.empty() && Chance(10)) return Cast(MakeLoadAt(place, stored), type);
  // An earlier read of the same type over the same axes is as good as a new one.
  for (size_t k = 0; k < step.reads.size(); ++k) {
    const View& view = step.reads[k];
    if (view.type == stored && view.rank() == static_cast<int>(place.domain.size()) &&
        reusable_.size() > k && reusable_[k] == place.domain && Chance(50)) {
      return Cast(Load(pool(), stored, static_cast<int>(k)), type);
    }
  }
  const int read = AddRead(stored, place.domain, data);
  reusable_.resize(static_cast<size_t>(read) + 1);
  reusable_[static_cast<size_t>(read)] = place.domain;
  return Cast(Load(pool(), stored, read), type);
}

Expr StepMaker::MakeLoadAt(const AllowedLeaves& place, ElementType type) {
  const Extents extents = {Roll(1, 5), Roll(1, 5)};
  Shape shape = {extents[0], extents[1]};
  const program::BufferId buffer = AddBuffer(type, extents, /*is_input=*/true, data);
  Operand operand{program::DenseView(buffer, type, shape), shape};
  const bool is_guarded = Chance(50);
  if (is_guarded) {
    operand = *Pad(operand, {MakeZeroOr(1), 1}, {1, 1}, MakeScalar(type, data));
  }
  step.reads.push_back(operand.view);
  std::vector<Expr> coordinates;
  for (int axis = 0; axis < 2; ++axis) {
    const int from = static_cast<int>(Roll(0, static_cast<int64_t>(place.domain.size()) - 1));
    Expr coordinate = Coordinate(pool(), from) * IntConstant(pool(), kInt64, Roll(-2, 3)) +
                      IntConstant(pool(), kInt64, Roll(-3, 3));
    if (!is_guarded) {
      coordinate = Binary(ExprOp::kMod, coordinate,
                          IntConstant(pool(), kInt64, extents[static_cast<size_t>(axis)]));
    }
    coordinates.push_back(coordinate);
  }
  return LoadAt(pool(), type, static_cast<int>(step.reads.size()) - 1, coordinates);
}

Expr StepMaker::MakeLeaf(const AllowedLeaves& place, ElementType type) {
  if (place.extra != nullptr && Chance(50)) {
    std::vector<Expr> fitting;
    for (const Expr& leaf : *place.extra) {
      if (leaf.type() == type) fitting.push_back(leaf);
    }
    if (!fitting.empty()) return Pick(std::span<const Expr>(fitting));
  }
  if (place.may_load && step.reads.size() < 6 && Chance(75)) return MakeLoad(place, type);
  if (!place.domain.empty() && type != kBool && Chance(40)) {
    const int axis = static_cast<int>(Roll(0, static_cast<int64_t>(place.domain.size()) - 1));
    return Cast(Coordinate(pool(), axis), type);
  }
  if (!symbols.empty() && type != kBool && Chance(30)) {
    const Dim dim = program.dims->node_count() > 0 ? Dim(program.dims->node(0)) * 2 + 1 : Dim(3);
    return Cast(DimExpr(pool(), dim), type);
  }
  return ScalarConstant(pool(), type, MakeScalar(type, Data::kModerate));
}

Expr StepMaker::MakeExpr(const AllowedLeaves& place, ElementType type, int depth) {
  if (depth <= 0 || Chance(15)) return MakeLeaf(place, type);
  auto sub = [&](ElementType t) { return MakeExpr(place, t, depth - 1); };
  if (Chance(12)) return Select(sub(kBool), sub(type), sub(type));
  if (Chance(12))
    return Cast(
        sub(Pick({kFloat32, kFloat64, kInt64, ElementType::kInt32, ElementType::kUint8, kBool})),
        type);
  if (type == kBool) return MakeBool(place, depth);
  if (tensor::IsFloat(type)) return MakeFloat(place, type, depth);
  if (Chance(25)) {
    return Unary(Pick({ExprOp::kNeg, ExprOp::kAbs, ExprOp::kSign, ExprOp::kBitNot}), sub(type));
  }
  return Binary(Pick({ExprOp::kAdd, ExprOp::kSub, ExprOp::kMul, ExprOp::kDiv, ExprOp::kMod,
                      ExprOp::kFmod, ExprOp::kPow, ExprOp::kMin, ExprOp::kMax, ExprOp::kAnd,
                      ExprOp::kOr, ExprOp::kXor, ExprOp::kShl, ExprOp::kShr}),
                sub(type), sub(type));
}

Expr StepMaker::MakeBool(const AllowedLeaves& place, int depth) {
  auto sub = [&](ElementType t) { return MakeExpr(place, t, depth - 1); };
  if (Chance(60)) {
    const ElementType type = Pick({kFloat32, kFloat64, kInt64, ElementType::kUint8, kBool});
    return Binary(Pick({ExprOp::kEqual, ExprOp::kLess, ExprOp::kLessEqual}), sub(type), sub(type));
  }
  if (Chance(20)) return Unary(ExprOp::kIsNan, sub(kFloat32));
  if (Chance(20)) return !sub(kBool);
  return Binary(Pick({ExprOp::kAnd, ExprOp::kOr, ExprOp::kXor}), sub(kBool), sub(kBool));
}

Expr StepMaker::MakeFloat(const AllowedLeaves& place, ElementType type, int depth) {
  auto sub = [&] { return MakeExpr(place, type, depth - 1); };
  if (Chance(50)) {
    return Binary(Pick({ExprOp::kAdd, ExprOp::kSub, ExprOp::kMul, ExprOp::kDiv, ExprOp::kMod,
                        ExprOp::kFmod, ExprOp::kPow, ExprOp::kMin, ExprOp::kMax}),
                  sub(), sub());
  }
  if (type == kFloat64 && Chance(5) && !place.domain.empty()) {
    return Random(Coordinate(pool(), 0), random_());
  }
  return Unary(Pick({
                   ExprOp::kNeg,
                   ExprOp::kSign,
#define ONNXIFI_FUNCTION(id, name, function, text, engine, units) ExprOp::id,
#include "backends/core/program/scalar_operations.def"
               }),
               sub());
}

}  // namespace onnxifi::reference
