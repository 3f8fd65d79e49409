// SPDX-License-Identifier: Apache-2.0
//
// Graph: a graph of the kit whose runs take the time and the end that the settings say.

#ifndef ONNXIFI_BACKENDS_MOCK_GRAPH_H_
#define ONNXIFI_BACKENDS_MOCK_GRAPH_H_

#include <chrono>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/plugin/run_queue.h"
#include "backends/mock/settings.h"
#include "backends/mock/state.h"

namespace onnxifi::mock {

class Graph final : public abi::Graph {
 public:
  // `settings`, `state` and `worker` outlive it. `run_time`: what every run takes at least.
  Graph(std::unique_ptr<abi::Graph> inner, const Settings& settings, State& state,
        plugin::Worker& worker, std::chrono::nanoseconds run_time, bool is_emulated)
      : inner_(std::move(inner)),
        settings_(settings),
        state_(state),
        run_time_(run_time),
        is_emulated_(is_emulated),
        queue_(std::make_shared<plugin::RunQueue>(worker)) {}

  const abi::Signature* signature() const override { return inner_->signature(); }
  bool is_emulated() const override { return is_emulated_; }
  base::Result<std::shared_ptr<const abi::Binding>> Bind(abi::GraphTensors tensors) override;
  base::Result<std::shared_ptr<abi::Event>> Run(std::shared_ptr<const abi::Binding> binding,
                                                std::shared_ptr<abi::Event> input) override;
  void Close() override;
  base::Result<std::vector<abi::TensorShape>> InferOutputShapes(
      std::span<const abi::TensorDescriptor> inputs) override;
  base::Result<abi::GraphCounters> Counters() override { return inner_->Counters(); }
  base::Result<std::vector<abi::StepRecord>> Profile() override { return inner_->Profile(); }
  base::Result<std::vector<abi::LoadRecord>> LoadProfile() override {
    return inner_->LoadProfile();
  }

 private:
  base::Status Work(const std::shared_ptr<const abi::Binding>& binding, abi::RunOutputs& outputs);

  const std::unique_ptr<abi::Graph> inner_;
  const Settings& settings_;
  State& state_;
  const std::chrono::nanoseconds run_time_;
  const bool is_emulated_;
  const std::shared_ptr<plugin::RunQueue> queue_;
};

}  // namespace onnxifi::mock

#endif  // ONNXIFI_BACKENDS_MOCK_GRAPH_H_
