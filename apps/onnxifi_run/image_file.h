// SPDX-License-Identifier: Apache-2.0
//
// PNG images as tensors.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_IMAGE_FILE_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_IMAGE_FILE_H_

#include <filesystem>

#include "backends/core/base/result.h"
#include "client/onnx_file/model_outline.h"
#include "client/onnx_file/tensor_file.h"

namespace onnxifi::run {

// Reads a PNG for the model's input `wanted`: float32 from 0 to 1, [1, C, H, W] with C 1 (grey) or
// 3 (RGB), or [H, W]. INVALID_MODEL when the input asks for another rank, type, number of channels
// or size than the image has; INVALID_NAME when the file is no PNG that can be read.
base::Result<onnx_file::DenseTensor> ReadImage(const std::filesystem::path& path,
                                               const onnx_file::ValueOutline& wanted);

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_IMAGE_FILE_H_
