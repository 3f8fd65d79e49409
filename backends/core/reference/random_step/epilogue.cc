// SPDX-License-Identifier: Apache-2.0
//
// MakeEpilogue: bias, scale, activations, casts and requantisation.

#include "backends/core/reference/random_step/epilogue.h"

namespace onnxifi::reference {

using program::Expr;
using program::ExprOp;
using tensor::ElementType;
using tensor::Extents;

void MakeEpilogue(StepMaker& make, ElementType accumulator, const Extents& domain,
                  bool may_write_two, program::ExprIds& roots) {
  const int writes = may_write_two && make.Chance(15) ? 2 : 1;
  for (int k = 0; k < writes; ++k) {
    Expr value = Accumulator(make.pool(), accumulator);
    const bool is_float = tensor::IsFloat(accumulator);
    if (make.Chance(40)) {
      const int read = make.AddRead(accumulator, domain, Data::kSmall);
      value = value + Load(make.pool(), accumulator, read);
    }
    if (is_float && make.Chance(20)) value = value * Like(value, 0.5);
    if (make.Chance(30)) value = Maximum(value, Like(value, 0));
    if (make.Chance(10)) value = Minimum(Maximum(value, Like(value, 0)), Like(value, 6));
    if (is_float && make.Chance(10)) value = Unary(ExprOp::kTanh, value);
    ElementType type = accumulator;
    if (is_float && make.Chance(20))
      type = make.Pick({ElementType::kFloat16, ElementType::kBfloat16});
    if (!is_float && make.Chance(30)) {
      // Requantised; the fraction keeps clear of ties.
      Expr scaled = Cast(value, kFloat32) * Constant(make.pool(), kFloat32, 0.25) +
                    Constant(make.pool(), kFloat32, 0.1);
      scaled = Unary(ExprOp::kRoundEven, scaled);
      scaled = Minimum(Maximum(scaled, Like(scaled, -128)), Like(scaled, 127));
      value = scaled;
      type = ElementType::kInt8;
    }
    roots.push_back(Cast(value, type).id());
    make.AddWrite(type, domain);
  }
}

}  // namespace onnxifi::reference
