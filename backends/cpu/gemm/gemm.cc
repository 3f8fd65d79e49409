// SPDX-License-Identifier: Apache-2.0
//
// Gemm: a block of rows times two vectors of columns stays in registers over the whole depth. Rows
// of A are read element by element, each broadcast to a vector; B is read from packed panels. While
// the blocks of one panel are computed, the next panel comes to the L2 cache, so that weights that
// lie in memory are waited for in the first panel alone.

#include "backends/cpu/gemm/gemm.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "backends/cpu/processor/processor.h"
#include "backends/cpu/transpose/transpose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/gemm.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/gemm/epilogue-inl.h"
#include "backends/cpu/gemm/partial-inl.h"
#include "backends/cpu/gemm/sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::gemm {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kVectors = 2;  // of a panel
// A panel and the first vector of the last one, which has no other.
constexpr int kMaxVectors = 3;
// Registers for the sums: 28 or 27 of 32, or 12 of 16; the others hold a row of the panel and a
// broadcast element.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kRows = 14;
constexpr int kRowsOfThree = 9;
#else
constexpr int kRows = 6;
constexpr int kRowsOfThree = 4;
#endif

constexpr int64_t kAhead = 768;  // floats, about 150 ns before they are used
// Elements of a piece of A that are worth being taken two at a time.
constexpr int64_t kMinToPair = 8;

// As hwy::Prefetch, but not to the L1 cache, which what is computed now fills.
HWY_INLINE void PrefetchToL2(const float* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address, /*rw=*/0, /*locality=*/2);
#else
  hwy::Prefetch(address);
#endif
}

HWY_INLINE void PrefetchToWrite(const float* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address, /*rw=*/1, /*locality=*/3);
#else
  (void)address;
#endif
}

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

// The rows and columns of C that one call computes, and where their factors are.
struct Block {
  const float* a;
  int64_t a_stride;
  const float* b;
  const float* b_third;  // of the third vector
  const float* next;     // of B, what the next panel's part to prefetch is
  int64_t next_step;     // floats of it per element of the depth
  float* c;
  int64_t c_stride;
  std::span<const int64_t> pieces;
  int64_t depth;
  int64_t columns;      // of the block
  const float* bias;    // of its columns
  const float* addend;  // of its first row
  bool is_c_far;        // whether C is too large for caches
};

// `is_b_near`: it comes to the caches at once, and nothing of it is prefetched. `has_half`: of the
// last vector the lower half alone has columns.
template <int rows, int vectors, bool is_b_near, bool has_half>
HWY_NOINLINE void MultiplyBlock(const Block& block, const Epilogue& epilogue) {
  const Tag d;
  const std::conditional_t<has_half, HalfTag, Tag> dh;
  constexpr int kWhole = vectors - (has_half ? 1 : 0);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vec sum[rows][vectors];
  hn::Vec<decltype(dh)> half[rows];
#pragma GCC unroll 3
  for (int v = 0; v < vectors; ++v) {
    const Vec start = StartOf(d, block.bias, v, block.columns);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      if (v < kWhole) {
        sum[r][v] = start;
      } else {
        if constexpr (has_half) half[r] = hn::LowerHalf(dh, start);
      }
    }
  }
  if (block.is_c_far) {
    // Of the next block, while this one is computed.
    for (int r = rows; r < 2 * rows; ++r) {
      for (int v = 0; v < vectors; ++v) {
        PrefetchToWrite(block.c + r * block.c_stride + v * lanes);
      }
    }
  }
  // Rows in threes, so that one register addresses three of them.
  constexpr int kThrees = (rows + 2) / 3;
  const int64_t stride = block.a_stride;
  const float* b = block.b;
  const float* b_third = block.b_third;
  const float* next = block.next;
  for (const int64_t piece : block.pieces) {
    const float* a[kThrees];
#pragma GCC unroll 8
    for (int t = 0; t < kThrees; ++t) a[t] = block.a + piece + 3 * t * stride;
    // Inner element `k` from where the addresses are.
    const auto multiply = [&](int k) HWY_ATTR {
      // Far ahead: a panel that comes from memory crosses pages, where the processor's own
      // prefetching ends.
      const float* panel_row = b + k * kVectors * lanes;
      if constexpr (!is_b_near) {
        hwy::Prefetch(panel_row + kAhead);
        if constexpr (HWY_MAX_BYTES * vectors > 64) hwy::Prefetch(panel_row + kAhead + 16);
        PrefetchToL2(next);
        next += block.next_step;
      }
      Vec row[vectors];
#pragma GCC unroll 3
      for (int v = 0; v < kWhole; ++v) {
        row[v] =
            hn::LoadU(d, v < kVectors ? panel_row + v * lanes : b_third + k * kVectors * lanes);
      }
      hn::Vec<decltype(dh)> half_row;
      if constexpr (has_half) {
        half_row = hn::LoadU(
            dh, kWhole < kVectors ? panel_row + kWhole * lanes : b_third + k * kVectors * lanes);
      }
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        const float* const address = a[r / 3] + (r % 3) * stride + k;
        if constexpr (kWhole == 0) {
          half[r] = hn::MulAdd(hn::Set(dh, FloatAt(address)), half_row, half[r]);
          continue;
        }
        const Vec element = hn::Set(d, FloatAt(address));
#pragma GCC unroll 3
        for (int v = 0; v < kWhole; ++v) sum[r][v] = hn::MulAdd(element, row[v], sum[r][v]);
        if constexpr (has_half) {
          half[r] = hn::MulAdd(hn::LowerHalf(dh, element), half_row, half[r]);
        }
      }
    };
    const auto move_on = [&](int count) HWY_ATTR {
      b += count * kVectors * lanes;
      if constexpr (vectors > kVectors) b_third += count * kVectors * lanes;
#pragma GCC unroll 8
      for (int t = 0; t < kThrees; ++t) a[t] += count;
    };
    // Two at a time, to count half as often; four at a time are slower again.
    int64_t left = block.depth;
    for (; block.depth >= kMinToPair && left >= 2; left -= 2) {
      multiply(0);
      multiply(1);
      move_on(2);
    }
    for (; left > 0; --left) {
      multiply(0);
      move_on(1);
    }
  }
