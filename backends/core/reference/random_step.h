// SPDX-License-Identifier: Apache-2.0
//
// RandomStep: one random, valid step with random data, for checking a device against the reference
// and the reference against an independent evaluation. Part of the kit, so that every backend's
// tests draw from the same space of steps.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/core/program/program.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::reference {

// Seeds draw by a family's place here.
enum class Family : uint8_t {
  kMap,
  kReduce,
  kRow,
  kScan,
  kContract,
  kWindow,
  kIndex,
  kAttention,
  kRecurrent,
};
inline constexpr Family kFamilies[] = {Family::kMap,   Family::kReduce,    Family::kRow,
                                       Family::kScan,  Family::kContract,  Family::kWindow,
                                       Family::kIndex, Family::kAttention, Family::kRecurrent};
std::string_view Name(Family family);

// A program of one step and what its buffers hold before it runs; written buffers hold random
// bytes, so that a write beyond the views shows.
struct RandomStep {
  program::Program program;
  std::vector<tensor::Tensor> buffers;
  std::vector<int64_t> symbols;
  std::vector<int64_t> dims;  // as DimTable::Evaluate gives them for `symbols`
  // How far two right answers may differ through the order of sums, absolutely; on top of that an
  // output may differ by the rounding of its type.
  double tolerance = 0;
  // How many roundings of its type a value may have taken on, each of its size then.
  double roundings = 1;
};

// The same step for the same family and seed on every machine. Variations above 0 of one seed have
// one structure (types, ranks, expressions) and differ in extents and data.
RandomStep MakeRandomStep(Family family, uint64_t seed, uint64_t variation = 0);

// What the buffers hold after the step ran on `device`. The device's refusal if Select refuses.
base::Result<std::vector<tensor::Tensor>> RunStep(device::Device& device, const RandomStep& step);

// For each buffer and element how far two right answers may differ through roundings within the
// expression: where terms cancel, the last places of what went in are all that is left.
using RoundingSpread = std::vector<std::vector<double>>;

// Nothing if both are right answers of the step, else what differs. `spread` may be null.
std::optional<std::string> FindDifference(const RandomStep& step,
                                          std::span<const tensor::Tensor> expected,
                                          std::span<const tensor::Tensor> actual,
                                          const RoundingSpread* spread = nullptr);

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_H_
