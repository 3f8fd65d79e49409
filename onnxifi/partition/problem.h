// SPDX-License-Identifier: Apache-2.0
//
// Problem: a graph as the partitioner sees it: nodes and values by number, what each node would
// take on each device, and what it takes to carry a value from one device to another. Whoever knows
// the model, the devices' claims and their measured speeds makes it; everything in this folder is a
// pure function of it. Times are whole nanoseconds, so that equal tables give equal plans.

#ifndef ONNXIFI_ONNXIFI_PARTITION_PROBLEM_H_
#define ONNXIFI_ONNXIFI_PARTITION_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace onnxifi::partition {

using NodeIndex = int32_t;
using ValueIndex = int32_t;
using DeviceIndex = int32_t;

// The producer of what comes from the caller.
inline constexpr NodeIndex kCaller = -1;

// The time of a node on a device that does not run it.
inline constexpr int64_t kRefused = -1;

struct Value {
  NodeIndex producer = kCaller;
  // Each once, all after the producer; captures of a node's subgraphs count as its inputs.
  std::vector<NodeIndex> consumers;
  int64_t size_bytes = 0;
  // False for what no boundary can carry (a sequence, a map): all that touch it run in one island.
  bool is_cuttable = true;
  // Whether the caller reads it.
  bool is_output = false;
};

// What it takes to bring `bytes` across the edge of a device's memory; nothing where its memory is
// the host's.
struct CopyCost {
  int64_t latency_ns = 0;
  int64_t picoseconds_per_byte = 0;

  int64_t TimeNs(int64_t bytes) const {
    constexpr int64_t kMaxBytes = int64_t{1} << 40;
    const int64_t counted = bytes < kMaxBytes ? bytes : kMaxBytes;
    return latency_ns + counted / 1000 * picoseconds_per_byte +
           counted % 1000 * picoseconds_per_byte / 1000;
  }
};

struct DeviceCost {
  // From the call to run an island until its first step starts, and from its last step until the
  // caller knows.
  int64_t launch_ns = 0;
  // From the host to the device, and back.
  CopyCost enter;
  CopyCost leave;
};

struct Problem {
  std::vector<DeviceCost> devices;
  NodeIndex node_count = 0;
  // Nodes are in topological order.
  std::vector<Value> values;
  // node_ns[node * devices.size() + device]: kRefused or the time.
  std::vector<int64_t> node_ns;

  int64_t TimeNs(NodeIndex node, DeviceIndex device) const {
    return node_ns[static_cast<size_t>(node) * devices.size() + static_cast<size_t>(device)];
  }
  bool Claims(DeviceIndex device, NodeIndex node) const { return TimeNs(node, device) >= 0; }
  DeviceIndex device_count() const { return static_cast<DeviceIndex>(devices.size()); }
};

}  // namespace onnxifi::partition

#endif  // ONNXIFI_ONNXIFI_PARTITION_PROBLEM_H_
