// SPDX-License-Identifier: Apache-2.0
//
// Winograd: the transforms, a vector of channels at a time, and the products by gemm/.

#include "backends/cpu/convolution/winograd.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/gemm/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/convolution/winograd.cc"
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
                    int64_t panel, int64_t width, int64_t frequency_size, float* transformed) {
  constexpr int kSide = side + 2;
  const hn::ScalableTag<double> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
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
                          (panel * in_channels + c) * width + column;
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
                      int64_t panel, int64_t width, int64_t frequency_size, float* transformed) {
  if (tile == Tile::k4x4) {
    TransformPanel<4>(weights, in_channels, out_channels, panel, width, frequency_size,
                      transformed);
  } else {
    TransformPanel<2>(weights, in_channels, out_channels, panel, width, frequency_size,
                      transformed);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::convolution
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::convolution {
namespace {

HWY_EXPORT(TransformInputOf);
HWY_EXPORT(TransformOutputOf);
HWY_EXPORT(TransformPanelOf);

constexpr int64_t kLineFloats = 16;

int64_t RoundUp(int64_t number, int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

int64_t TilesAlong(int64_t extent, Tile tile) {
  const auto side = static_cast<int64_t>(tile);
  return (extent + side - 1) / side;
}

// What a thread multiplies and adds while it reads a float from beyond its own caches, and while a
// transform reads, combines and writes one.
constexpr double kPerWeight = 26;
constexpr double kPerTransformed = 6;

}  // namespace

int64_t TransformedSize(Tile tile, int64_t in_channels, int64_t out_channels) {
  return Frequencies(tile) * gemm::PackedSize(in_channels, out_channels);
}

void TransformWeights(Tile tile, const Weights& weights, int64_t in_channels, int64_t out_channels,
                      device::Parallel& parallel, float* transformed) {
  const int64_t width = gemm::PanelColumns();
  parallel.For(RoundUp(out_channels, width) / width, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      HWY_DYNAMIC_DISPATCH(TransformPanelOf)
      (tile, weights, in_channels, out_channels, panel, width,
       gemm::PackedSize(in_channels, out_channels), transformed);
    }
  });
}

WinogradPlan MakePlan(Tile tile, const WinogradShape& shape, int threads) {
  WinogradPlan plan{};
  plan.tile = tile;
  plan.tiles_down = TilesAlong(shape.out_height, tile);
  plan.tiles_across = TilesAlong(shape.out_width, tile);
  plan.tiles = shape.batch * plan.tiles_down * plan.tiles_across;
  // Whole vectors and whole lines.
  plan.in_stride = RoundUp(shape.in_channels, kLineFloats);
  plan.out_stride = RoundUp(shape.out_channels, gemm::PanelColumns());
  const int64_t floats_per_tile = Frequencies(tile) * (plan.in_stride + plan.out_stride);
  // Chunks of a thread's own stay in its L2 cache; weights too large for that are read once, by all
  // threads together.
  constexpr int64_t kOwnFloats = int64_t{1} << 18;     // 1 MiB
  constexpr int64_t kSharedFloats = int64_t{1} << 22;  // 16 MiB
  const int64_t weights = TransformedSize(tile, shape.in_channels, shape.out_channels);
  const int64_t rows = gemm::BlockRows();
  plan.is_by_frequency = threads > 1 && weights > kOwnFloats;
  const int64_t limit = plan.is_by_frequency || weights > kOwnFloats ? kSharedFloats : kOwnFloats;
  const int64_t most = std::max<int64_t>(1, limit / floats_per_tile);
  if (plan.is_by_frequency) {
    const int64_t chunks = std::max<int64_t>(1, (plan.tiles + most - 1) / most);
    plan.chunk = std::max<int64_t>(1, (plan.tiles + chunks - 1) / chunks);
  } else {
    // As many chunks for every thread, of whole blocks of rows where that costs no balance.
    const int64_t chunks = RoundUp(std::max<int64_t>(1, (plan.tiles + most - 1) / most), threads);
    plan.chunk = std::max<int64_t>(1, (plan.tiles + chunks - 1) / chunks);
    if (plan.chunk > 2 * rows) plan.chunk = RoundUp(plan.chunk, rows);
  }
  // A line more, so that the frequencies of a tile do not share a set of the cache.
  plan.in_frequency_stride = plan.chunk * plan.in_stride + kLineFloats;
  plan.out_frequency_stride = plan.chunk * plan.out_stride + kLineFloats;
  plan.work_floats = Frequencies(tile) * (plan.in_frequency_stride + plan.out_frequency_stride);
  return plan;
}

double WinogradCost(Tile tile, const WinogradShape& shape) {
  const double tiles = static_cast<double>(shape.batch) *
                       static_cast<double>(TilesAlong(shape.out_height, tile)) *
                       static_cast<double>(TilesAlong(shape.out_width, tile));
  const auto frequencies = static_cast<double>(Frequencies(tile));
  const auto in = static_cast<double>(shape.in_channels);
  const auto out = static_cast<double>(shape.out_channels);
  return std::max(tiles, kPerWeight) * frequencies * in * out +
         tiles * frequencies * (in + out) * kPerTransformed;
}

double DirectCost(const WinogradShape& shape) {
  const double pixels = static_cast<double>(shape.batch) * static_cast<double>(shape.out_height) *
                        static_cast<double>(shape.out_width);
  return std::max(pixels, kPerWeight) * 9 * static_cast<double>(shape.in_channels) *
         static_cast<double>(shape.out_channels);
}

int64_t TilesOf(const WinogradPlan& plan, int64_t chunk) {
  return std::min(plan.chunk, plan.tiles - chunk * plan.chunk);
}

void TransformInput(const WinogradPlan& plan, const WinogradShape& shape, const Images& images,
                    int64_t chunk, int64_t first_tile, int64_t end_tile, float* work) {
  HWY_DYNAMIC_DISPATCH(TransformInputOf)(plan, shape, images, chunk, first_tile, end_tile, work);
}

void MultiplyFrequencies(const WinogradPlan& plan, const WinogradShape& shape,
                         const float* transformed, int64_t chunk, int64_t first, int64_t end,
                         float* work) {
  const int64_t size = gemm::PackedSize(shape.in_channels, shape.out_channels);
  const int64_t width = gemm::PanelColumns();
  float* products = work + Frequencies(plan.tile) * plan.in_frequency_stride;
  for (int64_t frequency = first; frequency < end; ++frequency) {
    gemm::Multiply({work + frequency * plan.in_frequency_stride,
                    plan.in_stride,
                    transformed + frequency * size,
                    products + frequency * plan.out_frequency_stride,
                    plan.out_stride,
                    TilesOf(plan, chunk),
                    shape.in_channels,
                    plan.out_stride,
                    {}},
                   {}, 0, plan.out_stride / width);
  }
}

void TransformOutput(const WinogradPlan& plan, const WinogradShape& shape, const Images& images,
                     const gemm::Epilogue& epilogue, int64_t chunk, int64_t first_tile,
                     int64_t end_tile, float* work) {
  HWY_DYNAMIC_DISPATCH(TransformOutputOf)
  (plan, shape, images, epilogue, chunk, first_tile, end_tile,
   work + Frequencies(plan.tile) * plan.in_frequency_stride);
}

void RunChunks(const WinogradPlan& plan, const WinogradShape& shape, const float* transformed,
               const Images& images, const gemm::Epilogue& epilogue, int64_t first, int64_t end,
               float* work) {
  for (int64_t chunk = first; chunk < end; ++chunk) {
    const int64_t tiles = TilesOf(plan, chunk);
    TransformInput(plan, shape, images, chunk, 0, tiles, work);
    MultiplyFrequencies(plan, shape, transformed, chunk, 0, Frequencies(plan.tile), work);
    TransformOutput(plan, shape, images, epilogue, chunk, 0, tiles, work);
  }
}

}  // namespace onnxifi::convolution
#endif
