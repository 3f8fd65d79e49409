// SPDX-License-Identifier: Apache-2.0
//
// ConstantCaptures: makes what a subgraph captures of its surroundings a constant of its own where
// it is one there, so that folding and lowering see it. The tensors are shared, not copied.

#ifndef ONNXIFI_BACKENDS_CORE_GRAPH_CONSTANT_CAPTURES_H_
#define ONNXIFI_BACKENDS_CORE_GRAPH_CONSTANT_CAPTURES_H_

#include "backends/core/graph/pass.h"

namespace onnxifi::graph {

class ConstantCaptures : public Pass {
 public:
  std::string_view name() const override { return "constant_captures"; }
  base::Result<bool> Run(Graph& graph) override;
};

}  // namespace onnxifi::graph

#endif  // ONNXIFI_BACKENDS_CORE_GRAPH_CONSTANT_CAPTURES_H_
