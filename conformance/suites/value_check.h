// SPDX-License-Identifier: Apache-2.0
//
// Holds what a run gave against what is expected.

#ifndef ONNXIFI_CONFORMANCE_SUITES_VALUE_CHECK_H_
#define ONNXIFI_CONFORMANCE_SUITES_VALUE_CHECK_H_

#include <span>
#include <string>

#include "backends/core/base/result.h"
#include "client/comparison/comparison.h"
#include "client/onnx_file/value_file.h"

namespace onnxifi::suites {

// INTERNAL_ERROR, with the first difference, when a value differs by more than the tolerance.
// `worst_ratio` grows to the largest difference as a multiple of it.
base::Status CheckTensors(std::span<const onnx_file::DenseTensor> actual,
                          std::span<const onnx_file::DenseTensor> expected,
                          const comparison::Tolerance& tolerance, double& worst_ratio);

// The same of values of any kind, with their names.
base::Status CheckValues(std::span<const onnx_file::FileValue> actual,
                         std::span<const onnx_file::FileValue> expected,
                         const comparison::Tolerance& tolerance, double& worst_ratio);

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_VALUE_CHECK_H_
