// SPDX-License-Identifier: Apache-2.0
//
// GraphPlan: which device runs what of a graph, as callers ask for it.

#ifndef ONNXIFI_ONNXIFI_PARTITIONED_GRAPH_PLAN_H_
#define ONNXIFI_ONNXIFI_PARTITIONED_GRAPH_PLAN_H_

#include <onnxifi/sdk.h>

#include <cstdint>
#include <string>
#include <vector>

namespace onnxifi::partitioned {

// The C++ side of onnxPlanIsland and onnxPlanCut, field by field.
struct GraphPlan {
  struct Island {
    std::string device_key;
    std::vector<uint32_t> nodes;
    std::vector<uint32_t> after;
    uint64_t estimated_start_ns = 0;
    uint64_t estimated_duration_ns = 0;
    uint64_t measured_start_ns = 0;
    uint64_t measured_duration_ns = 0;
    uint64_t copies = 0;
  };
  struct Cut {
    std::string value_name;
    int64_t from_island = ONNXIFI_SDK_UNKNOWN;
    int64_t to_island = ONNXIFI_SDK_UNKNOWN;
    uint64_t size_bytes = 0;
    uint64_t copies = 0;
  };
  std::vector<Island> islands;
  std::vector<Cut> cuts;
};

}  // namespace onnxifi::partitioned

#endif  // ONNXIFI_ONNXIFI_PARTITIONED_GRAPH_PLAN_H_
