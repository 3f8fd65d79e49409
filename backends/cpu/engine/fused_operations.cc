// SPDX-License-Identifier: Apache-2.0
//
// FusedOperations: operation by operation over a block of vectors, so that finding out which one
// comes next costs little beside it.

#include "backends/cpu/engine/fused_operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "backends/core/tensor/truncation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/fused_operations.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/arithmetic-inl.h"
#include "backends/cpu/engine/lanes-inl.h"
#include "backends/cpu/engine/quantization-inl.h"
#include "backends/cpu/vector_math/power-inl.h"
#include "backends/cpu/vector_math/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace math = vector_math::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

// Room for the lanes of `vectors` vectors.
constexpr size_t RoomFor(int vectors) {
  return static_cast<size_t>(vectors) * HWY_MAX_BYTES / sizeof(float);
}

// Functions are calls, so that the operations between them have all registers.
template <int kVectors, class Function>
HWY_NOINLINE void ApplyFunction(float* HWY_RESTRICT block) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int v = 0; v < kVectors; ++v) {
    hn::Store(Function()(d, hn::Load(d, block + v * lanes)), d, block + v * lanes);
  }
}

template <int kVectors, class Function>
HWY_INLINE void ForVectors(float* HWY_RESTRICT block, Function function) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int v = 0; v < kVectors; ++v) {
    hn::Store(function(d, hn::Load(d, block + v * lanes), v), d, block + v * lanes);
  }
}

// The lanes of a block to the power of a number. Exponents that are common have powers of few
// operations; special values are those of std::pow.
template <int kVectors>
HWY_NOINLINE void RaiseToNumber(float* HWY_RESTRICT block, float exponent) {
  const auto root_of = [](Tag d, Vec x) HWY_ATTR {
    const Vec infinity = hn::Set(d, math::kInfinity);
    // -0 becomes 0, and negative infinity a positive one.
    return hn::Sqrt(
        hn::IfThenElse(hn::Eq(x, hn::Neg(infinity)), infinity, hn::Add(x, hn::Zero(d))));
  };
  if (exponent == 3) {
    ForVectors<kVectors>(block, [](Tag, Vec x, int) HWY_ATTR { return hn::Mul(hn::Mul(x, x), x); });
  } else if (exponent == 4) {
    ForVectors<kVectors>(block, [](Tag, Vec x, int) HWY_ATTR {
      const Vec squared = hn::Mul(x, x);
      return hn::Mul(squared, squared);
    });
  } else if (exponent == 0.5f) {
    ForVectors<kVectors>(block, [&](Tag d, Vec x, int) HWY_ATTR { return root_of(d, x); });
  } else if (exponent == -0.5f) {
    ForVectors<kVectors>(block, [&](Tag d, Vec x, int)
                                    HWY_ATTR { return hn::Div(hn::Set(d, 1.0f), root_of(d, x)); });
  } else if (exponent == -1) {
    ForVectors<kVectors>(block,
                         [](Tag d, Vec x, int) HWY_ATTR { return hn::Div(hn::Set(d, 1.0f), x); });
  } else if (exponent != 1) {
    ForVectors<kVectors>(
        block, [&](Tag d, Vec x, int) HWY_ATTR { return math::Pow(d, x, hn::Set(d, exponent)); });
  }
}

template <int kVectors, bool kValueIsFirst>
HWY_NOINLINE void RaiseLanes(float* HWY_RESTRICT block, const float* operand, bool is_uniform) {
  ForVectors<kVectors>(block, [&](Tag d, Vec x, int v) HWY_ATTR {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const Vec other = is_uniform ? hn::Set(d, *operand) : hn::LoadU(d, operand + v * lanes);
    return kValueIsFirst ? math::Pow(d, x, other) : math::Pow(d, other, x);
  });
}

// The first of two vectors where the second is negative, and the second elsewhere; and the second
// where it is positive, else the first. NaN is neither.
struct FirstIfNegative {
  HWY_INLINE Vec operator()(Tag d, Vec value, Vec chosen_by) const {
    return hn::IfThenElse(hn::Lt(chosen_by, hn::Zero(d)), value, chosen_by);
  }
};
struct FirstUnlessPositive {
  HWY_INLINE Vec operator()(Tag d, Vec value, Vec chosen_by) const {
    return hn::IfThenElse(hn::Gt(chosen_by, hn::Zero(d)), chosen_by, value);
  }
};

