// SPDX-License-Identifier: Apache-2.0
//
// Queue: one run's way into the device's command queue.

#ifndef ONNXIFI_BACKENDS_OPENCL_QUEUE_H_
#define ONNXIFI_BACKENDS_OPENCL_QUEUE_H_

#include "backends/core/device/device.h"
#include "backends/opencl/memory.h"
#include "backends/opencl/runtime.h"

namespace onnxifi::opencl {

class Queue final : public device::Queue {
 public:
  // Both outlive it.
  Queue(Runtime& runtime, const Memory& memory) : runtime_(runtime), memory_(memory) {}
  ~Queue() override;

  base::Status Upload(const std::byte* from_host, std::byte* to, int64_t size_bytes) override;
  base::Status Download(const std::byte* from, std::byte* to_host, int64_t size_bytes) override;
  base::Status Copy(const std::byte* from, std::byte* to, int64_t size_bytes) override;
  base::Status Finish() override;

  // Says that something was put in, which Finish has to wait for.
  void MarkUsed() { is_used_ = true; }

 private:
  Runtime& runtime_;
  const Memory& memory_;
  bool is_used_ = false;
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_QUEUE_H_
