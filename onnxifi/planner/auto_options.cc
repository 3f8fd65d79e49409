// SPDX-License-Identifier: Apache-2.0
//
// AutoOptions: structures are read as far as their callers say that they go.

#include "onnxifi/planner/auto_options.h"

#include <onnxifi/auto_device.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace onnxifi::planner {

using base::Code;
using base::Status;

namespace {

Status Refuse(std::string sentence) { return {Code::kInvalidProperty, std::move(sentence)}; }

// The value of a property that is 0 or 1.
base::Result<std::optional<bool>> ReadFlag(const std::vector<abi::Property>& properties,
                                           uint64_t key, std::string_view what) {
  std::optional<bool> flag;
  for (const abi::Property& property : properties) {
    if (property.key != key) continue;
    if (property.value > 1) {
      return Refuse("The property " + std::string(what) + " is " + std::to_string(property.value) +
                    "; it is 0 or 1.");
    }
    flag = property.value == 1;
  }
  return flag;
}

// A structure of the caller's; what lies beyond its size is zero.
template <typename T>
base::Result<T> Read(const T* given, const char* name) {
  if (given == nullptr) return Refuse(std::string("An ") + name + " is NULL.");
  if (given->struct_size < sizeof(size_t)) {
    return Refuse(std::string("The struct_size of an ") + name + " does not hold itself.");
  }
  T read = {};
  std::memcpy(&read, given, std::min(given->struct_size, sizeof(T)));
  return read;
}

base::Result<PlacementRequest::Group> ReadGroup(const onnxDeviceNodes* given) {
  ONNXIFI_ASSIGN_OR_RETURN(const onnxDeviceNodes read, Read(given, "onnxDeviceNodes"));
  if (read.device_key == nullptr) return Refuse("The device of an onnxDeviceNodes is NULL.");
  if (read.node_count > 0 && read.nodes == nullptr) {
    return Refuse("The nodes of an onnxDeviceNodes are NULL.");
  }
  PlacementRequest::Group group;
  group.device = read.device_key;
  group.nodes.assign(read.nodes, read.nodes + read.node_count);
  return group;
}

// Whether what is given makes sense together.
Status Check(const PlacementRequest& request) {
  using Kind = PlacementRequest::Kind;
  const bool wants_devices = request.kind == Kind::kPrefer || request.kind == Kind::kStrict;
  if (wants_devices && request.devices.empty()) {
    return Refuse("A placement on devices lists none.");
  }
  if (!wants_devices && !request.devices.empty()) {
    return Refuse("A placement lists devices, and is not of a kind that has any.");
  }
  if (request.kind == Kind::kPlan && request.groups.empty()) {
    return Refuse("The plan has no islands.");
  }
  const bool may_be_whole = request.kind == Kind::kPlan && request.groups.size() == 1;
  for (const PlacementRequest::Group& group : request.groups) {
    if (!group.nodes.empty() || may_be_whole) continue;
    return Refuse("A part of the graph for device '" + group.device + "' has no nodes.");
  }
  return base::Ok();
}

base::Result<PlacementRequest> ReadPlacement(uint64_t address) {
  using Kind = PlacementRequest::Kind;
  ONNXIFI_ASSIGN_OR_RETURN(
      const onnxPlacement given,
      Read(reinterpret_cast<const onnxPlacement*>(static_cast<uintptr_t>(address)),
           "onnxPlacement"));
  PlacementRequest request;
  switch (given.kind) {
    case ONNXIFI_SDK_PLACEMENT_AUTO:
      request.kind = Kind::kAuto;
      break;
    case ONNXIFI_SDK_PLACEMENT_PREFER:
      request.kind = Kind::kPrefer;
      break;
    case ONNXIFI_SDK_PLACEMENT_STRICT:
      request.kind = Kind::kStrict;
      break;
    case ONNXIFI_SDK_PLACEMENT_PLAN:
      request.kind = Kind::kPlan;
      break;
    default:
      return Refuse("There is no placement of kind " + std::to_string(given.kind) + ".");
  }
  if (given.device_count > 0 && given.device_keys == nullptr) {
    return Refuse("The devices of an onnxPlacement are NULL.");
  }
  for (uint32_t index = 0; index < given.device_count; ++index) {
    if (given.device_keys[index] == nullptr) return Refuse("A device of an onnxPlacement is NULL.");
    request.devices.emplace_back(given.device_keys[index]);
  }
  if (given.group_count > 0 && given.groups == nullptr) {
    return Refuse("The groups of an onnxPlacement are NULL.");
  }
  for (uint32_t index = 0; index < given.group_count; ++index) {
    ONNXIFI_ASSIGN_OR_RETURN(PlacementRequest::Group group, ReadGroup(given.groups[index]));
    request.groups.push_back(std::move(group));
  }
  ONNXIFI_RETURN_IF_ERROR(Check(request));
  return request;
}

}  // namespace

base::Result<AutoOptions> AutoOptions::Take(std::vector<abi::Property>& properties) {
  AutoOptions options;
  ONNXIFI_ASSIGN_OR_RETURN(
      options.measures,
      ReadFlag(properties, ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE, "that has graphs measured"));
  ONNXIFI_ASSIGN_OR_RETURN(
      const std::optional<bool> fallback,
      ReadFlag(properties, ONNXIFI_SDK_GRAPH_PROPERTY_FALLBACK, "of a fall back"));
  options.has_fallback = fallback.value_or(false);
  constexpr uint64_t kPlacement = ONNXIFI_SDK_GRAPH_PROPERTY_PLACEMENT;
  for (const abi::Property& property : properties) {
    if (property.key != kPlacement) continue;
    ONNXIFI_ASSIGN_OR_RETURN(options.placement, ReadPlacement(property.value));
  }
  std::erase_if(properties, [](const abi::Property& property) {
    return property.key == kPlacement || property.key == ONNXIFI_SDK_GRAPH_PROPERTY_FALLBACK;
  });
  return options;
}

}  // namespace onnxifi::planner
