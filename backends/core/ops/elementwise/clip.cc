// SPDX-License-Identifier: Apache-2.0
//
// Clip: bounds are attributes before opset 11, then optional scalar inputs. A lower bound above the
// upper one gives the upper one everywhere, as numpy.clip does.

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

Status LowerClip(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!HasArithmetic(x.type())) return lowering.UnsupportedType(0);

  StepBuilder map(lowering, x.shape);
  Expr value = map.ReadArithmetic(x);
  if (lowering.version() < 11) {
    if (lowering.HasAttribute("min")) value = Maximum(value, Like(value, lowering.Float("min", 0)));
    if (lowering.HasAttribute("max")) value = Minimum(value, Like(value, lowering.Float("max", 0)));
  } else {
    for (int bound : {1, 2}) {
      if (!lowering.Has(bound)) continue;
      ONNXIFI_RETURN_IF_ERROR(CheckSameType(lowering, 0, bound));
      ONNXIFI_ASSIGN_OR_RETURN(const Operand limit, ScalarInput(lowering, bound));
      const Expr number = ReadElement(lowering, bound, limit, map);
      value = bound == 1 ? Maximum(value, number) : Minimum(value, number);
    }
  }
  lowering.Set(0, map.WriteMap(value, x.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Clip", 13, LowerClip},
};

}  // namespace

std::span<const Operator> ClipOperators() { return kOperators; }

}  // namespace onnxifi::ops
