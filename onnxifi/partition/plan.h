// SPDX-License-Identifier: Apache-2.0
//
// Plan: which device runs what, what is carried between them, and how long that should take.

#ifndef ONNXIFI_ONNXIFI_PARTITION_PLAN_H_
#define ONNXIFI_ONNXIFI_PARTITION_PLAN_H_

#include <cstdint>
#include <vector>

#include "onnxifi/partition/problem.h"

namespace onnxifi::partition {

struct Island {
  DeviceIndex device = 0;
  // Ascending, which is an order in which they can run.
  std::vector<NodeIndex> nodes;
  // Islands that make what this one reads, ascending.
  std::vector<int32_t> after;
  // As predicted, from the start of the run. A device does one island at a time.
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
};

// A value on its way from one island to another, or between the caller and an island where that
// takes a copy.
struct Cut {
  ValueIndex value = 0;
  // kCaller for a graph input or output.
  int32_t from = kCaller;
  int32_t to = kCaller;
  int64_t size_bytes = 0;
  int64_t duration_ns = 0;
};

struct Plan {
  // In an order in which they can run.
  std::vector<Island> islands;
  std::vector<int32_t> island_of;  // by node
  // By value, then by island.
  std::vector<Cut> cuts;
  // Of the whole run, as predicted.
  int64_t duration_ns = 0;
};

struct PlanOrGaps {
  // Without islands where there are gaps.
  Plan plan;
  // Sets of nodes that have to run together (most of one node) and that no device takes all of.
  std::vector<std::vector<NodeIndex>> gaps;
};

// Same problem, same plan. Every node is placed on a device that claims it, islands need one
// another in no circle, and no device that claims all would be faster alone, as far as the problem
// tells.
PlanOrGaps MakePlan(const Problem& problem);

// The plan for islands that are given: everything but `device` and `nodes` is worked out.
Plan DescribePlan(const Problem& problem, const std::vector<DeviceIndex>& placement,
                  std::vector<int32_t> island_of);

}  // namespace onnxifi::partition

#endif  // ONNXIFI_ONNXIFI_PARTITION_PLAN_H_
