// SPDX-License-Identifier: Apache-2.0
//
// Winograd transforms: tile by tile, a vector of channels at a time, rows after columns.

#include "backends/cpu/convolution/winograd_transform.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/convolution/winograd_transform.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/gemm/epilogue-inl.h"
#include "backends/cpu/gemm/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::convolution {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The transforms along one axis. With the points p of the Toom-Cook algorithm and
// m(x) = x * prod(x - p), row p of the input's is m(x) / (x - p), that of infinity m(x) itself; the
// output's row i is p^i.
template <int tile>
struct Axis;

template <>
struct Axis<2> {
  // 0, 1, -1, infinity
  template <class D, class V>
  static HWY_INLINE void Input(D /*d*/, const V (&x)[4], V (&result)[4]) {
    result[0] = hn::Sub(x[0], x[2]);
    result[1] = hn::Add(x[1], x[2]);
    result[2] = hn::Sub(x[2], x[1]);
    result[3] = hn::Sub(x[3], x[1]);
  }
  template <class D, class V>
  static HWY_INLINE void Output(D /*d*/, const V (&x)[4], V (&result)[2]) {
    result[0] = hn::Add(x[0], hn::Add(x[1], x[2]));
    result[1] = hn::Add(hn::Sub(x[1], x[2]), x[3]);
  }
};

constexpr float kRootHalf = 0.70710678118654752440F;
constexpr float kRootTwo = 1.41421356237309504880F;

template <>
struct Axis<4> {
  // 0, sqrt(1/2), -sqrt(1/2), sqrt(2), -sqrt(2), infinity
  template <class D, class V>
  static HWY_INLINE void Input(D d, const V (&x)[6], V (&result)[6]) {
    const V root_half = hn::Set(d, kRootHalf);
    const V root_two = hn::Set(d, kRootTwo);
    const V minus = hn::Set(d, -2.5F);
    result[0] = hn::MulAdd(minus, x[2], hn::Add(x[0], x[4]));
    const V even = hn::NegMulAdd(hn::Set(d, 2.0F), x[2], x[4]);
    const V odd = hn::MulSub(root_half, x[3], hn::Mul(root_two, x[1]));
    result[1] = hn::Add(even, odd);
    result[2] = hn::Sub(even, odd);
    const V wide_even = hn::NegMulAdd(hn::Set(d, 0.5F), x[2], x[4]);
    const V wide_odd = hn::MulSub(root_two, x[3], hn::Mul(root_half, x[1]));
    result[3] = hn::Add(wide_even, wide_odd);
    result[4] = hn::Sub(wide_even, wide_odd);
    result[5] = hn::MulAdd(minus, x[3], hn::Add(x[1], x[5]));
  }
  template <class D, class V>
  static HWY_INLINE void Output(D d, const V (&x)[6], V (&result)[4]) {
    const V sum = hn::Add(x[1], x[2]);
    const V difference = hn::Sub(x[1], x[2]);
    const V wide_sum = hn::Add(x[3], x[4]);
    const V wide_difference = hn::Sub(x[3], x[4]);
    result[0] = hn::Add(x[0], hn::Add(sum, wide_sum));
    result[1] = hn::MulAdd(hn::Set(d, kRootHalf), difference,
                           hn::Mul(hn::Set(d, kRootTwo), wide_difference));
    result[2] = hn::MulAdd(hn::Set(d, 0.5F), sum, hn::Add(wide_sum, wide_sum));
    result[3] = hn::MulAdd(hn::Set(d, kRootHalf / 2), difference,
                           hn::MulAdd(hn::Set(d, 2 * kRootTwo), wide_difference, x[5]));
  }
};

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

// Where a tile of the output begins.
struct Origin {
  int64_t image, y, x;
};
Origin OriginOf(const WinogradPlan& plan, int64_t tile) {
  const auto side = static_cast<int64_t>(plan.tile);
  const int64_t per_image = plan.tiles_down * plan.tiles_across;
  const int64_t within = tile % per_image;
  return {tile / per_image, within / plan.tiles_across * side, within % plan.tiles_across * side};
}

