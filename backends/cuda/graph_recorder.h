// SPDX-License-Identifier: Apache-2.0
//
// GraphRecorder: makes a CUDA graph of what a run puts in, node by node, each behind those that use
// the same memory (dependences.h).

#ifndef ONNXIFI_BACKENDS_CUDA_GRAPH_RECORDER_H_
#define ONNXIFI_BACKENDS_CUDA_GRAPH_RECORDER_H_

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/device/dependences.h"
#include "backends/core/device/memory_use.h"
#include "backends/cuda/runtime.h"

namespace onnxifi::cuda {

class GraphRecorder {
 public:
  // `runtime` outlives it. Resource codes.
  static base::Result<std::unique_ptr<GraphRecorder>> Begin(const Runtime& runtime);

  // The parameters' values are copied. Resource codes.
  base::Status AddKernel(std::string_view doing, const CUDA_KERNEL_NODE_PARAMS& launch,
                         std::span<const device::MemoryUse> uses);
  base::Status AddCopy(std::string_view doing, const std::byte* from, std::byte* to,
                       int64_t size_bytes);
  // What `put(stream)` puts into a stream, as one node.
  base::Status AddCaptured(std::string_view doing, std::span<const device::MemoryUse> uses,
                           const std::function<CUresult(CUstream)>& put);

  // What can be launched, as often as wanted, and the graph itself.
  struct Recorded {
    Handle<CUgraph> graph;
    Handle<CUgraphExec> executable;
  };
  base::Result<Recorded> End();

 private:
  GraphRecorder(const Runtime& runtime, Handle<CUgraph> graph)
      : runtime_(runtime), graph_(std::move(graph)) {}

  // `add(node, earlier)` puts the node into the graph.
  template <typename Add>
  base::Status AddNode(std::string_view doing, std::span<const device::MemoryUse> uses,
                       const Add& add);

  const Runtime& runtime_;
  Handle<CUgraph> graph_;
  device::Dependences dependences_;
  std::vector<CUgraphNode> nodes_;
  Handle<CUstream> captured_;  // once something is captured
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_GRAPH_RECORDER_H_
