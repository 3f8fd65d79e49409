// SPDX-License-Identifier: Apache-2.0
//
// StepComparison: a difference counts only where it exceeds what roundings within the step explain.

#include "backends/core/reference/testing/step_comparison.h"

#include <optional>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/reference/device.h"
#include "backends/core/reference/rounding_spread.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::reference {
namespace {

struct Source {
  Family family;
  uint64_t seed;
  uint64_t variation;
};

std::string Describe(const Source& source) {
  std::string name =
      std::string(Name(source.family)) + " step of seed " + std::to_string(source.seed);
  if (source.variation > 0) name += ", variation " + std::to_string(source.variation);
  return name;
}

// Notes in `comparison` what the device makes of one step.
void CompareOne(device::Device& device, const Source& source, Comparison& comparison) {
  Device reference;
  const RandomStep step = MakeRandomStep(source.family, source.seed, source.variation);
  const base::Result<std::vector<tensor::Tensor>> expected = RunStep(reference, step);
  const base::Result<std::vector<tensor::Tensor>> actual = RunStep(device, step);
  std::optional<std::string> difference;
  if (!expected.ok()) {
    difference = "The reference fails: " + expected.status().Text();
  } else if (!actual.ok()) {
    const auto code = static_cast<int32_t>(actual.status().code());
    // 0x02xx: the device says that it does not support this.
    if (code >> 8 == 2) {
      ++comparison.refused;
      return;
    }
    difference = "The device fails: " + actual.status().Text();
  } else {
    difference = FindDifference(step, *expected, *actual);
    if (difference) {
      const base::Result<RoundingSpread> spread = FindRoundingSpread(
          [&] { return MakeRandomStep(source.family, source.seed, source.variation); }, *expected);
      if (spread.ok()) difference = FindDifference(step, *expected, *actual, &*spread);
    }
  }
  ++comparison.compared;
  if (!difference) return;
  if (comparison.different++ == 0) {
    comparison.first_difference =
        Describe(source) + ": " + *difference + "\n" + ToString(step.program);
  }
}

}  // namespace

Comparison CompareWithReference(device::Device& device, Family family, uint64_t seed,
                                int64_t count) {
  Comparison comparison;
  for (int64_t k = 0; k < count; ++k) {
    CompareOne(device, {family, seed + static_cast<uint64_t>(k), /*variation=*/0}, comparison);
  }
  return comparison;
}

Comparison CompareVariations(device::Device& device, Family family, uint64_t seed,
                             uint64_t first_variation, int64_t count) {
  Comparison comparison;
  for (int64_t k = 0; k < count; ++k) {
    CompareOne(device, {family, seed, first_variation + static_cast<uint64_t>(k)}, comparison);
  }
  return comparison;
}

}  // namespace onnxifi::reference
