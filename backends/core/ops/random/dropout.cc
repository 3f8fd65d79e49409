// SPDX-License-Identifier: Apache-2.0
//
// Dropout: in inference the identity. In training, elements are dropped with probability `ratio`
// and the others scaled by 1 / (1 - ratio). Opsets 7 to 11 know inference only; before them
// `is_test`, after them an input decides.

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/random/generator.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// Ratio and mode as scalars of the step; both may be known only while the program runs.
struct Mode {
  Expr ratio, is_training;
};

Result<Mode> ReadMode(Lowering& lowering, StepBuilder& map, ElementType type) {
  Mode mode{Constant(map.exprs(), type, lowering.Float("ratio", 0.5f)),
            IntConstant(map.exprs(), ElementType::kBool, 1)};
  if (lowering.Has(1)) {
    if (!tensor::IsFloat(lowering.In(1).type())) return lowering.UnsupportedType(1);
    ONNXIFI_ASSIGN_OR_RETURN(Operand ratio, ScalarInput(lowering, 1));
    mode.ratio = Cast(map.Read(ratio), type);
  }
  if (lowering.Has(2)) {
    ONNXIFI_ASSIGN_OR_RETURN(Operand is_training, ScalarInput(lowering, 2));
    mode.is_training = Cast(map.Read(is_training), ElementType::kBool);
  }
  return mode;
}

bool IsInference(const Lowering& lowering) {
  if (lowering.version() < 7) return lowering.Int("is_test", 0) != 0;
  if (lowering.version() < 12 || !lowering.Has(2)) return true;
  const std::optional<Dims> is_training = lowering.Integers(2);
  return is_training && is_training->size() == 1 && is_training->front() == Dim(0);
}

Status LowerDropout(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  // Before opset 10 the mask has the data's type.
  const ElementType mask_type = lowering.version() < 10 ? x.type() : ElementType::kBool;
  if (IsInference(lowering)) {
    lowering.Set(0, x);
    if (lowering.Wants(1)) {
      StepBuilder mask(lowering, x.shape);
      lowering.Set(1, mask.WriteMap(IntConstant(mask.exprs(), ElementType::kBool, 1), mask_type));
    }
    return base::Ok();
  }

  const ElementType type = tensor::ArithmeticType(x.type());
  StepBuilder map(lowering, x.shape);
  ONNXIFI_ASSIGN_OR_RETURN(const Mode mode, ReadMode(lowering, map, type));
  Generator generator(lowering);
  Expr value = map.ReadArithmetic(x);
  Expr is_kept = !mode.is_training || generator.Uniform(map, type) >= mode.ratio;
  Expr scaled = Select(mode.is_training, value / (Like(value, 1) - mode.ratio), value);
  Operand out = lowering.Temporary(x.type(), x.shape);
  std::vector<Operand> targets{out};
  std::vector<Expr> values{Cast(Select(is_kept, scaled, Like(scaled, 0)), x.type())};
  if (lowering.Wants(1)) {
    targets.push_back(lowering.Temporary(mask_type, x.shape));
    values.push_back(Cast(is_kept, mask_type));
    lowering.Set(1, targets.back());
  }
  map.WriteMapTo(targets, values);
  lowering.Set(0, out);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Dropout", 22, LowerDropout},
};

}  // namespace

std::span<const Operator> DropoutOperators() { return kOperators; }

}  // namespace onnxifi::ops
