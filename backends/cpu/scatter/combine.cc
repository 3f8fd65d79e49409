// SPDX-License-Identifier: Apache-2.0
//
// Combination: the engine's loops for rows, typed loops for elements, and the reference's
// arithmetic on scalars for types that have neither.

#include "backends/cpu/scatter/combine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "backends/core/program/integer_arithmetic.h"
#include "backends/core/reference/column.h"
#include "backends/core/tensor/convert.h"
#include "backends/core/tensor/native_type.h"
#include "backends/cpu/engine/lane_types.h"

namespace onnxifi::scatter {
namespace {

using Combine = program::Index::Combine;
using program::ExprOp;
using tensor::ElementType;
using tensor::Scalar;

struct Replace {
  template <typename T>
  T operator()(T /*a*/, T b) const {
    return b;
  }
};
struct Sum {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return program::WrapAdd(a, b);
    else
      return a + b;
  }
};
struct Product {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return program::WrapMul(a, b);
    else
      return a * b;
  }
};
// NaN if either is.
struct Minimum {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};
struct Maximum {
  template <typename T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

// Calls visit(operation) for the arithmetic of `combine`.
template <typename Visit>
auto WithOperation(Combine combine, Visit&& visit) {
  switch (combine) {
    case Combine::kAdd:
      return visit(Sum());
    case Combine::kMul:
      return visit(Product());
    case Combine::kMin:
      return visit(Minimum());
    case Combine::kMax:
      return visit(Maximum());
    case Combine::kNone:
      break;
  }
  return visit(Replace());
}

ExprOp OperationOf(Combine combine) {
  switch (combine) {
    case Combine::kMul:
      return ExprOp::kMul;
    case Combine::kMin:
      return ExprOp::kMin;
    case Combine::kMax:
      return ExprOp::kMax;
    default:
      return ExprOp::kAdd;
  }
}

// Whether float32 gives what one rounding of the exact result would: all sums, and products whose
// bits are no fewer than those of float32 even where it is subnormal.
bool IsExactInFloat32(Combine combine, ElementType type) {
  return type == ElementType::kFloat16 ||
         (type == ElementType::kBfloat16 && combine != Combine::kMul);
}

}  // namespace

bool HasCombination(Combine combine, ElementType type) {
  const int bits = tensor::BitWidth(type);
  if (bits < 8 || bits > 64) return false;
  return combine == Combine::kNone || !tensor::IsComplex(type);
}

Combination::Combination(Combine combine, ElementType type)
    : combine_(combine), type_(type), lane_bytes_(reference::LaneBytes(type)) {
  if (combine == Combine::kNone) {
    engine::WithLaneType(lane_bytes_,
                         [&](auto lane) { elements_ = RunElements<decltype(lane), Replace>; });
    return;
  }
  const ExprOp op = OperationOf(combine);
  if (IsExactInFloat32(combine, type)) {
    loop_ = engine::FindArithmeticLoop(op, ElementType::kFloat32, ElementType::kFloat32);
    widen_ = engine::FindCastLoop(type, ElementType::kFloat32);
    narrow_ = engine::FindCastLoop(ElementType::kFloat32, type);
    if (loop_ == nullptr || widen_ == nullptr || narrow_ == nullptr) loop_ = nullptr;
    elements_ = RunScalars;
    return;
  }
  elements_ = tensor::VisitNative(
      type, [&]<typename T>(T) -> ElementsLoop { return FindElements<T>(combine); });
  if (elements_ == nullptr) {
    elements_ = RunScalars;
  } else {
    loop_ = engine::FindArithmeticLoop(op, type, type);
  }
}

template <typename T>
Combination::ElementsLoop Combination::FindElements(Combine combine) {
  return WithOperation(
      combine, [](auto operation) -> ElementsLoop { return RunElements<T, decltype(operation)>; });
}

template <typename T, typename Operation>
void Combination::RunElements(const Combination& /*combination*/, std::byte* target,
                              const int64_t* offsets, const std::byte* updates, int64_t count) {
  auto* elements = reinterpret_cast<T*>(target);
  const auto* entering = reinterpret_cast<const T*>(updates);
  for (int64_t k = 0; k < count; ++k) {
    if (offsets[k] < 0) continue;
    T& element = elements[offsets[k]];
    element = Operation()(element, entering[k]);
  }
}

void Combination::RunScalars(const Combination& combination, std::byte* target,
                             const int64_t* offsets, const std::byte* updates, int64_t count) {
  for (int64_t k = 0; k < count; ++k) {
    if (offsets[k] >= 0) combination.CombineOne(target, offsets[k], updates, k);
  }
}

// Through the widest type of the class, as the reference does it.
void Combination::CombineOne(std::byte* target, int64_t element, const std::byte* updates,
                             int64_t update) const {
  const Scalar a = tensor::LoadScalar(type_, target, element);
  const Scalar b = tensor::LoadScalar(type_, updates, update);
  Scalar combined{};
  ElementType wide = ElementType::kUint64;
  WithOperation(combine_, [&](auto operation) {
    if (tensor::IsFloat(type_)) {
      wide = ElementType::kFloat64;
      combined.f = operation(a.f, b.f);
    } else if (tensor::IsSigned(type_)) {
      wide = ElementType::kInt64;
      combined.i = operation(a.i, b.i);
    } else {
      combined.u = operation(a.u, b.u);
    }
  });
  tensor::StoreScalar(type_, target, element, tensor::CastScalar(wide, type_, combined));
}

void Combination::Row(std::byte* target, const std::byte* updates, int64_t count) const {
  if (combine_ == Combine::kNone && tensor::IsBool(type_)) {
    std::transform(updates, updates + count, target,
                   [](std::byte update) { return std::byte{update != std::byte{0}}; });
    return;
  }
  if (combine_ == Combine::kNone) {
    std::memcpy(target, updates, static_cast<size_t>(count * lane_bytes_));
    return;
  }
  if (loop_ == nullptr) {
    for (int64_t k = 0; k < count; ++k) CombineOne(target, k, updates, k);
    return;
  }
  if (widen_ == nullptr) {
    loop_({target, {target, updates}, count, 0, type_, type_});
    return;
  }
  constexpr int64_t kBlock = 256;
  alignas(64) float a[kBlock];
  alignas(64) float b[kBlock];
  auto* wide_a = reinterpret_cast<std::byte*>(a);
  auto* wide_b = reinterpret_cast<std::byte*>(b);
  constexpr ElementType kWide = ElementType::kFloat32;
  for (int64_t done = 0; done < count; done += kBlock) {
    const int64_t lanes = std::min(kBlock, count - done);
    std::byte* row = target + done * lane_bytes_;
    widen_({wide_a, {row}, lanes, 0, kWide, type_});
    widen_({wide_b, {updates + done * lane_bytes_}, lanes, 0, kWide, type_});
    loop_({wide_a, {wide_a, wide_b}, lanes, 0, kWide, kWide});
    narrow_({row, {wide_a}, lanes, 0, type_, kWide});
  }
}

}  // namespace onnxifi::scatter
