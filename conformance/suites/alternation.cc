// SPDX-License-Identifier: Apache-2.0
//
// Alternation: asks every device about the whole model.

#include "conformance/suites/alternation.h"

#include <onnxifi/sdk.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <set>

#include "client/execution.h"
#include "client/onnx_file/node_metadata.h"
#include "client/status_names.h"

namespace onnxifi::suites {
namespace {

struct Claims {
  std::set<uint32_t> nodes;
  std::set<uint32_t> refused;
};

void ONNXIFI_ABI AddVerdict(void* context, const onnxNodeVerdict* verdict) {
  auto& claims = *static_cast<Claims*>(context);
  // A constant lies where it is read.
  if (std::strcmp(verdict->operator_type, "Constant") == 0) return;
  claims.nodes.insert(verdict->node_index);
  if (!client::IsAcceptance(verdict->status)) claims.refused.insert(verdict->node_index);
}

}  // namespace

base::Result<std::string> NameDevicesInTurn(std::span<const std::byte> model,
                                            const client::Library& library,
                                            std::span<const client::Device> devices) {
  std::map<uint32_t, std::vector<const client::Device*>> takers;
  for (const client::Device& device : devices) {
    const auto explain = library.FindExtensions(device.id).explain_model;
    if (explain == nullptr) {
      return base::Status(base::Code::kUnsupportedOperator,
                          "Device '" + device.key + "' does not explain what it claims.");
    }
    Claims claims;
    const onnxStatus status = explain(device.id, model.size(), model.data(), AddVerdict, &claims);
    // A model that the device refuses as a whole it may take in part.
    if (!client::IsAcceptance(status) && !client::IsRefusal(status)) {
      return client::ExpectSuccess(library, "onnxExplainModel", status);
    }
    for (const uint32_t node : claims.nodes) {
      if (!claims.refused.contains(node)) takers[node].push_back(&device);
    }
  }
  std::map<uint32_t, std::string> places;
  size_t turn = 0;
  for (const auto& [node, able] : takers) {
    // A node of which there is no choice does not count.
    places[node] = able[able.size() > 1 ? turn++ % able.size() : 0]->key;
  }
  return onnx_file::AddNodeMetadata(model, "onnxifi.device", places);
}

}  // namespace onnxifi::suites
