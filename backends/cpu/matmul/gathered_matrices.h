// SPDX-License-Identifier: Apache-2.0
//
// GatheredMatrices: what a product looks like whose rows have one of several constant matrices
// each.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_GATHERED_MATRICES_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_GATHERED_MATRICES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cpu/matmul/constant_matrix.h"
#include "backends/cpu/matmul/quantized_product.h"

namespace onnxifi::matmul {

// Read 1 is the positions, over the operand's axes.
struct GatheredMatrices {
  ConstantMatrix matrix;  // each of them
  int64_t entries;        // how many there are
  int numbers;            // the read that they are
  int64_t entry_stride;   // from one to the next
  // All of them as one matrix, the columns of one behind those of the other.
  std::optional<QuantizedProduct> quantized;

  // The reads that are packed.
  std::vector<int> Constants() const {
    std::vector<int> reads = {numbers};
    if (quantized) {
      reads.push_back(quantized->scale.read);
      if (quantized->zero_point) reads.push_back(quantized->zero_point->read);
    }
    return reads;
  }
};

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_GATHERED_MATRICES_H_