#if HWY_MAX_BYTES == 64  // Highway has no such operation for a single lane.
  if constexpr (has_half) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) sum[r][kWhole] = hn::ZeroExtendVector(d, half[r]);
  }
#endif
  StoreSums(d, epilogue, block.addend, block.columns, block.c, block.c_stride, sum);
}

constexpr int MaxRows(int vectors) { return vectors > kVectors ? kRowsOfThree : kRows; }

// The function for each number of vectors and of rows, up to MaxRows of them, first those for whole
// vectors.
using BlockFunction = void (*)(const Block&, const Epilogue&);
template <bool is_b_near>
struct BlockFunctions {
  BlockFunction of[kHasHalves ? 2 : 1][kMaxVectors + 1][kRows + 1] = {};

  constexpr BlockFunctions() {
    FillAll<false>();
    if constexpr (kHasHalves) FillAll<true>();
  }

 private:
  template <bool has_half>
  constexpr void FillAll() {
    Fill<has_half, 1>(std::make_integer_sequence<int, MaxRows(1)>());
    Fill<has_half, 2>(std::make_integer_sequence<int, MaxRows(2)>());
    Fill<has_half, 3>(std::make_integer_sequence<int, MaxRows(3)>());
  }
  template <bool has_half, int vectors, int... rows>
  constexpr void Fill(std::integer_sequence<int, rows...> /*unused*/) {
    ((of[has_half ? 1 : 0][vectors][rows + 1] =
          MultiplyBlock<rows + 1, vectors, is_b_near, has_half>),
     ...);
  }
};

