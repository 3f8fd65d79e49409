// SPDX-License-Identifier: Apache-2.0
//
// Element by element, in float64.

#include "client/comparison/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>

#include "client/comparison/float_format.h"

namespace onnxifi::comparison {
namespace {

using onnx_file::DenseTensor;
using onnx_file::ElementType;
using onnx_file::NumberClass;

// The one table of tolerances by element type.
constexpr std::array<TypeTolerance, 13> kTypeTolerances = {{
    {ElementType::kFloat32, 1, 0, 2e-5},
    {ElementType::kFloat64, 1e-6, 0, 1e-12},
    {ElementType::kFloat16, 1, 0, 2e-3},
    {ElementType::kBfloat16, 1, 0x1p-6, 2e-2},
    {ElementType::kComplex64, 1, 0, 2e-5},
    {ElementType::kComplex128, 1e-6, 0, 1e-12},
    {ElementType::kFloat8E4M3Fn, 1, 0, 0.14},
    {ElementType::kFloat8E4M3Fnuz, 1, 0, 0.14},
    {ElementType::kFloat8E5M2, 1, 0, 0.27},
    {ElementType::kFloat8E5M2Fnuz, 1, 0, 0.27},
    {ElementType::kFloat6E2M3, 1, 0, 0.14},
    {ElementType::kFloat6E3M2, 1, 0, 0.27},
    {ElementType::kFloat4E2M1, 1, 0, 0.6},
}};

template <typename Load>
double RootMeanSquare(const DenseTensor& tensor, Load load) {
  double sum = 0;
  int64_t finite_count = 0;
  for (int64_t index = 0; index < tensor.element_count(); ++index) {
    const double value = std::abs(load(tensor, index));
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++finite_count;
  }
  return finite_count == 0 ? 0 : std::sqrt(sum / static_cast<double>(finite_count));
}

// The difference as a multiple of what is allowed; infinite when it can never be allowed.
double RatioOf(double difference, double allowed) {
  if (difference == 0) return 0;
  if (std::isnan(difference) || allowed == 0) return std::numeric_limits<double>::infinity();
  return difference / allowed;
}

double DifferenceOf(double actual, double expected) {
  if (std::isnan(actual) && std::isnan(expected)) return 0;
  if (actual == expected) return 0;  // Equal infinities, whose difference would be NaN.
  if (!std::isfinite(actual) || !std::isfinite(expected)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return std::abs(actual - expected);
}

double DifferenceOf(std::complex<double> actual, std::complex<double> expected) {
  return std::hypot(DifferenceOf(actual.real(), expected.real()),
                    DifferenceOf(actual.imag(), expected.imag()));
}

std::string ToText(double value) { return fmt::format("{:.9g}", value); }
std::string ToText(std::complex<double> value) {
  return fmt::format("{:.9g}{:+.9g}i", value.real(), value.imag());
}

// `load(tensor, index)` is the element as double or complex.
template <typename Load>
Comparison CompareNumbers(const DenseTensor& actual, const DenseTensor& expected,
                          const Tolerance& tolerance, Load load) {
  const TypeTolerance& row = ToleranceOf(expected.type);
  // What is stricter than ONNX's own numbers is stated for the type at hand.
  const double scale = tolerance.relative < Tolerance().relative ? 1 : row.scale;
  const double relative = std::max(tolerance.relative * scale, row.least_relative);
  const double absolute = tolerance.absolute * scale;
  const double rms_factor = tolerance.between_devices ? row.between_devices : tolerance.rms_factor;
  const double rms = rms_factor != 0 ? RootMeanSquare(expected, load) : 0;
  Comparison comparison;
  int64_t beyond_count = 0;
  for (int64_t index = 0; index < expected.element_count(); ++index) {
    const auto a = load(actual, index);
    const auto b = load(expected, index);
    const double magnitude = std::abs(b);
    const double allowed =
        rms_factor != 0 ? rms_factor * (magnitude + rms) : absolute + relative * magnitude;
    const double ratio = RatioOf(DifferenceOf(a, b), allowed);
    comparison.worst_ratio = std::max(comparison.worst_ratio, ratio);
    if (ratio <= 1) continue;
    if (++beyond_count == 1) {
      comparison.sentence = fmt::format(
          "Element {} is {} instead of {}, a difference of {:.3g} where {:.3g} is allowed", index,
          ToText(a), ToText(b), DifferenceOf(a, b), allowed);
    }
  }
  comparison.is_similar = beyond_count == 0;
  if (beyond_count != 0) {
    comparison.sentence +=
        fmt::format("; {} of {} elements differ too much.", beyond_count, expected.element_count());
  }
  return comparison;
}

Comparison CompareExactly(const DenseTensor& actual, const DenseTensor& expected) {
  Comparison comparison;
  int64_t different_count = 0;
  for (int64_t index = 0; index < expected.element_count(); ++index) {
    if (LoadBits(actual.type, actual.bytes, index) ==
        LoadBits(expected.type, expected.bytes, index)) {
      continue;
    }
    if (++different_count == 1) {
      comparison.sentence = fmt::format("Element {} is {} instead of {}", index,
                                        LoadNumber(actual.type, actual.bytes, index),
                                        LoadNumber(expected.type, expected.bytes, index));
    }
  }
  comparison.is_similar = different_count == 0;
  if (different_count != 0) {
    comparison.worst_ratio = std::numeric_limits<double>::infinity();
    comparison.sentence +=
        fmt::format("; {} of {} elements differ.", different_count, expected.element_count());
  }
  return comparison;
}

Comparison Similar() {
  Comparison comparison;
  comparison.is_similar = true;
  return comparison;
}

Comparison Differs(std::string sentence) {
  return {.is_similar = false,
          .worst_ratio = std::numeric_limits<double>::infinity(),
          .sentence = std::move(sentence)};
}

}  // namespace

const TypeTolerance& ToleranceOf(ElementType type) {
  const auto row = std::ranges::find(kTypeTolerances, type, &TypeTolerance::type);
  return row == kTypeTolerances.end() ? kTypeTolerances[0] : *row;
}

Comparison Compare(const DenseTensor& actual, const DenseTensor& expected,
                   const Tolerance& tolerance) {
  if (actual.type != expected.type) {
    return Differs(
        fmt::format("The type is {} instead of {}.", NameOf(actual.type), NameOf(expected.type)));
  }
  if (actual.extents != expected.extents) {
    return Differs(fmt::format("The shape is {} instead of {}.",
                               onnx_file::ToString(actual.extents),
                               onnx_file::ToString(expected.extents)));
  }
  switch (onnx_file::FactsOf(expected.type).number_class) {
    case NumberClass::kString:
      return actual.strings == expected.strings ? Similar() : Differs("The strings differ.");
    case NumberClass::kNone:
      return Differs(fmt::format("Nothing is known about {}.", NameOf(expected.type)));
    default:
      break;
  }
  if (actual.bytes.size() != expected.bytes.size()) {
    return Differs(fmt::format("There are {} bytes instead of {}.", actual.bytes.size(),
                               expected.bytes.size()));
  }
  switch (onnx_file::FactsOf(expected.type).number_class) {
    case NumberClass::kFloat:
      return CompareNumbers(actual, expected, tolerance,
                            [](const DenseTensor& tensor, int64_t index) {
                              return LoadNumber(tensor.type, tensor.bytes, index);
                            });
    case NumberClass::kComplex:
      return CompareNumbers(actual, expected, tolerance,
                            [](const DenseTensor& tensor, int64_t index) {
                              return LoadComplex(tensor.type, tensor.bytes, index);
                            });
    default:
      return CompareExactly(actual, expected);
  }
}

bool IsConstant(const DenseTensor& tensor) {
  const int64_t count = tensor.element_count();
  if (count < 2) return false;
  if (tensor.type == ElementType::kString) {
    for (const std::string& text : tensor.strings) {
      if (text != tensor.strings.front()) return false;
    }
    return true;
  }
  const bool is_complex = onnx_file::FactsOf(tensor.type).number_class == NumberClass::kComplex;
  for (int64_t index = 1; index < count; ++index) {
    const bool is_same = is_complex ? LoadComplex(tensor.type, tensor.bytes, index) ==
                                          LoadComplex(tensor.type, tensor.bytes, 0)
                                    : LoadBits(tensor.type, tensor.bytes, index) ==
                                          LoadBits(tensor.type, tensor.bytes, 0);
    if (!is_same) return false;
  }
  return true;
}

}  // namespace onnxifi::comparison
