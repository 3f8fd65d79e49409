// SPDX-License-Identifier: Apache-2.0
//
// Where the values of a model's inputs come from: the files given, else a seeded generator.

#ifndef ONNXIFI_ONNXIFI_RUN_INPUT_SOURCE_H_
#define ONNXIFI_ONNXIFI_RUN_INPUT_SOURCE_H_

#include <vector>

#include "backends/core/base/result.h"
#include "conformance/onnx_file/model_outline.h"
#include "conformance/onnx_file/tensor_file.h"
#include "onnxifi/run/options.h"

namespace onnxifi::run {

// One tensor per input of the model, in its order. INVALID_NAME for a file that names no input or
// cannot be read, one input given twice, and more files than inputs; INVALID_DATATYPE and
// INVALID_SHAPE for inputs that can only be given.
base::Result<std::vector<onnx_file::DenseTensor>> CollectInputs(
    const Options& options, const onnx_file::ModelOutline& model);

}  // namespace onnxifi::run

#endif  // ONNXIFI_ONNXIFI_RUN_INPUT_SOURCE_H_
