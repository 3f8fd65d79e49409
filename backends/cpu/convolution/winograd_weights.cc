// SPDX-License-Identifier: Apache-2.0
//
// Winograd weights: panel by panel of the packed result, a vector of output channels at a time.

#include "backends/cpu/convolution/winograd_weights.h"

#include "backends/cpu/gemm/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/convolution/winograd_weights.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::convolution {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// G * w * G^T for a vector of output channels, w[9] and `result` in float64.
// Row p of G is [1, p, p^2] / m'(p), that of infinity [0, 0, 1].
template <int side, class D, class V>
HWY_INLINE void TransformKernelAxis(D d, V w0, V w1, V w2, V (&result)[side + 2]) {
  if constexpr (side == 2) {
    const V half = hn::Set(d, 0.5);
    const V even = hn::Mul(half, hn::Add(w0, w2));
    const V odd = hn::Mul(half, w1);
    result[0] = w0;
    result[1] = hn::Add(even, odd);
    result[2] = hn::Sub(even, odd);
    result[3] = w2;
  } else {
    // m'(+-sqrt(1/2)) = -3/2, m'(+-sqrt(2)) = 6
    const V narrow = hn::Set(d, -2.0 / 3);
    const V wide = hn::Set(d, 1.0 / 6);
    const V even = hn::Mul(narrow, hn::MulAdd(hn::Set(d, 0.5), w2, w0));
    const V odd = hn::Mul(narrow, hn::Mul(hn::Set(d, 0.70710678118654752440), w1));
    const V wide_even = hn::Mul(wide, hn::MulAdd(hn::Set(d, 2.0), w2, w0));
    const V wide_odd = hn::Mul(wide, hn::Mul(hn::Set(d, 1.41421356237309504880), w1));
    result[0] = w0;
    result[1] = hn::Add(even, odd);
    result[2] = hn::Sub(even, odd);
    result[3] = hn::Add(wide_even, wide_odd);
    result[4] = hn::Sub(wide_even, wide_odd);
    result[5] = w2;
  }
}

// One panel of all frequencies.
template <int side>
void TransformPanel(const Weights& weights, int64_t in_channels, int64_t out_channels,
                    const PackedRows& rows, int64_t panel, int64_t width, float* transformed) {
  constexpr int kSide = side + 2;
  const hn::ScalableTag<double> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t frequency_size = gemm::PackedSize(rows.whole_depth, out_channels);
  HWY_ALIGN double kernel[9][HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN double rounded[HWY_MAX_BYTES / sizeof(double)];
  for (int64_t c = 0; c < in_channels; ++c) {
    for (int64_t column = 0; column < width; column += lanes) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const int64_t m = panel * width + column + lane;
        const float* w = weights.data + m * weights.out_stride + c * weights.in_stride;
        for (int64_t k = 0; k < 9; ++k) {
          kernel[k][lane] = m < out_channels
                                ? static_cast<double>(
                                      w[k / 3 * weights.row_stride + k % 3 * weights.column_stride])
                                : 0.0;
        }
      }
      V by_column[kSide][3];
      for (int x = 0; x < 3; ++x) {
        V transformed_column[kSide];
        TransformKernelAxis<side>(d, hn::Load(d, kernel[x]), hn::Load(d, kernel[3 + x]),
                                  hn::Load(d, kernel[6 + x]), transformed_column);
        for (int y = 0; y < kSide; ++y) by_column[y][x] = transformed_column[y];
      }
      for (int y = 0; y < kSide; ++y) {
        V transformed_row[kSide];
        TransformKernelAxis<side>(d, by_column[y][0], by_column[y][1], by_column[y][2],
                                  transformed_row);
        for (int x = 0; x < kSide; ++x) {
          float* target = transformed + (y * kSide + x) * frequency_size +
                          (panel * rows.whole_depth + rows.first + c) * width + column;
          hn::Store(transformed_row[x], d, rounded);
          for (int64_t lane = 0; lane < lanes; ++lane) {
            target[lane] = static_cast<float>(rounded[lane]);
          }
        }
      }
    }
  }
}

void TransformPanelOf(Tile tile, const Weights& weights, int64_t in_channels, int64_t out_channels,
                      const PackedRows& rows, int64_t panel, int64_t width, float* transformed) {
  if (tile == Tile::k4x4) {
    TransformPanel<4>(weights, in_channels, out_channels, rows, panel, width, transformed);
  } else {
    TransformPanel<2>(weights, in_channels, out_channels, rows, panel, width, transformed);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::convolution
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::convolution {

HWY_EXPORT(TransformPanelOf);

int64_t TransformedSize(Tile tile, int64_t in_channels, int64_t out_channels) {
  return Frequencies(tile) * gemm::PackedSize(in_channels, out_channels);
}

void TransformWeights(Tile tile, const Weights& weights, int64_t in_channels, int64_t out_channels,
                      device::Parallel& parallel, float* transformed) {
  TransformWeights(tile, weights, in_channels, out_channels, {0, in_channels}, parallel,
                   transformed);
}

void TransformWeights(Tile tile, const Weights& weights, int64_t in_channels, int64_t out_channels,
                      const PackedRows& rows, device::Parallel& parallel, float* transformed) {
  const int64_t width = gemm::PanelColumns();
  parallel.For((out_channels + width - 1) / width, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      HWY_DYNAMIC_DISPATCH(TransformPanelOf)
      (tile, weights, in_channels, out_channels, rows, panel, width, transformed);
    }
  });
}

}  // namespace onnxifi::convolution
#endif
