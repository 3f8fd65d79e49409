// SPDX-License-Identifier: Apache-2.0
//
// ProductLayout: a bound Contract as products of matrices that are stored column by column, which
// is how cuBLASLt counts: D = op(A) * op(B). What is stored row by row is the transposed matrix
// there; where the step's output is, its product is the transposed one, of its operands in the
// other order.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_PRODUCT_LAYOUT_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_PRODUCT_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cuda/libraries/contract_form.h"
#include "backends/cuda/libraries/rules.h"

namespace onnxifi::cuda {

// Offsets and strides count elements.
struct ProductLayout {
  struct Matrix {
    int64_t rows = 0, columns = 0;  // as it is stored
    int64_t leading = 0;            // from a column to the next
    int64_t batch_stride = 0;
    bool is_transposed = false;  // op() transposes it
    int64_t offset = 0;
  };
  // One call of the library: what is added to the offsets.
  struct Call {
    int64_t a = 0, b = 0, d = 0, addend = 0;
  };
  ProductExtents extents;  // of the step's product
  bool is_a_read_1 = false;
  Matrix a, b, d;
  Matrix addend;            // where there is one: as d, apart from how far its columns are
  int64_t bias_offset = 0;  // where there is one: an element for each row of d
  int64_t batches = 1;
  std::vector<Call> calls;
};

// UNSUPPORTED_OPERATOR with what keeps the step, a matrix product or a convolution that looks at
// one place of the image for each output, from being such products. The results have an output; a
// bias is the same along d's columns and batches.
base::Result<ProductLayout> LayOutProduct(const device::BoundStep& step,
                                          const LibraryResults& results);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_PRODUCT_LAYOUT_H_
