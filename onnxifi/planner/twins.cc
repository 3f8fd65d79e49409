// SPDX-License-Identifier: Apache-2.0
//
// FindTwins: devices that are one with a third are one with each other, such as a GPU's plugins of
// which one tells its UUID alone and one its PCI address.

#include "onnxifi/planner/twins.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace onnxifi::planner {

partition::Twins FindTwins(std::span<const plugins::ForwardedBackendId* const> devices) {
  partition::Twins groups;
  for (size_t index = 0; index < devices.size(); ++index) {
    if (devices[index]->is_reference()) continue;
    const auto is_one = [&](partition::DeviceIndex other) {
      return plugins::IsOneDevice(devices[index]->physical_device(),
                                  devices[static_cast<size_t>(other)]->physical_device());
    };
    std::vector<partition::DeviceIndex> joined;
    std::erase_if(groups, [&](const std::vector<partition::DeviceIndex>& group) {
      if (!std::ranges::any_of(group, is_one)) return false;
      joined.insert(joined.end(), group.begin(), group.end());
      return true;
    });
    joined.push_back(static_cast<partition::DeviceIndex>(index));
    std::ranges::sort(joined);
    groups.push_back(std::move(joined));
  }
  std::erase_if(groups,
                [](const std::vector<partition::DeviceIndex>& group) { return group.size() == 1; });
  std::ranges::sort(groups);
  return groups;
}

}  // namespace onnxifi::planner