// The vectors of one block, with what there is to do to all of them.
template <int kVectors>
struct Block {
  Vec values[kVectors];

  template <class Operation>
  HWY_INLINE void Apply(Operation operation) {
    const Tag d;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) values[v] = operation(d, values[v]);
  }
  template <bool kValueIsFirst, class Operation>
  HWY_INLINE void Apply(Operation operation, const float* operand, bool is_uniform) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    if (is_uniform) {
      const Vec other = hn::Set(d, *operand);
      Apply([&](Tag, Vec value) HWY_ATTR {
        return kValueIsFirst ? operation(d, value, other) : operation(d, other, value);
      });
      return;
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const Vec other = hn::LoadU(d, operand + v * lanes);
      values[v] = kValueIsFirst ? operation(d, values[v], other) : operation(d, other, values[v]);
    }
  }

  // Calls function(lanes) with the lanes in memory.
  template <class Function>
  HWY_INLINE void Call(Function function) {
    const Tag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    HWY_ALIGN float block[RoomFor(kVectors)];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::Store(values[v], d, block + v * lanes);
    function(block);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) values[v] = hn::Load(d, block + v * lanes);
  }
  template <class Function>
  HWY_INLINE void Call() {
    Call([](float* block) HWY_ATTR { ApplyFunction<kVectors, Function>(block); });
  }

  template <bool kValueIsFirst>
  HWY_INLINE void Raise(const float* operand, bool is_uniform) {
    if (kValueIsFirst && is_uniform) {
      const float exponent = *operand;
      if (exponent == 2) return Apply([](Tag, Vec x) HWY_ATTR { return hn::Mul(x, x); });
      Call([&](float* block) HWY_ATTR { RaiseToNumber<kVectors>(block, exponent); });
    } else {
      Call([&](float* block)
               HWY_ATTR { RaiseLanes<kVectors, kValueIsFirst>(block, operand, is_uniform); });
    }
  }

  // The Extremum, FloatMinimum or FloatMaximum, of each value and a number. An x86 processor's
  // own gives the second of two numbers where either is NaN or both are zero; so with the value
  // second all is as it should be but for the sign of zeros where the number comes second, as in
  // Relu.
  template <bool kValueIsFirst, class Extremum, class Own>
  HWY_INLINE void Bound(Extremum extremum, Own own, const float* operand, bool is_uniform) {
#if ONNXIFI_EXTREMA_GIVE_SECOND
    const float bound = is_uniform ? *operand : 0.0f;
    if (is_uniform && bound == bound && (!kValueIsFirst || !(bound == 0 && std::signbit(bound)))) {
      const Vec other = hn::Set(Tag(), bound);
      Apply([&](Tag d, Vec value) HWY_ATTR { return own(d, other, value); });
      // -0 becomes 0, and nothing else changes.
      if (kValueIsFirst && bound == 0) {
        Apply([](Tag d, Vec value) HWY_ATTR { return hn::Add(value, hn::Zero(d)); });
      }
      return;
    }
#endif
    (void)own;
    Apply<kValueIsFirst>(extremum, operand, is_uniform);
  }

  // By products with 1 / divisor, of which several take less than a division. The quotient of the
  // first is off by two units at most; with what is missing from it, which is exact, the second is
  // by one, and the third correctly rounded (Markstein, Computation of elementary functions on the
  // IBM RISC System/6000). Where a number is so small or large that a product is not what it says
  // here, divides.
  HWY_INLINE void DivideBy(float divisor) {
#if HWY_NATIVE_FMA
    constexpr float kMin = 0x1p-60f;
    constexpr float kMax = 0x1p60f;
    const Tag d;
    const auto is_among = [&](Vec size) HWY_ATTR {
      return hn::And(hn::Ge(size, hn::Set(d, kMin)), hn::Le(size, hn::Set(d, kMax)));
    };
    const auto is_zero = [&](Vec value) HWY_ATTR { return hn::Eq(value, hn::Zero(d)); };
    const Vec by = hn::Set(d, divisor);
    auto fits = is_among(hn::Abs(by));
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      fits = hn::And(fits, hn::Or(is_among(hn::Abs(values[v])), is_zero(values[v])));
    }
    if (HWY_LIKELY(hn::AllTrue(d, fits))) {
      const Vec inverse = hn::Set(d, 1 / divisor);
      Apply([&](Tag, Vec value) HWY_ATTR {
        const Vec first = hn::Mul(value, inverse);
        const Vec second = hn::MulAdd(hn::NegMulAdd(first, by, value), inverse, first);
        const Vec third = hn::MulAdd(hn::NegMulAdd(second, by, value), inverse, second);
        return hn::IfThenElse(is_zero(value), first, third);  // with its sign
      });
      return;
    }
