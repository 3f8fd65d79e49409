// SPDX-License-Identifier: Apache-2.0
//
// ScoreRows: a row at a time, first its largest score, then its weights and their sum. Sums are
// taken in 16 parts, whatever the vectors are, and these are added up by halves.

#include "backends/cpu/attention/score_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention/score_rows.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/gemm/partial-inl.h"
#include "backends/cpu/vector_math/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::attention {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, 16>;
using Vec = hn::Vec<Tag>;

constexpr int64_t kParts = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Calls visit(first, count) for vectors of a row: whole ones, then what is left.
template <class Visit>
HWY_INLINE void ForVectors(int64_t count, const Visit& visit) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  int64_t n = 0;
  for (; n + lanes <= count; n += lanes) visit(n, lanes);
  if (n < count) visit(n, count - n);
}

HWY_INLINE Vec LoadSome(const float* from, int64_t count) {
  const Tag d;
  return count == static_cast<int64_t>(hn::Lanes(d))
             ? hn::LoadU(d, from)
             : gemm::HWY_NAMESPACE::LoadFirst(d, from, count);
}
HWY_INLINE void StoreSome(Vec v, float* to, int64_t count) {
  const Tag d;
  if (count == static_cast<int64_t>(hn::Lanes(d))) {
    hn::StoreU(v, d, to);
  } else {
    gemm::HWY_NAMESPACE::StoreFirst(d, v, to, count);
  }
}

template <bool divides, class Addend>
HWY_INLINE void ScaleWith(float factor, float* row, int64_t keys, const Addend& addend) {
  const Tag d;
  const Vec scale = hn::Set(d, factor);
  ForVectors(keys, [&](int64_t n, int64_t count) HWY_ATTR {
    const Vec score = LoadSome(row + n, count);
    const Vec scaled = divides ? hn::Div(score, scale) : hn::Mul(score, scale);
    StoreSome(addend(scaled, n, count), row + n, count);
  });
}

template <bool divides>
HWY_INLINE void ScaleBy(const Scaling& scaling, float* row, int64_t keys) {
  const Tag d;
  if (scaling.addend == nullptr) {
    ScaleWith<divides>(scaling.factor, row, keys,
                       [](Vec score, int64_t, int64_t) HWY_ATTR { return score; });
  } else if (scaling.is_addend_one) {
    const Vec addend = hn::Set(d, gemm::HWY_NAMESPACE::FloatAt(scaling.addend));
    ScaleWith<divides>(scaling.factor, row, keys, [addend](Vec score, int64_t, int64_t) HWY_ATTR {
      return hn::Add(score, addend);
    });
  } else {
    ScaleWith<divides>(scaling.factor, row, keys,
                       [&](Vec score, int64_t n, int64_t count) HWY_ATTR {
                         return hn::Add(score, LoadSome(scaling.addend + n, count));
                       });
  }
}

void ScaleOneRow(const Scaling& scaling, float* row, int64_t keys) {
  // By a power of two division and multiplication round alike.
  int exponent = 0;
  const bool is_power = std::fabs(std::frexp(scaling.factor, &exponent)) == 0.5F;
  Scaling by = scaling;
  if (scaling.divides && is_power && std::abs(exponent) < 100) {
    by.factor = 1 / scaling.factor;
    by.divides = false;
  }
  by.divides ? ScaleBy<true>(by, row, keys) : ScaleBy<false>(by, row, keys);
}

// exp(x) for x <= 0, NaN for NaN; 0 where the result is no normal number.
HWY_INLINE Vec ExpBelowZero(Vec x) {
  const Tag d;
  const auto vanishes = hn::Lt(x, hn::Set(d, -87.0F));
  Vec n;
  const Vec power = vector_math::HWY_NAMESPACE::ExpOfRest(d, hn::IfThenZeroElse(vanishes, x), n);
  return hn::IfThenZeroElse(vanishes, vector_math::HWY_NAMESPACE::TimesPowerOfTwo(d, power, n));
}

float LargestInRow(const float* row, int64_t keys) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vec largest[4];
  for (Vec& part : largest) part = hn::Set(d, -kInfinity);
  int64_t n = 0;
  for (; n + 4 * lanes <= keys; n += 4 * lanes) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      largest[k] = hn::Max(largest[k], hn::LoadU(d, row + n + k * lanes));
    }
  }
  for (; n + lanes <= keys; n += lanes) largest[0] = hn::Max(largest[0], hn::LoadU(d, row + n));
  if (n < keys) {
    const Vec rest = gemm::HWY_NAMESPACE::LoadFirst(d, row + n, keys - n);
    const auto is_in = hn::FirstN(d, static_cast<size_t>(keys - n));
    largest[1] = hn::Max(largest[1], hn::IfThenElse(is_in, rest, hn::Set(d, -kInfinity)));
  }
  const Vec both = hn::Max(hn::Max(largest[0], largest[1]), hn::Max(largest[2], largest[3]));
  return hn::GetLane(hn::MaxOfLanes(d, both));
}

// The sum of kParts floats by halves.
HWY_INLINE float AddUp(float* parts) {
  for (int64_t half = kParts / 2; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) parts[k] += parts[k + half];
  }
  return parts[0];
}

