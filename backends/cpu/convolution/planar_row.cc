// SPDX-License-Identifier: Apache-2.0
//
// ConvolvePlanarRow: the sums of some windows times one or two vectors of columns stay in registers
// over all taps. A processor broadcasts fewer elements from memory than it multiplies vectors, so
// that each is broadcast once for the taps of neighbouring windows that meet it. For that, and so
// that one register addresses all of them, it is part of the code how far windows are apart.

#include "backends/cpu/convolution/planar_row.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/convolution/planar_row.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/gemm/epilogue-inl.h"
#include "backends/cpu/gemm/partial-inl.h"
#include "backends/cpu/gemm/sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::convolution {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace vectors = gemm::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

constexpr int kPanelVectors = 2;
// As many windows at a time as there are registers for their sums, beside the weights of as many
// taps as are taken together.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kTogether = kMaxPlanarTaps;
constexpr int MaxWindows(int whole, bool has_half) {
  return whole + (has_half ? 1 : 0) == 1 ? 16 : has_half ? 10 : 12;
}
#else
constexpr int kTogether = 1;
constexpr int MaxWindows(int /*whole*/, bool /*has_half*/) { return 6; }
#endif
constexpr int kMaxWindows = MaxWindows(1, false);

// A vector of the float at any address.
HWY_INLINE Vec Broadcast(const float* address) {
#if defined(__GNUC__)
  // As vectors::FloatAt, but never by way of an integer register.
  using Unaligned __attribute__((aligned(1), may_alias)) = float;
  return hn::Set(Tag(), *reinterpret_cast<const Unaligned*>(address));
#else
  return hn::Set(Tag(), vectors::FloatAt(address));
#endif
}

// Keeps GCC from broadcasting elements long before they are multiplied, for which there are no
// registers.
HWY_INLINE void KeepOrder(Vec& element) {
#if HWY_TARGET == HWY_AVX3 && HWY_COMPILER_GCC_ACTUAL
  asm volatile("" : "+v"(element.raw));
#else
  (void)element;
#endif
}

// Some windows times the columns of a panel.
struct Block {
  const float* source;
  std::span<const PlanarTaps> taps;
  const float* weights;
  float* result;
  int64_t result_stride;
  int64_t columns;
  const float* bias;    // of its columns
  const float* addend;  // of its first window
};

// The sums of some windows: `whole` vectors and, where there is one, the lower half of another.
template <int windows, int whole, bool has_half>
struct Sums {
  static constexpr int kVectors = whole + (has_half ? 1 : 0);
  using HalfTag = std::conditional_t<has_half, vectors::HalfTag, Tag>;

  Vec of[windows][kVectors];
  hn::Vec<HalfTag> half[windows];
};

// The weights of neighbouring taps.
template <int taps, int whole, bool has_half>
struct Rows {
  using HalfTag = typename Sums<1, whole, has_half>::HalfTag;

  Vec of[taps][whole + (has_half ? 1 : 0)];
  hn::Vec<HalfTag> half[taps];
};

// Adds the element of tap `tap` of window `w` to its sums.
template <int tap, int w, int taps, int windows, int whole, bool has_half>
HWY_INLINE void AddElement(Vec element, const Rows<taps, whole, has_half>& rows,
                           Sums<windows, whole, has_half>& sums) {
  if constexpr (whole > 0) sums.of[w][0] = hn::MulAdd(element, rows.of[tap][0], sums.of[w][0]);
  if constexpr (whole > 1) sums.of[w][1] = hn::MulAdd(element, rows.of[tap][1], sums.of[w][1]);
  if constexpr (has_half) {
    const typename Sums<windows, whole, has_half>::HalfTag dh;
    sums.half[w] = hn::MulAdd(hn::LowerHalf(dh, element), rows.half[tap], sums.half[w]);
  }
}

// Adds the element `at` places behind the first tap of the first window to all sums that have it.
// Without a loop, which the compiler would turn inside out, so that each were broadcast again.
template <int at, int stride, int taps, int windows, int whole, bool has_half, int... tap>
HWY_INLINE void AddElementOf(const float* from, const Rows<taps, whole, has_half>& rows,
                             Sums<windows, whole, has_half>& sums,
                             std::integer_sequence<int, tap...> /*all*/) {
  constexpr auto kHas = [](int of) {
    return at >= of && (at - of) % stride == 0 && (at - of) / stride < windows;
  };
  if constexpr ((kHas(tap) || ...)) {
    Vec element = Broadcast(from + at);
    KeepOrder(element);
    (
        [&]() HWY_ATTR {
          if constexpr (kHas(tap)) AddElement<tap, (at - tap) / stride>(element, rows, sums);
        }(),
        ...);
  }
}

template <int stride, int taps, int windows, int whole, bool has_half, int... at>
HWY_INLINE void AddElements(const float* from, const Rows<taps, whole, has_half>& rows,
                            Sums<windows, whole, has_half>& sums,
                            std::integer_sequence<int, at...> /*all*/) {
  (AddElementOf<at, stride>(from, rows, sums, std::make_integer_sequence<int, taps>()), ...);
}

// Adds `taps` neighbouring taps, of which the first reads the element at `from` of the first window
// and has the first row of `weights`.
template <int taps, int stride, int windows, int whole, bool has_half>
HWY_INLINE void AddTaps(const float* from, const float* weights,
                        Sums<windows, whole, has_half>& sums) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Rows<taps, whole, has_half> rows;
#pragma GCC unroll 4
  for (int tap = 0; tap < taps; ++tap) {
    const float* const of_tap = weights + tap * kPanelVectors * lanes;
#pragma GCC unroll 2
    for (int v = 0; v < whole; ++v) rows.of[tap][v] = hn::LoadU(d, of_tap + v * lanes);
    if constexpr (has_half) {
      const typename Sums<windows, whole, has_half>::HalfTag dh;
      rows.half[tap] = hn::LoadU(dh, of_tap + whole * lanes);
    }
  }
  AddElements<stride>(from, rows, sums,
                      std::make_integer_sequence<int, (windows - 1) * stride + taps>());
}

