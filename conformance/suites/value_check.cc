// SPDX-License-Identifier: Apache-2.0
//
// Outputs are compared one by one.

#include "conformance/suites/value_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/comparison/value_comparison.h"

namespace onnxifi::suites {
namespace {

using onnx_file::DenseTensor;
using onnx_file::FileValue;

base::Status Fault(std::string sentence) {
  return base::Status(base::Code::kInternalError, std::move(sentence));
}

// `what` starts the sentence of a difference.
base::Status CheckTensor(const DenseTensor& actual, const DenseTensor& expected,
                         const std::string& what, const comparison::Tolerance& tolerance,
                         double& worst_ratio) {
  const comparison::Comparison comparison = comparison::Compare(actual, expected, tolerance);
  worst_ratio = std::max(worst_ratio, comparison.worst_ratio);
  if (comparison.is_similar) return base::Ok();
  return Fault(fmt::format("{}: {}", what, comparison.sentence));
}

}  // namespace

base::Status CheckTensors(std::span<const DenseTensor> actual,
                          std::span<const DenseTensor> expected,
                          const comparison::Tolerance& tolerance, double& worst_ratio) {
  for (size_t index = 0; index < expected.size(); ++index) {
    ONNXIFI_RETURN_IF_ERROR(CheckTensor(actual[index], expected[index],
                                        fmt::format("Output '{}'", expected[index].name), tolerance,
                                        worst_ratio));
  }
  return base::Ok();
}

base::Status CheckValues(std::span<const FileValue> actual, std::span<const FileValue> expected,
                         const comparison::Tolerance& tolerance, double& worst_ratio) {
  if (actual.size() != expected.size()) {
    return Fault(
        fmt::format("onnxGetRunValues tells {} outputs of {}.", actual.size(), expected.size()));
  }
  for (size_t index = 0; index < actual.size(); ++index) {
    if (actual[index].name != expected[index].name) {
      return Fault(fmt::format("onnxGetRunValues tells '{}' in place of output '{}'.",
                               actual[index].name, expected[index].name));
    }
    const comparison::Comparison comparison =
        comparison::CompareValue(actual[index], expected[index],
                                 fmt::format("Output '{}'", expected[index].name), tolerance);
    worst_ratio = std::max(worst_ratio, comparison.worst_ratio);
    if (!comparison.is_similar) return Fault(comparison.sentence);
  }
  return base::Ok();
}

}  // namespace onnxifi::suites