// `columns` columns from those of a panel on, as many as kMaxVectors have at most: whole blocks of
// rows, then what is left in one or two of about the same height.
void MultiplyColumns(const Product& product, std::span<const int64_t> pieces,
                     const Epilogue& epilogue, int64_t panel, int64_t columns) {
  static constexpr BlockFunctions<false> kFunctions;
  static constexpr BlockFunctions<true> kFunctionsOfNear;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  const int64_t panel_columns = kVectors * lanes;
  const int64_t column = panel * panel_columns;
  const int64_t depth = product.depth * static_cast<int64_t>(pieces.size());
  const auto vectors = static_cast<int>((columns + lanes - 1) / lanes);
  const int most_rows = MaxRows(vectors);
  const int64_t blocks = (product.rows + most_rows - 1) / most_rows;
  const float* const b = product.b + panel * depth * panel_columns;
  const float* const b_third = b + depth * panel_columns;
  Block block = {product.a,
                 product.a_stride,
                 b,
                 b_third,
                 /*next=*/product.next_b != nullptr ? product.next_b
                 : vectors > kVectors               ? b_third + depth * panel_columns
                                                    : b_third,
                 /*next_step=*/(panel_columns + blocks - 1) / blocks,
                 product.c + column,
                 product.c_stride,
                 pieces,
                 product.depth,
                 columns,
                 epilogue.bias == nullptr ? nullptr : epilogue.bias + column,
                 epilogue.addend == nullptr ? nullptr : epilogue.addend + column,
                 product.is_c_far};
  const bool is_b_near =
      product.next_b == nullptr && depth * product.columns <= processor::L2Floats() / 16;
  const int half = kHasHalves && columns - (vectors - 1) * lanes <= lanes / 2 ? 1 : 0;
  const auto& functions =
      is_b_near ? kFunctionsOfNear.of[half][vectors] : kFunctions.of[half][vectors];
  for (int64_t left = product.rows; left > 0;) {
    const int64_t rows = left >= 2 * most_rows || left == most_rows ? most_rows
                         : left > most_rows                         ? (left + 1) / 2
                                                                    : left;
    functions[rows](block, epilogue);
    if (epilogue.IsFunction()) {
      ApplyFunction(Tag(), epilogue, block.c, block.c_stride, rows, columns);
    }
    block.a += rows * block.a_stride;
    block.c += rows * block.c_stride;
    block.next += depth * block.next_step;
    if (block.addend != nullptr) block.addend += rows * epilogue.addend_stride;
    left -= rows;
  }
}

// Panels [first_panel, end_panel), one after the other; one vector of a last panel goes with the
// panel before it.
void MultiplyRows(const Product& product, std::span<const int64_t> pieces, const Epilogue& epilogue,
                  int64_t first_panel, int64_t end_panel) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  const int64_t panel_columns = kVectors * lanes;
  for (int64_t panel = first_panel; panel < end_panel;) {
    const int64_t left = product.columns - panel * panel_columns;
    const bool takes_two = left <= kMaxVectors * lanes && panel + 2 == end_panel;
    MultiplyColumns(product, pieces, epilogue, panel,
                    takes_two ? left : std::min(left, panel_columns));
    panel += takes_two ? 2 : 1;
  }
}

// Rows that are a multiple of a page from each other share one set of the L1 cache, which holds
// kWays lines, and a block has more rows: each would come from the L2 cache for every element. Such
// rows are multiplied from a copy.
constexpr int64_t kWays = 8;
constexpr int64_t kLineFloats = 16;
constexpr int64_t kSetFloats = 4096 / sizeof(float);
constexpr int64_t kMinColumnsToCopy = 64;

// Memory of the thread for `floats` floats, until its next call; null where there is none.
float* CopyMemory(int64_t floats) {
  thread_local std::unique_ptr<float[]> memory;
  thread_local int64_t size = 0;
  if (size < floats) {
    size = 0;
    memory.reset(new (std::nothrow) float[static_cast<size_t>(floats)]);
    if (memory != nullptr) size = floats;
  }
  return memory.get();
}

// `rows` rows of A side by side, `stride` floats from each other.
void CopyRows(const Product& product, int64_t piece, int64_t rows, int64_t stride, float* copy) {
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(copy + row * stride, product.a + row * product.a_stride + piece,
                static_cast<size_t>(product.depth) * sizeof(float));
  }
}

