// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic whose every result is exact or correctly rounded, so that it is the reference's to the
// last bit: vector operations where Highway has them for the type, and, for comparisons and
// selects, whose sides differ in width, plain loops that the compiler turns into each target's
// vector code.

#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/core/program/integer_arithmetic.h"
#include "backends/core/reference/column.h"
#include "backends/core/tensor/native_type.h"
#include "backends/cpu/engine/loop.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/arithmetic_loops.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/arithmetic-inl.h"
#include "backends/cpu/engine/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

using program::ExprOp;
using tensor::ElementType;

// A lambda without captures as a Loop.
template <typename T, class Operation>
struct Unary {
  static void Run(const LoopOperands& operands) { ForLanes<T>(operands, Operation()); }
};
template <typename T, class Operation>
struct Binary {
  static void Run(const LoopOperands& operands) { ForLanePairs<T>(operands, Operation()); }
};

// No functor: the operation has a loop elsewhere, or none.
struct NoLoop {};

template <typename T, class Operation>
constexpr Loop UnaryLoop() {
  if constexpr (std::is_same_v<Operation, NoLoop>) {
    return nullptr;
  } else {
    return Unary<T, Operation>::Run;
  }
}

// In the plain loops, `lanes` is a copy: a byte that is stored could be one of `operands`, whose
// count would be read again for every lane, and no loop without a count becomes vector code.

// result[i] = kFunction(a[i], b[i]), whose types may differ in width. No lane depends on another.
template <typename From, typename To, auto kFunction>
void RunPlain(const LoopOperands& operands) {
  const auto* a = reinterpret_cast<const From*>(operands.inputs[0]);
  const auto* b = reinterpret_cast<const From*>(operands.inputs[1]);
  auto* result = reinterpret_cast<To*>(operands.result);
  const int64_t lanes = operands.lanes;
#pragma GCC ivdep
  for (int64_t i = 0; i < lanes; ++i) result[i] = kFunction(a[i], b[i]);
}

// Unary: there is no second input to read.
template <typename T>
void RunNegate(const LoopOperands& operands) {
  const auto* a = reinterpret_cast<const T*>(operands.inputs[0]);
  auto* result = reinterpret_cast<T*>(operands.result);
  const int64_t lanes = operands.lanes;
#pragma GCC ivdep
  for (int64_t i = 0; i < lanes; ++i) result[i] = program::WrapNeg(a[i]);
}

template <typename T>
void RunIsNan(const LoopOperands& operands) {
  const auto* a = reinterpret_cast<const T*>(operands.inputs[0]);
  auto* result = reinterpret_cast<uint8_t*>(operands.result);
  const int64_t lanes = operands.lanes;
#pragma GCC ivdep
  for (int64_t i = 0; i < lanes; ++i) result[i] = a[i] != a[i] ? 1 : 0;
}

template <typename T>
void RunSelect(const LoopOperands& operands) {
  const auto* condition = reinterpret_cast<const uint8_t*>(operands.inputs[0]);
  const auto* a = reinterpret_cast<const T*>(operands.inputs[1]);
  const auto* b = reinterpret_cast<const T*>(operands.inputs[2]);
  auto* result = reinterpret_cast<T*>(operands.result);
  const int64_t lanes = operands.lanes;
#pragma GCC ivdep
  for (int64_t i = 0; i < lanes; ++i) {
    const T x = a[i];
    const T y = b[i];
    result[i] = condition[i] != 0 ? x : y;
  }
}

// Of lanes whose quotient is large, infinite or none, computes the C library's.
void RunRemainder(const LoopOperands& operands) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* a = reinterpret_cast<const float*>(operands.inputs[0]);
  const auto* b = reinterpret_cast<const float*>(operands.inputs[1]);
  auto* result = reinterpret_cast<float*>(operands.result);
  const auto one_by_one = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) result[i] = std::fmod(a[i], b[i]);
  };
  int64_t i = 0;
  for (; i + lanes <= operands.lanes; i += lanes) {
    const auto dividend = hn::PromoteTo(d, hn::LoadU(narrow, a + i));
    const auto divisor = hn::PromoteTo(d, hn::LoadU(narrow, b + i));
    // False of NaN and of infinite dividends.
    const auto limit = hn::Mul(hn::Abs(divisor), hn::Set(d, 0x1p29));
    const auto infinity = hn::Set(d, std::numeric_limits<double>::infinity());
    const auto is_known = hn::And(hn::Lt(hn::Abs(dividend), limit), hn::Lt(limit, infinity));
    if (HWY_LIKELY(hn::AllTrue(d, is_known))) {
      hn::StoreU(hn::DemoteTo(narrow, Remainder64(d, dividend, divisor)), narrow, result + i);
    } else {
      one_by_one(i, i + lanes);
    }
  }
  one_by_one(i, operands.lanes);
}

