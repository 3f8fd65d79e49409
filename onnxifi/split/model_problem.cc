// SPDX-License-Identifier: Apache-2.0
//
// ModelProblem: a node's time is what it moves, over the device's bandwidth.

#include "onnxifi/split/model_problem.h"

#include <algorithm>

namespace onnxifi::split {

int64_t SizeBytes(const FlowingValue& value) {
  if (!value.dimensions) return 0;
  int64_t count = 1;
  for (const Dimension& dimension : *value.dimensions) {
    if (dimension.number == 0) return 0;
    if (dimension.number > 0 && count <= INT64_MAX / dimension.number) count *= dimension.number;
  }
  return tensor::SizeBytes(value.type, count);
}

partition::Problem MakeProblem(const WholeModel& model, const std::vector<DeviceRates>& rates,
                               const Claims& claims) {
  partition::Problem problem;
  for (const DeviceRates& device : rates) problem.devices.push_back(device.cost);
  problem.node_count = static_cast<partition::NodeIndex>(model.nodes().size());
  std::vector<int64_t> bytes;
  for (const ModelNode& node : model.nodes()) bytes.push_back(node.constant_bytes);
  for (const FlowingValue& value : model.values()) {
    partition::Value& flowing = problem.values.emplace_back();
    flowing.producer = value.producer < 0 ? partition::kCaller : value.producer;
    flowing.consumers = value.readers;
    flowing.size_bytes = SizeBytes(value);
    flowing.is_cuttable = value.is_carried();
    flowing.is_output = value.is_output;
    if (value.producer >= 0) bytes[value.producer] += flowing.size_bytes;
    for (const int32_t reader : value.readers) bytes[reader] += flowing.size_bytes;
  }
  for (size_t node = 0; node < bytes.size(); ++node) {
    // What no machine holds would only overflow.
    const int64_t moved = std::min(bytes[node], int64_t{1} << 40);
    for (size_t device = 0; device < rates.size(); ++device) {
      problem.node_ns.push_back(claims[device][node]
                                    ? rates[device].node_ns +
                                          moved * rates[device].picoseconds_per_byte / 1000
                                    : partition::kRefused);
    }
  }
  return problem;
}

}  // namespace onnxifi::split
