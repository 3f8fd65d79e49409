// SPDX-License-Identifier: Apache-2.0
//
// LRN, local response normalisation across channels: y = x / (bias + alpha / size * sum of squares
// over the window) ^ beta.

#include "backends/core/ops/normalization/channel.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

Status LowerLrn(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  ONNXIFI_RETURN_IF_ERROR(NeedRank(lowering, 2));
  const int64_t size = lowering.Int("size", 0);
  if (size <= 0) {
    return lowering.InvalidModel("Size of the window (" + std::to_string(size) +
                                 ") is not positive.");
  }

  StepBuilder step(lowering, x.shape);
  step.AddRead(x.view);
  program::Window window;
  window.kind = program::Window::Kind::kLrn;
  window.in_spatial.assign(x.shape.begin() + 2, x.shape.end());
  window.kernel = {Dim(size)};
  window.alpha = lowering.Float("alpha", 1e-4f);
  window.beta = lowering.Float("beta", 0.75f);
  window.bias = lowering.Float("bias", 1);
  window.accumulator = tensor::ArithmeticType(x.type());
  Expr value = Accumulator(lowering.exprs(), window.accumulator);
  window.roots = {Cast(value, x.type()).id()};
  Operand out = lowering.Temporary(x.type(), x.shape);
  step.Finish(std::move(window), {out.view});
  lowering.Set(0, std::move(out));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"LRN", 13, LowerLrn},
};

}  // namespace

std::span<const Operator> LrnOperators() { return kOperators; }

}  // namespace onnxifi::ops
