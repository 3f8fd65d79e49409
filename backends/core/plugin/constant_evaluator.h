// SPDX-License-Identifier: Apache-2.0
//
// ConstantEvaluator: computes constant subgraphs for constant folding, by lowering them and running
// the program: large ones on the device, where that computes in the host's memory, others on the
// reference, whose kernels cost nothing to make.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_CONSTANT_EVALUATOR_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_CONSTANT_EVALUATOR_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "backends/core/device/device.h"
#include "backends/core/graph/constant_folding.h"
#include "backends/core/ops/lower_graph.h"

namespace onnxifi::plugin {

class ConstantEvaluator : public graph::Evaluator {
 public:
  // `functions` and `device` may be null and outlive it.
  ConstantEvaluator(const ops::FunctionSource* functions, device::Device* device);
  ~ConstantEvaluator() override;

  Answer Evaluate(const Request& request) override;
  size_t at_once() const override;
  // On the threads of `device`, if it has any.
  std::vector<Answer> EvaluateAll(std::span<const Request> requests) override;

 private:
  device::Device& DeviceFor(const program::Program& program) const;

  const ops::FunctionSource* functions_;
  device::Device* const device_;
  std::unique_ptr<device::Device> reference_;
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_CONSTANT_EVALUATOR_H_
