// SPDX-License-Identifier: Apache-2.0
//
// NodeAnswers: what the devices of a library answer about a model and its nodes, collected from any
// library: libonnxifi tells it in one call, a plugin device by device, and a plain ONNXIFI 1.0
// library of the model as a whole.

#ifndef ONNXIFI_CLIENT_NODE_ANSWERS_H_
#define ONNXIFI_CLIENT_NODE_ANSWERS_H_

#include <cstddef>
#include <map>
#include <onnxifi/onnxifi.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace onnxifi::client {

struct ModelAnswers {
  // Every device but auto, in the library's order.
  std::vector<DeviceAnswer> devices;
  // Auto's answer for the whole model, without nodes, where the library has it.
  std::optional<DeviceAnswer> chosen;

  // Whether a device runs the model, alone or together with others.
  bool is_runnable() const;
};

// `base_folder`: of the model's external data.
Result<ModelAnswers> AskDevices(const Library& library, std::span<const std::byte> model,
                                const std::optional<std::string>& base_folder);

// By position in graph.node the key of the device that has the node in a graph; nodes that belong
// to whoever reads them are not there. `answers`: of the graph's model.
std::map<uint32_t, std::string> DevicesOfNodes(const GraphPlan& plan, const ModelAnswers& answers);

}  // namespace onnxifi::client

#endif  // ONNXIFI_CLIENT_NODE_ANSWERS_H_
