// SPDX-License-Identifier: Apache-2.0
//
// Gemm: a block of rows times two vectors of columns stays in registers over the whole depth. Rows
// of A are read element by element, each broadcast to a vector; B is read from packed panels.

#include "backends/cpu/gemm/gemm.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <span>
#include <utility>

#include "backends/cpu/processor/processor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/gemm.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/gemm/epilogue-inl.h"
#include "backends/cpu/gemm/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::gemm {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kVectors = 2;  // of a panel
// Registers for the sums: 28 of 32, or 12 of 16; the others hold a row of the panel and a
// broadcast element.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kRows = 14;
#else
constexpr int kRows = 6;
#endif

constexpr int64_t kAhead = 768;  // floats, about 150 ns before they are used

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

// The rows and columns of C that one call computes, and where their factors are.
struct Block {
  const float* a;
  int64_t a_stride;
  const float* b;
  float* c;
  int64_t c_stride;
  std::span<const int64_t> pieces;
  int64_t depth;
  int64_t columns;      // of the block, up to PanelColumns()
  const float* bias;    // of its columns
  const float* addend;  // of its first row
};

template <int rows, int vectors>
HWY_INLINE void StoreSums(const Block& block, const Epilogue& epilogue, Vec (&sum)[rows][vectors]) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (block.columns == vectors * lanes) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        Vec x = sum[r][v];
        if (block.addend != nullptr) {
          x = hn::Add(x, hn::LoadU(d, block.addend + r * epilogue.addend_stride + v * lanes));
        }
        hn::StoreU(Activated(d, x, epilogue), d, block.c + r * block.c_stride + v * lanes);
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      const int64_t count = std::min(lanes, block.columns - v * lanes);
      if (count <= 0) break;
      Vec x = sum[r][v];
      if (block.addend != nullptr) {
        x = hn::Add(x, LoadFirst(d, block.addend + r * epilogue.addend_stride + v * lanes, count));
      }
      StoreFirst(d, Activated(d, x, epilogue), block.c + r * block.c_stride + v * lanes, count);
    }
  }
}

template <int rows, int vectors>
HWY_NOINLINE void MultiplyBlock(const Block& block, const Epilogue& epilogue) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vec sum[rows][vectors];
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) {
    Vec start = hn::Zero(d);
    if (block.bias != nullptr) {
      const int64_t count = std::max<int64_t>(0, std::min(lanes, block.columns - v * lanes));
      start = LoadFirst(d, block.bias + v * lanes, count);
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) sum[r][v] = start;
  }
  // Rows in threes, so that one register addresses three of them.
  constexpr int kThrees = (rows + 2) / 3;
  const int64_t stride = block.a_stride;
  const float* b = block.b;
  for (const int64_t piece : block.pieces) {
    const float* a[kThrees];
#pragma GCC unroll 8
    for (int t = 0; t < kThrees; ++t) a[t] = block.a + piece + 3 * t * stride;
    for (int64_t k = 0; k < block.depth; ++k) {
      // Far ahead: a panel that comes from memory crosses pages, where the processor's own
      // prefetching ends.
      hwy::Prefetch(b + kAhead);
      if constexpr (HWY_MAX_BYTES * vectors > 64) hwy::Prefetch(b + kAhead + 16);
      Vec row[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) row[v] = hn::LoadU(d, b + v * lanes);
      b += kVectors * lanes;
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        const Vec element = hn::Set(d, a[r / 3][(r % 3) * stride]);
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) sum[r][v] = hn::MulAdd(element, row[v], sum[r][v]);
      }
#pragma GCC unroll 8
      for (int t = 0; t < kThrees; ++t) ++a[t];
    }
  }
  StoreSums<rows, vectors>(block, epilogue, sum);
}

// The function for each number of rows, up to kRows, and of vectors.
using BlockFunction = void (*)(const Block&, const Epilogue&);
struct BlockFunctions {
  BlockFunction of[kRows + 1][kVectors + 1] = {};

  template <int... rows>
  constexpr explicit BlockFunctions(std::integer_sequence<int, rows...> /*unused*/) {
    ((of[rows + 1][1] = MultiplyBlock<rows + 1, 1>, of[rows + 1][2] = MultiplyBlock<rows + 1, 2>),
     ...);
  }
};

// One panel: whole blocks of rows, then what is left in one or two of about the same height.
void MultiplyPanel(const Product& product, std::span<const int64_t> pieces,
                   const Epilogue& epilogue, int64_t panel) {
  static constexpr BlockFunctions kFunctions{std::make_integer_sequence<int, kRows>()};
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  const int64_t panel_columns = kVectors * lanes;
  const int64_t column = panel * panel_columns;
  const int64_t depth = product.depth * static_cast<int64_t>(pieces.size());
  Block block = {product.a,
                 product.a_stride,
                 product.b + panel * depth * panel_columns,
                 product.c + column,
                 product.c_stride,
                 pieces,
                 product.depth,
                 std::min(panel_columns, product.columns - column),
                 epilogue.bias == nullptr ? nullptr : epilogue.bias + column,
                 epilogue.addend == nullptr ? nullptr : epilogue.addend + column};
  const int vectors = block.columns > lanes ? 2 : 1;
  for (int64_t left = product.rows; left > 0;) {
    const int64_t rows = left >= 2 * kRows || left == kRows ? kRows
                         : left > kRows                     ? (left + 1) / 2
                                                            : left;
    kFunctions.of[rows][vectors](block, epilogue);
    block.a += rows * block.a_stride;
    block.c += rows * block.c_stride;
    if (block.addend != nullptr) block.addend += rows * epilogue.addend_stride;
    left -= rows;
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
  const int64_t chunk = std::max<int64_t>(2, chunk_floats / floats_per_row / kRows) * kRows;
  for (int64_t row = 0; row < product.rows; row += chunk) {
    Product part = product;
    part.a += row * product.a_stride;
    part.c += row * product.c_stride;
    part.rows = std::min(chunk, product.rows - row);
    Epilogue part_epilogue = epilogue;
    if (epilogue.addend != nullptr) part_epilogue.addend += row * epilogue.addend_stride;
    for (int64_t panel = first_panel; panel < end_panel; ++panel) {
      MultiplyPanel(part, pieces, part_epilogue, panel);
    }
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
    for (int64_t k = 0; k < depth; ++k, out += width) {
      for (int64_t n = 0; n < filled; ++n) out[n] = in[k * b.row_stride + n * b.column_stride];
      std::fill(out + filled, out + width, 0.0F);
    }
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
