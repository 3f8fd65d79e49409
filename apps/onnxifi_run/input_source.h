// SPDX-License-Identifier: Apache-2.0
//
// Where the values of a model's inputs come from: the files given, else a seeded generator.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_INPUT_SOURCE_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_INPUT_SOURCE_H_

#include <vector>

#include "apps/onnxifi_run/options.h"
#include "backends/core/base/result.h"
#include "client/onnx_file/model_outline.h"
#include "client/onnx_file/tensor_file.h"

namespace onnxifi::run {

// One tensor per input of the model, in its order. INVALID_NAME for a file that names no input or
// cannot be read, one input given twice, more files than inputs, and a number for a symbol that the
// model does not have; INVALID_DATATYPE and INVALID_SHAPE for inputs that can only be given.
base::Result<std::vector<onnx_file::DenseTensor>> CollectInputs(
    const Options& options, const onnx_file::ModelOutline& model);

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_INPUT_SOURCE_H_
