// SPDX-License-Identifier: Apache-2.0
//
// NodeNames: what a person calls the nodes of a model's main graph: for options and files that name
// nodes.

#ifndef ONNXIFI_CLIENT_ONNX_FILE_NODE_NAMES_H_
#define ONNXIFI_CLIENT_ONNX_FILE_NODE_NAMES_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::onnx_file {

struct NodeName {
  std::string name;  // may be empty
  std::string operator_type;
};

// By position in graph.node. INVALID_PROTOBUF.
base::Result<std::vector<NodeName>> ParseNodeNames(std::span<const std::byte> model);

}  // namespace onnxifi::onnx_file

#endif  // ONNXIFI_CLIENT_ONNX_FILE_NODE_NAMES_H_
