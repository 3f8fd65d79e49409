// SPDX-License-Identifier: Apache-2.0
//
// BytePacking: what ByteGemm multiplies, made of bytes as they lie in memory: panels of columns,
// rows of the other kind, and the sums of both. One thread.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_BYTE_PACKING_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_BYTE_PACKING_H_

#include <cstdint>

#include "backends/cpu/integer/byte_gemm.h"

namespace onnxifi::integer {

// B[depth, columns] in the order in which memory has it.
struct ByteMatrix {
  const uint8_t* data;
  int64_t depth;
  int64_t columns;
  // Offset of element k: a table, so that several axes are one depth.
  const int64_t* depth_offsets;
  int64_t column_stride;
  uint8_t flip;  // of every element: 0x80, or 0
  int64_t pieces = 1;
};

// B as panels [panel][quad][PanelColumns()][kQuad], filled up with 0, each with what its multiplier
// needs beside them, and the sum of each column's elements. Writes panels [first_panel, end_panel)
// of `packed` and `column_sums`, which point to the first of all.
void PackPanels(const ByteMatrix& b, int64_t first_panel, int64_t end_panel, int8_t* packed,
                int32_t* column_sums);

// Copies bytes, each with `flip` applied.
void CopyBytes(const uint8_t* source, int64_t count, uint8_t flip, uint8_t* target);
// The sum of the elements of each row of A. What fills pieces up is not read.
void SumRows(const ByteProduct& product, int32_t* sums);

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_BYTE_PACKING_H_
