// SPDX-License-Identifier: Apache-2.0
//
// Loops that normalise rows. Sums are those of RowReduction, so every result is the reference's but
// for the functions.

#include "backends/cpu/engine/row_normalization_loops.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/row_normalization_loops.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/arithmetic-inl.h"
#include "backends/cpu/engine/row_reduction-inl.h"
#include "backends/cpu/vector_math/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace math = vector_math::HWY_NAMESPACE;

// Rows of at most so many vectors stay in registers.
constexpr int kHeldVectors = kPartVectors < 8 ? kPartVectors : 8;
// Vectors that a loop over a longer row has under way.
constexpr int kBlockVectors = 4;

// Rows that a loop takes together, one pass after the other: while the lanes of one are joined, the
// next is under way.
constexpr int64_t kMaxGroupRows = 16;

// The greater of two elements of which neither is NaN, the second of two zeros. A row with NaN
// among its elements has a sum that is NaN, whatever its maximum.
struct Greater {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
#if ONNXIFI_EXTREMA_GIVE_SECOND
    (void)d;
    return hn::Max(a, b);
#else
    return FloatMaximum()(d, a, b);
#endif
  }
};

// Some vectors of a row, of which the last has `last` elements and the others are whole.
template <int kVectors>
struct RowBlock {
  RowVec values[kVectors];

  template <class Operation>
  HWY_INLINE void Apply(Operation operation) {
    const RowTag d;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) values[v] = operation(d, values[v]);
  }
  template <class Operation>
  HWY_INLINE void Apply(Operation operation, const float* elements, int64_t last) {
    const RowTag d;
    const RowBlock other(elements, last);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) values[v] = operation(d, values[v], other.values[v]);
  }

  HWY_INLINE RowBlock() = default;
  HWY_INLINE RowBlock(const float* elements, int64_t last) {
    const RowTag d;
#pragma GCC unroll 8
    for (int v = 0; v + 1 < kVectors; ++v) values[v] = hn::LoadU(d, elements + v * kRowLanes);
    values[kVectors - 1] = last == kRowLanes
                               ? hn::LoadU(d, elements + (kVectors - 1) * kRowLanes)
                               : LoadFirst(d, elements + (kVectors - 1) * kRowLanes, last);
  }
  HWY_INLINE void Store(float* elements, int64_t last) const {
    const RowTag d;
#pragma GCC unroll 8
    for (int v = 0; v + 1 < kVectors; ++v) hn::StoreU(values[v], d, elements + v * kRowLanes);
    if (last == kRowLanes) {
      hn::StoreU(values[kVectors - 1], d, elements + (kVectors - 1) * kRowLanes);
    } else {
      StoreFirst(d, values[kVectors - 1], elements + (kVectors - 1) * kRowLanes, last);
    }
  }
  // Puts a number behind the last element.
  HWY_INLINE void FillRest(int64_t last, float number) {
    const RowTag d;
    values[kVectors - 1] = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(last)),
                                          values[kVectors - 1], hn::Set(d, number));
  }
  // Of all lanes; each is a part of its own.
  template <class Operation>
  HWY_INLINE float Reduce(Operation operation) const {
    const RowTag d;
    RowVec parts[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) parts[v] = values[v];
#pragma GCC unroll 4
    for (int half = 4; half > 0; half /= 2) {
#pragma GCC unroll 8
      for (int v = 0; v < half; ++v) {
        if (v + half < kVectors) parts[v] = operation(d, parts[v], parts[v + half]);
      }
    }
    return JoinLanes(d, parts[0], operation);
  }
};

// Calls body(begin, block_vectors, last): as many blocks of kBlockVectors as there are, then single
// vectors, of which the last may not be whole.
template <class Body>
HWY_INLINE void ForBlocks(int64_t count, Body body) {
  constexpr int64_t kBlockLanes = int64_t{kBlockVectors} * kRowLanes;
  int64_t begin = 0;
  for (; begin + kBlockLanes <= count; begin += kBlockLanes) {
    body(begin, std::integral_constant<int, kBlockVectors>(), int64_t{kRowLanes});
  }
  for (; begin + kRowLanes <= count; begin += kRowLanes) {
    body(begin, std::integral_constant<int, 1>(), int64_t{kRowLanes});
  }
  if (begin < count) body(begin, std::integral_constant<int, 1>(), count - begin);
}

