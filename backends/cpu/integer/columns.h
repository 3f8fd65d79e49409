// SPDX-License-Identifier: Apache-2.0
//
// Columns: B of a product of bytes once extents are known: one matrix or several, each in packed
// panels with the sums of its columns.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_COLUMNS_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/core/device/parallel.h"
#include "backends/cpu/integer/byte_gemm.h"

namespace onnxifi::integer {

// Offsets in bytes.
struct Columns {
  int64_t columns = 0;  // of each matrix
  int64_t column_stride = 0;
  std::vector<int64_t> depth_offsets;
  int64_t pieces = 1;  // of the depth, as rows have it
  std::vector<int64_t> matrix_offsets;
  uint8_t flip = 0;

  int64_t depth() const { return static_cast<int64_t>(depth_offsets.size()); }
  int64_t matrices() const { return static_cast<int64_t>(matrix_offsets.size()); }
  // Of all matrices, with the sums of their columns.
  int64_t PackedBytes() const {
    return matrices() * (MatrixBytes() + SumCount() * static_cast<int64_t>(sizeof(int32_t)));
  }

  // `b` is where the view of B begins; `packed` holds PackedBytes().
  void Pack(const uint8_t* b, std::byte* packed, device::Parallel& parallel) const;
  // Of one matrix.
  const int8_t* PanelsOf(int64_t matrix, const std::byte* packed) const {
    return reinterpret_cast<const int8_t*>(packed + matrix * MatrixBytes());
  }
  const int32_t* SumsOf(int64_t matrix, const std::byte* packed) const {
    return reinterpret_cast<const int32_t*>(packed + matrices() * MatrixBytes()) +
           matrix * SumCount();
  }

 private:
  int64_t MatrixBytes() const { return integer::PackedBytes(depth(), columns, pieces); }
  int64_t SumCount() const { return PaddedColumns(columns); }
};

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_COLUMNS_H_
