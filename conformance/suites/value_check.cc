// SPDX-License-Identifier: Apache-2.0
//
// Values are compared part by part.

#include "conformance/suites/value_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace onnxifi::suites {
namespace {

using onnx_file::DenseTensor;
using onnx_file::FileValue;

base::Status Fault(std::string sentence) {
  return base::Status(base::Code::kInternalError, std::move(sentence));
}

std::string_view NameOf(FileValue::Kind kind) {
  switch (kind) {
    case FileValue::Kind::kNothing:
      return "nothing";
    case FileValue::Kind::kTensor:
      return "a tensor";
    case FileValue::Kind::kSequence:
      return "a sequence";
    case FileValue::Kind::kMap:
      return "a map";
  }
  return "a value";
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

base::Status CheckValue(const FileValue& actual, const FileValue& expected, const std::string& what,
                        const comparison::Tolerance& tolerance, double& worst_ratio) {
  if (actual.kind != expected.kind) {
    return Fault(
        fmt::format("{} is {} instead of {}.", what, NameOf(actual.kind), NameOf(expected.kind)));
  }
  if (expected.kind == FileValue::Kind::kTensor || expected.kind == FileValue::Kind::kMap) {
    ONNXIFI_RETURN_IF_ERROR(
        CheckTensor(actual.tensor, expected.tensor, what, tolerance, worst_ratio));
  }
  if (actual.elements.size() != expected.elements.size()) {
    return Fault(fmt::format("{} has {} elements instead of {}.", what, actual.elements.size(),
                             expected.elements.size()));
  }
  for (size_t index = 0; index < expected.elements.size(); ++index) {
    ONNXIFI_RETURN_IF_ERROR(CheckValue(actual.elements[index], expected.elements[index],
                                       fmt::format("Element {} of {}", index, what), tolerance,
                                       worst_ratio));
  }
  return base::Ok();
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
    ONNXIFI_RETURN_IF_ERROR(CheckValue(actual[index], expected[index],
                                       fmt::format("Output '{}'", expected[index].name), tolerance,
                                       worst_ratio));
  }
  return base::Ok();
}

}  // namespace onnxifi::suites
