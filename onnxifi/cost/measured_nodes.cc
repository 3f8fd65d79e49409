// SPDX-License-Identifier: Apache-2.0
//
// ReplaceMeasured: sums of what was measured and of what was assumed give the ratios of their like.

#include "onnxifi/cost/measured_nodes.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace onnxifi::cost {
namespace {

// How many times as long as assumed.
struct Ratio {
  int64_t measured_ns = 0;
  int64_t assumed_ns = 0;

  void Add(int64_t measured, int64_t assumed) {
    measured_ns += measured;
    assumed_ns += assumed;
  }
  int64_t Of(int64_t assumed) const {
    return static_cast<int64_t>(static_cast<double>(assumed) * static_cast<double>(measured_ns) /
                                static_cast<double>(assumed_ns));
  }
};

}  // namespace

void ReplaceMeasured(std::span<const DeviceTable* const> tables,
                     std::span<const split::Digest> signatures,
                     std::span<const std::string_view> operator_types,
                     partition::Problem& problem) {
  const size_t device_count = tables.size();
  Ratio of_all;
  std::vector<Ratio> of_device(device_count);
  std::vector<std::map<std::string_view, Ratio>> of_operator(device_count);
  std::vector<bool> is_measured(problem.node_ns.size(), false);
  for (size_t node = 0; node < signatures.size(); ++node) {
    for (size_t device = 0; device < device_count; ++device) {
      int64_t& time = problem.node_ns[node * device_count + device];
      const auto found = tables[device]->node_ns.find(signatures[node]);
      if (time == partition::kRefused || found == tables[device]->node_ns.end()) continue;
      of_all.Add(found->second, time);
      of_device[device].Add(found->second, time);
      of_operator[device][operator_types[node]].Add(found->second, time);
      time = found->second;
      is_measured[node * device_count + device] = true;
    }
  }
  for (size_t node = 0; node < signatures.size(); ++node) {
    for (size_t device = 0; device < device_count; ++device) {
      int64_t& time = problem.node_ns[node * device_count + device];
      if (time == partition::kRefused || is_measured[node * device_count + device]) continue;
      const auto like = of_operator[device].find(operator_types[node]);
      const Ratio& ratio = like != of_operator[device].end()  ? like->second
                           : of_device[device].assumed_ns > 0 ? of_device[device]
                                                              : of_all;
      if (ratio.assumed_ns > 0) time = ratio.Of(time);
    }
  }
}

}  // namespace onnxifi::cost
