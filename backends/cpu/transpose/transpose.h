// SPDX-License-Identifier: Apache-2.0
//
// Transpose: a block of elements from columns to rows, in vector registers.

#ifndef ONNXIFI_BACKENDS_CPU_TRANSPOSE_TRANSPOSE_H_
#define ONNXIFI_BACKENDS_CPU_TRANSPOSE_TRANSPOSE_H_

#include <cstddef>
#include <cstdint>

namespace onnxifi::transpose {

// target[r * target_stride + c] = source[c * source_stride + r] for r < rows, c < columns. Strides
// in elements of `element_bytes`, which is 1, 2, 4 or 8. The blocks do not overlap.
void Transpose(const std::byte* source, int64_t source_stride, std::byte* target,
               int64_t target_stride, int64_t rows, int64_t columns, int64_t element_bytes);

}  // namespace onnxifi::transpose

#endif  // ONNXIFI_BACKENDS_CPU_TRANSPOSE_TRANSPOSE_H_
