// SPDX-License-Identifier: Apache-2.0
//
// Sharing: the caller's buffers, events and queue as the kit sees them.

#ifndef ONNXIFI_BACKENDS_OPENCL_SHARING_H_
#define ONNXIFI_BACKENDS_OPENCL_SHARING_H_

#include <cstdint>
#include <memory>

#include "backends/core/device/sharing.h"
#include "backends/opencl/memory.h"
#include "backends/opencl/runtime.h"

namespace onnxifi::opencl {

class Sharing final : public device::Sharing {
 public:
  // Both outlive it.
  Sharing(const Runtime& runtime, Memory& memory) : runtime_(runtime), memory_(memory) {}

  // `handle` is a cl_mem.
  base::Result<std::unique_ptr<device::Allocation>> ImportMemory(uint64_t handle,
                                                                 int64_t size_bytes,
                                                                 Access access) override;
  base::Result<SharedMemory> AllocateShared(int64_t size_bytes) override;
  // The handle is a cl_event. What it belongs to is flushed.
  base::Status WhenComplete(const NativeEvent& native, OnDone done) override;
  base::Result<NewEvent> MakeEvent() override;
  bool has_callers_queue() const override { return runtime_.shares_queue(); }

 private:
  const Runtime& runtime_;
  Memory& memory_;
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_SHARING_H_
