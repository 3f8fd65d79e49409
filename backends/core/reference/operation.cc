// SPDX-License-Identifier: Apache-2.0
//
// Operation: the loops, instantiated per arithmetic type. A switch picks one when an expression is
// compiled, so that nothing is decided per element.

#include "backends/core/reference/operation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "backends/core/program/integer_arithmetic.h"
#include "backends/core/program/random_bits.h"
#include "backends/core/reference/column.h"
#include "backends/core/tensor/float_format.h"
#include "backends/core/tensor/native_type.h"
#include "backends/core/tensor/truncation.h"

namespace onnxifi::reference {
namespace {

using program::ExprOp;
using tensor::ElementType;
using tensor::Scalar;

template <typename T>
const T* Input(const Operands& operands, int k) {
  return reinterpret_cast<const T*>(operands.inputs[k]);
}

template <typename T>
T* Result(const Operands& operands) {
  return reinterpret_cast<T*>(operands.result);
}

template <typename From, typename To, typename Function>
void Apply(const Operands& operands, Function function) {
  const From* __restrict a = Input<From>(operands, 0);
  To* __restrict result = Result<To>(operands);
  for (int64_t i = 0; i < operands.lanes; ++i) result[i] = function(a[i]);
}

template <typename From, typename To, typename Function>
void Apply2(const Operands& operands, Function function) {
  const From* __restrict a = Input<From>(operands, 0);
  const From* __restrict b = Input<From>(operands, 1);
  To* __restrict result = Result<To>(operands);
  for (int64_t i = 0; i < operands.lanes; ++i) result[i] = function(a[i], b[i]);
}

// A captureless lambda as an Operation.
template <typename From, typename To, auto kFunction>
void Run(const Operands& operands) {
  Apply<From, To>(operands, kFunction);
}

template <typename From, typename To, auto kFunction>
void Run2(const Operands& operands) {
  Apply2<From, To>(operands, kFunction);
}

template <typename T>
Operation FloatUnary(ExprOp op) {
  switch (op) {
    case ExprOp::kNeg:
      return Run<T, T, [](T x) { return -x; }>;
    // Zeros and NaN are their own sign.
    case ExprOp::kSign:
      return Run<T, T, [](T x) { return 0 < x ? T{1} : x < 0 ? T{-1} : x; }>;
#define ONNXIFI_FUNCTION(id, name, function, text, engine, units) \
  case ExprOp::id:                                                \
    return Run<T, T, [](T x) { return function(x); }>;
#include "backends/core/program/scalar_operations.def"
    case ExprOp::kIsNan:
      return Run<T, uint8_t, [](T x) { return static_cast<uint8_t>(std::isnan(x)); }>;
    default:
      return nullptr;
  }
}

template <typename T>
Operation IntegerUnary(ExprOp op) {
  switch (op) {
    case ExprOp::kNeg:
      return Run<T, T, [](T x) { return program::WrapNeg(x); }>;
    case ExprOp::kAbs:
      return Run<T, T, [](T x) { return x < 0 ? program::WrapNeg(x) : x; }>;
    case ExprOp::kSign:
      return Run<T, T, [](T x) { return static_cast<T>(x > 0 ? 1 : x < 0 ? -1 : 0); }>;
    case ExprOp::kBitNot:
      return Run<T, T, [](T x) { return static_cast<T>(~x); }>;
    default:
      return nullptr;
  }
}

template <typename T>
Operation Comparison(ExprOp op) {
  switch (op) {
#define ONNXIFI_COMPARISON(id, name, token) \
  case ExprOp::id:                          \
    return Run2<T, uint8_t, [](T a, T b) { return static_cast<uint8_t>(a token b); }>;
#include "backends/core/program/scalar_operations.def"
    default:
      return nullptr;
  }
}

template <typename T>
T FloorMod(T a, T b) {
  const T rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) return rest + b;
  return rest == 0 ? std::copysign(T{0}, b) : rest;
}

template <typename T>
Operation FloatBinary(ExprOp op) {
  switch (op) {
#define ONNXIFI_INFIX(id, name, token, engine, units) \
  case ExprOp::id:                                    \
    return Run2<T, T, [](T a, T b) { return a token b; }>;
#define ONNXIFI_BINARY_FUNCTION(id, name, function, text, units) \
  case ExprOp::id:                                               \
    return Run2<T, T, [](T a, T b) { return function(a, b); }>;
#include "backends/core/program/scalar_operations.def"
    case ExprOp::kMod:
      return Run2<T, T, [](T a, T b) { return FloorMod(a, b); }>;
    case ExprOp::kMin:
      return Run2<T, T, [](T a, T b) { return a < b || a != a ? a : b; }>;
    case ExprOp::kMax:
      return Run2<T, T, [](T a, T b) { return b < a || a != a ? a : b; }>;
    default:
      return Comparison<T>(op);
  }
}

template <typename T>
Operation IntegerBinary(ExprOp op) {
  switch (op) {
    case ExprOp::kAdd:
      return Run2<T, T, [](T a, T b) { return program::WrapAdd(a, b); }>;
    case ExprOp::kSub:
      return Run2<T, T, [](T a, T b) { return program::WrapSub(a, b); }>;
    case ExprOp::kMul:
      return Run2<T, T, [](T a, T b) { return program::WrapMul(a, b); }>;
    case ExprOp::kDiv:
      return Run2<T, T, [](T a, T b) { return program::IntegerDiv(a, b); }>;
    case ExprOp::kMod:
      return Run2<T, T, [](T a, T b) { return program::IntegerMod(a, b); }>;
    case ExprOp::kFmod:
      return Run2<T, T, [](T a, T b) { return program::IntegerFmod(a, b); }>;
    case ExprOp::kPow:
      return Run2<T, T, [](T a, T b) { return program::IntegerPow(a, b); }>;
    case ExprOp::kMin:
      return Run2<T, T, [](T a, T b) { return std::min(a, b); }>;
    case ExprOp::kMax:
      return Run2<T, T, [](T a, T b) { return std::max(a, b); }>;
#define ONNXIFI_BITWISE(id, name, token, engine) \
  case ExprOp::id:                               \
    return Run2<T, T, [](T a, T b) { return static_cast<T>(a token b); }>;
#include "backends/core/program/scalar_operations.def"
    case ExprOp::kShl:
      return Run2<T, T, [](T a, T b) { return program::IntegerShl(a, b); }>;
    case ExprOp::kShr:
      return Run2<T, T, [](T a, T b) { return program::IntegerShr(a, b); }>;
    default:
      return Comparison<T>(op);
  }
}

// Lanes are 0 or 1.
Operation BoolOperation(ExprOp op) {
  using T = uint8_t;
  switch (op) {
    case ExprOp::kNot:
      return Run<T, T, [](T x) { return static_cast<T>(x ^ 1); }>;
    case ExprOp::kMin:
    case ExprOp::kAnd:
      return Run2<T, T, [](T a, T b) { return static_cast<T>(a & b); }>;
    case ExprOp::kMax:
    case ExprOp::kOr:
      return Run2<T, T, [](T a, T b) { return static_cast<T>(a | b); }>;
    case ExprOp::kXor:
      return Run2<T, T, [](T a, T b) { return static_cast<T>(a ^ b); }>;
    default:
      return Comparison<T>(op);
  }
}

template <typename T>
Operation FloatOperation(ExprOp op) {
  const Operation unary = FloatUnary<T>(op);
  return unary != nullptr ? unary : FloatBinary<T>(op);
}

template <typename T>
Operation IntegerOperation(ExprOp op) {
  const Operation unary = IntegerUnary<T>(op);
  return unary != nullptr ? unary : IntegerBinary<T>(op);
}

struct Wide {
  uint64_t low;
  uint64_t high;
};

template <typename T>
void RunSelect(const Operands& operands) {
  const auto* __restrict condition = Input<uint8_t>(operands, 0);
  const T* __restrict a = Input<T>(operands, 1);
  const T* __restrict b = Input<T>(operands, 2);
  T* __restrict result = Result<T>(operands);
  for (int64_t i = 0; i < operands.lanes; ++i) result[i] = condition[i] != 0 ? a[i] : b[i];
}

Operation SelectOperation(ElementType type) {
  switch (LaneBytes(type)) {
    case 1:
      return RunSelect<uint8_t>;
    case 2:
      return RunSelect<uint16_t>;
    case 4:
      return RunSelect<uint32_t>;
    case 8:
      return RunSelect<uint64_t>;
    case 16:
      return RunSelect<Wide>;
    default:
      return nullptr;
  }
}

void RunBitcast(const Operands& operands) {
  std::memcpy(operands.result, operands.inputs[0],
              static_cast<size_t>(operands.lanes * LaneBytes(operands.type)));
}

void RunRandom(const Operands& operands) {
  const auto* counters = Input<int64_t>(operands, 0);
  auto* result = Result<double>(operands);
  for (int64_t i = 0; i < operands.lanes; ++i) {
    result[i] = program::RandomUniform(operands.payload, counters[i]);
  }
}

// One element of a cast, as tensor::CastScalar has it.
template <typename From, typename To>
To CastNative(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, uint64_t>) {
    return tensor::TruncateToUint64(value);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return static_cast<To>(tensor::TruncateToInt64(value));
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
void RunCast(const Operands& operands) {
  Apply<From, To>(operands, [](From x) { return CastNative<From, To>(x); });
}

template <typename From>
void RunCastToBool(const Operands& operands) {
  Apply<From, uint8_t>(operands, [](From x) { return static_cast<uint8_t>(x != 0); });
}

// Between any two types, through the widest scalar.
void RunCastAny(const Operands& operands) {
  const int64_t from_bytes = LaneBytes(operands.from_type);
  const int64_t to_bytes = LaneBytes(operands.type);
  const bool saturate = (operands.payload & 1) != 0;
  const auto rounding = static_cast<tensor::Rounding>(operands.payload >> 1);
  std::memset(operands.result, 0, static_cast<size_t>(operands.lanes * to_bytes));
  for (int64_t i = 0; i < operands.lanes; ++i) {
    const Scalar value =
        tensor::LoadScalar(operands.from_type, operands.inputs[0] + i * from_bytes, 0);
    tensor::StoreScalar(
        operands.type, operands.result + i * to_bytes, 0,
        tensor::CastScalar(operands.from_type, operands.type, value, saturate, rounding));
  }
}

template <typename Format>
void RunDecode16(const Operands& operands) {
  Apply<uint16_t, float>(operands, [](uint16_t code) { return Format::Decode(code); });
}

void RunEncodeFloat16(const Operands& operands) {
  Apply<float, uint16_t>(operands, [](float x) {
    return static_cast<uint16_t>(tensor::Float16Format::Encode(x, /*saturate=*/false));
  });
}

void RunEncodeBfloat16(const Operands& operands) {
  Apply<float, uint16_t>(
      operands, [](float x) { return static_cast<uint16_t>(tensor::Bfloat16Format::Encode(x)); });
}

template <typename From>
Operation CastFrom(ElementType to) {
  if (tensor::IsBool(to)) return RunCastToBool<From>;
  const Operation native =
      tensor::VisitNative(to, []<typename To>(To) -> Operation { return RunCast<From, To>; });
  return native != nullptr ? native : RunCastAny;
}

Operation CastOperation(ElementType from, ElementType to) {
  if (tensor::IsComplex(from) || tensor::IsComplex(to)) return nullptr;
  if (to == ElementType::kFloat32) {
    if (from == ElementType::kFloat16) return RunDecode16<tensor::Float16Format>;
    if (from == ElementType::kBfloat16) return RunDecode16<tensor::Bfloat16Format>;
  }
  if (from == ElementType::kFloat32) {
    if (to == ElementType::kFloat16) return RunEncodeFloat16;
    if (to == ElementType::kBfloat16) return RunEncodeBfloat16;
  }
  if (tensor::IsBool(from)) return CastFrom<uint8_t>(to);
  const Operation native = tensor::VisitNative(
      from, [to]<typename From>(From) -> Operation { return CastFrom<From>(to); });
  return native != nullptr ? native : RunCastAny;
}

}  // namespace

Operation FindOperation(ExprOp op, ElementType type, ElementType from_type) {
  switch (op) {
    case ExprOp::kSelect:
      return SelectOperation(type);
    case ExprOp::kCast:
      return CastOperation(from_type, type);
    case ExprOp::kBitcast:
      return tensor::IsBool(type) ? nullptr : RunBitcast;
    case ExprOp::kRandom:
      return RunRandom;
    default:
      break;
  }
  if (tensor::IsBool(from_type)) return BoolOperation(op);
  return tensor::VisitNative(from_type, [op]<typename T>(T) -> Operation {
    if constexpr (std::is_floating_point_v<T>) {
      return FloatOperation<T>(op);
    } else {
      return IntegerOperation<T>(op);
    }
  });
}

}  // namespace onnxifi::reference
