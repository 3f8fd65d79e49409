// SPDX-License-Identifier: Apache-2.0
//
// RunFused: the operations are first written down as steps of one or two instructions, and then
// done to block after block. A block among whose values is one that is no number, and every block
// of a chain with other operations, goes through the loops of casts and of float32.

#include "backends/cpu/engine/cast_chain.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/cast_chain.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/arithmetic-inl.h"
#include "backends/cpu/engine/quantization-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using tensor::ElementType;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

ElementType TypeOf(FusedLanes lanes) {
  switch (lanes) {
    case FusedLanes::kInt32:
      return ElementType::kInt32;
    case FusedLanes::kUint8:
      return ElementType::kUint8;
    case FusedLanes::kInt8:
      return ElementType::kInt8;
    default:
      return ElementType::kFloat32;
  }
}

// `fused` from lane `begin` on, `count` lanes of it.
FusedOperands LanesOf(const FusedOperands& fused, int64_t begin, int64_t count) {
  FusedOperands some = fused;
  some.lanes = count;
  some.first += begin * LaneBytesOf(fused.first_lanes);
  some.result += begin * LaneBytesOf(fused.result_lanes);
  for (int k = 0; k < some.count; ++k) {
    if (HasOperand(some.operations[k].op) && !some.operations[k].is_uniform) {
      some.operands[k] += begin * static_cast<int64_t>(sizeof(float));
    }
  }
  return some;
}

// Loop after loop, in pieces that stay in the L1 cache between them. Only the last writes where the
// result is: that may be what an operand is read from.
void RunLoops(const FusedOperands& fused) {
  constexpr int64_t kLanes = 1024;
  HWY_ALIGN float floats[kLanes];
  auto* const between = reinterpret_cast<std::byte*>(floats);
  const auto cast = [](const std::byte* from, FusedLanes from_lanes, std::byte* to,
                       FusedLanes to_lanes, int64_t count) {
    const ElementType from_type = TypeOf(from_lanes), to_type = TypeOf(to_lanes);
    FindCastLoop(from_type, to_type)({to, {from}, count, 0, to_type, from_type});
  };
  for (int64_t begin = 0; begin < fused.lanes; begin += kLanes) {
    FusedOperands piece = LanesOf(fused, begin, std::min(kLanes, fused.lanes - begin));
    std::byte* const result = piece.result;
    const bool makes_bytes = piece.result_lanes != FusedLanes::kFloat32;
    if (piece.first_lanes != FusedLanes::kFloat32) {
      std::byte* const to = makes_bytes || piece.count > 0 ? between : result;
      cast(piece.first, piece.first_lanes, to, FusedLanes::kFloat32, piece.lanes);
      piece.first = to;
    }
    if (piece.count > 0) {
      piece.result = makes_bytes ? between : result;
      piece.first_lanes = piece.result_lanes = FusedLanes::kFloat32;
      RunFloatChain(piece);
      piece.first = piece.result;
    }
    if (makes_bytes)
      cast(piece.first, FusedLanes::kFloat32, result, fused.result_lanes, piece.lanes);
  }
}

enum class StepKind : uint8_t {
  kAdd,
  kAddLanes,
  kSubLanes,
  kMul,
  kMulLanes,
  kMin,
  kMax,
  kQuantize
};

struct Step {
  StepKind kind;
  float number;  // kAdd, kMul, kMin, kMax
  int position;  // kAddLanes, kSubLanes, kMulLanes: of the operand; kQuantize: in quantizations
};

struct Steps {
  // A bound may take two.
  Step steps[2 * kMaxFusedOperations];
  Quantization quantizations[kMaxFusedOperations / kQuantizeLength];
  int count;  // of steps
};

bool IsInteger(float x) { return x == std::trunc(x); }

// Whether the numbers between the two are those of bytes of a type.
bool AreBytes(float low, float high, bool is_signed) {
  return low <= high && low >= (is_signed ? -128.0f : 0.0f) &&
         high <= (is_signed ? 127.0f : 255.0f);
}

