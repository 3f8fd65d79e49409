// SPDX-License-Identifier: Apache-2.0
//
// Grouped: of a vector of outputs, the quads of all pixels of some rows of the image are stored
// first, so that windows that share a pixel share its permutation. Then the sums of some
// neighbouring windows stay in registers while the taps pass.

#include "backends/cpu/integer/grouped.h"

#include <algorithm>

#include "backends/cpu/integer/byte_factors.h"
#include "backends/cpu/integer/depthwise.h"
#include "backends/cpu/processor/processor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/grouped.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::integer {

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_GROUPED_ROW_
#define ONNXIFI_BACKENDS_CPU_INTEGER_GROUPED_ROW_
// Windows whose sums are in registers together.
constexpr int64_t kGroupedWindows = 8;
// Vectors of quads that are stored together.
constexpr int64_t kMaxStoredQuads = 512;

// Neighbouring windows along one row of the result, of one vector of outputs.
struct GroupedRow {
  // Per row of the kernel: the group's first channel at pixel 0 of its row of the image, and how
  // far pixels lie apart.
  const uint8_t* const* rows;
  const int64_t* pixel_strides;
  int64_t row_count;
  int64_t kernel, stride, dilation;  // along the row
  int64_t quads;                     // of a tap
  const uint8_t* fill;               // what is beside a row
  int64_t bytes;                     // that a pixel has from there on, at most of a vector
  int64_t in;                        // pixels of a row
  int64_t begin;                     // of the first window
  int64_t count;                     // of windows
  uint8_t flip;                      // of the bytes of the image
  const int32_t* places;             // of each lane's quad among those of a pixel
  const int32_t* weights;
  const int32_t* start;
  const int32_t* weight_sums;
  int64_t lanes;
  int32_t* sums;
  int64_t sum_stride;
};
#endif

namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

HWY_INLINE void AddProducts(__m512i unsigned_bytes, __m512i signed_bytes, __m512i& sum) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "v"(signed_bytes));
}

// Pixel by pixel, the quads of the lanes, from the first of each on.
template <int quads>
void StoreQuads(const GroupedRow& row, int64_t first_row, int64_t rows, int64_t begin,
                int64_t reach, __m512i* stored) {
  const __mmask64 bytes = ~uint64_t{0} >> (64 - row.bytes);
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(row.flip));
  const int64_t plane = rows * reach;
  __m512i places[quads];
#pragma GCC unroll 4
  for (int q = 0; q < quads; ++q) places[q] = _mm512_loadu_si512(row.places + q * kGroupedLanes);
  for (int64_t r = first_row; r < first_row + rows; ++r) {
    const uint8_t* const pixels = row.rows[r];
    const int64_t pixel_stride = row.pixel_strides[r];
    for (int64_t pixel = begin; pixel < begin + reach; ++pixel, ++stored) {
      const bool is_inside = pixel >= 0 && pixel < row.in;
      const uint8_t* const at = is_inside ? pixels + pixel * pixel_stride : row.fill;
      const __m512i channels = _mm512_xor_si512(_mm512_maskz_loadu_epi8(bytes, at), flip);
#pragma GCC unroll 4
      for (int q = 0; q < quads; ++q) {
        stored[q * plane] = _mm512_permutexvar_epi32(places[q], channels);
      }
    }
  }
}

void StoreAllQuads(GroupedRow row, int64_t first_row, int64_t rows, int64_t begin, int64_t reach,
                   __m512i* stored) {
  for (int64_t quads = row.quads; quads > 0;) {
    const int64_t now = quads >= 4 ? 4 : quads >= 2 ? 2 : 1;
    const auto store = now == 4 ? StoreQuads<4> : now == 2 ? StoreQuads<2> : StoreQuads<1>;
    store(row, first_row, rows, begin, reach, stored);
    row.places += now * kGroupedLanes;
    stored += now * rows * reach;
    quads -= now;
  }
}

