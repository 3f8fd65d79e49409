// SPDX-License-Identifier: Apache-2.0
//
// Sharing: the caller's memory, events and stream as the kit sees them.

#ifndef ONNXIFI_BACKENDS_CUDA_SHARING_H_
#define ONNXIFI_BACKENDS_CUDA_SHARING_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "backends/core/device/sharing.h"
#include "backends/cuda/event_waiter.h"
#include "backends/cuda/gates.h"
#include "backends/cuda/runtime.h"

namespace onnxifi::cuda {

class Sharing final : public device::Sharing {
 public:
  // `runtime` outlives it.
  Sharing(const Runtime& runtime, std::shared_ptr<Gates> gates)
      : runtime_(runtime), gates_(std::move(gates)), waiter_(runtime) {}

  // `handle` is a CUdeviceptr. CUDA's memory has one owner, so it must live until the allocation
  // goes.
  base::Result<std::unique_ptr<device::Allocation>> ImportMemory(uint64_t handle,
                                                                 int64_t size_bytes,
                                                                 Access access) override;
  // Pinned memory, which the device reads and writes over the bus.
  base::Result<SharedMemory> AllocateShared(int64_t size_bytes) override;
  // The handle is a CUevent.
  base::Status WhenComplete(const NativeEvent& event, OnDone done) override;
  // CUDA has no event that ends in an error: it is complete, whatever became of the run.
  base::Result<NewEvent> MakeEvent() override;
  bool has_callers_queue() const override { return runtime_.has_callers_stream(); }

 private:
  base::Status CheckAddress(CUdeviceptr address, int64_t size_bytes) const;

  const Runtime& runtime_;
  const std::shared_ptr<Gates> gates_;
  EventWaiter waiter_;
  mutable std::mutex mutex_;
  // Sizes of shared memory by its address for the device. Guarded by mutex_.
  std::map<CUdeviceptr, int64_t> shared_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_SHARING_H_
