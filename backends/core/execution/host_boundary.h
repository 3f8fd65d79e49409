// SPDX-License-Identifier: Apache-2.0
//
// HostBoundary: runs whose inputs and outputs lie in the host's memory. For a device that computes
// there it is the executor alone; for one with memory of its own it copies each input in once and
// each output out once, waits for the queue once, at the end, and keeps what was recorded.

#ifndef ONNXIFI_BACKENDS_CORE_EXECUTION_HOST_BOUNDARY_H_
#define ONNXIFI_BACKENDS_CORE_EXECUTION_HOST_BOUNDARY_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/execution/executor.h"
#include "backends/core/execution/recordings.h"

namespace onnxifi::execution {

class HostBoundary {
 public:
  // `executor` outlives it. Resource codes.
  static base::Result<std::unique_ptr<HostBoundary>> Create(Executor& executor);
  ~HostBoundary();

  // When Run returns: when everything is done, or, which needs a queue, when everything is in it.
  // Host memory that the run reads or writes then has to stay until the queue is finished.
  enum class End : uint8_t { kFinished, kQueued };

  // As Executor::Run, with host memory, or memory of the device's where the tensor says so, which
  // is then used in place. The queue keeps `kept` until the run is done. Where the caller captures
  // the queue (Queue::FindCapture) the run becomes part of that, or INVALID_STATE says why not, and
  // nothing of it is put in.
  base::Status Run(std::span<const InputTensor> inputs, OutputAllocator& allocator,
                   RunProfile* profile = nullptr, tensor::StringTable* strings = nullptr,
                   End end = End::kFinished,
                   std::span<const std::shared_ptr<const void>> kept = {});

  bool has_queue() const { return has_queue_; }
  // Whether its queue tells how often it hands work over; counters have it then.
  bool counts_submissions() const { return counts_submissions_; }
  // To be told before memory of the device's goes that inputs or outputs lay in. Shared with who
  // has such memory: it may go after the graph, when nothing is recorded any more.
  const std::shared_ptr<Recordings>& recordings() const { return recordings_; }

 private:
  struct Lane;

  HostBoundary(Executor& executor, const device::Queue* queue);
  base::Result<std::unique_ptr<Lane>> TakeLane();
  // INVALID_STATE with what keeps a run from becoming part of what the caller captures.
  base::Status CheckCapture(std::span<const InputTensor> inputs, const OutputAllocator& allocator,
                            bool is_profiled, End end) const;
  base::Status RunOn(Lane& lane, std::span<const InputTensor> inputs, OutputAllocator& allocator,
                     RunProfile* profile, tensor::StringTable* strings);

  Executor& executor_;
  const bool has_queue_;
  const bool counts_submissions_;
  const std::shared_ptr<Recordings> recordings_;
  std::mutex mutex_;
  // What runs that are over leave for the next ones, so that the steady state allocates nothing.
  std::vector<std::unique_ptr<Lane>> idle_;
};

}  // namespace onnxifi::execution

#endif  // ONNXIFI_BACKENDS_CORE_EXECUTION_HOST_BOUNDARY_H_
