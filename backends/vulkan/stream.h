// SPDX-License-Identifier: Apache-2.0
//
// Stream: commands that are put in one behind the other and submitted together, recordings among
// them, and the transfers between host and device. Barriers stand where hazards.h finds one
// necessary.

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
#include "backends/vulkan/recording.h"
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
  // When a call returns: once all is done, or once all is in the device's queue.
  enum class Until : uint8_t { kDone, kSubmitted };
  using Before = std::function<base::Status(Until until)>;

  // Both outlive it. `before_submission`: what is to be submitted first; may be empty.
  Stream(Runtime& runtime, Heap& heap, Before before_submission, Unsubmitted unsubmitted)
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
  // Objects of a recording stay as long as that.
  void Keep(std::shared_ptr<const void> object);

  // As device::RecordingQueue. Other streams go on meanwhile.
  base::Status BeginRecording();
  base::Result<std::shared_ptr<const Recording>> EndRecording();
  base::Status Replay(std::shared_ptr<const Recording> recording);

  // Submits what was put in and returns when it is done, with all that was submitted before.
  base::Status Finish() { return Complete(Until::kDone); }
  // Submits what was put in. Waits as Finish does where the host has to copy what was downloaded.
  base::Status Submit() { return Complete(Until::kSubmitted); }
  // Not ok once commands were put in that Finish could not have carried out.
  const base::Status& lost() const { return lost_; }

  // Submissions so far.
  int64_t submission_count() const { return submission_count_; }

 private:
  // Of what lies in staging memory at a time, and of one piece of it.
  static constexpr int64_t kMaxStagedBytes = int64_t{32} << 20;
  static constexpr int64_t kStagingPieceBytes = int64_t{8} << 20;
  static constexpr int64_t kLastPieceBytes = int64_t{64} << 10;

  struct Arrival {
    const std::byte* from;
    std::byte* to_host;
    int64_t size_bytes;
  };

  // Commands of this stream's own that are submitted together, and what they and the recordings
  // among them keep.
  struct Batch {
    std::vector<std::shared_ptr<const void>> kept;
    size_t kept_in_use = 0;  // the first of them; the others are the next command's
    Handle<VkCommandPool> pool;
    std::vector<VkCommandBuffer> buffers;  // of the pool
    size_t used_buffers = 0;
    uint64_t opening = 0;     // its number in the runtime's retirement
    uint64_t submission = 0;  // once it is submitted
  };

  // Something is to be submitted.
  void Open();
  // Begins commands of this stream's own, where there are none.
  base::Status Begin();
  base::Result<VkCommandBuffer> NewCommands();
  // Ends them. What failed here or is put in afterwards fails at Finish.
  base::Status End();
  base::Status Complete(Until until);
  // The number to wait for.
  base::Result<uint64_t> HandOver(Until until);
  // One that may follow, with room for the one before it among those that are submitted.
  std::unique_ptr<Batch> NextBatch();
  // Waits for what was submitted and not waited for.
  base::Status FinishSubmitted();
  // Gives up what is done of it.
  void Reap();
  // Gives up what a batch that is done, or lost, has.
  void Retire(Batch& batch);
  // Of what was submitted, or is lost.
  void Clear();
  // INTERNAL_ERROR while something is recorded.
  base::Status CheckNotRecording() const;
  // Before a command with these uses: begins commands, and puts in a barrier where one is due.
  base::Status Prepare(std::span<const Use> uses);
  // Where the next command goes.
  VkCommandBuffer target() const {
    return recording_ != nullptr ? recording_->commands() : commands_;
  }
  void Barrier(VkPipelineStageFlags from, VkPipelineStageFlags to, VkAccessFlags from_access,
               VkAccessFlags to_access);
  // A mapped piece of at most `wanted_bytes`, which stays until Finish; Finish comes first where
  // too much is staged. A stream that finds the staging memory of all with others gets a small one.
  struct Staged {
    Heap::Location place;
    int64_t size_bytes = 0;
  };
  base::Result<Staged> Stage(int64_t wanted_bytes);
  void RecordCopy(const Heap::Location& from, const Heap::Location& to, int64_t size_bytes);

  Runtime& runtime_;
  Heap& heap_;
  const Before before_submission_;
  const Unsubmitted unsubmitted_;
  std::unique_ptr<Batch> batch_ = std::make_unique<Batch>();  // that is put together
  std::vector<std::unique_ptr<Batch>> submitted_;             // and not known to be done, in order
  std::vector<std::unique_ptr<Batch>> spare_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;  // begun and not ended; null: none
  std::vector<VkCommandBuffer> ended_;         // to be submitted, with those of recordings
  base::Status failure_;                       // of ending commands
  bool is_open_ = false;
  bool is_unsubmitted_ = false;           // what was put in has ended, and could not be submitted
  std::shared_ptr<Recording> recording_;  // what is put in goes there; null: none
  Hazards hazards_;                       // of commands_
  int64_t staged_bytes_ = 0;
  std::vector<Arrival> arrivals_;
  std::vector<Use> awaited_;  // what the host reads where it lies, at Finish
  base::Status lost_;
  int64_t submission_count_ = 0;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_STREAM_H_
