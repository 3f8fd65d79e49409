// SPDX-License-Identifier: Apache-2.0
//
// PreparedBinding: tensors that are bound to a graph, with the caller's memory as the device has
// it. KeptBindings: those of addresses alone, for callers that bind the same tensors again.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_PREPARED_BINDING_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_PREPARED_BINDING_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/execution/recordings.h"
#include "backends/core/plugin/caller_memory.h"
#include "backends/core/plugin/run_queue.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::plugin {

// Knows whether its runs are best carried out by the thread that starts them.
class PreparedBinding : public abi::Binding, public RunQueue::Footprint {
 public:
  // `is_of_one_run`: whether nothing but that run is told of it, so that nobody counts on the order
  // of runs of other threads. `own_bytes`: of memory that a run takes beside the caller's.
  PreparedBinding(abi::GraphTensors bound, bool is_callers, bool is_of_one_run, int64_t own_bytes,
                  DeviceMemory inputs, DeviceMemory outputs,
                  std::shared_ptr<execution::Recordings> recordings);
  ~PreparedBinding() override;
  PreparedBinding(const PreparedBinding&) = delete;
  PreparedBinding& operator=(const PreparedBinding&) = delete;

  // Of the host's memory there are addresses alone.
  bool ServesLaterRuns() const override;

  // For runs that may have a plan of their own: symbols, and extents of the inputs.
  void SetShape(std::vector<int64_t> symbols, std::vector<tensor::Extents> extents) {
    symbols_ = std::move(symbols);
    extents_ = std::move(extents);
  }
  const std::vector<int64_t>& symbols() const { return symbols_; }
  std::span<const tensor::Extents> extents() const { return extents_; }

  bool is_callers() const { return is_callers_; }
  bool is_of_one_run() const { return is_of_one_run_; }
  // What lies in the host's memory of the outputs.
  const abi::HostRanges& written() const { return written_; }
  bool IsApartFrom(const RunQueue::Footprint& other) const override;
  // Of its arena, as far as the extents of the inputs tell.
  int64_t own_bytes() const override { return own_bytes_; }
  const DeviceMemory& inputs() const { return inputs_; }
  const DeviceMemory& outputs() const { return outputs_; }
  // To be called before a run by another plan, whose recordings go before the memory, too.
  void NoteRecordings(const std::shared_ptr<execution::Recordings>& recordings) const;
  // The inputs that share memory with an output, and where each is copied before a run writes.
  void SetApart(size_t input, tensor::Tensor copy) { apart_.emplace(input, std::move(copy)); }
  // What a run reads of input `k`, which lies in the host's memory.
  const std::byte* HostData(size_t k) const;
  // Those of them that the driver's objects are ours of.
  std::span<const std::shared_ptr<const void>> imports() const { return imports_; }

 private:
  void NoteImports(std::span<const abi::TensorDescriptor> tensors, const DeviceMemory& memory);

  const bool is_callers_;
  const bool is_of_one_run_;
  const int64_t own_bytes_;
  const abi::HostRanges written_;
  std::vector<int64_t> symbols_;  // none where there is one plan for all runs
  std::vector<tensor::Extents> extents_;
  // Written at the start of each run. Runs that write the same memory follow one another.
  mutable std::map<size_t, tensor::Tensor> apart_;
  mutable std::mutex mutex_;
  // Of every plan that has run with the memory. Guarded by mutex_ while there are runs.
  mutable std::vector<std::shared_ptr<execution::Recordings>> recordings_;
  const DeviceMemory inputs_;
  const DeviceMemory outputs_;
  std::vector<std::shared_ptr<const void>> imports_;
};

// The bindings that were used last. Callers set them anew for each run, often from a few buffers in
// turn, and what was recorded of the first runs serves the later ones. Threads: any.
class KeptBindings {
 public:
  // The binding of the same tensors; null without one.
  std::shared_ptr<const abi::Binding> Find(const abi::GraphTensors& tensors);
  // Keeps a binding whose tensors are all addresses of the device's memory, for a while.
  void Keep(std::shared_ptr<const abi::Binding> binding);

 private:
  std::mutex mutex_;
  // The one that was used last first. Guarded by mutex_.
  std::list<std::shared_ptr<const abi::Binding>> bindings_;
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_PREPARED_BINDING_H_
