// SPDX-License-Identifier: Apache-2.0
//
// Queue: one run's way into the device's stream. What it records becomes a CUDA graph
// (graph_recorder.h) and is no work of the stream's, so that other threads work meanwhile.

#ifndef ONNXIFI_BACKENDS_CUDA_QUEUE_H_
#define ONNXIFI_BACKENDS_CUDA_QUEUE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/device/recording_queue.h"
#include "backends/core/device/timed_queue.h"
#include "backends/cuda/captures.h"
#include "backends/cuda/copies.h"
#include "backends/cuda/graph_recorder.h"
#include "backends/cuda/runtime.h"

namespace onnxifi::cuda {

// The launch in a stream, outside of any recording.
CUresult LaunchKernel(const Api& api, const CUDA_KERNEL_NODE_PARAMS& launch, CUstream stream);

class Recording final : public device::Recording {
 public:
  Recording(GraphRecorder::Recorded recorded, std::vector<std::shared_ptr<const void>> kept)
      : kept_(std::move(kept)), recorded_(std::move(recorded)) {}
  CUgraph graph() const { return recorded_.graph.get(); }
  CUgraphExec executable() const { return recorded_.executable.get(); }

 private:
  const std::vector<std::shared_ptr<const void>> kept_;  // outlives the graph
  const GraphRecorder::Recorded recorded_;
};

class Queue final : public device::TimedQueue, public device::RecordingQueue {
 public:
  // All outlive it.
  static base::Result<std::unique_ptr<Queue>> Create(const Runtime& runtime,
                                                     device::StagingPool& pool, Captures& captures);
  ~Queue() override;

  base::Status Upload(const std::byte* from_host, std::byte* to, int64_t size_bytes) override;
  base::Status Download(const std::byte* from, std::byte* to_host, int64_t size_bytes) override;
  base::Status Copy(const std::byte* from, std::byte* to, int64_t size_bytes) override;
  base::Status Submit() override;
  base::Status Finish() override;
  void Keep(std::shared_ptr<const void> object) override { kept_.push_back(std::move(object)); }
  bool FindCapture() override;
  bool is_captured() const override { return is_captured_; }
  // Launches; copies are none.
  int64_t submission_count() const override { return submission_count_; }

  // Puts in a kernel that uses this memory.
  base::Status Start(std::string_view doing, const CUDA_KERNEL_NODE_PARAMS& launch,
                     std::span<const device::MemoryUse> uses);
  // The same of what `put(stream)` puts into a stream.
  base::Status Call(std::string_view doing, std::span<const device::MemoryUse> uses,
                    const std::function<CUresult(CUstream)>& put);

  base::Result<bool> StartTiming() override;
  void OpenInterval() override;
  void CloseInterval() override { is_timing_ = false; }
  base::Result<std::vector<Interval>> TakeIntervals() override;

  base::Status BeginRecording() override;
  base::Result<std::shared_ptr<const device::Recording>> EndRecording() override;
  base::Status Replay(std::shared_ptr<const device::Recording> recording) override;

 private:
  Queue(const Runtime& runtime, device::StagingPool& pool, Captures& captures)
      : runtime_(runtime), captures_(captures), copies_(runtime, pool) {}

  // Puts in what `call(stream)` does. The first error is also Finish's.
  template <typename Call>
  base::Status Put(std::string_view doing, const Call& call) {
    if (!is_begun_) ONNXIFI_RETURN_IF_ERROR(Begin());
    return Noted(runtime_.Do(doing, [&] { return call(runtime_.stream()); }));
  }
  base::Status Noted(base::Status status) {
    if (!status.ok() && first_error_.ok()) first_error_ = status;
    return status;
  }
  // As Put, of a kernel or of a recording.
  template <typename Call>
  base::Status Launch(std::string_view doing, const Call& call) {
    if (is_captured_) return Put(doing, call);
    ++submission_count_;
    if (is_timing_) ONNXIFI_RETURN_IF_ERROR(MarkBegin());
    base::Status status = Put(doing, call);
    if (is_timing_ && status.ok()) status = MarkEnd();
    return status;
  }

  // Of a run: the stream takes work.
  base::Status Begin();
  // As Begin, if need be; not while work is recorded or captured.
  base::Status BeginHostCopy();
  base::Status RecordEnd();
  base::Status WaitForEnd();
  // Of a run that is captured.
  CUresult AddToCapture(const Recording& recording) const;
  void EndCaptured();
  base::Status MarkBegin();
  base::Status MarkEnd();

  struct TimedStep {
    Clock::time_point opened;
    Handle<CUevent> begin;  // before its first kernel
    Handle<CUevent> end;    // behind its last
  };

  const Runtime& runtime_;
  Captures& captures_;
  Copies copies_;
  Handle<CUevent> end_;
  std::unique_ptr<GraphRecorder> recorder_;  // null: nothing is recorded
  bool is_begun_ = false;                    // something of this run was put in
  bool is_under_way_ = false;                // something was put in that nobody has waited for
  bool is_timing_ = false;                   // within an interval
  bool is_captured_ = false;                 // the run goes into the caller's graph
  int64_t submission_count_ = 0;
  base::Status first_error_ = base::Ok();
  std::vector<std::shared_ptr<const void>> kept_;
  // Of runs that were submitted; each once.
  std::vector<std::shared_ptr<const void>> submitted_;
  // Of the runs under way, while a recording has `kept_`.
  std::vector<std::shared_ptr<const void>> kept_by_runs_;
  std::vector<TimedStep> intervals_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_QUEUE_H_
