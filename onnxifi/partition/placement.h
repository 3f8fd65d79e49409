// SPDX-License-Identifier: Apache-2.0
//
// Placement: a device for each node, such that the work and what it takes to carry values between
// devices are least together.

#ifndef ONNXIFI_ONNXIFI_PARTITION_PLACEMENT_H_
#define ONNXIFI_ONNXIFI_PARTITION_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "onnxifi/partition/problem.h"

namespace onnxifi::partition {

// devices[node].
using Placement = std::vector<DeviceIndex>;

// What a value costs on its way into a device: the copy, and the launch of what waits for it there
// unless it comes from the caller.
int64_t EnterNs(const Problem& problem, const Value& value, DeviceIndex device);
int64_t LeaveNs(const Problem& problem, const Value& value, DeviceIndex device);

// All work and all copies one after the other. A value enters a device once, however many nodes
// read it there, and leaves its own once.
int64_t TotalNs(const Problem& problem, const Placement& placement);

// Every node is claimed by a device. With two devices no placement has a lower TotalNs; with more,
// none that differs from this one in nodes of two devices only, nor one on a single device. Among
// equal ones earlier devices are preferred. The same whatever the order of values and of their
// consumers.
Placement AssignDevices(const Problem& problem);

}  // namespace onnxifi::partition

#endif  // ONNXIFI_ONNXIFI_PARTITION_PLACEMENT_H_