// Of some rows of the kernel; the first ones begin the sums. kStride: that of windows, if it is not
// 0.
template <int kStride>
void AddGroupedRows(const GroupedRow& row, int64_t first_window, int64_t count, int64_t first_row,
                    int64_t rows) {
  const auto lanes = static_cast<__mmask16>((uint32_t{1} << row.lanes) - 1);
  const int64_t padded = (count + kGroupedWindows - 1) / kGroupedWindows * kGroupedWindows;
  const int64_t stride = kStride > 0 ? kStride : row.stride;
  const int64_t reach = (padded - 1) * stride + (row.kernel - 1) * row.dilation + 1;
  alignas(64) __m512i stored[kMaxStoredQuads];
  StoreAllQuads(row, first_row, rows, row.begin + first_window * stride, reach, stored);
  __m512i start = _mm512_maskz_loadu_epi32(lanes, row.start);
  // A byte that is flipped is one of 128 more.
  if (row.flip != 0) {
    const __m512i sums = _mm512_maskz_loadu_epi32(lanes, row.weight_sums);
    start = _mm512_sub_epi32(start, _mm512_slli_epi32(sums, 7));
  }
  int32_t* sums = row.sums + first_window * row.sum_stride;
  const int32_t* const weights = row.weights + first_row * row.kernel * row.quads * kGroupedLanes;
  for (int64_t window = 0; window < count; window += kGroupedWindows) {
    const int64_t left = std::min(kGroupedWindows, count - window);
    __m512i sum[kGroupedWindows];
#pragma GCC unroll 8
    for (int64_t k = 0; k < kGroupedWindows; ++k) {
      sum[k] = start;
      if (first_row > 0 && k < left) {
        sum[k] = _mm512_maskz_loadu_epi32(lanes, sums + (window + k) * row.sum_stride);
      }
    }
    const __m512i* of_quad = stored + window * stride;
    for (int64_t q = 0; q < row.quads; ++q, of_quad += rows * reach) {
      const int32_t* weight = weights + q * kGroupedLanes;
      const __m512i* of_row = of_quad;
      for (int64_t r = 0; r < rows; ++r, of_row += reach) {
        const __m512i* tap = of_row;
        for (int64_t x = 0; x < row.kernel; ++x, tap += row.dilation) {
          const __m512i of_tap = _mm512_loadu_si512(weight);
          weight += row.quads * kGroupedLanes;
#pragma GCC unroll 8
          for (int64_t k = 0; k < kGroupedWindows; ++k) {
            AddProducts(tap[k * stride], of_tap, sum[k]);
          }
        }
      }
    }
#pragma GCC unroll 8
    for (int64_t k = 0; k < kGroupedWindows; ++k) {
      if (k >= left) break;
      _mm512_mask_storeu_epi32(sums + (window + k) * row.sum_stride, lanes, sum[k]);
    }
  }
}

void WalkGrouped(const GroupedRow& row) {
  const auto quads_of = [&](int64_t windows) {
    return ((windows - 1) * row.stride + (row.kernel - 1) * row.dilation + 1) * row.quads;
  };
  int64_t some = 4 * kGroupedWindows;
  while (some > kGroupedWindows && quads_of(some) > kMaxStoredQuads) some -= kGroupedWindows;
  for (int64_t window = 0; window < row.count; window += some) {
    const int64_t count = std::min(some, row.count - window);
    const int64_t padded = (count + kGroupedWindows - 1) / kGroupedWindows * kGroupedWindows;
    const int64_t rows = std::max<int64_t>(1, kMaxStoredQuads / quads_of(padded));
    const auto add = row.stride == 1   ? AddGroupedRows<1>
                     : row.stride == 2 ? AddGroupedRows<2>
                                       : AddGroupedRows<0>;
    for (int64_t r = 0; r < row.row_count; r += rows) {
      add(row, window, count, r, std::min(rows, row.row_count - r));
    }
  }
}

bool CanWalkGroups() { return true; }

#else

void WalkGrouped(const GroupedRow& /*row*/) {}
bool CanWalkGroups() { return false; }