// Writes the operations as steps; false where some can be none.
bool FindSteps(const FusedOperands& fused, Steps& found) {
  int count = 0, quantizations = 0;
  Step* const steps = found.steps;
  bool is_integer = false;  // the value, from `low` to `high`
  float low = 0, high = 0;
  for (int k = 0; k < fused.count; ++k) {
    const FusedOperation& operation = fused.operations[k];
    const float number = HasOperand(operation.op) && operation.is_uniform
                             ? *reinterpret_cast<const float*>(fused.operands[k])
                             : 0;
    const bool was_integer = is_integer;
    is_integer = false;
    switch (operation.op) {
      case FusedOp::kAdd:
        steps[count++] = {operation.is_uniform ? StepKind::kAdd : StepKind::kAddLanes, number, k};
        break;
      case FusedOp::kSub:
        steps[count++] = {operation.is_uniform ? StepKind::kAdd : StepKind::kSubLanes, -number, k};
        break;
      case FusedOp::kMul:
        steps[count++] = {operation.is_uniform ? StepKind::kMul : StepKind::kMulLanes, number, k};
        break;
      case FusedOp::kDiv: {
        if (operation.begins != FusedPattern::kQuantize) return false;
        const Quantization quantization(fused.operands + k);
        if (!quantization.is_known) return false;
        found.quantizations[quantizations] = quantization;
        steps[count++] = {StepKind::kQuantize, 0, quantizations++};
        k += kQuantizeLength - 1;
        low = quantization.low;
        high = quantization.high;
        is_integer = IsInteger(quantization.sum) && IsInteger(low) && IsInteger(high);
        break;
      }
      case FusedOp::kWrapInt8:
      case FusedOp::kWrapUint8:
        if (!was_integer || !AreBytes(low, high, operation.op == FusedOp::kWrapInt8)) return false;
        break;
      case FusedOp::kMin:
      case FusedOp::kMinWith:
      case FusedOp::kMax:
      case FusedOp::kMaxWith: {
#if ONNXIFI_EXTREMA_GIVE_SECOND
        const bool value_is_first = operation.op == FusedOp::kMin || operation.op == FusedOp::kMax;
        const bool is_minus_zero = number == 0 && std::signbit(number);
        if (!operation.is_uniform || number != number || (value_is_first && is_minus_zero)) {
          return false;
        }
        const bool is_min = operation.op == FusedOp::kMin || operation.op == FusedOp::kMinWith;
        steps[count++] = {is_min ? StepKind::kMin : StepKind::kMax, number, k};
        // -0 becomes 0, and nothing else changes.
        if (value_is_first && number == 0) steps[count++] = {StepKind::kAdd, 0, k};
        break;
#else
        return false;
#endif
      }
      default:
        return false;
    }
  }
  const bool makes_bytes = fused.result_lanes != FusedLanes::kFloat32;
  const bool are_bytes = is_integer && AreBytes(low, high, fused.result_lanes == FusedLanes::kInt8);
  found.count = count;
  return !makes_bytes || are_bytes;
}

template <typename T>
HWY_INLINE Vec LoadAsFloat(const T* from) {
  const Tag d;
  const hn::Rebind<T, Tag> narrow;
  if constexpr (std::is_same_v<T, float>) {
    return hn::LoadU(d, from);
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return hn::ConvertTo(d, hn::LoadU(narrow, from));
  } else {
    return hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<Tag>(), hn::LoadU(narrow, from)));
  }
}

// Integers that Byte holds.
template <int kVectors, typename Byte>
HWY_INLINE void StoreBytes(const Vec* values, Byte* bytes) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
#if HWY_TARGET == HWY_AVX2
  static_assert(kVectors % 4 == 0);
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; v += 4) {
    const auto pack = [&](int k) HWY_ATTR {
      return _mm256_packs_epi32(_mm256_cvttps_epi32(values[v + k].raw),
                                _mm256_cvttps_epi32(values[v + k + 1].raw));
    };
    // Halves of vectors stay apart until the end.
    const __m256i packed = std::is_signed_v<Byte> ? _mm256_packs_epi16(pack(0), pack(2))
                                                  : _mm256_packus_epi16(pack(0), pack(2));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(bytes + v * lanes),
                        _mm256_permutevar8x32_epi32(packed, order));
  }
#elif HWY_TARGET == HWY_AVX3
  static_assert(kVectors % 4 == 0);
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; v += 4) {
    const auto pack = [&](int k) HWY_ATTR {
      return _mm512_packs_epi32(_mm512_cvttps_epi32(values[v + k].raw),
                                _mm512_cvttps_epi32(values[v + k + 1].raw));
    };
    const __m512i packed = std::is_signed_v<Byte> ? _mm512_packs_epi16(pack(0), pack(2))
                                                  : _mm512_packus_epi16(pack(0), pack(2));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(bytes + v * lanes, _mm512_permutexvar_epi32(order, packed));
  }
