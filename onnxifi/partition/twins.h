// SPDX-License-Identifier: Apache-2.0
//
// Twins: devices of several plugins that are one physical device. A cut between them adds no
// hardware, and what a table says of either alone does not say what both take at a time.

#ifndef ONNXIFI_ONNXIFI_PARTITION_TWINS_H_
#define ONNXIFI_ONNXIFI_PARTITION_TWINS_H_

#include <vector>

#include "onnxifi/partition/plan.h"
#include "onnxifi/partition/problem.h"

namespace onnxifi::partition {

// Each of two or more devices; no device is in two of them.
using Twins = std::vector<std::vector<DeviceIndex>>;

// Whether the plan uses several devices of one group.
bool CutsBetweenTwins(const Plan& plan, const Twins& twins);

// As MakePlan, with one device of each group, except for units that no other device takes. Of the
// devices of a group that is chosen which leaves fewest nodes to its twins; of equals the one whose
// plan is expected to take least time, then the earlier; group by group, so that what one leaves
// out may be missing in the next. Every unit is claimed by a device.
Plan MakePlanWithoutTwins(Problem problem, const Twins& twins);

}  // namespace onnxifi::partition

#endif  // ONNXIFI_ONNXIFI_PARTITION_TWINS_H_
