// SPDX-License-Identifier: Apache-2.0
//
// StepFamilies: each counter beside the name that a profile gives its steps.

#include "client/step_families.h"

#include <cstring>

namespace onnxifi::client {

std::optional<std::vector<std::pair<std::string, uint64_t>>> ReadStepFamilies(
    onnxGetGraphCountersFunction read, onnxGraph graph) {
  if (read == nullptr) return std::nullopt;
  constexpr uint64_t kUnknown = ~uint64_t{0};
  onnxGraphCounters counters;
  // A library may fill less than the structure holds.
  std::memset(&counters, 0xFF, sizeof(counters));
  counters.struct_size = sizeof(counters);
  if (read(graph, &counters) != ONNXIFI_STATUS_SUCCESS || counters.map_steps == kUnknown) {
    return std::nullopt;
  }
  const std::pair<const char*, uint64_t> counts[] = {
      {ONNXIFI_SDK_FAMILY_MAP, counters.map_steps},
      {ONNXIFI_SDK_FAMILY_REDUCE, counters.reduce_steps},
      {ONNXIFI_SDK_FAMILY_ROW, counters.row_steps},
      {ONNXIFI_SDK_FAMILY_SCAN, counters.scan_steps},
      {ONNXIFI_SDK_FAMILY_CONTRACT, counters.contract_steps},
      {ONNXIFI_SDK_FAMILY_WINDOW, counters.window_steps},
      {ONNXIFI_SDK_FAMILY_ATTENTION,
       counters.attention_steps == kUnknown ? 0 : counters.attention_steps},
      {ONNXIFI_SDK_FAMILY_RECURRENT,
       counters.recurrent_steps == kUnknown ? 0 : counters.recurrent_steps},
      {ONNXIFI_SDK_FAMILY_INDEX, counters.index_steps},
      {ONNXIFI_SDK_FAMILY_HOST, counters.host_steps},
      {ONNXIFI_SDK_FAMILY_CONTROL, counters.control_steps}};
  std::vector<std::pair<std::string, uint64_t>> families;
  for (const auto& [name, count] : counts) {
    if (count > 0) families.emplace_back(name, count);
  }
  return families;
}

}  // namespace onnxifi::client