// Calls body(vectors) with the number of vectors that hold `count` elements, of which there are at
// most kHeldVectors.
template <class Body, int kVectors = 1>
HWY_INLINE void WithVectors(int64_t count, Body body) {
  if constexpr (kVectors < kHeldVectors) {
    if (count > kVectors * kRowLanes) return WithVectors<Body, kVectors + 1>(count, body);
  }
  body(std::integral_constant<int, kVectors>());
}

// The functions of the vector loops.
struct VectorFunctions {
  template <int kVectors>
  static HWY_INLINE void Exp(RowBlock<kVectors>& block) {
    const RowTag d;
    const RowVec least = hn::Set(d, -87.0f);
    auto is_moderate = hn::Ge(block.values[0], least);
#pragma GCC unroll 8
    for (int v = 1; v < kVectors; ++v) {
      is_moderate = hn::And(is_moderate, hn::Ge(block.values[v], least));
    }
    // No number is larger than 0, and NaN is not at least -87.
    if (HWY_LIKELY(hn::AllTrue(d, is_moderate))) {
      math::ExpOfModerate(d, block.values);
    } else {
      HWY_ALIGN float lanes[kVectors * kRowLanes];
      Spill(block, lanes);
      ExpOfAny<kVectors>(lanes);
      Fetch(lanes, block);
    }
  }
  static HWY_INLINE float Log(float x) {
    const RowTag d;
    return hn::GetLane(math::Log(d, hn::Set(d, x)));
  }

  template <int kVectors>
  static HWY_INLINE void Spill(const RowBlock<kVectors>& block, float* lanes) {
    const RowTag d;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::Store(block.values[v], d, lanes + v * kRowLanes);
  }
  template <int kVectors>
  static HWY_INLINE void Fetch(const float* lanes, RowBlock<kVectors>& block) {
    const RowTag d;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) block.values[v] = hn::Load(d, lanes + v * kRowLanes);
  }
  template <int kVectors>
  static HWY_NOINLINE void ExpOfAny(float* lanes) {
    const RowTag d;
    for (int v = 0; v < kVectors; ++v) {
      hn::Store(math::Exp(d, hn::Load(d, lanes + v * kRowLanes)), d, lanes + v * kRowLanes);
    }
  }
};

// Those of the reference.
struct ReferenceFunctions {
  template <int kVectors>
  static HWY_NOINLINE void Exp(RowBlock<kVectors>& block) {
    HWY_ALIGN float lanes[kVectors * kRowLanes];
    VectorFunctions::Spill(block, lanes);
    for (float& lane : lanes) lane = std::exp(lane);
    VectorFunctions::Fetch(lanes, block);
  }
  static float Log(float x) { return std::log(x); }
};

// What the steps of a softmax are rounded to, as a float32.
struct Float32Rounding {
  static HWY_INLINE RowVec Round(RowTag, RowVec x) { return x; }
};

