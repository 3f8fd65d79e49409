// SPDX-License-Identifier: Apache-2.0
//
// ModelProblem: a model, what each device claims of it and what is known of their speed, as the
// numbers that the partitioner works on.

#ifndef ONNXIFI_ONNXIFI_SPLIT_MODEL_PROBLEM_H_
#define ONNXIFI_ONNXIFI_SPLIT_MODEL_PROBLEM_H_

#include <cstdint>
#include <vector>

#include "onnxifi/partition/problem.h"
#include "onnxifi/split/whole_model.h"

namespace onnxifi::split {

// What is known of a device's speed.
struct DeviceRates {
  partition::DeviceCost cost;
  // Of any node, and of the bytes that it reads and writes.
  int64_t node_ns = 0;
  int64_t picoseconds_per_byte = 0;
};

// claims[device][node]: by position among the model's nodes.
using Claims = std::vector<std::vector<bool>>;

// Bytes of a value, extents that are not known taken as 1; 0 where not even the rank is known.
int64_t SizeBytes(const FlowingValue& value);

partition::Problem MakeProblem(const WholeModel& model, const std::vector<DeviceRates>& rates,
                               const Claims& claims);

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_MODEL_PROBLEM_H_