#endif
    Apply<true>(Quotient(), &divisor, /*is_uniform=*/true);
  }

  // False, and `values` are nothing, where the operations have to be done one by one.
  HWY_INLINE bool Quantize(const std::byte* const* operands) {
    const Quantization quantization(operands);
    return quantization.is_known && quantization.Run<kVectors>(values);
  }
};

#define ONNXIFI_FUNCTION(name)                \
  struct name##Function {                     \
    template <class D, class V>               \
    HWY_INLINE V operator()(D d, V x) const { \
      return math::name(d, x);                \
    }                                         \
  }

ONNXIFI_FUNCTION(Exp);
ONNXIFI_FUNCTION(Expm1);
ONNXIFI_FUNCTION(Log);
ONNXIFI_FUNCTION(Log1p);
ONNXIFI_FUNCTION(Tanh);
ONNXIFI_FUNCTION(Erf);
ONNXIFI_FUNCTION(Logistic);

#undef ONNXIFI_FUNCTION

// A number cast to Byte, as RunTruncate does it, and back.
template <typename Byte>
struct WrapFunction {
  HWY_INLINE Vec operator()(Tag d, Vec x) const {
    const hn::RebindToSigned<Tag> wide;
    if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, 0x1p31f))))) {
      const auto high = hn::ShiftLeft<24>(hn::ConvertTo(wide, x));
      if constexpr (std::is_signed_v<Byte>) return hn::ConvertTo(d, hn::ShiftRight<24>(high));
      const auto bits = hn::BitCast(hn::RebindToUnsigned<Tag>(), high);
      return hn::ConvertTo(d, hn::BitCast(wide, hn::ShiftRight<24>(bits)));
    }
    HWY_ALIGN float lanes[RoomFor(1)];
    hn::Store(x, d, lanes);
    for (size_t k = 0; k < hn::Lanes(d); ++k) {
      lanes[k] = static_cast<float>(static_cast<Byte>(tensor::TruncateToInt64(lanes[k])));
    }
    return hn::Load(d, lanes);
  }
};

// Whether both numbers of a FusedPattern::kLogistic are 1. The other two operations have none.
HWY_INLINE bool IsLogistic(const std::byte* const* operands) {
  const auto is_one = [&](int k) { return *reinterpret_cast<const float*>(operands[k]) == 1; };
  return is_one(2) && is_one(3);
}