template <int windows, int whole, bool has_half, int stride>
HWY_NOINLINE void ConvolveBlock(const Block& block, const gemm::Epilogue& epilogue) {
  Sums<windows, whole, has_half> sums;
  const Tag d;
  const typename decltype(sums)::HalfTag dh;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
#pragma GCC unroll 2
  for (int v = 0; v < sums.kVectors; ++v) {
    const Vec start = vectors::StartOf(d, block.bias, v, block.columns);
#pragma GCC unroll 16
    for (int w = 0; w < windows; ++w) {
      if (v < whole) {
        sums.of[w][v] = start;
      } else {
        if constexpr (has_half) sums.half[w] = hn::LowerHalf(dh, start);
      }
    }
  }
  const float* weights = block.weights;
  for (const PlanarTaps& taps : block.taps) {
    const float* from = block.source + taps.first;
    if constexpr (kTogether > 1) {
      if (taps.count == 3) {
        AddTaps<3, stride>(from, weights, sums);
        weights += 3 * kPanelVectors * lanes;
        continue;
      }
    }
    for (int64_t left = taps.count; left > 0; --left) {
      AddTaps<1, stride>(from, weights, sums);
      weights += kPanelVectors * lanes;
      ++from;
    }
  }
#if HWY_MAX_BYTES == 64  // Highway has no such operation for a single lane.
  if constexpr (has_half) {
#pragma GCC unroll 16
    for (int w = 0; w < windows; ++w) {
      sums.of[w][whole] = hn::ZeroExtendVector(d, sums.half[w]);
    }
  }
#endif
  vectors::StoreSums(d, epilogue, block.addend, block.columns, block.result, block.result_stride,
                     sums.of);
}

using BlockFunction = void (*)(const Block&, const gemm::Epilogue&);

// The function for each number of vectors and of windows, first those for whole vectors.
template <int stride>
struct BlockFunctions {
  BlockFunction of[vectors::kHasHalves ? 2 : 1][kPanelVectors + 1][kMaxWindows + 1] = {};

  constexpr BlockFunctions() {
    FillAll<1, false>();
    FillAll<2, false>();
    if constexpr (vectors::kHasHalves) {
      FillAll<0, true>();
      FillAll<1, true>();
    }
  }

 private:
  template <int whole, bool has_half>
  constexpr void FillAll() {
    Fill<whole, has_half>(std::make_integer_sequence<int, MaxWindows(whole, has_half)>());
  }
  template <int whole, bool has_half, int... windows>
  constexpr void Fill(std::integer_sequence<int, windows...> /*less_one*/) {
    constexpr int kVectors = whole + (has_half ? 1 : 0);
    ((of[has_half ? 1 : 0][kVectors][windows + 1] =
          ConvolveBlock<windows + 1, whole, has_half, stride>),
     ...);
  }
};

template <int stride>
void ConvolveRowBy(const PlanarRow& row, const gemm::Epilogue& epilogue, int64_t first_panel,
                   int64_t end_panel) {
  static constexpr BlockFunctions<stride> kFunctions;
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t panel_columns = kPanelVectors * lanes;
  // All panels of some windows, whose elements stay in the L1 cache.
  const int64_t rest = row.columns % panel_columns;
  const bool has_half = vectors::kHasHalves && rest > lanes && rest <= lanes + lanes / 2;
  const int64_t most =
      row.columns <= lanes ? MaxWindows(1, false) : MaxWindows(has_half ? 1 : 2, has_half);
  const int64_t blocks = (row.width + most - 1) / most;
  int64_t x = 0;
  for (int64_t number = 0; number < blocks; ++number) {
    // Blocks of about the same height.
    const int64_t windows = (row.width - x) / (blocks - number);
    for (int64_t panel = first_panel; panel < end_panel; ++panel) {
      const int64_t column = panel * panel_columns;
      const int64_t columns = std::min(panel_columns, row.columns - column);
      const int64_t whole = (columns + lanes - 1) / lanes;
      const int half = vectors::kHasHalves && columns - (whole - 1) * lanes <= lanes / 2 ? 1 : 0;
      const Block block = {
          row.source + x * stride,
          row.taps,
          row.weights + panel * row.tap_count * panel_columns,
          row.result + x * row.result_stride + column,
          row.result_stride,
          columns,
          epilogue.bias == nullptr ? nullptr : epilogue.bias + column,
          epilogue.addend == nullptr ? nullptr : epilogue.AddendOf(x) + column,
      };
      kFunctions.of[half][whole][windows](block, epilogue);
      if (epilogue.IsFunction()) {
        vectors::ApplyFunction(d, epilogue, block.result, block.result_stride, windows, columns);
      }
    }
    x += windows;
  }
}

void ConvolveRowHere(const PlanarRow& row, const gemm::Epilogue& epilogue, int64_t first_panel,
                     int64_t end_panel) {
  return row.stride == 1 ? ConvolveRowBy<1>(row, epilogue, first_panel, end_panel)
                         : ConvolveRowBy<2>(row, epilogue, first_panel, end_panel);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::convolution
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::convolution {

HWY_EXPORT(ConvolveRowHere);

void ConvolvePlanarRow(const PlanarRow& row, const gemm::Epilogue& epilogue, int64_t first_panel,
                       int64_t end_panel) {
  HWY_DYNAMIC_DISPATCH(ConvolveRowHere)(row, epilogue, first_panel, end_panel);
}

}  // namespace onnxifi::convolution
#endif