#else
  const hn::RebindToSigned<Tag> wide;
  const hn::Rebind<Byte, Tag> narrow;
  for (int v = 0; v < kVectors; ++v) {
    hn::StoreU(hn::DemoteTo(narrow, hn::ConvertTo(wide, values[v])), narrow, bytes + v * lanes);
  }
#endif
}

constexpr int kVectors = 8;
constexpr size_t kMaxBlockLanes = kVectors * HWY_MAX_BYTES / sizeof(float);

// The lanes of a block from `i` on. False, and nothing is written, where one is no number.
template <typename T, typename Result>
HWY_INLINE bool RunBlock(const FusedOperands& fused, const Steps& steps, int64_t i) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* const first = reinterpret_cast<const T*>(fused.first) + i;
  Vec values[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) values[v] = LoadAsFloat(first + v * lanes);
  for (const Step* step = steps.steps; step != steps.steps + steps.count; ++step) {
    const Vec number = hn::Set(d, step->number);
    const auto operand_at = [&](int v) HWY_ATTR {
      const auto* lanes_of = reinterpret_cast<const float*>(fused.operands[step->position]);
      return hn::LoadU(d, lanes_of + i + v * lanes);
    };
    switch (step->kind) {
      case StepKind::kAdd:
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) values[v] = hn::Add(values[v], number);
        break;
      case StepKind::kAddLanes:
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          values[v] = hn::Add(values[v], operand_at(v));
        }
        break;
      case StepKind::kSubLanes:
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          values[v] = hn::Sub(values[v], operand_at(v));
        }
        break;
      case StepKind::kMul:
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) values[v] = hn::Mul(values[v], number);
        break;
      case StepKind::kMulLanes:
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          values[v] = hn::Mul(values[v], operand_at(v));
        }
        break;
      // What is no number stays none where it is the second operand.
      case StepKind::kMin:
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) values[v] = hn::Min(number, values[v]);
        break;
      case StepKind::kMax:
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) values[v] = hn::Max(number, values[v]);
        break;
      case StepKind::kQuantize: {
        const Quantization& quantization = steps.quantizations[step->position];
        constexpr int kHalf = kVectors / 2;
        if (!quantization.Run<kHalf>(values) || !quantization.Run<kHalf>(values + kHalf)) {
          return false;
        }
        break;
      }
    }
  }
  Result* const result = reinterpret_cast<Result*>(fused.result) + i;
  if constexpr (std::is_same_v<Result, float>) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::StoreU(values[v], d, result + v * lanes);
  } else {
    StoreBytes<kVectors>(values, result);
  }
  return true;
}

// The lanes from `i` on, fewer than a block has.
template <typename T, typename Result>
void RunRest(const FusedOperands& fused, const Steps& steps, int64_t i) {
  const FusedOperands rest = LanesOf(fused, i, fused.lanes - i);
  HWY_ALIGN float lanes[kMaxFusedOperations][kMaxBlockLanes];
  HWY_ALIGN T first[kMaxBlockLanes];
  HWY_ALIGN Result result[kMaxBlockLanes];
  const auto take = [&](const std::byte* from, auto* to) {
    const auto taken = static_cast<size_t>(rest.lanes);
    std::memcpy(to, from, taken * sizeof(*to));
    std::memset(to + taken, 0, (kMaxBlockLanes - taken) * sizeof(*to));
  };
  FusedOperands padded = rest;
  take(rest.first, first);
  padded.first = reinterpret_cast<const std::byte*>(first);
  padded.result = reinterpret_cast<std::byte*>(result);
  for (int k = 0; k < rest.count; ++k) {
    if (!HasOperand(rest.operations[k].op) || rest.operations[k].is_uniform) continue;
    take(rest.operands[k], lanes[k]);
    padded.operands[k] = reinterpret_cast<const std::byte*>(lanes[k]);
  }
  if (!RunBlock<T, Result>(padded, steps, 0)) return RunLoops(rest);
  std::memcpy(rest.result, result, static_cast<size_t>(rest.lanes) * sizeof(Result));
}

// Whether the last block may begin before the block in front of it ends: nothing that is read is
// overwritten.
bool CanRepeat(const FusedOperands& fused) {
  const int64_t block = kVectors * static_cast<int64_t>(hn::Lanes(Tag()));
  bool is_apart = fused.result != fused.first;
  for (int k = 0; k < fused.count; ++k) {
    const FusedOperation& operation = fused.operations[k];
    if (HasOperand(operation.op) && !operation.is_uniform) {
      is_apart = is_apart && fused.result != fused.operands[k];
    }
  }
  return is_apart && fused.lanes >= block;
}

