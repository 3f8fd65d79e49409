// SPDX-License-Identifier: Apache-2.0
//
// ConstantEvaluator: computes constant subgraphs for constant folding, by lowering them and running
// the program on the reference.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_CONSTANT_EVALUATOR_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_CONSTANT_EVALUATOR_H_

#include <memory>
#include <vector>

#include "backends/core/device/device.h"
#include "backends/core/graph/constant_folding.h"
#include "backends/core/ops/lower_graph.h"

namespace onnxifi::plugin {

class ConstantEvaluator : public graph::Evaluator {
 public:
  // `functions` may be null and outlives it.
  explicit ConstantEvaluator(const ops::FunctionSource* functions);
  ~ConstantEvaluator() override;

  base::Result<std::vector<tensor::Tensor>> Evaluate(const graph::Graph& graph,
                                                     int64_t limit_bytes) override;

 private:
  const ops::FunctionSource* functions_;
  std::unique_ptr<device::Device> reference_;
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_CONSTANT_EVALUATOR_H_
