// SPDX-License-Identifier: Apache-2.0
//
// FallbackGraph: the graph that runs an island's nodes where the island's own device cannot: made
// by the devices that are left, at most once, when it is first needed.

#ifndef ONNXIFI_ONNXIFI_PARTITIONED_FALLBACK_GRAPH_H_
#define ONNXIFI_ONNXIFI_PARTITIONED_FALLBACK_GRAPH_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"

namespace onnxifi::partitioned {

// Threads: any.
class FallbackGraph {
 public:
  // `reason`: why the device cannot.
  using Maker =
      std::function<base::Result<std::unique_ptr<abi::Graph>>(const base::Status& reason)>;

  explicit FallbackGraph(Maker maker) : maker_(std::move(maker)) {}
  FallbackGraph(const FallbackGraph&) = delete;
  FallbackGraph& operator=(const FallbackGraph&) = delete;

  // The graph, made by the first call; the status of that where there is none.
  base::Result<abi::Graph*> Get(const base::Status& reason);
  // Null while there is none.
  abi::Graph* graph() const { return made_.load(); }

  // The island's device is gone: nobody asks it again.
  void TakeOver() { has_taken_over_ = true; }
  bool has_taken_over() const { return has_taken_over_; }

 private:
  std::mutex mutex_;
  // Guarded by mutex_. Dropped with all that it keeps when it has been called.
  Maker maker_;
  base::Status refusal_;
  std::unique_ptr<abi::Graph> graph_;

  std::atomic<abi::Graph*> made_ = nullptr;
  std::atomic<bool> has_taken_over_ = false;
};

}  // namespace onnxifi::partitioned

#endif  // ONNXIFI_ONNXIFI_PARTITIONED_FALLBACK_GRAPH_H_