#endif

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::integer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::integer {
namespace {

HWY_EXPORT(CanWalkGroups);
HWY_EXPORT(WalkGrouped);

constexpr int64_t kVectorBytes = kGroupedLanes * kQuad;

int64_t Vectors(int64_t outputs) { return (outputs + kGroupedLanes - 1) / kGroupedLanes; }

// The first channel of a vector of outputs, and that of an output's group counted from there.
int64_t FirstChannel(const GroupSizes& sizes, int64_t vector) {
  return vector * kGroupedLanes / sizes.outputs * sizes.inputs;
}
int64_t ChannelOf(const GroupSizes& sizes, int64_t vector, int64_t lane) {
  return (vector * kGroupedLanes + lane) / sizes.outputs * sizes.inputs -
         FirstChannel(sizes, vector);
}

// Quads that the inputs of a group lie in, wherever it begins.
int64_t QuadsOfTap(const GroupSizes& sizes) {
  const int64_t before = sizes.inputs % kQuad == 0 ? 0 : sizes.inputs % 2 == 0 ? 2 : kQuad - 1;
  return (before + sizes.inputs + kQuad - 1) / kQuad;
}

// What a vector of outputs has: the places of quads, then its weights.
int64_t NumbersOfVector(const GroupSizes& sizes, int64_t taps) {
  return (1 + taps) * QuadsOfTap(sizes) * kGroupedLanes;
}

}  // namespace

bool WalksGroups(const GroupSizes& sizes, int64_t outputs, const WindowAxis& x) {
  if (!processor::HasByteProducts() || !HWY_DYNAMIC_DISPATCH(CanWalkGroups)()) return false;
  if (sizes.inputs < 1 || sizes.outputs < 1 || sizes.outputs >= kGroupedLanes) return false;
  if (x.kernel > kMaxStoredQuads || x.stride > kMaxStoredQuads || x.dilation > kMaxStoredQuads) {
    return false;
  }
  const int64_t reach = (kGroupedWindows - 1) * x.stride + (x.kernel - 1) * x.dilation + 1;
  if (reach * QuadsOfTap(sizes) > kMaxStoredQuads) return false;
  for (int64_t vector = 0; vector < Vectors(outputs); ++vector) {
    const int64_t last = std::min(kGroupedLanes, outputs - vector * kGroupedLanes) - 1;
    const int64_t first_quad = ChannelOf(sizes, vector, last) / kQuad;
    if ((first_quad + QuadsOfTap(sizes)) * kQuad > kVectorBytes) return false;
  }
  return true;
}

int64_t GroupedWeightCount(const GroupSizes& sizes, int64_t outputs, int64_t taps) {
  return Vectors(outputs) * (kGroupedLanes + NumbersOfVector(sizes, taps));
}

void PackGroupedWeights(const GroupSizes& sizes, const Columns& kernels, const uint8_t* b,
                        int32_t* weights) {
  const int64_t outputs = kernels.columns;
  const int64_t taps = kernels.depth() / sizes.inputs;
  const int64_t quads = QuadsOfTap(sizes);
  int32_t* const sums = weights;
  int32_t* to = weights + Vectors(outputs) * kGroupedLanes;
  for (int64_t vector = 0; vector < Vectors(outputs); ++vector) {
    for (int64_t q = 0; q < quads; ++q) {
      for (int64_t lane = 0; lane < kGroupedLanes; ++lane) {
        const bool is_output = vector * kGroupedLanes + lane < outputs;
        const int64_t quad = is_output ? ChannelOf(sizes, vector, lane) / kQuad + q : 0;
        *to++ = static_cast<int32_t>(quad);
      }
    }
    for (int64_t k = 0; k < taps * quads; ++k) {
      const int64_t tap = k / quads, q = k % quads;
      for (int64_t lane = 0; lane < kGroupedLanes; ++lane) {
        const int64_t output = vector * kGroupedLanes + lane;
        uint32_t quad = 0;
        for (int64_t place = 0; place < kQuad && output < outputs; ++place) {
          const int64_t before = ChannelOf(sizes, vector, lane) % kQuad;
          const int64_t input = q * kQuad + place - before;
          if (input < 0 || input >= sizes.inputs) continue;
          const auto depth = static_cast<size_t>(tap * sizes.inputs + input);
          const int64_t offset = kernels.depth_offsets[depth] + output * kernels.column_stride;
          quad |= uint32_t{b[offset]} << 8 * place;
        }
        *to++ = static_cast<int32_t>(quad);
      }
    }
  }
  for (int64_t output = 0; output < Vectors(outputs) * kGroupedLanes; ++output) {
    sums[output] = 0;
    if (output >= outputs) continue;
    for (const int64_t offset : kernels.depth_offsets) {
      sums[output] += static_cast<int8_t>(b[offset + output * kernels.column_stride]);
    }
  }
}

void SumGroupedWindows(const GroupedImage& image, const int32_t* start, int64_t first_row,
                       int64_t rows, int64_t first_output, int64_t outputs, int32_t* sums) {
  const auto& [z, y, x] = image.axes.spatial;
  const uint8_t* pixels[kMaxTaps];
  int64_t pixel_strides[kMaxTaps];
  const int64_t taps = TapCount(image.axes);
  const int64_t numbers = NumbersOfVector(image.sizes, taps);
  GroupedRow row{};
  row.rows = pixels;
  row.pixel_strides = pixel_strides;
  row.row_count = z.kernel * y.kernel;
  row.kernel = x.kernel;
  row.stride = x.stride;
  row.dilation = x.dilation;
  row.quads = QuadsOfTap(image.sizes);
  row.in = x.in;
  row.flip = image.is_signed ? kFlip : 0;
  row.sum_stride = outputs;
  while (rows > 0) {
    const int64_t at_x = first_row % x.out;
    row.count = std::min(rows, x.out - at_x);
    row.begin = at_x * x.stride - x.pad;
    for (int64_t output = 0; output < outputs; output += kGroupedLanes) {
      const int64_t vector = (first_output + output) / kGroupedLanes;
      const int64_t channel = FirstChannel(image.sizes, vector);
      PlaceRows(image.axes, image.data + channel, image.fill + channel, first_row, pixels,
                pixel_strides);
      row.fill = image.fill + channel;
      row.bytes = std::min(kVectorBytes, image.axes.channels - channel);
      row.places = image.weights + Vectors(image.outputs) * kGroupedLanes + vector * numbers;
      row.weights = row.places + row.quads * kGroupedLanes;
      row.start = start + first_output + output;
      row.weight_sums = image.weights + first_output + output;
      row.lanes = std::min(kGroupedLanes, outputs - output);
      row.sums = sums + output;
      HWY_DYNAMIC_DISPATCH(WalkGrouped)(row);
    }
    first_row += row.count;
    rows -= row.count;
    sums += row.count * outputs;
  }
}

}  // namespace onnxifi::integer
#endif
