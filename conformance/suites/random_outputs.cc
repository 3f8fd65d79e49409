// SPDX-License-Identifier: Apache-2.0
//
// Distribution instead of values.

#include "conformance/suites/random_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "client/comparison/comparison.h"
#include "client/comparison/float_format.h"

namespace onnxifi::suites {
namespace {

using comparison::LoadBits;
using comparison::LoadNumber;
using onnx_file::DenseTensor;
using onnx_file::ElementType;
using onnx_file::ModelOutline;

base::Status Fault(std::string sentence) {
  return base::Status(base::Code::kInternalError, std::move(sentence));
}

bool Contains(const ModelOutline& model, std::string_view name) {
  return std::ranges::find(model.operators, name) != model.operators.end();
}

bool IsInTraining(const ModelOutline& model, std::span<const DenseTensor> inputs) {
  return Contains(model, "Dropout") && inputs.size() == 3 && inputs[2].type == ElementType::kBool &&
         inputs[2].element_count() == 1 && inputs[2].bytes[0] != std::byte{0};
}

base::Status CheckTypeAndShape(const DenseTensor& actual, const DenseTensor& expected) {
  DenseTensor same_values = expected;
  same_values.bytes = actual.bytes;
  const comparison::Comparison comparison =
      comparison::Compare(actual, same_values, comparison::Tolerance());
  if (comparison.is_similar) return base::Ok();
  return Fault(fmt::format("Output '{}': {}", expected.name, comparison.sentence));
}

base::Status CheckDropout(std::span<const DenseTensor> inputs,
                          std::span<const DenseTensor> actual) {
  const DenseTensor& x = inputs[0];
  const DenseTensor& y = actual[0];
  const double ratio = LoadNumber(inputs[1].type, inputs[1].bytes, 0);
  const int64_t count = y.element_count();
  int64_t zero_count = 0;
  for (int64_t index = 0; index < count; ++index) {
    const double value = LoadNumber(y.type, y.bytes, index);
    const double kept = LoadNumber(x.type, x.bytes, index) / (1 - ratio);
    const bool is_zero = value == 0;
    zero_count += is_zero ? 1 : 0;
    if (!is_zero && std::abs(value - kept) > 1e-3 * std::abs(kept)) {
      return Fault(fmt::format("Output '{}': element {} is {:.9g}, neither 0 nor {:.9g}.", y.name,
                               index, value, kept));
    }
    if (actual.size() > 1 && kept != 0 &&
        (LoadBits(actual[1].type, actual[1].bytes, index) != 0) == is_zero) {
      return Fault(fmt::format("Output '{}' contradicts output '{}' at element {}.", actual[1].name,
                               y.name, index));
    }
  }
  // Six standard deviations of the binomial distribution, and one for small counts.
  const double likely = ratio * static_cast<double>(count);
  const double allowed = 6 * std::sqrt(likely * (1 - ratio)) + (ratio > 0 ? 1 : 0);
  if (std::abs(static_cast<double>(zero_count) - likely) > allowed) {
    return Fault(fmt::format("Output '{}' has {} zeros among {} elements at ratio {}.", y.name,
                             zero_count, count, ratio));
  }
  return base::Ok();
}

base::Status CheckSetOfValues(const DenseTensor& actual, const DenseTensor& expected) {
  std::set<uint64_t> values;
  for (int64_t index = 0; index < expected.element_count(); ++index) {
    values.insert(LoadBits(expected.type, expected.bytes, index));
  }
  for (int64_t index = 0; index < actual.element_count(); ++index) {
    if (!values.contains(LoadBits(actual.type, actual.bytes, index))) {
      return Fault(
          fmt::format("Output '{}': element {} is {}, a value that the distribution lacks.",
                      expected.name, index, LoadNumber(actual.type, actual.bytes, index)));
    }
  }
  return base::Ok();
}

}  // namespace

bool DrawsRandomNumbers(const ModelOutline& model, std::span<const DenseTensor> inputs) {
  static constexpr std::array<std::string_view, 6> kGenerators = {
      "Bernoulli",        "Multinomial",   "RandomNormal",
      "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
  return IsInTraining(model, inputs) ||
         std::ranges::any_of(kGenerators,
                             [&](std::string_view name) { return Contains(model, name); });
}

base::Status CheckRandomOutputs(const ModelOutline& model, std::span<const DenseTensor> inputs,
                                std::span<const DenseTensor> expected,
                                std::span<const DenseTensor> actual) {
  for (size_t index = 0; index < actual.size(); ++index) {
    ONNXIFI_RETURN_IF_ERROR(CheckTypeAndShape(actual[index], expected[index]));
  }
  if (IsInTraining(model, inputs)) return CheckDropout(inputs, actual);
  for (size_t index = 0; index < actual.size(); ++index) {
    ONNXIFI_RETURN_IF_ERROR(CheckSetOfValues(actual[index], expected[index]));
  }
  return base::Ok();
}

}  // namespace onnxifi::suites
