// SPDX-License-Identifier: Apache-2.0
//
// The sums of products of one block of outputs, held in vectors of registers by one item. What is
// spliced in front of this says TILE_ROWS, TILE_VECTORS, TILE_LANES, TILE_TYPE (f32, f64, u32, u64)
// and, for the floats, TILE_IS_FLOAT.
//
//   TILE_DECLARE(block)   a block of TILE_ROWS x (TILE_VECTORS * TILE_LANES) zeros
//   TILE_ADD(block, rows, row_at, columns, column_at, depth, step)   adds, for k below depth, the
//       products of the elements row_at + k * TILE_ROWS + row of the buffer `rows` and
//       column_at + k * step + column of the buffer `columns`
//   TILE_STORE(block, sums)   block as an array, row by row

#define TILE_JOIN2(a, b) a##b
#define TILE_JOIN(a, b) TILE_JOIN2(a, b)
#define TILE_NATIVE_f32 float
#define TILE_NATIVE_f64 double
#define TILE_NATIVE_u32 uint
#define TILE_NATIVE_u64 ulong
#define TILE_NATIVE TILE_JOIN(TILE_NATIVE_, TILE_TYPE)

#if TILE_LANES == 1
typedef TILE_NATIVE tile_vector;
#define TILE_LOAD(k, from) (from)[k]
#define TILE_PUT(value, k, to) (to)[k] = (value)
#else
typedef TILE_JOIN(TILE_NATIVE, TILE_LANES) tile_vector;
#define TILE_LOAD TILE_JOIN(vload, TILE_LANES)
#define TILE_PUT TILE_JOIN(vstore, TILE_LANES)
#endif

#ifdef TILE_IS_FLOAT
#define TILE_MULTIPLY_ADD(a, b, sum) M_fma((tile_vector)(a), b, sum)
#else
#define TILE_MULTIPLY_ADD(a, b, sum) ((tile_vector)(a) * (b) + (sum))
#endif

#define TILE_DECLARE(block) \
  tile_vector block[TILE_ROWS][TILE_VECTORS]; \
  tile_clear(block)
#define TILE_ADD(block, rows, row_at, columns, column_at, depth, step) \
  tile_add(block, (rows) + (row_at), (columns) + (column_at), depth, step)
#define TILE_STORE(block, sums) tile_store(block, sums)

__attribute__((always_inline)) FN void tile_clear(tile_vector block[TILE_ROWS][TILE_VECTORS]) {
#pragma unroll
  for (int row = 0; row < TILE_ROWS; ++row) {
#pragma unroll
    for (int vector = 0; vector < TILE_VECTORS; ++vector) block[row][vector] = (tile_vector)(0);
  }
}

__attribute__((always_inline)) FN void tile_add(tile_vector block[TILE_ROWS][TILE_VECTORS],
                                                __global const TILE_TYPE* restrict rows,
                                                __global const TILE_TYPE* restrict columns,
                                                idx depth, idx step) {
  for (idx k = 0; k < depth; ++k) {
    tile_vector own[TILE_VECTORS];
#pragma unroll
    for (int vector = 0; vector < TILE_VECTORS; ++vector) own[vector] = TILE_LOAD(vector, columns);
#pragma unroll
    for (int row = 0; row < TILE_ROWS; ++row) {
#pragma unroll
      for (int vector = 0; vector < TILE_VECTORS; ++vector) {
        block[row][vector] = TILE_MULTIPLY_ADD(rows[row], own[vector], block[row][vector]);
      }
    }
    rows += TILE_ROWS;
    columns += step;
  }
}

__attribute__((always_inline)) FN void tile_store(tile_vector block[TILE_ROWS][TILE_VECTORS],
                                                  TILE_TYPE* sums) {
#pragma unroll
  for (int row = 0; row < TILE_ROWS; ++row) {
#pragma unroll
    for (int vector = 0; vector < TILE_VECTORS; ++vector) {
      TILE_PUT(block[row][vector], row * TILE_VECTORS + vector, sums);
    }
  }
}
