// SPDX-License-Identifier: Apache-2.0
//
// Gemm: a block of rows times two vectors of columns stays in registers over the whole depth. Rows
// of A are read element by element, each broadcast to a vector; B is read from packed panels.

#include "backends/cpu/gemm/gemm.h"

#include <algorithm>

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

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

// The rows and columns of C that one call computes, and where their factors are.
struct Block {
  const float* a;
  int64_t a_stride;
  const float* b;
  float* c;
  int64_t c_stride;
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
  const float* a[kThrees];
#pragma GCC unroll 8
  for (int t = 0; t < kThrees; ++t) a[t] = block.a + 3 * t * stride;
  const float* b = block.b;
  for (int64_t k = 0; k < block.depth; ++k) {
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
  StoreSums<rows, vectors>(block, epilogue, sum);
}

template <int rows>
HWY_INLINE void MultiplyRows(const Block& block, const Epilogue& epilogue) {
  if (block.columns > static_cast<int64_t>(hn::Lanes(Tag()))) {
    MultiplyBlock<rows, 2>(block, epilogue);
  } else {
    MultiplyBlock<rows, 1>(block, epilogue);
  }
}

// One panel: whole blocks of rows, then what is left in halves.
void MultiplyPanel(const Product& product, const Epilogue& epilogue, int64_t panel) {
  const auto panel_columns = static_cast<int64_t>(kVectors * hn::Lanes(Tag()));
  const int64_t column = panel * panel_columns;
  Block block = {product.a,
                 product.a_stride,
                 product.b + panel * product.depth * panel_columns,
                 product.c + column,
                 product.c_stride,
                 product.depth,
                 std::min(panel_columns, product.columns - column),
                 epilogue.bias == nullptr ? nullptr : epilogue.bias + column,
                 epilogue.addend == nullptr ? nullptr : epilogue.addend + column};
  int64_t left = product.rows;
  auto take = [&]<int rows>() {
    MultiplyRows<rows>(block, epilogue);
    block.a += rows * block.a_stride;
    block.c += rows * block.c_stride;
    if (block.addend != nullptr) block.addend += rows * epilogue.addend_stride;
    left -= rows;
  };
  while (left >= kRows) take.template operator()<kRows>();
  if (left >= kRows / 2) take.template operator()<kRows / 2>();
  if (left >= kRows / 2) take.template operator()<kRows / 2>();
  if (left >= 4) take.template operator()<4>();
  if (left >= 2) take.template operator()<2>();
  if (left >= 1) take.template operator()<1>();
}

void MultiplyPanels(const Product& product, const Epilogue& epilogue, int64_t first_panel,
                    int64_t end_panel) {
  // So many rows that they stay in half of a small L2 cache while the panels pass.
  constexpr int64_t kRowsBytes = int64_t{1} << 18;
  const int64_t row_bytes =
      std::max<int64_t>(1, product.depth * static_cast<int64_t>(sizeof(float)));
  const int64_t chunk = std::max<int64_t>(1, kRowsBytes / row_bytes / kRows) * kRows;
  for (int64_t row = 0; row < product.rows; row += chunk) {
    Product part = product;
    part.a += row * product.a_stride;
    part.c += row * product.c_stride;
    part.rows = std::min(chunk, product.rows - row);
    Epilogue part_epilogue = epilogue;
    if (epilogue.addend != nullptr) part_epilogue.addend += row * epilogue.addend_stride;
    for (int64_t panel = first_panel; panel < end_panel; ++panel) {
      MultiplyPanel(part, part_epilogue, panel);
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

void PackPanels(const Matrix& b, int64_t depth, int64_t columns, int64_t first_panel,
                int64_t end_panel, float* packed) {
  const int64_t width = PanelColumns();
  for (int64_t panel = first_panel; panel < end_panel; ++panel) {
    float* out = packed + panel * depth * width;
    const int64_t filled = std::min(width, columns - panel * width);
    const float* in = b.data + panel * width * b.column_stride;
    for (int64_t k = 0; k < depth; ++k, out += width) {
      for (int64_t n = 0; n < filled; ++n) out[n] = in[k * b.row_stride + n * b.column_stride];
      std::fill(out + filled, out + width, 0.0F);
    }
  }
}

void Multiply(const Product& product, const Epilogue& epilogue, int64_t first_panel,
              int64_t end_panel) {
  HWY_DYNAMIC_DISPATCH(MultiplyPanels)(product, epilogue, first_panel, end_panel);
}

}  // namespace onnxifi::gemm
#endif