// One tile, one vector of channels: rows, then columns. `is_there` says which elements are no
// padding.
template <int side, class Load>
HWY_INLINE void TransformInputVector(Load load, float* HWY_RESTRICT target,
                                     int64_t frequency_stride) {
  const Tag d;
  constexpr int kSide = side + 2;
  Vec by_column[kSide][kSide];
#pragma GCC unroll 6
  for (int x = 0; x < kSide; ++x) {
    Vec column[kSide];
#pragma GCC unroll 6
    for (int y = 0; y < kSide; ++y) column[y] = load(y, x);
    Vec transformed[kSide];
    Axis<side>::Input(d, column, transformed);
#pragma GCC unroll 6
    for (int y = 0; y < kSide; ++y) by_column[y][x] = transformed[y];
  }
#pragma GCC unroll 6
  for (int y = 0; y < kSide; ++y) {
    Vec transformed[kSide];
    Axis<side>::Input(d, by_column[y], transformed);
#pragma GCC unroll 6
    for (int x = 0; x < kSide; ++x) {
      hn::StoreU(transformed[x], d, target + (y * kSide + x) * frequency_stride);
    }
  }
}

template <int side>
void TransformInputTiles(const WinogradPlan& plan, const WinogradShape& shape, const Images& images,
                         int64_t chunk, int64_t first_tile, int64_t end_tile, float* work) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kSide = side + 2;
  const PixelStrides& strides = images.source_strides;
  for (int64_t tile = first_tile; tile < end_tile; ++tile) {
    const Origin origin = OriginOf(plan, chunk * plan.chunk + tile);
    const int64_t top = origin.y - shape.pad_top;
    const int64_t left = origin.x - shape.pad_left;
    const float* source = images.source + strides.At(origin.image, top, left);
    float* target = work + tile * plan.in_stride;
    const bool is_inside =
        top >= 0 && left >= 0 && top + kSide <= shape.in_height && left + kSide <= shape.in_width;
    for (int64_t c = 0; c < shape.in_channels; c += lanes) {
      const int64_t rest = shape.in_channels - c;
      if (is_inside && rest >= lanes) {
        TransformInputVector<side>(
            [&](int y, int x)
                HWY_ATTR { return hn::LoadU(d, source + y * strides.row + x * strides.pixel + c); },
            target + c, plan.in_frequency_stride);
        continue;
      }
      const int64_t count = std::min(rest, lanes);
      TransformInputVector<side>(
          [&](int y, int x) HWY_ATTR {
            const bool is_there = top + y >= 0 && top + y < shape.in_height && left + x >= 0 &&
                                  left + x < shape.in_width;
            const float* pixel = source + y * strides.row + x * strides.pixel + c;
            return is_there ? gemm::HWY_NAMESPACE::LoadFirst(d, pixel, count) : hn::Zero(d);
          },
          target + c, plan.in_frequency_stride);
    }
  }
}

