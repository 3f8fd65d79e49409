// SPDX-License-Identifier: Apache-2.0
//
// DeviceChoice: what the auto device asks of its devices about a whole model: which of them claims
// all of it, which the caller wants first, and whether several together run it.

#ifndef ONNXIFI_ONNXIFI_PLANNER_DEVICE_CHOICE_H_
#define ONNXIFI_ONNXIFI_PLANNER_DEVICE_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/core/base/result.h"
#include "onnxifi/planner/auto_options.h"
#include "onnxifi/planner/auto_planner.h"
#include "onnxifi/plugins/forwarded_backend_id.h"

namespace onnxifi::planner {

// In the order in which they are asked.
using DeviceList = std::span<const plugins::ForwardedBackendId* const>;

struct DeviceChoice {
  // The first device that claims every node and has kernels of its own for all of them; null for
  // none, or where the model names devices for its nodes.
  const plugins::ForwardedBackendId* device = nullptr;
  // Where there is none: the first device that claims every node, some of them by emulation. Wanted
  // only where several devices together do not run the model either.
  const plugins::ForwardedBackendId* emulating = nullptr;
  // Where there is neither: the status of the device that claims most nodes, with the reasons of
  // all, and that device.
  base::Status refusal;
  const plugins::ForwardedBackendId* closest = nullptr;
};

// `devices`: at least one.
DeviceChoice ChooseDevice(DeviceList devices, std::span<const std::byte> model);

// The first device that claims it for values, or else the first that emulates some of it. Where
// there is neither, `refusal` is the status of the first device with the reasons of all; `closest`
// is not told.
DeviceChoice ChooseDeviceForValues(DeviceList devices, std::span<const std::byte> model);

// The devices that may have the whole graph, first those that are wanted. INVALID_PROPERTY where
// one that is wanted is not there.
base::Result<std::vector<const plugins::ForwardedBackendId*>> OrderDevices(
    DeviceList devices, const PlacementRequest& placement);

// What a refusal goes by: an answer about the model without weights, which goes by the types that
// the model declares for them, or an attempt with the caller's.
enum class RefusalOf : uint8_t { kModelAlone, kWithWeights };

// Whether a refusal is about the device, which is full or broken, and not about the model.
bool IsOfDevice(base::Code code);

// Several devices together, for a model that none runs alone for the reason `refusal`; one device
// too where the caller's `weights`, which are as of AutoPlanner, may change its mind. Otherwise
// `refusal` with the reasons against this too.
base::Result<std::unique_ptr<AutoPlanner>> PlanTogether(DeviceList devices,
                                                        std::span<const std::byte> model,
                                                        std::vector<split::GivenWeight> weights,
                                                        base::Status refusal, RefusalOf refused);

}  // namespace onnxifi::planner

#endif  // ONNXIFI_ONNXIFI_PLANNER_DEVICE_CHOICE_H_
