// SPDX-License-Identifier: Apache-2.0
//
// ModelExplanation: what devices answer about a model and about each of its nodes, as callers ask
// for it.

#ifndef ONNXIFI_ONNXIFI_PLANNER_MODEL_EXPLANATION_H_
#define ONNXIFI_ONNXIFI_PLANNER_MODEL_EXPLANATION_H_

#include <onnxifi/sdk.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/base/status.h"
#include "onnxifi/plugins/forwarded_backend_id.h"
#include "onnxifi/split/whole_model.h"

namespace onnxifi::planner {

// The C++ side of onnxNodeAnswer and onnxDeviceAnswer, field by field.
struct NodeAnswer {
  uint32_t role = ONNXIFI_SDK_NODE_WORK;
  std::string placement;
  abi::NodeVerdict verdict;
  uint32_t reason = 0;
};
struct DeviceAnswer {
  std::string device_key;
  base::Status verdict;
  uint32_t nodes_told = ONNXIFI_SDK_NODES_EXPLAINED;
  // In the model's order; a node with several reasons as often.
  std::vector<NodeAnswer> nodes;
  uint64_t physical_device = 0;
};

// By device. Shapes are inferred once.
std::vector<DeviceAnswer> ExplainOnDevices(
    std::span<const plugins::ForwardedBackendId* const> devices, std::span<const std::byte> model);

// What a plugin that does not explain would: its answer for the model, and where that is a refusal,
// its answers for models of one node each. No node of a model that cannot be cut, and none where no
// single node is refused as the model is.
abi::Explanation ExplainForPlainDevice(const plugins::ForwardedBackendId& device,
                                       std::span<const std::byte> model);

// Every node of the model as one that runs.
std::vector<abi::NodeVerdict> AcceptingVerdicts(const split::WholeModel& whole);

// The function that callers get; see onnxExplainModelOnDevicesFunction.
onnxStatus ONNXIFI_ABI ExplainModelOnDevices(const uint64_t* properties, size_t size_bytes,
                                             const void* model,
                                             onnxDeviceAnswerCallback device_callback,
                                             onnxNodeAnswerCallback node_callback, void* context);

}  // namespace onnxifi::planner

#endif  // ONNXIFI_ONNXIFI_PLANNER_MODEL_EXPLANATION_H_
