// SPDX-License-Identifier: Apache-2.0
//
// FallbackGraph: others wait while the graph is made.

#include "onnxifi/partitioned/fallback_graph.h"

namespace onnxifi::partitioned {

base::Result<abi::Graph*> FallbackGraph::Get(const base::Status& reason) {
  const std::lock_guard lock(mutex_);
  if (maker_ != nullptr) {
    // Stands if an exception passes: there is no second attempt.
    refusal_ = base::Status(base::Code::kNoSystemMemory, "The graph could not be made before.");
    const Maker maker = std::exchange(maker_, nullptr);
    auto made = maker(reason);
    refusal_ = made.status();
    if (made.ok()) graph_ = *std::move(made);
    made_ = graph_.get();
  }
  if (graph_ == nullptr) return refusal_;
  return graph_.get();
}

}  // namespace onnxifi::partitioned
