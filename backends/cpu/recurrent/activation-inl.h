// SPDX-License-Identifier: Apache-2.0
//
// Activations: those of a direction on vectors. Included once per target.

#if defined(ONNXIFI_BACKENDS_CPU_RECURRENT_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_RECURRENT_ACTIVATION_INL_H_
#undef ONNXIFI_BACKENDS_CPU_RECURRENT_ACTIVATION_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_RECURRENT_ACTIVATION_INL_H_
#endif

#include <hwy/highway.h>

#include "backends/core/program/recurrent.h"
#include "backends/cpu/vector_math/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::recurrent {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace vm = vector_math::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

// Where one of two vectors is NaN, Max and Min give the second: x.
HWY_INLINE Vec Within(float low, float high, Vec x) {
  const Tag d;
  return hn::Min(hn::Set(d, high), hn::Max(hn::Set(d, low), x));
}

HWY_INLINE Vec Apply(const program::Activation& activation, Vec x) {
  using program::CellFunction;
  const Tag d;
  const Vec zero = hn::Zero(d);
  const Vec one = hn::Set(d, 1.0f);
  const Vec alpha = hn::Set(d, activation.alpha);
  const Vec beta = hn::Set(d, activation.beta);
  switch (activation.function) {
    case CellFunction::kAffine:
      return hn::MulAdd(alpha, x, beta);
    case CellFunction::kElu:
      return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(alpha, vm::Expm1(d, x)), x);
    case CellFunction::kHardSigmoid:
      return Within(0.0f, 1.0f, hn::MulAdd(alpha, x, beta));
    case CellFunction::kLeakyRelu:
      return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(alpha, x), x);
    case CellFunction::kRelu:
      return hn::Max(zero, x);
    case CellFunction::kScaledTanh:
      return hn::Mul(alpha, vm::Tanh(d, hn::Mul(beta, x)));
    case CellFunction::kSigmoid:
      return vm::Logistic(d, x);
    case CellFunction::kSoftplus:
      // log(1 + exp(x)), which no x overflows.
      return hn::Add(hn::Max(zero, x), vm::Log1p(d, vm::Exp(d, hn::Neg(hn::Abs(x)))));
    case CellFunction::kSoftsign:
      return hn::Div(x, hn::Add(one, hn::Abs(x)));
    case CellFunction::kTanh:
      return vm::Tanh(d, x);
    case CellFunction::kThresholdedRelu:
      return hn::IfThenElseZero(hn::Gt(x, alpha), x);
  }
  return x;
}

// One copy of the code for all functions.
HWY_NOINLINE Vec ApplyAny(const program::Activation& activation, float clip, Vec x) {
  return Apply(activation, clip > 0 ? Within(-clip, clip, x) : x);
}

// Of a direction; with defaults in line.
template <bool has_defaults>
class Activations {
 public:
  Activations(const program::Activation* functions, float clip)
      : functions_(functions), clip_(clip) {}

  // f, of the gates.
  HWY_INLINE Vec Gate(Vec x) const {
    if constexpr (has_defaults) return vm::Logistic(Tag(), x);
    return ApplyAny(functions_[0], clip_, x);
  }
  // Function number `number` that is no gate's.
  HWY_INLINE Vec Function(int number, Vec x) const {
    if constexpr (has_defaults) return vm::Tanh(Tag(), x);
    return ApplyAny(functions_[number], clip_, x);
  }

 private:
  const program::Activation* const functions_;
  const float clip_;
};

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::recurrent
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_RECURRENT_ACTIVATION_INL_H_
