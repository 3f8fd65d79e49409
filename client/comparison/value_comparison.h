// SPDX-License-Identifier: Apache-2.0
//
// Compares values of any kind, part by part.

#ifndef ONNXIFI_CLIENT_COMPARISON_VALUE_COMPARISON_H_
#define ONNXIFI_CLIENT_COMPARISON_VALUE_COMPARISON_H_

#include <string>

#include "client/comparison/comparison.h"
#include "client/onnx_file/value_file.h"

namespace onnxifi::comparison {

// As Compare. Kinds, numbers of elements and keys must be equal. The sentence begins with `what`,
// or with the part of it that differs.
Comparison CompareValue(const onnx_file::FileValue& actual, const onnx_file::FileValue& expected,
                        const std::string& what, const Tolerance& tolerance);

}  // namespace onnxifi::comparison

#endif  // ONNXIFI_CLIENT_COMPARISON_VALUE_COMPARISON_H_
