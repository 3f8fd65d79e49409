// SPDX-License-Identifier: Apache-2.0
//
// CompareValue: down to the tensors, and up to the first difference.

#include "client/comparison/value_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace onnxifi::comparison {
namespace {

using onnx_file::FileValue;

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

}  // namespace

Comparison CompareValue(const FileValue& actual, const FileValue& expected, const std::string& what,
                        const Tolerance& tolerance) {
  Comparison all;
  const auto differ = [&](std::string sentence) {
    all.is_similar = false;
    all.sentence = std::move(sentence);
    return all;
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (actual.kind != expected.kind) {
    all.worst_ratio = kInfinity;
    return differ(
        fmt::format("{} is {} instead of {}.", what, NameOf(actual.kind), NameOf(expected.kind)));
  }
  if (expected.kind == FileValue::Kind::kTensor || expected.kind == FileValue::Kind::kMap) {
    all = Compare(actual.tensor, expected.tensor, tolerance);
    if (!all.is_similar) return differ(fmt::format("{}: {}", what, all.sentence));
  }
  if (actual.elements.size() != expected.elements.size()) {
    all.worst_ratio = kInfinity;
    return differ(fmt::format("{} has {} elements instead of {}.", what, actual.elements.size(),
                              expected.elements.size()));
  }
  for (size_t index = 0; index < expected.elements.size(); ++index) {
    const Comparison element =
        CompareValue(actual.elements[index], expected.elements[index],
                     fmt::format("Element {} of {}", index, what), tolerance);
    all.worst_ratio = std::max(all.worst_ratio, element.worst_ratio);
    if (!element.is_similar) return differ(element.sentence);
  }
  all.is_similar = true;
  return all;
}

}  // namespace onnxifi::comparison
