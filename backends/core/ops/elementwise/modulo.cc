// SPDX-License-Identifier: Apache-2.0
//
// Mod: the sign of the divisor (`fmod` = 0, floats since opset 28) or of the dividend (`fmod` = 1).

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

Status LowerMod(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(BinaryOperands in, BroadcastInputs(lowering));
  if (!HasArithmetic(in.type)) return lowering.UnsupportedType(0);
  const int64_t fmod = lowering.Int("fmod", 0);
  if (fmod != 0 && fmod != 1) {
    return lowering.InvalidModel("Attribute fmod (" + std::to_string(fmod) + ") is not 0 or 1.");
  }
  if (fmod == 0 && tensor::IsFloat(in.type) && lowering.version() < 28) {
    return lowering.InvalidModel("Attribute fmod is 0, but before opset 28 type " +
                                 std::string(Name(in.type)) + " needs 1.");
  }

  StepBuilder map(lowering, in.shape);
  Expr a = map.ReadArithmetic(in.a);
  Expr b = map.ReadArithmetic(in.b);
  lowering.Set(0, map.WriteMap(Binary(fmod == 1 ? ExprOp::kFmod : ExprOp::kMod, a, b), in.type));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Mod", 28, LowerMod},
};

}  // namespace

std::span<const Operator> ModuloOperators() { return kOperators; }

}  // namespace onnxifi::ops
