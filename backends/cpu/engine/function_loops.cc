// SPDX-License-Identifier: Apache-2.0
//
// Functions that have no exact result: the vector approximations as loops.

#include <cmath>

#include "backends/cpu/engine/loop.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/function_loops.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/lanes-inl.h"
#include "backends/cpu/vector_math/float64-inl.h"
#include "backends/cpu/vector_math/hyperbolic-inl.h"
#include "backends/cpu/vector_math/power-inl.h"
#include "backends/cpu/vector_math/trigonometry-inl.h"
#include "backends/cpu/vector_math/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace math = vector_math::HWY_NAMESPACE;
using program::ExprOp;
using tensor::ElementType;

#define ONNXIFI_FUNCTION(name)                                                           \
  void Run##name(const LoopOperands& operands) {                                         \
    ForLanes<float>(operands, [](auto d, auto x) HWY_ATTR { return math::name(d, x); }); \
  }

ONNXIFI_FUNCTION(Exp)
ONNXIFI_FUNCTION(Expm1)
ONNXIFI_FUNCTION(Log)
ONNXIFI_FUNCTION(Log1p)
ONNXIFI_FUNCTION(Tanh)
ONNXIFI_FUNCTION(Erf)
ONNXIFI_FUNCTION(Asin)
ONNXIFI_FUNCTION(Acos)
ONNXIFI_FUNCTION(Atan)
ONNXIFI_FUNCTION(Sinh)
ONNXIFI_FUNCTION(Cosh)
ONNXIFI_FUNCTION(Asinh)
ONNXIFI_FUNCTION(Acosh)
ONNXIFI_FUNCTION(Atanh)

#undef ONNXIFI_FUNCTION

#define ONNXIFI_FLOAT64_FUNCTION(name)                                                        \
  void Run##name##64(const LoopOperands& operands) {                                          \
    ForLanes<double>(operands, [](auto d, auto x) HWY_ATTR { return math::name##64(d, x); }); \
  }

ONNXIFI_FLOAT64_FUNCTION(Exp)
ONNXIFI_FLOAT64_FUNCTION(ExpMinusOne)
ONNXIFI_FLOAT64_FUNCTION(Log)
ONNXIFI_FLOAT64_FUNCTION(LogOnePlus)
ONNXIFI_FLOAT64_FUNCTION(Tanh)

#undef ONNXIFI_FLOAT64_FUNCTION

// Angles up to here are reduced in vectors.
template <typename T>
inline constexpr T kMaxAngleOf = math::kMaxAngle;
template <>
inline constexpr double kMaxAngleOf<double> = math::kMaxAngle64;

// `result`, but scalar(x) in the lanes whose angle is larger than vectors reduce, infinite or NaN.
template <typename T, class D, class V>
HWY_NOINLINE V WithLargeAngles(D d, V x, V result, T (*scalar)(T)) {
  HWY_ALIGN T angles[HWY_MAX_BYTES / sizeof(T)];
  HWY_ALIGN T results[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(x, d, angles);
  hn::Store(result, d, results);
  for (size_t k = 0; k < hn::Lanes(d); ++k) {
    if (!(std::fabs(angles[k]) <= kMaxAngleOf<T>)) results[k] = scalar(angles[k]);
  }
  return hn::Load(d, results);
}

template <typename T, class Function>
HWY_INLINE void ForAngles(const LoopOperands& operands, Function function, T (*scalar)(T)) {
  ForLanes<T>(operands, [&](auto d, auto x) HWY_ATTR {
    const auto result = function(d, x);
    const auto is_moderate = hn::Le(hn::Abs(x), hn::Set(d, kMaxAngleOf<T>));
    return HWY_LIKELY(hn::AllTrue(d, is_moderate)) ? result : WithLargeAngles(d, x, result, scalar);
  });
}

#define ONNXIFI_ANGLE_FUNCTION(name, type, function)                        \
  void Run##name(const LoopOperands& operands) {                            \
    ForAngles<type>(                                                        \
        operands, [](auto d, auto x) HWY_ATTR { return math::name(d, x); }, \
        [](type x) { return function(x); });                                \
  }

ONNXIFI_ANGLE_FUNCTION(Sin, float, std::sin)
ONNXIFI_ANGLE_FUNCTION(Cos, float, std::cos)
ONNXIFI_ANGLE_FUNCTION(Tan, float, std::tan)
ONNXIFI_ANGLE_FUNCTION(Sin64, double, std::sin)
ONNXIFI_ANGLE_FUNCTION(Cos64, double, std::cos)

#undef ONNXIFI_ANGLE_FUNCTION

void RunPow(const LoopOperands& operands) {
  ForLanePairs<float>(operands, [](auto d, auto x, auto y) HWY_ATTR { return math::Pow(d, x, y); });
}

Loop FindFloat64Function(ExprOp op) {
  switch (op) {
    case ExprOp::kExp:
      return RunExp64;
    case ExprOp::kExpm1:
      return RunExpMinusOne64;
    case ExprOp::kLog:
      return RunLog64;
    case ExprOp::kLog1p:
      return RunLogOnePlus64;
    case ExprOp::kTanh:
      return RunTanh64;
    case ExprOp::kSin:
      return RunSin64;
    case ExprOp::kCos:
      return RunCos64;
    default:
      return nullptr;
  }
}

Loop FindFunction(ExprOp op, ElementType type) {
  if (type == ElementType::kFloat64) return FindFloat64Function(op);
  if (type != ElementType::kFloat32) return nullptr;
  switch (op) {
    case ExprOp::kExp:
      return RunExp;
    case ExprOp::kExpm1:
      return RunExpm1;
    case ExprOp::kLog:
      return RunLog;
    case ExprOp::kLog1p:
      return RunLog1p;
    case ExprOp::kTanh:
      return RunTanh;
    case ExprOp::kErf:
      return RunErf;
    case ExprOp::kSin:
      return RunSin;
    case ExprOp::kCos:
      return RunCos;
    case ExprOp::kTan:
      return RunTan;
    case ExprOp::kAsin:
      return RunAsin;
    case ExprOp::kAcos:
      return RunAcos;
    case ExprOp::kAtan:
      return RunAtan;
    case ExprOp::kSinh:
      return RunSinh;
    case ExprOp::kCosh:
      return RunCosh;
    case ExprOp::kAsinh:
      return RunAsinh;
    case ExprOp::kAcosh:
      return RunAcosh;
    case ExprOp::kAtanh:
      return RunAtanh;
    case ExprOp::kPow:
      return RunPow;
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(FindFunction);

Loop FindFunctionLoop(program::ExprOp op, tensor::ElementType type) {
  return HWY_DYNAMIC_DISPATCH(FindFunction)(op, type);
}

}  // namespace onnxifi::engine
#endif