// Lanes from `i` on, as many as kVectors have. False, and nothing is written, where operations that
// quantize have to be done one by one.
template <int kVectors>
HWY_INLINE bool TryBlock(const FusedOperands& fused, int64_t i, bool may_quantize) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* first = reinterpret_cast<const float*>(fused.first) + i;
  Block<kVectors> block;
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) block.values[v] = hn::LoadU(d, first + v * lanes);
  for (int k = 0; k < fused.count; ++k) {
    const FusedOp op = fused.operations[k].op;
    const bool is_uniform = fused.operations[k].is_uniform;
    const auto* operand = reinterpret_cast<const float*>(fused.operands[k]);
    if (!is_uniform) operand += i;
    switch (op) {
      case FusedOp::kAdd:
        block.template Apply<true>(Sum(), operand, is_uniform);
        break;
      case FusedOp::kSub:
        block.template Apply<true>(Difference(), operand, is_uniform);
        break;
      case FusedOp::kSubFrom:
        block.template Apply<false>(Difference(), operand, is_uniform);
        break;
      case FusedOp::kMul:
        block.template Apply<true>(Product(), operand, is_uniform);
        break;
      case FusedOp::kDiv:
        if (may_quantize && fused.operations[k].begins == FusedPattern::kQuantize) {
          if (!block.Quantize(fused.operands + k)) return false;
          k += kQuantizeLength - 1;
        } else if (is_uniform) {
          block.DivideBy(*operand);
        } else {
          block.template Apply<true>(Quotient(), operand, false);
        }
        break;
      case FusedOp::kDivInto:
        block.template Apply<false>(Quotient(), operand, is_uniform);
        break;
      case FusedOp::kMin:
        block.template Bound<true>(FloatMinimum(), Minimum(), operand, is_uniform);
        break;
      case FusedOp::kMinWith:
        block.template Bound<false>(FloatMinimum(), Minimum(), operand, is_uniform);
        break;
      case FusedOp::kMax:
        block.template Bound<true>(FloatMaximum(), Maximum(), operand, is_uniform);
        break;
      case FusedOp::kMaxWith:
        block.template Bound<false>(FloatMaximum(), Maximum(), operand, is_uniform);
        break;
      case FusedOp::kPow:
        block.template Raise<true>(operand, is_uniform);
        break;
      case FusedOp::kPowOf:
        block.template Raise<false>(operand, is_uniform);
        break;
      case FusedOp::kIfNegative:
        block.template Apply<true>(FirstIfNegative(), operand, is_uniform);
        break;
      case FusedOp::kWithIfNegative:
        block.template Apply<false>(FirstIfNegative(), operand, is_uniform);
        break;
      case FusedOp::kUnlessPositive:
        block.template Apply<true>(FirstUnlessPositive(), operand, is_uniform);
        break;
      case FusedOp::kWithUnlessPositive:
        block.template Apply<false>(FirstUnlessPositive(), operand, is_uniform);
        break;
      case FusedOp::kNeg:
        if (fused.operations[k].begins == FusedPattern::kLogistic &&
            IsLogistic(fused.operands + k)) {
          block.template Call<LogisticFunction>();
          k += kLogisticLength - 1;
        } else {
          block.Apply(Negate());
        }
        break;
      case FusedOp::kAbs:
        block.Apply(Absolute());
        break;
      case FusedOp::kFloor:
        block.Apply(Floor());
        break;
      case FusedOp::kCeil:
        block.Apply(Ceil());
        break;
      case FusedOp::kRoundEven:
        block.Apply(Round());
        break;
      case FusedOp::kTrunc:
        block.Apply(Truncate());
        break;
      case FusedOp::kSqrt:
        block.Apply(Root());
        break;
      case FusedOp::kExp:
        block.template Call<ExpFunction>();
        break;
      case FusedOp::kExpm1:
        block.template Call<Expm1Function>();
        break;
      case FusedOp::kLog:
        block.template Call<LogFunction>();
        break;
      case FusedOp::kLog1p:
        block.template Call<Log1pFunction>();
        break;
      case FusedOp::kTanh:
        block.template Call<TanhFunction>();
        break;
      case FusedOp::kErf:
        block.template Call<ErfFunction>();
        break;
      case FusedOp::kWrapInt8:
        block.template Call<WrapFunction<int8_t>>();
        break;
      case FusedOp::kWrapUint8:
        block.template Call<WrapFunction<uint8_t>>();
        break;
    }
  }
  float* result = reinterpret_cast<float*>(fused.result) + i;
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) hn::StoreU(block.values[v], d, result + v * lanes);
  return true;
}

template <int kVectors>
HWY_NOINLINE void RunBlockOneByOne(const FusedOperands& fused, int64_t i) {
  TryBlock<kVectors>(fused, i, false);
}

template <int kVectors>
HWY_INLINE void RunBlock(const FusedOperands& fused, int64_t i) {
  if (HWY_UNLIKELY(!TryBlock<kVectors>(fused, i, true))) RunBlockOneByOne<kVectors>(fused, i);
}

// Of the smaller blocks. (GCC 12 cannot compile an array of one vector for ThreadSanitizer.)
constexpr int kFewVectors = 2;

// The lanes from `i` on, fewer than a small block has.
void RunRest(const FusedOperands& fused, int64_t i) {
  constexpr size_t kLanes = RoomFor(kFewVectors);
  // Filled as far as it is needed: some calls have no other lanes.
  HWY_ALIGN float lanes[kMaxFusedOperations + 1][kLanes];
  const auto rest = static_cast<size_t>(fused.lanes - i) * sizeof(float);
  const int64_t offset = i * static_cast<int64_t>(sizeof(float));
  FusedOperands last = fused;
  const auto take = [&](int row, const std::byte* from) {
    std::fill_n(lanes[row], kLanes, 0.0f);
    std::memcpy(lanes[row], from + offset, rest);
  };
  take(kMaxFusedOperations, fused.first);
  last.first = last.result = reinterpret_cast<std::byte*>(lanes[kMaxFusedOperations]);
  for (int k = 0; k < fused.count; ++k) {
    if (!HasOperand(fused.operations[k].op) || fused.operations[k].is_uniform) continue;
    take(k, fused.operands[k]);
    last.operands[k] = reinterpret_cast<const std::byte*>(lanes[k]);
  }
  RunBlock<kFewVectors>(last, 0);
  std::memcpy(fused.result + offset, lanes[kMaxFusedOperations], rest);
}

