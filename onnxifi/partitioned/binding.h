// SPDX-License-Identifier: Apache-2.0
//
// Binding: what a caller bound to a graph that is cut, with all memory between its islands.

#ifndef ONNXIFI_ONNXIFI_PARTITIONED_BINDING_H_
#define ONNXIFI_ONNXIFI_PARTITIONED_BINDING_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/core/abi/provider.h"
#include "onnxifi/partitioned/tensor_storage.h"

namespace onnxifi::partitioned {

// Memory of one set of inputs and outputs and of everything between islands. Runs of a binding
// follow one another, so one set serves all of them.
class Workspace {
 public:
  struct Bound {
    // Null until the first run where shapes depend on data.
    std::shared_ptr<const abi::Binding> binding;
    // Of the step's fallback graph, not of the graph that it had first.
    bool is_fallback = false;
    // What the step reads lies elsewhere since. Written by every step before it.
    alignas(std::atomic_ref<bool>::required_alignment) bool is_stale = false;
  };

  std::vector<TensorStorage> places;  // by value
  std::vector<Bound> bound;           // by step
  // Positions of the inputs that share memory with an output: a run copies them to their places
  // before its first step.
  std::vector<size_t> apart;
};

class Binding final : public abi::Binding {
 public:
  explicit Binding(abi::GraphTensors tensors);

  // Of the run under way.
  Workspace& workspace() const { return workspace_; }

  // Whether runs of the two may be under way at the same time: neither writes what the other reads
  // or writes.
  bool IsIndependentOf(const Binding& other) const;

 private:
  // Of the caller's, from the first byte to behind the last.
  struct Range {
    uintptr_t begin = 0;
    uintptr_t end = 0;
  };
  static bool Overlap(const std::vector<Range>& some, const std::vector<Range>& others);
  void AddRanges(std::span<const abi::TensorDescriptor> tensors, std::vector<Range>& ranges);

  mutable Workspace workspace_;
  std::vector<Range> reads_;
  std::vector<Range> writes_;
  // Whether some of it is no memory of the host's, of which nothing is known.
  bool is_opaque_ = false;
};

}  // namespace onnxifi::partitioned

#endif  // ONNXIFI_ONNXIFI_PARTITIONED_BINDING_H_
