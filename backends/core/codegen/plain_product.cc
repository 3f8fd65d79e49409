// SPDX-License-Identifier: Apache-2.0
//
// PlainProduct: macros, since a language without pointers passes no buffers.

#include "backends/core/codegen/plain_product.h"

namespace onnxifi::codegen {

std::string_view PlainProduct() {
  return R"text(
#define TILE_COLUMNS (TILE_VECTORS * TILE_LANES)
#ifdef TILE_IS_FLOAT
#define TILE_MULTIPLY_ADD(a, b, sum) M_fma(a, b, sum)
#else
#define TILE_MULTIPLY_ADD(a, b, sum) ((a) * (b) + (sum))
#endif
#define TILE_DECLARE(block) \
  TILE_TYPE block[TILE_ROWS * TILE_COLUMNS]; \
  UNROLL for (int tile_n = 0; tile_n < TILE_ROWS * TILE_COLUMNS; ++tile_n) block[tile_n] = AS(TILE_TYPE, 0)
#define TILE_ADD(block, rows, row_at, columns, column_at, depth, step) \
  for (idx tile_k = 0; tile_k < depth; ++tile_k) { \
    TILE_TYPE tile_own[TILE_COLUMNS]; \
    UNROLL for (int tile_c = 0; tile_c < TILE_COLUMNS; ++tile_c) { \
      tile_own[tile_c] = LOAD(columns, column_at + tile_k * step + tile_c); \
    } \
    UNROLL for (int tile_r = 0; tile_r < TILE_ROWS; ++tile_r) { \
      const TILE_TYPE tile_a = LOAD(rows, row_at + tile_k * TILE_ROWS + tile_r); \
      UNROLL for (int tile_c = 0; tile_c < TILE_COLUMNS; ++tile_c) { \
        block[tile_r * TILE_COLUMNS + tile_c] = \
            TILE_MULTIPLY_ADD(tile_a, tile_own[tile_c], block[tile_r * TILE_COLUMNS + tile_c]); \
      } \
    } \
  }
#define TILE_STORE(block, sums) \
  UNROLL for (int tile_n = 0; tile_n < TILE_ROWS * TILE_COLUMNS; ++tile_n) sums[tile_n] = block[tile_n]
)text";
}

}  // namespace onnxifi::codegen