// Lanes from the first on of a chain that does nothing but quantize floats: its numbers stay in
// registers. Returns how many: all, or as many as whole blocks have.
template <typename Result>
int64_t QuantizeBlocks(const FusedOperands& fused, const Quantization quantization) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* from = reinterpret_cast<const float*>(fused.first);
  auto* to = reinterpret_cast<Result*>(fused.result);
  const int64_t block = kVectors * lanes;
  const auto quantize = [&](int64_t i) HWY_ATTR {
    Vec values[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) values[v] = hn::LoadU(d, from + i + v * lanes);
    if (HWY_LIKELY(quantization.RunBounded<kVectors>(values))) {
      StoreBytes<kVectors>(values, to + i);
    } else {
      RunLoops(LanesOf(fused, i, block));
    }
  };
  int64_t i = 0;
  for (; i + block <= fused.lanes; i += block) quantize(i);
  if (i == fused.lanes || !CanRepeat(fused)) return i;
  quantize(fused.lanes - block);
  return fused.lanes;
}

template <typename T, typename Result>
void RunSteps(const FusedOperands& fused, const Steps& steps) {
  const int64_t block = kVectors * static_cast<int64_t>(hn::Lanes(Tag()));
  int64_t i = 0;
  if constexpr (std::is_same_v<T, float> && !std::is_same_v<Result, float>) {
    const bool quantizes = steps.count == 1 && steps.steps[0].kind == StepKind::kQuantize &&
                           steps.quantizations[0].is_bounded;
    if (quantizes) i = QuantizeBlocks<Result>(fused, steps.quantizations[0]);
  }
  for (; i + block <= fused.lanes; i += block) {
    if (HWY_UNLIKELY((!RunBlock<T, Result>(fused, steps, i)))) {
      RunLoops(LanesOf(fused, i, block));
    }
  }
  if (i == fused.lanes) return;
  if (!CanRepeat(fused) || !RunBlock<T, Result>(fused, steps, fused.lanes - block)) {
    RunRest<T, Result>(fused, steps, i);
  }
}

template <typename T>
void RunStepsFrom(const FusedOperands& fused, const Steps& steps) {
  switch (fused.result_lanes) {
    case FusedLanes::kUint8:
      return RunSteps<T, uint8_t>(fused, steps);
    case FusedLanes::kInt8:
      return RunSteps<T, int8_t>(fused, steps);
    default:
      return RunSteps<T, float>(fused, steps);
  }
}

void RunChain(const FusedOperands& fused) {
  Steps steps;
  if (fused.lanes == 1 || !FindSteps(fused, steps)) return RunLoops(fused);
  switch (fused.first_lanes) {
    case FusedLanes::kInt32:
      return RunStepsFrom<int32_t>(fused, steps);
    case FusedLanes::kUint8:
      return RunStepsFrom<uint8_t>(fused, steps);
    case FusedLanes::kInt8:
      return RunStepsFrom<int8_t>(fused, steps);
    case FusedLanes::kFloat32:
      return RunStepsFrom<float>(fused, steps);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(RunChain);

std::optional<FusedLanes> FindCastFrom(tensor::ElementType type) {
  switch (type) {
    case tensor::ElementType::kInt32:
      return FusedLanes::kInt32;
    case tensor::ElementType::kUint8:
      return FusedLanes::kUint8;
    case tensor::ElementType::kInt8:
      return FusedLanes::kInt8;
    default:
      return std::nullopt;
  }
}

std::optional<FusedLanes> FindCastTo(tensor::ElementType type) {
  const std::optional<FusedLanes> lanes = FindCastFrom(type);
  return lanes != FusedLanes::kInt32 ? lanes : std::nullopt;
}

void RunFused(const FusedOperands& fused) {
  const auto is_wrap = [](const FusedOperation& operation) {
    return operation.op == FusedOp::kWrapInt8 || operation.op == FusedOp::kWrapUint8;
  };
  const bool casts = fused.first_lanes != FusedLanes::kFloat32 ||
                     fused.result_lanes != FusedLanes::kFloat32 ||
                     std::any_of(fused.operations, fused.operations + fused.count, is_wrap);
  casts ? HWY_DYNAMIC_DISPATCH(RunChain)(fused) : RunFloatChain(fused);
}

}  // namespace onnxifi::engine
#endif
