// SPDX-License-Identifier: Apache-2.0
//
// OnnxFunctions: gives the lowering the bodies of operators that ONNX defines as functions.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_ONNX_FUNCTIONS_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_ONNX_FUNCTIONS_H_

#include <memory>
#include <vector>

#include "backends/core/ops/lower_graph.h"

namespace onnxifi::plugin {

class OnnxFunctions : public ops::FunctionSource {
 public:
  base::Result<std::unique_ptr<graph::Graph>> Expand(
      const graph::Node& node, const std::vector<graph::Type>& input_types) const override;
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_ONNX_FUNCTIONS_H_