template <int side>
void TransformOutputTiles(const WinogradPlan& plan, const WinogradShape& shape,
                          const Images& images, const gemm::Epilogue& epilogue, int64_t chunk,
                          int64_t first_tile, int64_t end_tile, const float* products) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kSide = side + 2;
  for (int64_t tile = first_tile; tile < end_tile; ++tile) {
    const Origin origin = OriginOf(plan, chunk * plan.chunk + tile);
    const float* source = products + tile * plan.out_stride;
    float* result = images.result + images.result_strides.At(origin.image, origin.y, origin.x);
    const float* addend =
        images.addend == nullptr
            ? nullptr
            : images.addend + images.addend_strides.At(origin.image, origin.y, origin.x);
    const auto rows = static_cast<int>(std::min<int64_t>(side, shape.out_height - origin.y));
    const auto columns = static_cast<int>(std::min<int64_t>(side, shape.out_width - origin.x));
    for (int64_t m = 0; m < shape.out_channels; m += lanes) {
      const int64_t rest = shape.out_channels - m;
      const int64_t count = std::min(rest, lanes);
      const Vec bias = epilogue.bias == nullptr
                           ? hn::Zero(d)
                           : gemm::HWY_NAMESPACE::LoadFirst(d, epilogue.bias + m, count);
      Vec by_column[side][kSide];
#pragma GCC unroll 6
      for (int x = 0; x < kSide; ++x) {
        Vec column[kSide];
#pragma GCC unroll 6
        for (int y = 0; y < kSide; ++y) {
          column[y] = hn::LoadU(d, source + (y * kSide + x) * plan.out_frequency_stride + m);
        }
        Vec transformed[side];
        Axis<side>::Output(d, column, transformed);
#pragma GCC unroll 4
        for (int y = 0; y < side; ++y) by_column[y][x] = transformed[y];
      }
      for (int y = 0; y < rows; ++y) {
        Vec transformed[side];
        Axis<side>::Output(d, by_column[y], transformed);
#pragma GCC unroll 4
        for (int x = 0; x < side; ++x) {
          if (x >= columns) break;
          Vec sum = hn::Add(transformed[x], bias);
          if (addend != nullptr) {
            const float* summand =
                addend + y * images.addend_strides.row + x * images.addend_strides.pixel + m;
            sum = hn::Add(sum, gemm::HWY_NAMESPACE::LoadFirst(d, summand, count));
          }
          sum = gemm::HWY_NAMESPACE::Activated(d, sum, epilogue);
          float* target =
              result + y * images.result_strides.row + x * images.result_strides.pixel + m;
          if (rest >= lanes) {
            hn::StoreU(sum, d, target);
          } else {
            gemm::HWY_NAMESPACE::StoreFirst(d, sum, target, count);
          }
        }
      }
    }
  }
}

void TransformInputOf(const WinogradPlan& plan, const WinogradShape& shape, const Images& images,
                      int64_t chunk, int64_t first_tile, int64_t end_tile, float* work) {
  if (plan.tile == Tile::k4x4) {
    TransformInputTiles<4>(plan, shape, images, chunk, first_tile, end_tile, work);
  } else {
    TransformInputTiles<2>(plan, shape, images, chunk, first_tile, end_tile, work);
  }
}

void TransformOutputOf(const WinogradPlan& plan, const WinogradShape& shape, const Images& images,
                       const gemm::Epilogue& epilogue, int64_t chunk, int64_t first_tile,
                       int64_t end_tile, const float* products) {
  if (plan.tile == Tile::k4x4) {
    TransformOutputTiles<4>(plan, shape, images, epilogue, chunk, first_tile, end_tile, products);
  } else {
    TransformOutputTiles<2>(plan, shape, images, epilogue, chunk, first_tile, end_tile, products);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::convolution
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::convolution {

HWY_EXPORT(TransformInputOf);
HWY_EXPORT(TransformOutputOf);

void TransformInput(const WinogradPlan& plan, const WinogradShape& shape, const Images& images,
                    int64_t chunk, int64_t first_tile, int64_t end_tile, float* work) {
  HWY_DYNAMIC_DISPATCH(TransformInputOf)(plan, shape, images, chunk, first_tile, end_tile, work);
}

void TransformOutput(const WinogradPlan& plan, const WinogradShape& shape, const Images& images,
                     const gemm::Epilogue& epilogue, int64_t chunk, int64_t first_tile,
                     int64_t end_tile, float* work) {
  HWY_DYNAMIC_DISPATCH(TransformOutputOf)
  (plan, shape, images, epilogue, chunk, first_tile, end_tile,
   work + Frequencies(plan.tile) * plan.in_frequency_stride);
}

}  // namespace onnxifi::convolution
#endif
