// SPDX-License-Identifier: Apache-2.0
//
// GraphRecorder: nodes by hand, not captured from a stream, which would put them one behind the
// other.

#include "backends/cuda/graph_recorder.h"

#include <array>

namespace onnxifi::cuda {

using base::Result;
using base::Status;
using device::MemoryUse;

Result<std::unique_ptr<GraphRecorder>> GraphRecorder::Begin(const Runtime& runtime) {
  CUgraph graph = nullptr;
  ONNXIFI_RETURN_IF_ERROR(
      runtime.Do("begin a recording", [&] { return runtime.api().GraphCreate(&graph, 0); }));
  return std::unique_ptr<GraphRecorder>(new GraphRecorder(
      runtime, Handle<CUgraph>(runtime.context(), graph, runtime.api().GraphDestroy)));
}

template <typename Add>
Status GraphRecorder::AddNode(std::string_view doing, std::span<const MemoryUse> uses,
                              const Add& add) {
  std::vector<CUgraphNode> earlier;
  for (const size_t node : dependences_.Add(uses)) earlier.push_back(nodes_[node]);
  CUgraphNode node = nullptr;
  Status status = runtime_.Do(doing, [&] { return add(&node, earlier); });
  nodes_.push_back(node);
  return status;
}

Status GraphRecorder::AddKernel(std::string_view doing, const CUDA_KERNEL_NODE_PARAMS& launch,
                                std::span<const MemoryUse> uses) {
  return AddNode(doing, uses, [&](CUgraphNode* node, std::span<const CUgraphNode> earlier) {
    return runtime_.api().GraphAddKernelNode(node, graph_.get(), earlier.data(), earlier.size(),
                                             &launch);
  });
}

Status GraphRecorder::AddCopy(std::string_view doing, const std::byte* from, std::byte* to,
                              int64_t size_bytes) {
  const std::array<MemoryUse, 2> uses = {MemoryUse::Of(from, size_bytes, /*is_written=*/false),
                                         MemoryUse::Of(to, size_bytes, /*is_written=*/true)};
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = uses[0].begin;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = uses[1].begin;
  copy.WidthInBytes = static_cast<size_t>(size_bytes);
  copy.Height = 1;
  copy.Depth = 1;
  return AddNode(doing, uses, [&](CUgraphNode* node, std::span<const CUgraphNode> earlier) {
    return runtime_.api().GraphAddMemcpyNode(node, graph_.get(), earlier.data(), earlier.size(),
                                             &copy, runtime_.context()->get());
  });
}

Status GraphRecorder::AddCaptured(std::string_view doing, std::span<const MemoryUse> uses,
                                  const std::function<CUresult(CUstream)>& put) {
  const Api& api = runtime_.api();
  if (captured_.get() == nullptr) {
    CUstream stream = nullptr;
    ONNXIFI_RETURN_IF_ERROR(
        runtime_.Do(doing, [&] { return api.StreamCreate(&stream, CU_STREAM_NON_BLOCKING); }));
    captured_ = Handle<CUstream>(runtime_.context(), stream, api.StreamDestroy);
  }
  return AddNode(doing, uses, [&](CUgraphNode* node, std::span<const CUgraphNode> earlier) {
    CUresult result = api.StreamBeginCapture(captured_.get(), CU_STREAM_CAPTURE_MODE_RELAXED);
    if (result != CUDA_SUCCESS) return result;
    result = put(captured_.get());
    CUgraph graph = nullptr;
    const CUresult ended = api.StreamEndCapture(captured_.get(), &graph);
    if (result == CUDA_SUCCESS) result = ended;
    if (result == CUDA_SUCCESS) {
      result =
          api.GraphAddChildGraphNode(node, graph_.get(), earlier.data(), earlier.size(), graph);
    }
    if (graph != nullptr) api.GraphDestroy(graph);
    return result;
  });
}

Result<GraphRecorder::Recorded> GraphRecorder::End() {
  CUgraphExec executable = nullptr;
  ONNXIFI_RETURN_IF_ERROR(runtime_.Do("end a recording", [&] {
    return runtime_.api().GraphInstantiateWithFlags(&executable, graph_.get(), 0);
  }));
  return Recorded{std::move(graph_), Handle<CUgraphExec>(runtime_.context(), executable,
                                                         runtime_.api().GraphExecDestroy)};
}

}  // namespace onnxifi::cuda
