// SPDX-License-Identifier: Apache-2.0
//
// StepComparison: a device against the reference, on many random steps. Part of the kit, as
// RandomStep is, for the tests of every backend.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_TESTING_STEP_COMPARISON_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_TESTING_STEP_COMPARISON_H_

#include <cstdint>
#include <string>

#include "backends/core/device/device.h"
#include "backends/core/reference/random_step.h"

namespace onnxifi::reference {

// Compares `device` with the reference on `count` random steps of a family.
struct Comparison {
  int64_t compared = 0;
  int64_t refused = 0;  // by the device's Select
  int64_t different = 0;
  std::string first_difference;
};
Comparison CompareWithReference(device::Device& device, Family family, uint64_t seed,
                                int64_t count);

// The same for `count` variations of one seed, the first of them `first_variation`.
Comparison CompareVariations(device::Device& device, Family family, uint64_t seed,
                             uint64_t first_variation, int64_t count);

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_TESTING_STEP_COMPARISON_H_
