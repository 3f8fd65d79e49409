// SPDX-License-Identifier: Apache-2.0
//
// Permissions: what a caller lets devices do with the arithmetic of a graph, and to choose how it
// is computed. They come with the graph's properties and stay with its program.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_PERMISSIONS_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_PERMISSIONS_H_

#include "backends/core/tensor/precision.h"

namespace onnxifi::tensor {

struct Permissions {
  // Sums of products may be computed by algorithms that round differently from their definition.
  bool has_fast_algorithms = true;
  // To what float32 operands of products may be rounded. Sums stay float32.
  Precision precision = Precision::kFloat32;
  // Rows that are multiplied with constant weights of at most 8 bits may be rounded to bytes, with
  // a scale for each block of a row.
  bool has_dynamic_quantization = false;
  // Making the graph ready may take the time to run implementations against each other.
  bool may_measure = false;
};

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_PERMISSIONS_H_
