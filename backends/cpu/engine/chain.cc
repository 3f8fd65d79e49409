// SPDX-License-Identifier: Apache-2.0
//
// Chain: link by link over a block of vectors, so that finding out which operation comes next costs
// little beside it.

#include "backends/cpu/engine/chain.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/chain.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/arithmetic-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

template <int kVectors, bool kValueIsFirst, class Operation>
HWY_INLINE void Apply(Operation operation, const float* operand, Vec (&values)[kVectors]) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const Vec other = hn::LoadU(d, operand + v * lanes);
    values[v] = kValueIsFirst ? operation(d, values[v], other) : operation(d, other, values[v]);
  }
}

// Lanes from `i` on, as many as kVectors have.
template <int kVectors>
HWY_INLINE void RunBlock(const ChainOperands& chain, int64_t i) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* first = reinterpret_cast<const float*>(chain.first) + i;
  Vec values[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) values[v] = hn::LoadU(d, first + v * lanes);
  for (int k = 0; k < chain.count; ++k) {
    const float* operand = reinterpret_cast<const float*>(chain.operands[k]) + i;
    switch (chain.links[k]) {
      case Link::kAdd:
        Apply<kVectors, true>(Sum(), operand, values);
        break;
      case Link::kSub:
        Apply<kVectors, true>(Difference(), operand, values);
        break;
      case Link::kSubFrom:
        Apply<kVectors, false>(Difference(), operand, values);
        break;
      case Link::kMul:
        Apply<kVectors, true>(Product(), operand, values);
        break;
      case Link::kDiv:
        Apply<kVectors, true>(Quotient(), operand, values);
        break;
      case Link::kDivInto:
        Apply<kVectors, false>(Quotient(), operand, values);
        break;
      case Link::kMin:
        Apply<kVectors, true>(FloatMinimum(), operand, values);
        break;
      case Link::kMinWith:
        Apply<kVectors, false>(FloatMinimum(), operand, values);
        break;
      case Link::kMax:
        Apply<kVectors, true>(FloatMaximum(), operand, values);
        break;
      case Link::kMaxWith:
        Apply<kVectors, false>(FloatMaximum(), operand, values);
        break;
    }
  }
  float* result = reinterpret_cast<float*>(chain.result) + i;
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) hn::StoreU(values[v], d, result + v * lanes);
}

// The lanes from `i` on, fewer than a vector has.
void RunRest(const ChainOperands& chain, int64_t i) {
  constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(float);
  HWY_ALIGN float lanes[kMostLinks + 1][kLanes] = {};
  const auto rest = static_cast<size_t>(chain.lanes - i) * sizeof(float);
  const int64_t offset = i * static_cast<int64_t>(sizeof(float));
  ChainOperands last = chain;
  std::memcpy(lanes[kMostLinks], chain.first + offset, rest);
  last.first = last.result = reinterpret_cast<std::byte*>(lanes[kMostLinks]);
  for (int k = 0; k < chain.count; ++k) {
    std::memcpy(lanes[k], chain.operands[k] + offset, rest);
    last.operands[k] = reinterpret_cast<const std::byte*>(lanes[k]);
  }
  RunBlock<1>(last, 0);
  std::memcpy(chain.result + offset, lanes[kMostLinks], rest);
}

void RunLinks(const ChainOperands& chain) {
  constexpr int kVectors = 8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  int64_t i = 0;
  for (; i + kVectors * lanes <= chain.lanes; i += kVectors * lanes) RunBlock<kVectors>(chain, i);
  for (; i + lanes <= chain.lanes; i += lanes) RunBlock<1>(chain, i);
  if (i < chain.lanes) RunRest(chain, i);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(RunLinks);

std::optional<Link> FindLink(program::ExprOp op, bool value_is_first) {
  using program::ExprOp;
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
    default:
      return std::nullopt;
  }
}

void RunChain(const ChainOperands& chain) { HWY_DYNAMIC_DISPATCH(RunLinks)(chain); }

}  // namespace onnxifi::engine
#endif
