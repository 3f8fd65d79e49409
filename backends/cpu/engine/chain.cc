// SPDX-License-Identifier: Apache-2.0
//
// Chain: link by link over a block of vectors, so that finding out which operation comes next costs
// little beside it.

#include "backends/cpu/engine/chain.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/chain.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/arithmetic-inl.h"
#include "backends/cpu/vector_math/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace math = vector_math::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

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
    constexpr float kLeast = 0x1p-60f;
    constexpr float kMost = 0x1p60f;
    const Tag d;
    const auto is_among = [&](Vec size) HWY_ATTR {
      return hn::And(hn::Ge(size, hn::Set(d, kLeast)), hn::Le(size, hn::Set(d, kMost)));
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

#undef ONNXIFI_FUNCTION

// Lanes from `i` on, as many as kVectors have.
template <int kVectors>
HWY_INLINE void RunBlock(const ChainOperands& chain, int64_t i) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* first = reinterpret_cast<const float*>(chain.first) + i;
  Block<kVectors> block;
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) block.values[v] = hn::LoadU(d, first + v * lanes);
  for (int k = 0; k < chain.count; ++k) {
    const Link link = chain.links[k].link;
    const bool is_uniform = chain.links[k].is_uniform;
    const auto* operand = reinterpret_cast<const float*>(chain.operands[k]);
    if (!is_uniform) operand += i;
    switch (link) {
      case Link::kAdd:
        block.template Apply<true>(Sum(), operand, is_uniform);
        break;
      case Link::kSub:
        block.template Apply<true>(Difference(), operand, is_uniform);
        break;
      case Link::kSubFrom:
        block.template Apply<false>(Difference(), operand, is_uniform);
        break;
      case Link::kMul:
        block.template Apply<true>(Product(), operand, is_uniform);
        break;
      case Link::kDiv:
        if (is_uniform) {
          block.DivideBy(*operand);
        } else {
          block.template Apply<true>(Quotient(), operand, false);
        }
        break;
      case Link::kDivInto:
        block.template Apply<false>(Quotient(), operand, is_uniform);
        break;
      case Link::kMin:
        block.template Bound<true>(FloatMinimum(), Minimum(), operand, is_uniform);
        break;
      case Link::kMinWith:
        block.template Bound<false>(FloatMinimum(), Minimum(), operand, is_uniform);
        break;
      case Link::kMax:
        block.template Bound<true>(FloatMaximum(), Maximum(), operand, is_uniform);
        break;
      case Link::kMaxWith:
        block.template Bound<false>(FloatMaximum(), Maximum(), operand, is_uniform);
        break;
      case Link::kNeg:
        block.Apply(Negate());
        break;
      case Link::kAbs:
        block.Apply(Absolute());
        break;
      case Link::kFloor:
        block.Apply(Floor());
        break;
      case Link::kCeil:
        block.Apply(Ceil());
        break;
      case Link::kRoundEven:
        block.Apply(Round());
        break;
      case Link::kTrunc:
        block.Apply(Truncate());
        break;
      case Link::kSqrt:
        block.Apply(Root());
        break;
      case Link::kExp:
        block.Apply(ExpFunction());
        break;
      case Link::kExpm1:
        block.Apply(Expm1Function());
        break;
      case Link::kLog:
        block.Apply(LogFunction());
        break;
      case Link::kLog1p:
        block.Apply(Log1pFunction());
        break;
      case Link::kTanh:
        block.Apply(TanhFunction());
        break;
      case Link::kErf:
        block.Apply(ErfFunction());
        break;
    }
  }
  float* result = reinterpret_cast<float*>(chain.result) + i;
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) hn::StoreU(block.values[v], d, result + v * lanes);
}

// Of the smaller blocks. (GCC 12 cannot compile an array of one vector for ThreadSanitizer.)
constexpr int kFewVectors = 2;

// The lanes from `i` on, fewer than a small block has.
void RunRest(const ChainOperands& chain, int64_t i) {
  constexpr size_t kLanes = kFewVectors * HWY_MAX_BYTES / sizeof(float);
  // Filled as far as it is needed: this is all there is to some chains.
  HWY_ALIGN float lanes[kMostLinks + 1][kLanes];
  const auto rest = static_cast<size_t>(chain.lanes - i) * sizeof(float);
  const int64_t offset = i * static_cast<int64_t>(sizeof(float));
  ChainOperands last = chain;
  const auto take = [&](int row, const std::byte* from) {
    std::fill_n(lanes[row], kLanes, 0.0f);
    std::memcpy(lanes[row], from + offset, rest);
  };
  take(kMostLinks, chain.first);
  last.first = last.result = reinterpret_cast<std::byte*>(lanes[kMostLinks]);
  for (int k = 0; k < chain.count; ++k) {
    if (!HasOperand(chain.links[k].link) || chain.links[k].is_uniform) continue;
    take(k, chain.operands[k]);
    last.operands[k] = reinterpret_cast<const std::byte*>(lanes[k]);
  }
  RunBlock<kFewVectors>(last, 0);
  std::memcpy(chain.result + offset, lanes[kMostLinks], rest);
}

void RunLinks(const ChainOperands& chain) {
  constexpr int kVectors = 8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  int64_t i = 0;
  for (; i + kVectors * lanes <= chain.lanes; i += kVectors * lanes) RunBlock<kVectors>(chain, i);
  for (; i + kFewVectors * lanes <= chain.lanes; i += kFewVectors * lanes) {
    RunBlock<kFewVectors>(chain, i);
  }
  if (i < chain.lanes) RunRest(chain, i);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(RunLinks);

std::optional<Link> FindLink(program::ExprOp op, bool value_is_first, LoopSet loops) {
  using program::ExprOp;
  const auto approximation = [&](Link link) {
    return loops == LoopSet::kFast ? std::optional(link) : std::nullopt;
  };
  switch (op) {
    case ExprOp::kAdd:
      return Link::kAdd;
    case ExprOp::kSub:
      return value_is_first ? Link::kSub : Link::kSubFrom;
    case ExprOp::kMul:
      return Link::kMul;
    case ExprOp::kDiv:
      return value_is_first ? Link::kDiv : Link::kDivInto;
    case ExprOp::kMin:
      return value_is_first ? Link::kMin : Link::kMinWith;
    case ExprOp::kMax:
      return value_is_first ? Link::kMax : Link::kMaxWith;
    case ExprOp::kNeg:
      return Link::kNeg;
    case ExprOp::kAbs:
      return Link::kAbs;
    case ExprOp::kFloor:
      return Link::kFloor;
    case ExprOp::kCeil:
      return Link::kCeil;
    case ExprOp::kRoundEven:
      return Link::kRoundEven;
    case ExprOp::kTrunc:
      return Link::kTrunc;
    case ExprOp::kSqrt:
      return Link::kSqrt;
    case ExprOp::kExp:
      return approximation(Link::kExp);
    case ExprOp::kExpm1:
      return approximation(Link::kExpm1);
    case ExprOp::kLog:
      return approximation(Link::kLog);
    case ExprOp::kLog1p:
      return approximation(Link::kLog1p);
    case ExprOp::kTanh:
      return approximation(Link::kTanh);
    case ExprOp::kErf:
      return approximation(Link::kErf);
    default:
      return std::nullopt;
  }
}

void RunChain(const ChainOperands& chain) { HWY_DYNAMIC_DISPATCH(RunLinks)(chain); }

}  // namespace onnxifi::engine
#endif
