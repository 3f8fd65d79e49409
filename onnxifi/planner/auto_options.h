// SPDX-License-Identifier: Apache-2.0
//
// AutoOptions: what a caller may ask of the auto device for one graph, read from the properties
// that plugins do not get to see (onnxifi/auto_device.h).

#ifndef ONNXIFI_ONNXIFI_PLANNER_AUTO_OPTIONS_H_
#define ONNXIFI_ONNXIFI_PLANNER_AUTO_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"

namespace onnxifi::planner {

// The C++ side of onnxPlacement; devices by their keys, nodes by their positions in graph.node.
struct PlacementRequest {
  enum class Kind : uint8_t { kAuto, kPrefer, kStrict, kPlan };
  struct Group {
    std::string device;
    std::vector<uint32_t> nodes;
  };

  Kind kind = Kind::kAuto;
  std::vector<std::string> devices;
  // With kPlan islands, at least one; none without nodes but a single one, which is the whole
  // model.
  std::vector<Group> groups;

  // Whether it asks for nothing.
  bool is_empty() const { return kind == Kind::kAuto && groups.empty(); }
};

struct AutoOptions {
  std::optional<bool> measures;
  PlacementRequest placement;
  // Whether others are to go on with a graph that one device has whole.
  bool has_fallback = false;

  // Takes them out of the list, but for what has graphs measured, which devices do in their turn.
  // INVALID_PROPERTY.
  static base::Result<AutoOptions> Take(std::vector<abi::Property>& properties);
};

}  // namespace onnxifi::planner

#endif  // ONNXIFI_ONNXIFI_PLANNER_AUTO_OPTIONS_H_