// result[i] = operation(first[i])
template <class Operation>
HWY_INLINE void ForOperation(const float* first, int64_t count, float* result,
                             Operation operation) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kVectors = 4;
  int64_t i = 0;
  for (; i + kVectors * lanes <= count; i += kVectors * lanes) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(operation(d, hn::LoadU(d, first + i + v * lanes)), d, result + i + v * lanes);
    }
  }
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(operation(d, hn::LoadU(d, first + i)), d, result + i);
  }
  const int64_t rest = count - i;
  if (rest > 0) StoreFirst(d, operation(d, LoadFirst(d, first + i, rest)), result + i, rest);
}

// An operation with a number that takes one instruction.
struct CheapOperation {
  enum class Kind : uint8_t { kAdd, kMul, kMin, kMax };
  Kind kind;
  float number;
};
// A bound may take two.
inline constexpr int kMaxCheapOperations = 2 * kMaxFusedOperations;

// Writes the operations as cheap ones and returns how many they are; 0 where one is none.
int FindCheapOperations(const FusedOperands& fused, CheapOperation* cheap) {
  using Kind = CheapOperation::Kind;
  int count = 0;
  for (int k = 0; k < fused.count; ++k) {
    if (!HasOperand(fused.operations[k].op) || !fused.operations[k].is_uniform) return 0;
    const float number = *reinterpret_cast<const float*>(fused.operands[k]);
    const FusedOp op = fused.operations[k].op;
    switch (op) {
      case FusedOp::kAdd:
        cheap[count++] = {Kind::kAdd, number};
        break;
      case FusedOp::kSub:
        cheap[count++] = {Kind::kAdd, -number};
        break;
      case FusedOp::kMul:
        cheap[count++] = {Kind::kMul, number};
        break;
#if ONNXIFI_EXTREMA_GIVE_SECOND
      case FusedOp::kMin:
      case FusedOp::kMinWith:
      case FusedOp::kMax:
      case FusedOp::kMaxWith: {
        // As Block::Bound.
        const bool value_is_first = op == FusedOp::kMin || op == FusedOp::kMax;
        if (number != number || (value_is_first && number == 0 && std::signbit(number))) return 0;
        const bool is_min = op == FusedOp::kMin || op == FusedOp::kMinWith;
        cheap[count++] = {is_min ? Kind::kMin : Kind::kMax, number};
        if (value_is_first && number == 0) cheap[count++] = {Kind::kAdd, 0};
        break;
      }
#endif
      default:
        return 0;
    }
  }
  return count;
}

// Calls function(operation) with the operation on a vector.
template <class Function>
HWY_INLINE void WithOperation(const CheapOperation& cheap, Function function) {
  const Vec number = hn::Set(Tag(), cheap.number);
  switch (cheap.kind) {
    case CheapOperation::Kind::kAdd:
      return function([number](Vec x) HWY_ATTR { return hn::Add(x, number); });
    case CheapOperation::Kind::kMul:
      return function([number](Vec x) HWY_ATTR { return hn::Mul(x, number); });
    case CheapOperation::Kind::kMin:
      return function([number](Vec x) HWY_ATTR { return hn::Min(number, x); });
    case CheapOperation::Kind::kMax:
      return function([number](Vec x) HWY_ATTR { return hn::Max(number, x); });
  }
}

