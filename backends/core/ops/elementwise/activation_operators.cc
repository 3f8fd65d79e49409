// SPDX-License-Identifier: Apache-2.0
//
// The activation operators of one input; the formulas are in activation.h. Versions differ in types
// and in the defaults of Selu, no more.

#include "backends/core/ops/elementwise/activation.h"
#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// Writes function(x), computed in x's arithmetic type.
template <typename Function>
Status LowerActivation(Lowering& lowering, Function&& function) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);

  StepBuilder map(lowering, x.shape);
  lowering.Set(0, map.WriteMap(function(map.ReadArithmetic(x)), x.type()));
  return base::Ok();
}

template <Expr (*function)(Expr)>
Status LowerPlain(Lowering& lowering) {
  return LowerActivation(lowering, function);
}

// Those with the one attribute `alpha`, given in hundredths.
template <Expr (*function)(Expr, double), int default_percent>
Status LowerAlpha(Lowering& lowering) {
  const double alpha = lowering.Float("alpha", default_percent / 100.0f);
  return LowerActivation(lowering, [&](Expr x) { return function(x, alpha); });
}

// Relu-14 takes signed integers.
Status LowerRelu(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!HasArithmetic(x.type())) return lowering.UnsupportedType(0);

  StepBuilder map(lowering, x.shape);
  lowering.Set(0, map.WriteMap(Relu(map.ReadArithmetic(x)), x.type()));
  return base::Ok();
}

Status LowerCelu(Lowering& lowering) {
  const double alpha = lowering.Float("alpha", 1);
  if (alpha == 0) {
    return lowering.InvalidModel("Alpha (0) divides the input and must differ from 0.");
  }
  return LowerActivation(lowering, [&](Expr x) { return Celu(x, alpha); });
}

Status LowerSelu(Lowering& lowering) {
  const bool is_first = lowering.version() < 6;
  const double alpha = lowering.Float("alpha", is_first ? 1.6732f : 1.67326319217681884765625f);
  const double gamma = lowering.Float("gamma", is_first ? 1.0507f : 1.05070102214813232421875f);
  return LowerActivation(lowering, [&](Expr x) { return Selu(x, alpha, gamma); });
}

Status LowerHardSigmoid(Lowering& lowering) {
  const double alpha = lowering.Float("alpha", 0.2f);
  const double beta = lowering.Float("beta", 0.5f);
  return LowerActivation(lowering, [&](Expr x) { return HardSigmoid(x, alpha, beta); });
}

Status LowerGelu(Lowering& lowering) {
  const std::string approximate = lowering.String("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    return lowering.InvalidModel("Approximation '" + approximate +
                                 "' is neither 'none' nor 'tanh'.");
  }
  return LowerActivation(lowering, approximate == "none" ? Gelu : GeluTanh);
}

constexpr Operator kOperators[] = {
    {"Celu", 28, LowerCelu},
    {"Elu", 22, LowerAlpha<Elu, 100>},
    {"Gelu", 20, LowerGelu},
    {"HardSigmoid", 22, LowerHardSigmoid},
    {"HardSwish", 22, LowerPlain<HardSwish>},
    {"LeakyRelu", 16, LowerAlpha<LeakyRelu, 1>},
    {"Mish", 22, LowerPlain<Mish>},
    {"Relu", 14, LowerRelu},
    {"Selu", 22, LowerSelu},
    {"Sigmoid", 13, LowerPlain<Sigmoid>},
    {"Softplus", 22, LowerPlain<Softplus>},
    {"Softsign", 22, LowerPlain<Softsign>},
    {"Swish", 24, LowerAlpha<Swish, 100>},
    {"ThresholdedRelu", 22, LowerAlpha<ThresholdedRelu, 100>},
};

}  // namespace

std::span<const Operator> ActivationOperators() { return kOperators; }

}  // namespace onnxifi::ops
