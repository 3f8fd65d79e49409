// SPDX-License-Identifier: Apache-2.0
//
// NodeTable: which device runs which nodes of a model and what stands in the way of each: what
// onnxifi_info --ops and onnxifi_run --explain print.

#ifndef ONNXIFI_CLIENT_NODE_TABLE_H_
#define ONNXIFI_CLIENT_NODE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "client/node_answers.h"

namespace onnxifi::client {

struct NodeTableOptions {
  // Every node and every line, however many; else what somebody reads, and how much is left out.
  bool lists_all = false;
  // Where the nodes of an initialised graph are, as of DevicesOfNodes; empty: there is no graph.
  std::map<uint32_t, std::string> device_of;
  // Devices on which the caller places nodes.
  std::map<uint32_t, std::string> pinned;
};

// Rows for nodes that some device refuses, with a column for each device and the numbers of the
// reasons; counts by operator; every reason once with its nodes; and what each device says of the
// model. Nodes that the model or the caller places have rows too.
std::string MakeNodeTable(const ModelAnswers& answers, const NodeTableOptions& options);

// {"devices": [...], "auto": {...}, "nodes": [...], "reasons": [...]}, all of it, `device_of` as
// "device" of its nodes; members are only ever added.
nlohmann::json MakeNodeJson(const ModelAnswers& answers,
                            const std::map<uint32_t, std::string>& device_of);

}  // namespace onnxifi::client

#endif  // ONNXIFI_CLIENT_NODE_TABLE_H_
