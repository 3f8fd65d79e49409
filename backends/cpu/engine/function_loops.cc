// SPDX-License-Identifier: Apache-2.0
//
// Functions that have no exact result: the vector approximations as loops.

#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/engine/loop.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/function_loops.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/lanes-inl.h"
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

#undef ONNXIFI_FUNCTION

// Calls operation on vectors of float64 made from a, and b where there is one, block by block;
// lanes where `is_hard` are computed by `scalar`.
template <class Operation, class IsHard, class Scalar>
HWY_INLINE void ForWideLanes(const LoopOperands& operands, bool has_b, Operation operation,
                             IsHard is_hard, Scalar scalar) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* a = reinterpret_cast<const float*>(operands.inputs[0]);
  const auto* b = has_b ? reinterpret_cast<const float*>(operands.inputs[1]) : a;
  auto* result = reinterpret_cast<float*>(operands.result);
  HWY_ALIGN float x[HWY_MAX_BYTES / sizeof(double)] = {};
  HWY_ALIGN float y[HWY_MAX_BYTES / sizeof(double)] = {};
  HWY_ALIGN float z[HWY_MAX_BYTES / sizeof(double)] = {};
  for (int64_t i = 0; i < operands.lanes; i += lanes) {
    const int64_t count = HWY_MIN(lanes, operands.lanes - i);
    const auto bytes = static_cast<size_t>(count) * sizeof(float);
    std::memcpy(x, a + i, bytes);
    std::memcpy(y, b + i, bytes);
    hn::Store(hn::DemoteTo(narrow, operation(d, hn::PromoteTo(d, hn::Load(narrow, x)),
                                             hn::PromoteTo(d, hn::Load(narrow, y)))),
              narrow, z);
    for (int64_t k = 0; k < count; ++k) {
      if (HWY_UNLIKELY(is_hard(x[k], y[k]))) z[k] = scalar(x[k], y[k]);
    }
    std::memcpy(result + i, z, bytes);
  }
}

// Not in [-2^20, 2^20].
HWY_INLINE bool IsFar(float x) { return !(x >= -0x1p20f && x <= 0x1p20f); }

void RunSin(const LoopOperands& operands) {
  ForWideLanes(
      operands, /*has_b=*/false,
      [](auto d, auto x, auto) HWY_ATTR { return math::SinShifted64(d, x, 0.0); },
      // Zeros keep their sign.
      [](float x, float) { return IsFar(x) || x == 0; },
      [](float x, float) { return std::sin(x); });
}

void RunCos(const LoopOperands& operands) {
  ForWideLanes(
      operands, /*has_b=*/false,
      [](auto d, auto x, auto) HWY_ATTR { return math::SinShifted64(d, x, 1.0); },
      [](float x, float) { return IsFar(x); }, [](float x, float) { return std::cos(x); });
}

void RunPow(const LoopOperands& operands) {
  ForWideLanes(
      operands, /*has_b=*/true,
      [](auto d, auto x, auto y) HWY_ATTR {
        const auto size = math::Pow64(d, hn::Abs(x), y);
        // A negative base: the sign of an odd power; none of one between whole numbers.
        const auto half = hn::Mul(y, hn::Set(d, 0.5));
        const auto is_whole = hn::Eq(hn::Floor(y), y);
        const auto is_odd = hn::Ne(hn::Floor(half), half);
        const auto negative = hn::IfThenElse(is_whole, hn::IfThenElse(is_odd, hn::Neg(size), size),
                                             hn::Set(d, std::numeric_limits<double>::quiet_NaN()));
        return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), negative, size);
      },
      [](float x, float y) { return x == 0 || !(x - x == 0) || !(y - y == 0); },
      [](float x, float y) { return std::pow(x, y); });
}

Loop FindFunction(ExprOp op, ElementType type) {
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
