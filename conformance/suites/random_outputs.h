// SPDX-License-Identifier: Apache-2.0
//
// Outputs that are drawn at random: no library can repeat the draw of the expected values, but what
// it draws must have the right type, shape and distribution.

#ifndef ONNXIFI_CONFORMANCE_SUITES_RANDOM_OUTPUTS_H_
#define ONNXIFI_CONFORMANCE_SUITES_RANDOM_OUTPUTS_H_

#include <span>

#include "backends/core/base/result.h"
#include "client/onnx_file/model_outline.h"
#include "client/onnx_file/tensor_file.h"

namespace onnxifi::suites {

// Whether the model contains a random generator, or Dropout in training mode (a true scalar among
// the inputs).
bool DrawsRandomNumbers(const onnx_file::ModelOutline& model,
                        std::span<const onnx_file::DenseTensor> inputs);

// Dropout of x with ratio r: every element of y is 0 or x / (1 - r), the share of zeros is
// plausible, and the mask says which. Others: no element has a value that the expected draw lacks,
// as befits Bernoulli. INTERNAL_ERROR with the first difference.
base::Status CheckRandomOutputs(const onnx_file::ModelOutline& model,
                                std::span<const onnx_file::DenseTensor> inputs,
                                std::span<const onnx_file::DenseTensor> expected,
                                std::span<const onnx_file::DenseTensor> actual);

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_RANDOM_OUTPUTS_H_
