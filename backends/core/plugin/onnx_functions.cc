// SPDX-License-Identifier: Apache-2.0
//
// OnnxFunctions: asks core/model for the body of a function operator.

#include "backends/core/plugin/onnx_functions.h"

#include "backends/core/model/function_expander.h"

namespace onnxifi::plugin {

base::Result<std::unique_ptr<graph::Graph>> OnnxFunctions::Expand(
    const graph::Node& node, const std::vector<graph::Type>& input_types) const {
  ONNXIFI_ASSIGN_OR_RETURN(graph::Graph body, model::ExpandFunction(node, input_types));
  return std::make_unique<graph::Graph>(std::move(body));
}

}  // namespace onnxifi::plugin
