// SPDX-License-Identifier: Apache-2.0
//
// Equal, Less, Greater, LessOrEqual, GreaterOrEqual: numpy broadcasting since opset 7; before that
// the `broadcast` and `axis` attributes. Comparisons with NaN are false.

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

enum class Swap : bool { kNo, kYes };

// compare(a, b), or compare(b, a).
template <ExprOp compare, Swap swap>
Status LowerComparison(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(BinaryOperands in, BroadcastInputs(lowering));
  if (compare == ExprOp::kEqual && in.type == ElementType::kString) {
    // Equal strings have equal numbers.
    StepBuilder map(lowering, in.shape);
    const Expr a = map.Read(in.a);
    lowering.Set(0, map.WriteMap(Binary(compare, a, map.Read(in.b)), ElementType::kBool));
    return base::Ok();
  }
  const bool is_ordered = HasArithmetic(in.type);
  if (!is_ordered && !(compare == ExprOp::kEqual && tensor::IsBool(in.type))) {
    return lowering.UnsupportedType(0);
  }

  StepBuilder map(lowering, in.shape);
  Expr a = map.ReadArithmetic(in.a);
  Expr b = map.ReadArithmetic(in.b);
  Expr result = swap == Swap::kYes ? Binary(compare, b, a) : Binary(compare, a, b);
  lowering.Set(0, map.WriteMap(result, ElementType::kBool));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Equal", 19, LowerComparison<ExprOp::kEqual, Swap::kNo>, "", InputKinds::kStrings},
    {"Greater", 13, LowerComparison<ExprOp::kLess, Swap::kYes>},
    {"GreaterOrEqual", 16, LowerComparison<ExprOp::kLessEqual, Swap::kYes>},
    {"Less", 13, LowerComparison<ExprOp::kLess, Swap::kNo>},
    {"LessOrEqual", 16, LowerComparison<ExprOp::kLessEqual, Swap::kNo>},
};

}  // namespace

std::span<const Operator> ComparisonOperators() { return kOperators; }

}  // namespace onnxifi::ops