// As tensor::Bfloat16Format::Encode.
struct Bfloat16Rounding {
  static HWY_INLINE RowVec Round(RowTag d, RowVec x) {
    const hn::RebindToUnsigned<RowTag> bits;
    const auto code = hn::BitCast(bits, x);
    const auto is_odd = hn::And(hn::ShiftRight<16>(code), hn::Set(bits, 1U));
    const auto rounded = hn::Add(hn::Add(code, hn::Set(bits, 0x7fffU)), is_odd);
    const auto upper = hn::BitCast(d, hn::And(rounded, hn::Set(bits, 0xffff'0000U)));
    const auto nan = hn::BitCast(
        d, hn::Or(hn::And(code, hn::Set(bits, 0x8000'0000U)), hn::Set(bits, 0x7fc0'0000U)));
    return hn::IfThenElse(hn::IsNaN(x), nan, upper);
  }
};

// Processors with AVX2 convert these.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
struct Float16Rounding {
  static HWY_INLINE RowVec Round(RowTag d, RowVec x) {
    const hn::Rebind<hwy::float16_t, RowTag> half;
    return hn::PromoteTo(d, hn::DemoteTo(half, x));
  }
};
#endif

template <class Rounding>
HWY_INLINE float RoundNumber(float x) {
  const RowTag d;
  return hn::GetLane(Rounding::Round(d, hn::Set(d, x)));
}

// A row of `kVectors` vectors, `last` elements in the last of them.
template <class Functions, class Rounding, bool is_logarithm, int kVectors>
HWY_INLINE void NormalizeHeldRow(const float* x, int64_t last, float* result) {
  const RowTag d;
  RowBlock<kVectors> block(x, last);
  block.FillRest(last, -kRowInfinity);
  // The state that a maximum begins with is no larger than any element.
  const float greatest = block.Reduce(Greater());
  block.FillRest(last, greatest);
  const RowVec max = hn::Set(d, greatest);
  block.Apply([&](RowTag, RowVec value)
                  HWY_ATTR { return Rounding::Round(d, hn::Sub(value, max)); });
  RowBlock<kVectors> powers = block;
  Functions::Exp(powers);
  powers.Apply([&](RowTag, RowVec value) HWY_ATTR { return Rounding::Round(d, value); });
  RowBlock<kVectors> summands = powers;
  summands.FillRest(last, kNoSummand);
  const float total = RoundNumber<Rounding>(summands.Reduce(Sum()));
  if (is_logarithm) {
    const RowVec logarithm = hn::Set(d, RoundNumber<Rounding>(Functions::Log(total)));
    block.Apply([&](RowTag, RowVec value) HWY_ATTR { return hn::Sub(value, logarithm); });
    block.Store(result, last);
  } else {
    const RowVec sum = hn::Set(d, total);
    powers.Apply([&](RowTag, RowVec value) HWY_ATTR { return hn::Div(value, sum); });
    powers.Store(result, last);
  }
}

// Up to kMaxGroupRows rows from `first` on.
template <class Functions, class Rounding, bool is_logarithm>
HWY_INLINE void NormalizeGroup(const RowOperands& rows, int64_t first, int64_t group,
                               float* exponentials) {
  const RowTag d;
  const int64_t count = rows.count;
  const float* const x = rows.x + first * rows.x_step;
  float* const result = rows.result + first * rows.result_step;
  float* const powers = is_logarithm ? exponentials : result;
  const int64_t power_step = is_logarithm ? count : rows.result_step;
  float greatest[kMaxGroupRows];
  float sums[kMaxGroupRows];
  for (int64_t row = 0; row < group; ++row) {
    greatest[row] = ReduceRow<kPartVectors>(x + row * rows.x_step, count, -kRowInfinity,
                                            -kRowInfinity, Greater());
  }
  for (int64_t row = 0; row < group; ++row) {
    const RowVec max = hn::Set(d, greatest[row]);
    ForBlocks(count, [&](int64_t begin, auto vectors, int64_t last) HWY_ATTR {
      RowBlock<vectors()> block(x + row * rows.x_step + begin, last);
      if (last < kRowLanes) block.FillRest(last, greatest[row]);
      block.Apply([&](RowTag, RowVec value)
                      HWY_ATTR { return Rounding::Round(d, hn::Sub(value, max)); });
      Functions::Exp(block);
      block.Apply([&](RowTag, RowVec value) HWY_ATTR { return Rounding::Round(d, value); });
      block.Store(powers + row * power_step + begin, last);
    });
  }
  for (int64_t row = 0; row < group; ++row) {
    sums[row] = RoundNumber<Rounding>(
        ReduceRow<kPartVectors>(powers + row * power_step, count, 0.0f, kNoSummand, Sum()));
    if (is_logarithm) sums[row] = RoundNumber<Rounding>(Functions::Log(sums[row]));
  }
  for (int64_t row = 0; row < group; ++row) {
    const RowVec max = hn::Set(d, greatest[row]);
    const RowVec sum = hn::Set(d, sums[row]);
    const float* const from = is_logarithm ? x + row * rows.x_step : powers + row * power_step;
    ForBlocks(count, [&](int64_t begin, auto vectors, int64_t last) HWY_ATTR {
      RowBlock<vectors()> block(from + begin, last);
      block.Apply([&](RowTag, RowVec value) HWY_ATTR {
        return is_logarithm ? hn::Sub(Rounding::Round(d, hn::Sub(value, max)), sum)
                            : hn::Div(value, sum);
      });
      block.Store(result + row * rows.result_step + begin, last);
    });
  }
}

// Calls body(first row, rows) for groups of rows.
template <class Body>
HWY_INLINE void ForGroups(const RowOperands& rows, Body body) {
  const int64_t group = std::clamp<int64_t>(kRowGroupElements / rows.count, 1, kMaxGroupRows);
  for (int64_t row = 0; row < rows.rows; row += group) {
    body(row, std::min(group, rows.rows - row));
  }
}

template <class Functions, class Rounding, bool is_logarithm>
void RunSoftmax(const RowOperands& rows, float* exponentials) {
  if (rows.count > kHeldVectors * kRowLanes) {
    ForGroups(rows, [&](int64_t first, int64_t group) HWY_ATTR {
      NormalizeGroup<Functions, Rounding, is_logarithm>(rows, first, group, exponentials);
    });
    return;
  }
  WithVectors(rows.count, [&](auto vectors) HWY_ATTR {
    const int64_t last = rows.count - (vectors() - 1) * kRowLanes;
    for (int64_t row = 0; row < rows.rows; ++row) {
      NormalizeHeldRow<Functions, Rounding, is_logarithm, vectors()>(
          rows.x + row * rows.x_step, last, rows.result + row * rows.result_step);
    }
  });
}

template <class Rounding>
void RoundRows(const RowOperands& rows) {
  const RowTag d;
  for (int64_t row = 0; row < rows.rows; ++row) {
    float* const result = rows.result + row * rows.result_step;
    ForBlocks(rows.count, [&](int64_t begin, auto vectors, int64_t last) HWY_ATTR {
      RowBlock<vectors()> block(result + begin, last);
      block.Apply([&](RowTag, RowVec value) HWY_ATTR { return Rounding::Round(d, value); });
      block.Store(result + begin, last);
    });
  }
}

// What is done to every element once the sums are known.
struct Finish {
  const MomentOperands& operands;
  const float* scale;
  const float* bias;

  HWY_INLINE Finish(const MomentOperands& of, int64_t row)
      : operands(of),
        scale(of.scale.values + row * of.scale.step),
        bias(of.bias.values + row * of.bias.step) {}

  static HWY_INLINE RowVec Number(const float* number) {
    float value;
    std::memcpy(&value, number, sizeof(value));
    return hn::Set(RowTag(), value);
  }
  // `block` is that at element `begin`.
  template <int kVectors>
  HWY_INLINE void Apply(RowBlock<kVectors>& block, RowVec inverse, int64_t begin,
                        int64_t last) const {
    block.Apply([&](RowTag, RowVec value) HWY_ATTR { return hn::Mul(value, inverse); });
    if (operands.scale.values != nullptr) {
      if (operands.scale.is_number) {
        const RowVec factor = Number(scale);
        block.Apply([&](RowTag, RowVec value) HWY_ATTR { return hn::Mul(value, factor); });
      } else {
        block.Apply(Product(), scale + begin, last);
      }
    }
    if (operands.bias.values != nullptr) {
      if (operands.bias.is_number) {
        const RowVec summand = Number(bias);
        block.Apply([&](RowTag, RowVec value) HWY_ATTR { return hn::Add(value, summand); });
      } else {
        block.Apply(Sum(), bias + begin, last);
      }
    }
  }
};

HWY_INLINE float InverseDeviation(float squares, const MomentOperands& operands) {
  const float variance = squares / operands.divisor;
  return 1.0f / std::sqrt(variance + operands.epsilon);
}

template <bool subtracts_mean, int kVectors>
HWY_INLINE void NormalizeHeldMoments(const MomentOperands& operands, int64_t row, int64_t last) {
  const RowTag d;
  const RowOperands& rows = operands.rows;
  RowBlock<kVectors> block(rows.x + row * rows.x_step, last);
  const auto sum_up = [&](const RowBlock<kVectors>& summands) HWY_ATTR {
    RowBlock<kVectors> parts = summands;
    // A state of 0 takes every element.
    parts.Apply([](RowTag tag, RowVec value) HWY_ATTR { return hn::Add(hn::Zero(tag), value); });
    parts.FillRest(last, kNoSummand);
    return parts.Reduce(Sum());
  };
  if (subtracts_mean) {
    const RowVec mean = hn::Set(d, sum_up(block) / operands.divisor);
    block.Apply([&](RowTag, RowVec value) HWY_ATTR { return hn::Sub(value, mean); });
  }
  RowBlock<kVectors> squares = block;
  squares.Apply([](RowTag, RowVec value) HWY_ATTR { return hn::Mul(value, value); });
  const RowVec inverse = hn::Set(d, InverseDeviation(sum_up(squares), operands));
  Finish(operands, row).Apply(block, inverse, 0, last);
  block.Store(rows.result + row * rows.result_step, last);
}

// Up to kMaxGroupRows rows from `first` on.
template <bool subtracts_mean>
HWY_INLINE void NormalizeGroupMoments(const MomentOperands& operands, int64_t first,
                                      int64_t group) {
  const RowTag d;
  const RowOperands& rows = operands.rows;
  const float* const x = rows.x + first * rows.x_step;
  float* const result = rows.result + first * rows.result_step;
  float means[kMaxGroupRows] = {};
  float inverses[kMaxGroupRows];
  for (int64_t row = 0; subtracts_mean && row < group; ++row) {
    means[row] =
        ReduceRow<kPartVectors>(x + row * rows.x_step, rows.count, 0.0f, kNoSummand, Sum()) /
        operands.divisor;
  }
  const auto from_mean = [](RowVec value, RowVec mean)
                             HWY_ATTR { return subtracts_mean ? hn::Sub(value, mean) : value; };
  for (int64_t row = 0; row < group; ++row) {
    const RowVec mean = hn::Set(d, means[row]);
    const float squares =
        ReduceRow<kPartVectors>(x + row * rows.x_step, rows.count, 0.0f, kNoSummand, Sum(),
                                [&](RowTag, RowVec value) HWY_ATTR {
                                  const RowVec distance = from_mean(value, mean);
                                  return hn::Mul(distance, distance);
                                });
    inverses[row] = InverseDeviation(squares, operands);
  }
  for (int64_t row = 0; row < group; ++row) {
    const RowVec mean = hn::Set(d, means[row]);
    const RowVec inverse = hn::Set(d, inverses[row]);
    const Finish finish(operands, first + row);
    ForBlocks(rows.count, [&](int64_t begin, auto vectors, int64_t last) HWY_ATTR {
      RowBlock<vectors()> block(x + row * rows.x_step + begin, last);
      block.Apply([&](RowTag, RowVec value) HWY_ATTR { return from_mean(value, mean); });
      finish.Apply(block, inverse, begin, last);
      block.Store(result + row * rows.result_step + begin, last);
    });
  }
}

template <bool subtracts_mean>
void RunMoments(const MomentOperands& operands) {
  const RowOperands& rows = operands.rows;
  if (rows.count > kHeldVectors * kRowLanes) {
    ForGroups(rows, [&](int64_t first, int64_t group) HWY_ATTR {
      NormalizeGroupMoments<subtracts_mean>(operands, first, group);
    });
    return;
  }
  WithVectors(rows.count, [&](auto vectors) HWY_ATTR {
    const int64_t last = rows.count - (vectors() - 1) * kRowLanes;
    for (int64_t row = 0; row < rows.rows; ++row) {
      NormalizeHeldMoments<subtracts_mean, vectors()>(operands, row, last);
    }
  });
}

void RunNormalize(const MomentOperands& operands) {
  return operands.subtracts_mean ? RunMoments<true>(operands) : RunMoments<false>(operands);
}

template <class Rounding>
SoftmaxLoop FindRounded(bool is_logarithm, LoopSet loops) {
  if (loops == LoopSet::kReference) {
    return is_logarithm ? RunSoftmax<ReferenceFunctions, Rounding, true>
                        : RunSoftmax<ReferenceFunctions, Rounding, false>;
  }
  return is_logarithm ? RunSoftmax<VectorFunctions, Rounding, true>
                      : RunSoftmax<VectorFunctions, Rounding, false>;
}

SoftmaxLoop FindSoftmax(bool is_logarithm, tensor::ElementType rounding, LoopSet loops) {
  switch (rounding) {
    case tensor::ElementType::kFloat32:
      return FindRounded<Float32Rounding>(is_logarithm, loops);
    case tensor::ElementType::kBfloat16:
      return FindRounded<Bfloat16Rounding>(is_logarithm, loops);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    case tensor::ElementType::kFloat16:
      return FindRounded<Float16Rounding>(is_logarithm, loops);
#endif
    default:
      return nullptr;
  }
}

RoundingLoop FindRounding(tensor::ElementType type) {
  if (type == tensor::ElementType::kBfloat16) return RoundRows<Bfloat16Rounding>;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if (type == tensor::ElementType::kFloat16) return RoundRows<Float16Rounding>;
#endif
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(FindSoftmax);
HWY_EXPORT(FindRounding);
HWY_EXPORT(RunNormalize);

SoftmaxLoop FindSoftmaxLoop(bool is_logarithm, tensor::ElementType rounding, LoopSet loops) {
  return HWY_DYNAMIC_DISPATCH(FindSoftmax)(is_logarithm, rounding, loops);
}

RoundingLoop FindRoundingLoop(tensor::ElementType type) {
  return HWY_DYNAMIC_DISPATCH(FindRounding)(type);
}

void NormalizeRows(const MomentOperands& operands) { HWY_DYNAMIC_DISPATCH(RunNormalize)(operands); }

}  // namespace onnxifi::engine
#endif
