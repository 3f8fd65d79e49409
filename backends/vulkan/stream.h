// SPDX-License-Identifier: Apache-2.0
//
// Stream: commands that are recorded one behind the other and submitted together, and the transfers
// between host and device. Barriers stand where hazards.h finds one necessary.

#ifndef ONNXIFI_BACKENDS_VULKAN_STREAM_H_
#define ONNXIFI_BACKENDS_VULKAN_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backends/vulkan/hazards.h"
#include "backends/vulkan/heap.h"
#include "backends/vulkan/runtime.h"
#include "backends/vulkan/timestamps.h"

namespace onnxifi::vulkan {

// One start of a pipeline.
struct Dispatch {
  VkPipeline pipeline = VK_NULL_HANDLE;
  std::span<const uint64_t> constants;
  uint64_t group_count = 0;
  std::span<const Use> uses;
};

// One thread at a time.
class Stream {
 public:
  // What becomes of commands that cannot be submitted: gone with the status, or kept for the next
  // Finish.
  enum class Unsubmitted : uint8_t { kDropped, kKept };

  // Both outlive it. `before_submission`: what is to be submitted first; may be empty.
  Stream(Runtime& runtime, Heap& heap, std::function<base::Status()> before_submission,
         Unsubmitted unsubmitted)
      : runtime_(runtime),
        heap_(heap),
        before_submission_(std::move(before_submission)),
        unsubmitted_(unsubmitted) {}
  // Waits for what is under way.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // `timestamps`, if any, gets a mark before and one behind the kernel.
  base::Status Start(const Dispatch& dispatch, Timestamps* timestamps = nullptr);
  base::Status Upload(const std::byte* from_host, std::byte* to, int64_t size_bytes);
  // `to_host` is filled by Finish.
  base::Status Download(const std::byte* from, std::byte* to_host, int64_t size_bytes);
  base::Status Copy(const std::byte* from, std::byte* to, int64_t size_bytes);
  // What commands use and nobody else may hold until they are done: memory, a pipeline.
  void Keep(std::shared_ptr<const void> object) { kept_.push_back(std::move(object)); }

  // Submits what was recorded and returns when it is done.
  base::Status Finish();
  bool is_empty() const { return !is_recording_; }
  // Not ok once commands were recorded that Finish could not have carried out.
  const base::Status& lost() const { return lost_; }

  // Barriers and submissions so far, for tests.
  int64_t barrier_count() const { return barrier_count_; }
  int64_t submission_count() const { return submission_count_; }

 private:
  // Of what lies in staging memory at a time, and of one piece of it.
  static constexpr int64_t kMaxStagedBytes = int64_t{32} << 20;
  static constexpr int64_t kStagingPieceBytes = int64_t{8} << 20;

  struct Arrival {
    const std::byte* from;
    std::byte* to_host;
    int64_t size_bytes;
  };

  base::Status Begin();
  base::Status SubmitAndWait();
  // Of a recording that is done with.
  void Forget();
  // Before a command with these uses: begins a recording, and puts in a barrier where one is due.
  base::Status Prepare(std::span<const Use> uses);
  void Barrier(VkPipelineStageFlags from, VkPipelineStageFlags to, VkAccessFlags from_access,
               VkAccessFlags to_access);
  // A mapped piece, which stays until Finish; Finish comes first where too much is staged.
  base::Result<Heap::Location> Stage(int64_t size_bytes);
  void RecordCopy(const Heap::Location& from, const Heap::Location& to, int64_t size_bytes);

  Runtime& runtime_;
  Heap& heap_;
  const std::function<base::Status()> before_submission_;
  const Unsubmitted unsubmitted_;
  Handle<VkCommandPool> pool_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  bool is_recording_ = false;
  bool is_ended_ = false;  // but not submitted
  uint64_t recording_ = 0;
  Hazards hazards_;
  std::vector<std::shared_ptr<const void>> kept_;
  size_t kept_in_use_ = 0;  // the first of them; the others are the next command's
  int64_t staged_bytes_ = 0;
  std::vector<Arrival> arrivals_;
  std::vector<Use> awaited_;  // what the host reads where it lies, at Finish
  base::Status lost_;
  int64_t barrier_count_ = 0;
  int64_t submission_count_ = 0;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_STREAM_H_
