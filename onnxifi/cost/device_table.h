// SPDX-License-Identifier: Apache-2.0
//
// DeviceTable: what was measured of one device, and its form in a file.

#ifndef ONNXIFI_ONNXIFI_COST_DEVICE_TABLE_H_
#define ONNXIFI_ONNXIFI_COST_DEVICE_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "onnxifi/partition/problem.h"
#include "onnxifi/split/digest.h"

namespace onnxifi::cost {

// Times are nanoseconds.
struct DeviceTable {
  // What a run costs beside its nodes.
  std::optional<partition::DeviceCost> edges;
  // By the signature of a node alone: its time beyond `edges`.
  std::map<split::Digest, int64_t> node_ns;
  // By whatever stands for a whole run in which this device comes first.
  std::map<split::Digest, int64_t> run_ns;

  bool empty() const { return !edges && node_ns.empty() && run_ns.empty(); }
  // Takes what `newer` has in place of what stands here.
  void Merge(const DeviceTable& newer);
};

// Lines of text; equal tables of one device give equal bytes. `identity`: the device, one line.
std::string ToText(const DeviceTable& table, std::string_view identity);

// Nothing where the text is of another device or version, damaged or cut short.
std::optional<DeviceTable> FromText(std::string_view text, std::string_view identity);

}  // namespace onnxifi::cost

#endif  // ONNXIFI_ONNXIFI_COST_DEVICE_TABLE_H_