// Up to three operations a pass, over lanes that stay in the L1 cache: walking over cheap
// operations block by block takes longer than what they do.
void RunCheapOperations(const FusedOperands& fused, const CheapOperation* cheap, int count) {
  constexpr int64_t kLanes = 1024;
  const auto* first = reinterpret_cast<const float*>(fused.first);
  auto* result = reinterpret_cast<float*>(fused.result);
  for (int64_t i = 0; i < fused.lanes; i += kLanes) {
    const int64_t lanes = std::min(kLanes, fused.lanes - i);
    const float* from = first + i;
    const auto pass = [&](auto operation)
                          HWY_ATTR { ForOperation(from, lanes, result + i, operation); };
    for (int k = 0; k < count;) {
      const int left = count - k;
      WithOperation(cheap[k], [&](auto one) HWY_ATTR {
        if (left == 1) return pass([one](Tag, Vec x) HWY_ATTR { return one(x); });
        WithOperation(cheap[k + 1], [&](auto two) HWY_ATTR {
          // Four are two passes of two.
          if (left == 2 || left == 4) {
            return pass([one, two](Tag, Vec x) HWY_ATTR { return two(one(x)); });
          }
          WithOperation(cheap[k + 2], [&](auto three) HWY_ATTR {
            pass([one, two, three](Tag, Vec x) HWY_ATTR { return three(two(one(x))); });
          });
        });
      });
      k += left == 2 || left == 4 ? 2 : std::min(left, 3);
      from = result + i;
    }
  }
}

// Lanes from the first on, as many as whole blocks have, of a chain that does nothing but quantize:
// its numbers stay in registers. Returns how many; 0 where the operations have to be done one by
// one.
int64_t RunQuantization(const FusedOperands& fused) {
  const Quantization quantization(fused.operands);
  if (!quantization.is_known) return 0;
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kVectors = 2 * kFewVectors;
  const auto* first = reinterpret_cast<const float*>(fused.first);
  auto* result = reinterpret_cast<float*>(fused.result);
  int64_t i = 0;
  for (; i + kVectors * lanes <= fused.lanes; i += kVectors * lanes) {
    Vec values[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) values[v] = hn::LoadU(d, first + i + v * lanes);
    if (HWY_LIKELY(quantization.Run<kVectors>(values))) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) hn::StoreU(values[v], d, result + i + v * lanes);
    } else {
      RunBlockOneByOne<kFewVectors>(fused, i);
      RunBlockOneByOne<kFewVectors>(fused, i + kFewVectors * lanes);
    }
  }
  return i;
}

// One lane, for which all operands are one number.
void RunOneLane(const FusedOperands& fused) {
  HWY_ALIGN float lanes[RoomFor(kFewVectors)];
  std::fill_n(lanes, RoomFor(kFewVectors), *reinterpret_cast<const float*>(fused.first));
  FusedOperation operations[kMaxFusedOperations];
  std::copy_n(fused.operations, fused.count, operations);
  for (int k = 0; k < fused.count; ++k) operations[k].is_uniform = true;
  FusedOperands repeated = fused;
  repeated.first = repeated.result = reinterpret_cast<std::byte*>(lanes);
  repeated.operations = operations;
  RunBlock<kFewVectors>(repeated, 0);
  std::memcpy(fused.result, lanes, sizeof(float));
}

