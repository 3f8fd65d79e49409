// SPDX-License-Identifier: Apache-2.0
//
// ForwardedGraph: a graph that one plugin runs as a whole. The plugin checks names, types and
// shapes; here its binding is kept in step with ours, and events of other origins start its runs.

#ifndef ONNXIFI_ONNXIFI_PLUGINS_FORWARDED_GRAPH_H_
#define ONNXIFI_ONNXIFI_PLUGINS_FORWARDED_GRAPH_H_

#include <onnx/onnxifi.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/abi/provider.h"
#include "onnxifi/plugins/plugin_backend.h"
#include "onnxifi/plugins/waiters.h"
#include "onnxifi/split/output_shapes.h"

namespace onnxifi::plugins {

class ForwardedGraph final : public abi::Graph {
 public:
  static base::Result<std::unique_ptr<abi::Graph>> Init(
      std::shared_ptr<const PluginBackend> backend, const abi::GraphRequest& request);
  ~ForwardedGraph() override;

  // The plugin knows the model, this side does not.
  const abi::Signature* signature() const override { return nullptr; }
  bool is_emulated() const override { return is_emulated_; }
  base::Result<std::shared_ptr<const abi::Binding>> Bind(abi::GraphTensors tensors) override;
  base::Result<std::shared_ptr<const abi::Binding>> BindForOneRun(
      abi::GraphTensors tensors) override;
  base::Result<std::shared_ptr<abi::Event>> Run(std::shared_ptr<const abi::Binding> binding,
                                                std::shared_ptr<abi::Event> input) override;
  base::Result<std::shared_ptr<abi::Event>> RunAfterSharedQueue(
      std::shared_ptr<const abi::Binding> binding) override;
  base::Status RunInSharedQueue(std::shared_ptr<const abi::Binding> binding) override;
  void Close() override;
  base::Result<std::vector<abi::TensorShape>> InferOutputShapes(
      std::span<const abi::TensorDescriptor> inputs) override;
  base::Result<abi::GraphCounters> Counters() override;
  base::Result<std::vector<abi::StepRecord>> Profile() override;
  base::Result<std::vector<abi::LoadRecord>> LoadProfile() override;

  // Of the device that has it, e.g. "cpu:0".
  std::string device_key() const { return calls().key(); }

 private:
  using InferredShapes = base::Result<std::unique_ptr<split::OutputShapes>>;

  ForwardedGraph(std::shared_ptr<const PluginBackend> backend, onnxGraph handle, bool is_emulated,
                 InferredShapes inferred_shapes)
      : backend_(std::move(backend)),
        handle_(handle),
        is_emulated_(is_emulated),
        inferred_shapes_(std::move(inferred_shapes)) {}

  // What stands in for a plugin that does not tell shapes; null for one that does.
  static InferredShapes ReadShapes(const PluginCalls& calls, const abi::GraphRequest& request);

  const PluginCalls& calls() const { return backend_->calls(); }
  base::Status SetPluginBinding(const std::shared_ptr<const abi::Binding>& binding);
  base::Result<std::vector<abi::TensorShape>> InferByModel(
      std::span<const abi::TensorDescriptor> inputs) const;
  base::Status SetPluginValues(const abi::GraphTensors& tensors);
  // Hands over binding and run in one step; `output_fence` gets what the plugin gives.
  base::Status RunAtOnce(const abi::Binding& binding, onnxMemoryFenceV1& output_fence);
  base::Status RunBetween(const std::shared_ptr<const abi::Binding>& binding,
                          const onnxMemoryFenceV1& input_fence, onnxMemoryFenceV1& output_fence);
  // What the plugin's answer to a function that starts a run means.
  base::Status ToStatus(onnxStatus answer, std::string_view function,
                        const onnxMemoryFenceV1& output_fence) const;
  // Takes the event that the plugin put into its fence.
  std::shared_ptr<abi::Event> OwnEvent(const onnxMemoryFenceV1& output_fence);
  // An event of the plugin that is signalled when `input` is; signalled already when it is null.
  base::Result<std::shared_ptr<abi::Event>> MakePluginInput(std::shared_ptr<abi::Event> input);
  base::Result<std::shared_ptr<abi::Event>> NewPluginEvent();

  const std::shared_ptr<const PluginBackend> backend_;
  const onnxGraph handle_;
  const bool is_emulated_;
  const InferredShapes inferred_shapes_;

  // Guards the three below, and keeps setting the plugin's binding and running with it together.
  std::mutex mutex_;
  // What the plugin has; null when it has none.
  std::shared_ptr<const abi::Binding> plugin_binding_;
  bool is_closed_ = false;
  // An event of the plugin's that is signalled, for runs whose inputs are complete; made by the
  // first.
  std::shared_ptr<abi::Event> signalled_;
  // For events of other plugins that start runs here.
  Waiters waiters_;
};

}  // namespace onnxifi::plugins

#endif  // ONNXIFI_ONNXIFI_PLUGINS_FORWARDED_GRAPH_H_
