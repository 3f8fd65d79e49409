// SPDX-License-Identifier: Apache-2.0
//
// Queue: one run's way into the device's command queue, and the events of its kernels where they
// are timed.

#ifndef ONNXIFI_BACKENDS_OPENCL_QUEUE_H_
#define ONNXIFI_BACKENDS_OPENCL_QUEUE_H_

#include <vector>

#include "backends/core/device/timed_queue.h"
#include "backends/opencl/memory.h"
#include "backends/opencl/runtime.h"

namespace onnxifi::opencl {

// Puts a kernel whose arguments are set into the device's queue, with as many items as `group_size`
// divides. `event` may be null.
base::Status StartKernel(Runtime& runtime, cl_kernel kernel, size_t items, size_t group_size,
                         cl_event* event = nullptr);

class Queue final : public device::TimedQueue {
 public:
  // Both outlive it.
  Queue(Runtime& runtime, const Memory& memory) : runtime_(runtime), memory_(memory) {}
  ~Queue() override;

  base::Status Upload(const std::byte* from_host, std::byte* to, int64_t size_bytes) override;
  base::Status UploadCopy(std::span<const std::byte> from_host, std::byte* to) override;
  base::Status Download(const std::byte* from, std::byte* to_host, int64_t size_bytes) override;
  base::Status Copy(const std::byte* from, std::byte* to, int64_t size_bytes) override;
  base::Status Finish() override;

  base::Result<bool> StartTiming() override;
  void OpenInterval() override;
  void CloseInterval() override;
  base::Result<std::vector<Interval>> TakeIntervals() override;

  // As StartKernel.
  base::Status Start(cl_kernel kernel, size_t items, size_t group_size);

 private:
  struct TimedStep {
    Clock::time_point opened;
    std::vector<Handle<cl_event>> kernels;
  };

  // Something was put in, which Finish has to wait for.
  void MarkUsed() { is_used_ = true; }

  Runtime& runtime_;
  const Memory& memory_;
  bool is_used_ = false;
  bool is_timing_ = false;  // within an interval
  std::vector<TimedStep> intervals_;
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_QUEUE_H_
