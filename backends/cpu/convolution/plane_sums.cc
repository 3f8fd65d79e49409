// SPDX-License-Identifier: Apache-2.0
//
// SumPlaneRow: some vectors at a time, as many as there are registers for their sums; what is left
// of a row vector by vector.

#include "backends/cpu/convolution/plane_sums.h"

#include <algorithm>
#include <array>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/convolution/plane_sums.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::convolution {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kRegistersOfSums = 24;
#else
constexpr int kRegistersOfSums = 9;
#endif
constexpr int VectorsOf(int outputs) { return std::clamp(kRegistersOfSums / outputs, 1, 4); }

// Elements [x, x + vectors) in vectors.
template <int outputs, int vectors>
HWY_INLINE void SumVectors(const PlaneRow& row, int64_t x) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[vectors][outputs];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
#pragma GCC unroll 8
    for (int o = 0; o < outputs; ++o) sum[v][o] = hn::Zero(d);
  }
  const float* weights = row.weights;
  for (const int64_t tap : row.taps) {
    const float* const from = row.source + tap + x;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const auto elements = hn::LoadU(d, from + v * lanes);
#pragma GCC unroll 8
      for (int o = 0; o < outputs; ++o) {
        sum[v][o] = hn::MulAdd(elements, hn::Set(d, weights[o]), sum[v][o]);
      }
    }
    weights += outputs;
  }
#pragma GCC unroll 8
  for (int o = 0; o < outputs; ++o) {
    const auto bias = hn::Set(d, row.bias == nullptr ? 0.0F : row.bias[o]);
    float* const to = row.sums + o * row.stride + x;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) hn::StoreU(hn::Add(sum[v][o], bias), d, to + v * lanes);
  }
}

template <int outputs>
void SumRowOf(const PlaneRow& row) {
  constexpr int kVectors = VectorsOf(outputs);
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  int64_t x = 0;
  for (; x + kVectors * lanes <= row.width; x += kVectors * lanes) {
    SumVectors<outputs, kVectors>(row, x);
  }
  for (; x < row.width; x += lanes) SumVectors<outputs, 1>(row, x);
}

// A plain loop, which the compiler makes shuffles of where it knows the step.
template <int64_t step>
void CopyStepsOf(const float* HWY_RESTRICT source, int64_t count, float* HWY_RESTRICT target) {
  for (int64_t k = 0; k < count; ++k) target[k] = source[k * step];
}

void CopyStepsHere(const float* source, int64_t step, int64_t count, float* target) {
  switch (step) {
    case 1:
      std::copy_n(source, count, target);
      return;
    case 2:
      return CopyStepsOf<2>(source, count, target);
    case 3:
      return CopyStepsOf<3>(source, count, target);
    case 4:
      return CopyStepsOf<4>(source, count, target);
    default:
      for (int64_t k = 0; k < count; ++k) target[k] = source[k * step];
  }
}

// By the number of outputs less one.
template <int... outputs>
constexpr auto Sums(std::integer_sequence<int, outputs...> /*all*/) {
  return std::array{&SumRowOf<outputs + 1>...};
}

void SumRow(const PlaneRow& row) {
  static constexpr auto kSums = Sums(std::make_integer_sequence<int, kMaxPlaneOutputs>());
  kSums[static_cast<size_t>(row.outputs - 1)](row);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::convolution
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::convolution {

HWY_EXPORT(SumRow);
HWY_EXPORT(CopyStepsHere);

void SumPlaneRow(const PlaneRow& row) { HWY_DYNAMIC_DISPATCH(SumRow)(row); }

void CopySteps(const float* source, int64_t step, int64_t count, float* target) {
  HWY_DYNAMIC_DISPATCH(CopyStepsHere)(source, step, count, target);
}

}  // namespace onnxifi::convolution
#endif
