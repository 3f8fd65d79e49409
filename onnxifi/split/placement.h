// SPDX-License-Identifier: Apache-2.0
//
// Placement: the devices that a model itself names for nodes, in their metadata. Read from the
// bytes: what else is in metadata, which can be long, nobody needs.

#ifndef ONNXIFI_ONNXIFI_SPLIT_PLACEMENT_H_
#define ONNXIFI_ONNXIFI_SPLIT_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace onnxifi::split {

// The key of an entry of NodeProto.metadata_props whose value is a device's key, e.g. "opencl:0":
// that device runs the node, or nobody.
inline constexpr std::string_view kPlacementKey = "onnxifi.device";

// By position in the main graph's graph.node, for the nodes that have such an entry; the last of
// several counts. Of bytes that are no model, what there is before the fault. Takes as long as a
// walk over the graph's fields and those of its nodes.
std::map<int32_t, std::string> PlacementsOf(std::span<const std::byte> model);

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_PLACEMENT_H_
