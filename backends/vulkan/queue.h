// SPDX-License-Identifier: Apache-2.0
//
// Queue: one run's stream, and the times of its kernels where they are timed.

#ifndef ONNXIFI_BACKENDS_VULKAN_QUEUE_H_
#define ONNXIFI_BACKENDS_VULKAN_QUEUE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "backends/core/device/recording_queue.h"
#include "backends/core/device/timed_queue.h"
#include "backends/vulkan/loading.h"
#include "backends/vulkan/stream.h"
#include "backends/vulkan/timestamps.h"

namespace onnxifi::vulkan {

class Queue final : public device::TimedQueue, public device::RecordingQueue {
 public:
  // All outlive it.
  Queue(Runtime& runtime, Heap& heap, Loading& loading)
      : runtime_(runtime),
        timestamps_(runtime),
        stream_(
            runtime, heap, [&loading](Stream::Until until) { return loading.Complete(until); },
            Stream::Unsubmitted::kDropped) {}

  base::Status Upload(const std::byte* from_host, std::byte* to, int64_t size_bytes) override {
    return stream_.Upload(from_host, to, size_bytes);
  }
  base::Status Download(const std::byte* from, std::byte* to_host, int64_t size_bytes) override {
    return stream_.Download(from, to_host, size_bytes);
  }
  base::Status Copy(const std::byte* from, std::byte* to, int64_t size_bytes) override {
    return stream_.Copy(from, to, size_bytes);
  }
  base::Status Submit() override { return stream_.Submit(); }
  base::Status Finish() override { return stream_.Finish(); }
  void Keep(std::shared_ptr<const void> object) override { stream_.Keep(std::move(object)); }
  int64_t submission_count() const override { return stream_.submission_count(); }

  base::Result<bool> StartTiming() override;
  void OpenInterval() override;
  void CloseInterval() override { is_timing_ = false; }
  base::Result<std::vector<Interval>> TakeIntervals() override;

  base::Status BeginRecording() override { return stream_.BeginRecording(); }
  base::Result<std::shared_ptr<const device::Recording>> EndRecording() override {
    ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const Recording> recording, stream_.EndRecording());
    return std::shared_ptr<const device::Recording>(std::move(recording));
  }
  base::Status Replay(std::shared_ptr<const device::Recording> recording) override {
    // Devices of this backend make no others.
    return stream_.Replay(std::static_pointer_cast<const Recording>(std::move(recording)));
  }

  base::Status Start(const Dispatch& dispatch);

  const Stream& stream() const { return stream_; }

 private:
  struct TimedStep {
    Clock::time_point opened;
    // Its kernels have two marks each, the first of them and the one behind the last.
    uint32_t first_mark = 0;
    uint32_t end_mark = 0;
  };

  Runtime& runtime_;
  bool is_timing_ = false;  // within an interval
  std::vector<TimedStep> intervals_;
  Timestamps timestamps_;
  Stream stream_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_QUEUE_H_