template <typename T>
Loop FindComparison(ExprOp op) {
  switch (op) {
#define ONNXIFI_COMPARISON(id, name, token) \
  case ExprOp::id:                          \
    return RunPlain<T, uint8_t, [](T a, T b) { return static_cast<uint8_t>(a token b); }>;
#include "backends/core/program/scalar_operations.def"
    default:
      return nullptr;
  }
}

template <typename T>
Loop FindFloat(ExprOp op) {
  if (op == ExprOp::kIsNan) return RunIsNan<T>;
  if (std::is_same_v<T, float> && op == ExprOp::kFmod) return RunRemainder;
  switch (op) {
#define ONNXIFI_UNARY(id, name, engine) \
  case ExprOp::id:                      \
    return UnaryLoop<T, engine>();
#define ONNXIFI_INFIX(id, name, token, engine, units) \
  case ExprOp::id:                                    \
    return Binary<T, engine>::Run;
#include "backends/core/program/scalar_operations.def"
    case ExprOp::kMin:
      return Binary<T, FloatMinimum>::Run;
    case ExprOp::kMax:
      return Binary<T, FloatMaximum>::Run;
    default:
      return FindComparison<T>(op);
  }
}

// Of 32 bits: the quotient in float64 lies on the same side of every integer as the quotient, so
// that cutting it off is right. By zero it is 0, and the one that no integer holds wraps.
template <typename T>
T Quotient(T a, T b) {
  const bool is_minus_one = std::is_signed_v<T> && b == static_cast<T>(-1);
  const T divisor = b == 0 || is_minus_one ? T{1} : b;
  const auto quotient = static_cast<T>(static_cast<double>(a) / static_cast<double>(divisor));
  const T wrapped = is_minus_one ? program::WrapNeg(a) : quotient;
  return b == 0 ? T{0} : wrapped;
}

template <typename T>
Loop FindInteger(ExprOp op) {
  if (op == ExprOp::kDiv && sizeof(T) == sizeof(uint32_t)) return RunPlain<T, T, Quotient<T>>;
  switch (op) {
    case ExprOp::kNeg:
      return RunNegate<T>;
    case ExprOp::kBitNot:
      return Unary<T, Complement>::Run;
    case ExprOp::kAdd:
      return Binary<T, Sum>::Run;
    case ExprOp::kSub:
      return Binary<T, Difference>::Run;
    case ExprOp::kMul:
      return RunPlain<T, T, [](T a, T b) { return program::WrapMul(a, b); }>;
    case ExprOp::kMin:
      return Binary<T, Minimum>::Run;
    case ExprOp::kMax:
      return Binary<T, Maximum>::Run;
#define ONNXIFI_BITWISE(id, name, token, engine) \
  case ExprOp::id:                               \
    return Binary<T, engine>::Run;
#include "backends/core/program/scalar_operations.def"
    case ExprOp::kShl:
      return RunPlain<T, T, [](T a, T b) { return program::IntegerShl(a, b); }>;
    case ExprOp::kShr:
      return RunPlain<T, T, [](T a, T b) { return program::IntegerShr(a, b); }>;
    default:
      return FindComparison<T>(op);
  }
}

// Lanes are 0 or 1.
Loop FindBool(ExprOp op) {
  using T = uint8_t;
  switch (op) {
    case ExprOp::kNot:
      return Unary<T, Negation>::Run;
    case ExprOp::kMin:
      return Binary<T, Conjunction>::Run;
    case ExprOp::kMax:
      return Binary<T, Disjunction>::Run;
#define ONNXIFI_BITWISE(id, name, token, engine) \
  case ExprOp::id:                               \
    return Binary<T, engine>::Run;
#include "backends/core/program/scalar_operations.def"
    default:
      return FindComparison<T>(op);
  }
}

Loop FindSelect(ElementType type) {
  switch (reference::LaneBytes(type)) {
    case 1:
      return RunSelect<uint8_t>;
    case 2:
      return RunSelect<uint16_t>;
    case 4:
      return RunSelect<uint32_t>;
    case 8:
      return RunSelect<uint64_t>;
    default:
      return nullptr;
  }
}

Loop FindArithmetic(ExprOp op, ElementType type, ElementType from_type) {
  if (op == ExprOp::kSelect) return FindSelect(type);
  if (op == ExprOp::kCast || op == ExprOp::kBitcast || op == ExprOp::kRandom) return nullptr;
  if (tensor::IsBool(from_type)) return FindBool(op);
  return tensor::VisitNative(from_type, [op]<typename T>(T) -> Loop {
    if constexpr (std::is_floating_point_v<T>) {
      return FindFloat<T>(op);
    } else {
      return FindInteger<T>(op);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(FindArithmetic);

Loop FindArithmeticLoop(program::ExprOp op, tensor::ElementType type,
                        tensor::ElementType from_type) {
  return HWY_DYNAMIC_DISPATCH(FindArithmetic)(op, type, from_type);
}

}  // namespace onnxifi::engine
#endif