// Makes weights of a row, and gives their sum.
float WeighRow(float* row, int64_t keys, float largest) {
  const Tag d;
  constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));
  constexpr int64_t kVectors = kParts / kLanes;
  const Vec most = hn::Set(d, largest);
  HWY_ALIGN float parts[kParts];
  Vec part[kVectors];
  for (Vec& p : part) p = hn::Zero(d);
  int64_t n = 0;
  const auto weigh = [&](int64_t at) HWY_ATTR {
    const Vec weight = ExpBelowZero(hn::Sub(hn::LoadU(d, row + at), most));
    hn::StoreU(weight, d, row + at);
    return weight;
  };
  for (; n + kParts <= keys; n += kParts) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < kVectors; ++v) part[v] = hn::Add(part[v], weigh(n + v * kLanes));
  }
  for (int64_t v = 0; n < keys; ++v, n += kLanes) {
    if (n + kLanes <= keys) {
      part[v] = hn::Add(part[v], weigh(n));
      continue;
    }
    const int64_t count = keys - n;
    const Vec rest = gemm::HWY_NAMESPACE::LoadFirst(d, row + n, count);
    const Vec weight = ExpBelowZero(hn::Sub(rest, most));
    gemm::HWY_NAMESPACE::StoreFirst(d, weight, row + n, count);
    const auto is_in = hn::FirstN(d, static_cast<size_t>(count));
    part[v] = hn::Add(part[v], hn::IfThenElseZero(is_in, weight));
  }
  for (int64_t v = 0; v < kVectors; ++v) hn::Store(part[v], d, parts + v * kLanes);
  return AddUp(parts);
}

void WeighAllRows(const ScoreRows& block, const RowSums& sums) {
  for (int64_t r = 0; r < block.rows; ++r) {
    float* const row = block.scores + r * block.stride;
    const float before = sums.largest[r];
    // A NaN on one side only may not be found here; the weights have it.
    const float largest = std::max(before, LargestInRow(row, block.keys));
    const float origin = largest == -kInfinity ? 0.0F : largest;
    const float total = WeighRow(row, block.keys, origin);
    const float shrink = before == largest ? 1.0F : std::exp(before - origin);
    sums.largest[r] = largest;
    sums.shrink[r] = shrink;
    sums.total[r] = sums.total[r] * shrink + total;
  }
}

void MultiplyRow(float factor, float* row, int64_t columns) {
  ScaleWith<false>(factor, row, columns,
                   [](Vec product, int64_t, int64_t) HWY_ATTR { return product; });
}

void DivideOneRow(const float* sums, float total, int64_t columns, float* to) {
  const Vec divisor = hn::Set(Tag(), total);
  ForVectors(columns, [&](int64_t n, int64_t count) HWY_ATTR {
    StoreSome(hn::Div(LoadSome(sums + n, count), divisor), to + n, count);
  });
}

void AddOneRow(const float* sums, float weight, int64_t columns, float* to) {
  const Vec factor = hn::Set(Tag(), weight);
  ForVectors(columns, [&](int64_t n, int64_t count) HWY_ATTR {
    StoreSome(hn::MulAdd(LoadSome(sums + n, count), factor, LoadSome(to + n, count)), to + n,
              count);
  });
}

// As integers, absolute values are in the order of their size, and NaN is above infinity.
float LargestOfAll(const float* numbers, int64_t count) {
  const Tag d;
  const hn::RebindToSigned<Tag> integer;
  auto largest = hn::Zero(integer);
  ForVectors(count, [&](int64_t n, int64_t some) HWY_ATTR {
    largest = hn::Max(largest, hn::BitCast(integer, hn::Abs(LoadSome(numbers + n, some))));
  });
  HWY_ALIGN float lanes[kParts];
  hn::Store(hn::BitCast(d, largest), d, lanes);
  float found = 0;
  for (size_t k = 0; k < hn::Lanes(d); ++k) {
    if (!(lanes[k] < kInfinity)) return kInfinity;
    found = std::max(found, lanes[k]);
  }
  return found;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::attention
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::attention {

HWY_EXPORT(ScaleOneRow);
HWY_EXPORT(WeighAllRows);
HWY_EXPORT(MultiplyRow);
HWY_EXPORT(DivideOneRow);
HWY_EXPORT(AddOneRow);
HWY_EXPORT(LargestOfAll);

void ScaleRow(const Scaling& scaling, float* row, int64_t keys) {
  HWY_DYNAMIC_DISPATCH(ScaleOneRow)(scaling, row, keys);
}
void WeighRows(const ScoreRows& block, const RowSums& sums) {
  HWY_DYNAMIC_DISPATCH(WeighAllRows)(block, sums);
}
void ShrinkRows(const float* shrink, int64_t rows, float* sums, int64_t stride, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    if (shrink[r] != 1) HWY_DYNAMIC_DISPATCH(MultiplyRow)(shrink[r], sums + r * stride, columns);
  }
}
void DivideRow(const float* sums, float total, int64_t columns, float* to) {
  HWY_DYNAMIC_DISPATCH(DivideOneRow)(sums, total, columns, to);
}
void AddRow(const float* sums, float weight, int64_t columns, float* to) {
  HWY_DYNAMIC_DISPATCH(AddOneRow)(sums, weight, columns, to);
}
float LargestOf(const float* numbers, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(LargestOfAll)(numbers, count);
}

}  // namespace onnxifi::attention
#endif
