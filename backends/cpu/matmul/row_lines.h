// SPDX-License-Identifier: Apache-2.0
//
// RowLines: the rows of a bound product, which may lie along several axes: rows at one distance
// from each other are a line, which is one product.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_ROW_LINES_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_ROW_LINES_H_

#include <cstdint>
#include <vector>

#include "backends/cpu/matmul/constant_matrix.h"

namespace onnxifi::matmul {

class RowLines {
 public:
  // In floats, of X, Y and the addend of the epilogue.
  struct Offsets {
    int64_t x = 0, y = 0, addend = 0;
  };

  RowLines(const device::BoundStep& step, const ConstantMatrix& matrix);

  int64_t count() const { return count_; }
  // Of each line.
  int64_t rows() const { return line_.extent; }
  // From row to row of a line.
  const Offsets& distance() const { return line_.distance; }
  // Where a line begins.
  Offsets BeginOf(int64_t line) const;

 private:
  struct Axis {
    int64_t extent = 1;
    Offsets distance;
  };

  std::vector<Axis> outer_;  // of which each element is a line
  Axis line_;
  int64_t count_ = 1;
};

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_ROW_LINES_H_