void RunFloats(const FusedOperands& fused) {
  if (fused.lanes == 1) return RunOneLane(fused);
  CheapOperation cheap[kMaxCheapOperations];
  if (const int count = FindCheapOperations(fused, cheap); count > 0) {
    return RunCheapOperations(fused, cheap, count);
  }
  const bool is_logistic = fused.count == kLogisticLength &&
                           fused.operations[0].begins == FusedPattern::kLogistic &&
                           IsLogistic(fused.operands);
  if (is_logistic) {
    LoopOperands operands{};
    operands.result = fused.result;
    operands.inputs[0] = fused.first;
    operands.lanes = fused.lanes;
    return ForLanes<float>(operands, LogisticFunction());
  }
  constexpr int kVectors = 8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  const bool quantizes =
      fused.count == kQuantizeLength && fused.operations[0].begins == FusedPattern::kQuantize;
  int64_t i = quantizes ? RunQuantization(fused) : 0;
  for (; i + kVectors * lanes <= fused.lanes; i += kVectors * lanes) RunBlock<kVectors>(fused, i);
  for (; i + kFewVectors * lanes <= fused.lanes; i += kFewVectors * lanes) {
    RunBlock<kFewVectors>(fused, i);
  }
  if (i < fused.lanes) RunRest(fused, i);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(RunFloats);

FusedOp ExchangeOperands(FusedOp op) {
  switch (op) {
    case FusedOp::kSub:
      return FusedOp::kSubFrom;
    case FusedOp::kSubFrom:
      return FusedOp::kSub;
    case FusedOp::kDiv:
      return FusedOp::kDivInto;
    case FusedOp::kDivInto:
      return FusedOp::kDiv;
    case FusedOp::kMin:
      return FusedOp::kMinWith;
    case FusedOp::kMinWith:
      return FusedOp::kMin;
    case FusedOp::kMax:
      return FusedOp::kMaxWith;
    case FusedOp::kMaxWith:
      return FusedOp::kMax;
    case FusedOp::kPow:
      return FusedOp::kPowOf;
    case FusedOp::kPowOf:
      return FusedOp::kPow;
    case FusedOp::kIfNegative:
      return FusedOp::kWithIfNegative;
    case FusedOp::kWithIfNegative:
      return FusedOp::kIfNegative;
    case FusedOp::kUnlessPositive:
      return FusedOp::kWithUnlessPositive;
    case FusedOp::kWithUnlessPositive:
      return FusedOp::kUnlessPositive;
    default:
      return op;
  }
}

std::optional<FusedOp> FindFusedOp(program::ExprOp op, bool value_is_first, LoopSet loops) {
  using program::ExprOp;
  const auto approximation = [&](FusedOp op) {
    return loops == LoopSet::kFast ? std::optional(op) : std::nullopt;
  };
  switch (op) {
    case ExprOp::kAdd:
      return FusedOp::kAdd;
    case ExprOp::kSub:
      return value_is_first ? FusedOp::kSub : FusedOp::kSubFrom;
    case ExprOp::kMul:
      return FusedOp::kMul;
    case ExprOp::kDiv:
      return value_is_first ? FusedOp::kDiv : FusedOp::kDivInto;
    case ExprOp::kMin:
      return value_is_first ? FusedOp::kMin : FusedOp::kMinWith;
    case ExprOp::kMax:
      return value_is_first ? FusedOp::kMax : FusedOp::kMaxWith;
    case ExprOp::kPow:
      return approximation(value_is_first ? FusedOp::kPow : FusedOp::kPowOf);
    case ExprOp::kNeg:
      return FusedOp::kNeg;
    case ExprOp::kAbs:
      return FusedOp::kAbs;
    case ExprOp::kFloor:
      return FusedOp::kFloor;
    case ExprOp::kCeil:
      return FusedOp::kCeil;
    case ExprOp::kRoundEven:
      return FusedOp::kRoundEven;
    case ExprOp::kTrunc:
      return FusedOp::kTrunc;
    case ExprOp::kSqrt:
      return FusedOp::kSqrt;
    case ExprOp::kExp:
      return approximation(FusedOp::kExp);
    case ExprOp::kExpm1:
      return approximation(FusedOp::kExpm1);
    case ExprOp::kLog:
      return approximation(FusedOp::kLog);
    case ExprOp::kLog1p:
      return approximation(FusedOp::kLog1p);
    case ExprOp::kTanh:
      return approximation(FusedOp::kTanh);
    case ExprOp::kErf:
      return approximation(FusedOp::kErf);
    default:
      return std::nullopt;
  }
}

void MarkPatterns(std::span<FusedOperation> operations) {
  constexpr std::array kQuantize = {FusedOp::kDiv, FusedOp::kRoundEven, FusedOp::kAdd,
                                    FusedOp::kMax, FusedOp::kMin};
  static_assert(kQuantize.size() == kQuantizeLength);
  constexpr std::array kLogistic = {FusedOp::kNeg, FusedOp::kExp, FusedOp::kAdd, FusedOp::kDivInto};
  static_assert(kLogistic.size() == kLogisticLength);
  const auto mark = [&](std::span<const FusedOp> pattern, FusedPattern name) {
    for (size_t at = 0; at + pattern.size() <= operations.size(); ++at) {
      bool is_one = true;
      for (size_t k = 0; k < pattern.size(); ++k) {
        const FusedOperation& operation = operations[at + k];
        is_one = is_one && operation.op == pattern[k] &&
                 (operation.is_uniform || !HasOperand(operation.op));
      }
      if (is_one) operations[at].begins = name;
    }
  };
  mark(kQuantize, FusedPattern::kQuantize);
  mark(kLogistic, FusedPattern::kLogistic);
}

void RunFloatChain(const FusedOperands& fused) { HWY_DYNAMIC_DISPATCH(RunFloats)(fused); }

}  // namespace onnxifi::engine
#endif
