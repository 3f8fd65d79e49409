// SPDX-License-Identifier: Apache-2.0
//
// GivenPlan: a plan that somebody else made, checked against the problem: what keeps its islands
// from being a plan, or the order in which they can run.

#ifndef ONNXIFI_ONNXIFI_PARTITION_GIVEN_PLAN_H_
#define ONNXIFI_ONNXIFI_PARTITION_GIVEN_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "onnxifi/partition/plan.h"
#include "onnxifi/partition/problem.h"

namespace onnxifi::partition {

struct PlanFault {
  enum class Kind : uint8_t {
    // The device of `node` does not claim it.
    kRefused,
    // `node` and `other` are in two islands, and no boundary carries `value`, which both touch.
    kTorn,
    // `other` reads `value`, which `node` makes, and their islands need one another.
    kCircle,
  };
  Kind kind = Kind::kRefused;
  NodeIndex node = 0;
  NodeIndex other = 0;
  ValueIndex value = 0;
};

struct PlanOrFault {
  // Only without a fault. Times are 0: nothing was weighed.
  Plan plan;
  std::optional<PlanFault> fault;
};

// `devices`: of each island; `island_of`: of each node, none of the islands without one. Islands
// keep their numbers where that is an order in which they can run. O(nodes + edges).
PlanOrFault MakeGivenPlan(const Problem& problem, const std::vector<DeviceIndex>& devices,
                          std::vector<int32_t> island_of);

}  // namespace onnxifi::partition

#endif  // ONNXIFI_ONNXIFI_PARTITION_GIVEN_PLAN_H_
