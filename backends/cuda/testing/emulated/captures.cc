// SPDX-License-Identifier: Apache-2.0
//
// Functions of the emulated driver: the start and the end of a capture, what is captured so far,
// and what a thread may do meanwhile.

#include <algorithm>
#include <set>
#include <utility>

#include "backends/cuda/testing/emulated/objects.h"

namespace emulated {
namespace {

// All nodes that the given ones follow, themselves included.
std::set<const Node*> WithAncestors(std::vector<Node*> nodes) {
  std::set<const Node*> all;
  while (!nodes.empty()) {
    const Node* const node = nodes.back();
    nodes.pop_back();
    if (all.insert(node).second) nodes.insert(nodes.end(), node->after.begin(), node->after.end());
  }
  return all;
}

// The legacy stream would wait for a blocking stream of its context that is captured.
bool IsHeldByACapture(const Stream& stream) {
  return stream.is_legacy &&
         std::any_of(D().streams.begin(), D().streams.end(), [&](const auto& entry) {
           const Stream& other = *entry.second;
           return other.context == stream.context && other.capture != nullptr &&
                  (other.flags & CU_STREAM_NON_BLOCKING) == 0;
         });
}

}  // namespace
}  // namespace emulated

using namespace emulated;

CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  EMULATED_CALL(cuStreamBeginCapture_v2, kWithContext);
  EMULATED_STREAM(stream, handle);
  if (stream->is_legacy)
    return Misuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "The legacy stream is captured.");
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->graph = std::make_shared<Graph>();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->number = D().next_number++;
  stream->capture = std::move(capture);
  stream->capture_after.clear();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  EMULATED_CALL(cuStreamEndCapture, kWithContext);
  EMULATED_STREAM(stream, handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) {
    capture->is_invalid = true;
    return Misuse(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "A capture is ended in another stream.");
  }
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id()) {
    return Misuse(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "A capture is ended by another thread.");
  }
  const std::set<const Node*> joined = WithAncestors(stream->capture_after);
  bool is_joined = true;
  for (const auto& [key, other] : D().streams) {
    if (other->capture != capture) continue;
    for (const Node* const node : other->capture_after)
      is_joined = is_joined && joined.count(node) > 0;
    other->capture = nullptr;
    other->capture_after.clear();
  }
  capture->origin = nullptr;
  // Also where the graph was asked for meanwhile.
  if (capture->is_invalid || !is_joined) D().graphs.erase(capture->graph.get());
  if (capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!is_joined) {
    return Misuse(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                  "A capture ends before a stream that it forked joins.");
  }
  *graph = reinterpret_cast<CUgraph>(capture->graph.get());
  D().graphs[capture->graph.get()] = capture->graph;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  EMULATED_CALL(cuStreamIsCapturing, kWithContext);
  EMULATED_STREAM(stream, handle);
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (IsHeldByACapture(*stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *status = stream->capture == nullptr    ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                          : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

// What drivers have beside the newer ones, under names that the header does not tell.
#undef cuStreamGetCaptureInfo
#undef cuStreamUpdateCaptureDependencies
extern "C" CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream handle,
                                                      CUstreamCaptureStatus* status, cuuint64_t* id,
                                                      CUgraph* graph, const CUgraphNode** after,
                                                      size_t* count) {
  return cuStreamGetCaptureInfo_v3(handle, status, id, graph, after, nullptr, count);
}
extern "C" CUresult CUDAAPI cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode* after,
                                                              size_t count, unsigned int flags) {
  return cuStreamUpdateCaptureDependencies_v2(handle, after, nullptr, count, flags);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status,
                                           cuuint64_t* id, CUgraph* graph,
                                           const CUgraphNode** after, const CUgraphEdgeData** edges,
                                           size_t* count) {
  EMULATED_CALL(cuStreamGetCaptureInfo_v3, kWithContext);
  EMULATED_STREAM(stream, handle);
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (IsHeldByACapture(*stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *status = stream->capture == nullptr    ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                          : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (edges != nullptr) *edges = nullptr;
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id != nullptr) *id = stream->capture->number;
  if (graph != nullptr) {
    *graph = reinterpret_cast<CUgraph>(stream->capture->graph.get());
    D().graphs[stream->capture->graph.get()] = stream->capture->graph;
  }
  if (after != nullptr) *after = reinterpret_cast<const CUgraphNode*>(stream->capture_after.data());
  if (count != nullptr) *count = stream->capture_after.size();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* after,
                                                      const CUgraphEdgeData*, size_t count,
                                                      unsigned int flags) {
  EMULATED_CALL(cuStreamUpdateCaptureDependencies_v2, kWithContext);
  EMULATED_STREAM(stream, handle);
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->capture_after.clear();
  for (size_t n = 0; n < count; ++n) {
    stream->capture_after.push_back(reinterpret_cast<Node*>(after[n]));
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  EMULATED_CALL(cuThreadExchangeStreamCaptureMode, kInitialized);
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, ThreadCaptureMode());
  return CUDA_SUCCESS;
}