void MultiplyPanels(const Product& product, const Epilogue& epilogue, int64_t first_panel,
                    int64_t end_panel) {
  static constexpr int64_t kOnePiece[] = {0};
  const std::span<const int64_t> pieces = product.pieces.empty() ? kOnePiece : product.pieces;
  // Rows pass through all panels in chunks. While B stays in a part of the L2 cache, they are so
  // small that their results do too; a larger B is read as seldom as the rows' own share allows.
  const int64_t l2 = processor::L2Floats();
  const int64_t small_b = l2 / 4;
  const int64_t small_chunk = l2 / 16;
  const int64_t large_chunk = l2 / 2;
  const int64_t depth = product.depth * static_cast<int64_t>(pieces.size());
  const auto columns =
      (end_panel - first_panel) * static_cast<int64_t>(kVectors * hn::Lanes(Tag()));
  const int64_t floats_per_row =
      std::max<int64_t>(1, depth + columns * (epilogue.addend == nullptr ? 1 : 2));
  const int64_t chunk_floats = depth * columns <= small_b ? small_chunk : large_chunk;
  int64_t chunk = std::max<int64_t>(2, chunk_floats / floats_per_row / kRows) * kRows;
  const int64_t copied_stride = product.depth + kLineFloats;
  const int64_t most_copied = l2 / 2 / copied_stride / kRows * kRows;
  const bool collides = pieces.size() == 1 && product.rows > kWays && most_copied > 0 &&
                        product.a_stride != 0 && product.a_stride % kSetFloats == 0 &&
                        columns >= kMinColumnsToCopy;
  float* const copy = collides ? CopyMemory(most_copied * copied_stride) : nullptr;
  if (copy != nullptr) chunk = std::min(chunk, most_copied);
  for (int64_t row = 0; row < product.rows; row += chunk) {
    Product part = product;
    part.a += row * product.a_stride;
    if (copy != nullptr) {
      CopyRows(part, pieces[0], std::min(chunk, product.rows - row), copied_stride, copy);
      part.a = copy;
      part.a_stride = copied_stride;
    }
    part.c += row * product.c_stride;
    part.rows = std::min(chunk, product.rows - row);
    Epilogue part_epilogue = epilogue;
    if (epilogue.addend != nullptr) part_epilogue.addend += row * epilogue.addend_stride;
    MultiplyRows(part, copy != nullptr ? std::span(kOnePiece) : pieces, part_epilogue, first_panel,
                 end_panel);
  }
}

int64_t VectorLanes() { return static_cast<int64_t>(hn::Lanes(Tag())); }
int64_t RowsOfBlock() { return kRows; }

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::gemm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::gemm {

HWY_EXPORT(MultiplyPanels);
HWY_EXPORT(VectorLanes);
HWY_EXPORT(RowsOfBlock);

int64_t PanelColumns() { return 2 * HWY_DYNAMIC_DISPATCH(VectorLanes)(); }
int64_t BlockRows() { return HWY_DYNAMIC_DISPATCH(RowsOfBlock)(); }

int64_t PackedSize(int64_t depth, int64_t columns) {
  const int64_t panel = PanelColumns();
  return (columns + panel - 1) / panel * panel * depth;
}

void PackRows(const Matrix& b, int64_t depth, int64_t columns, int64_t first_row,
              int64_t whole_depth, int64_t first_panel, int64_t end_panel, float* packed) {
  const int64_t width = PanelColumns();
  for (int64_t panel = first_panel; panel < end_panel; ++panel) {
    float* out = packed + (panel * whole_depth + first_row) * width;
    const int64_t filled = std::min(width, columns - panel * width);
    const float* in = b.data + panel * width * b.column_stride;
    if (b.row_stride == 1 && b.column_stride != 1) {
      constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
      transpose::Transpose(reinterpret_cast<const std::byte*>(in), b.column_stride,
                           reinterpret_cast<std::byte*>(out), width, depth, filled, kFloatBytes);
    } else {
      for (int64_t k = 0; k < depth; ++k) {
        const float* row = in + k * b.row_stride;
        float* const to = out + k * width;
        if (b.column_stride == 1) {
          std::copy_n(row, filled, to);
        } else {
          for (int64_t n = 0; n < filled; ++n) to[n] = row[n * b.column_stride];
        }
      }
    }
    if (filled == width) continue;
    for (int64_t k = 0; k < depth; ++k)
      std::fill(out + k * width + filled, out + (k + 1) * width, 0.0F);
  }
}

void PackPanels(const Matrix& b, int64_t depth, int64_t columns, int64_t first_panel,
                int64_t end_panel, float* packed) {
  PackRows(b, depth, columns, /*first_row=*/0, depth, first_panel, end_panel, packed);
}

void Multiply(const Product& product, const Epilogue& epilogue, int64_t first_panel,
              int64_t end_panel) {
  HWY_DYNAMIC_DISPATCH(MultiplyPanels)(product, epilogue, first_panel, end_panel);
}

}  // namespace onnxifi::gemm
#endif
