// SPDX-License-Identifier: Apache-2.0
//
// Arrays as numpy stores them, .npy: little-endian, in row-major order.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_ARRAY_FILE_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_ARRAY_FILE_H_

#include <cstddef>
#include <span>

#include "backends/core/base/result.h"
#include "client/onnx_file/tensor_file.h"

namespace onnxifi::run {

// Reads the content of a .npy file of format version 1 to 3. INVALID_MODEL, with the reason, for
// other content, column-major order, big-endian data, or a type that ONNX does not have.
base::Result<onnx_file::DenseTensor> ParseArray(std::span<const std::byte> content);

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_ARRAY_FILE_H_
