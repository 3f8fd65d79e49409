// SPDX-License-Identifier: Apache-2.0
//
// Stream: a command buffer of its own, a new one behind each recording, filled anew once it is
// done. Memory that the host can write is written where it lies, as long as nothing was put in
// that comes before.

#include "backends/vulkan/stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr VkPipelineStageFlags kWork =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kAll = kWrites | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

}  // namespace

Stream::~Stream() {
  recording_ = nullptr;
  static_cast<void>(Finish());
  if (is_open_) Retire(*batch_);
  static_cast<void>(FinishSubmitted());
}

void Stream::Open() {
  if (is_open_) return;
  batch_->opening = runtime_.retirement().Begin();
  is_open_ = true;
}

Result<VkCommandBuffer> Stream::NewCommands() {
  const DeviceApi& api = runtime_.api();
  VkDevice device = runtime_.device();
  Batch& batch = *batch_;
  constexpr std::string_view kDoing = "begin a run";
  if (batch.pool.get() == VK_NULL_HANDLE) {
    VkCommandPoolCreateInfo pool_info{};
    pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool_info.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    pool_info.queueFamilyIndex = runtime_.info().queue_family;
    VkCommandPool pool = VK_NULL_HANDLE;
    ONNXIFI_RETURN_IF_ERROR(
        runtime_.Check(api.CreateCommandPool(device, &pool_info, nullptr, &pool), kDoing));
    batch.pool = {device, pool, api.DestroyCommandPool};
  } else if (batch.used_buffers == 0) {
    ONNXIFI_RETURN_IF_ERROR(
        runtime_.Check(api.ResetCommandPool(device, batch.pool.get(), 0), kDoing));
  }
  if (batch.used_buffers == batch.buffers.size()) {
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = batch.pool.get();
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    batch.buffers.reserve(batch.buffers.size() + 1);
    VkCommandBuffer created = VK_NULL_HANDLE;
    ONNXIFI_RETURN_IF_ERROR(
        runtime_.Check(api.AllocateCommandBuffers(device, &info, &created), kDoing));
    batch.buffers.push_back(created);
  }
  VkCommandBuffer commands = batch.buffers[batch.used_buffers];
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  ONNXIFI_RETURN_IF_ERROR(runtime_.Check(api.BeginCommandBuffer(commands, &begin), kDoing));
  ++batch.used_buffers;
  return commands;
}

Status Stream::Begin() {
  if (is_unsubmitted_) ONNXIFI_RETURN_IF_ERROR(Finish());
  ONNXIFI_RETURN_IF_ERROR(failure_);
  if (target() != VK_NULL_HANDLE) return base::Ok();
  ONNXIFI_ASSIGN_OR_RETURN(commands_, NewCommands());
  Open();
  hazards_.Clear();
  // After whatever was submitted before, by this stream or another.
  Barrier(kWork, kWork, kWrites, kAll);
  return base::Ok();
}

Status Stream::End() {
  if (commands_ == VK_NULL_HANDLE) return failure_;
  Barrier(kWork, VK_PIPELINE_STAGE_HOST_BIT, kWrites, VK_ACCESS_HOST_READ_BIT);
  ended_.push_back(commands_);
  VkCommandBuffer commands = std::exchange(commands_, VK_NULL_HANDLE);
  failure_ = runtime_.Check(runtime_.api().EndCommandBuffer(commands), "end a run");
  return failure_;
}

void Stream::Keep(std::shared_ptr<const void> object) {
  if (recording_ != nullptr) {
    recording_->Keep(std::move(object));
  } else {
    batch_->kept.push_back(std::move(object));
  }
}

Status Stream::CheckNotRecording() const {
  if (recording_ == nullptr) return base::Ok();
  return {Code::kInternalError, "Transfers of the host have no place in a recording."};
}

Status Stream::BeginRecording() {
  ONNXIFI_RETURN_IF_ERROR(CheckNotRecording());
  ONNXIFI_ASSIGN_OR_RETURN(recording_, Recording::Begin(runtime_));
  // After whatever comes before it, this time or another.
  Barrier(kWork, kWork, kWrites, kAll);
  return base::Ok();
}

Result<std::shared_ptr<const Recording>> Stream::EndRecording() {
  if (recording_ == nullptr) return Status(Code::kInternalError, "Nothing is recorded.");
  // It may be the last of its submission.
  Barrier(kWork, VK_PIPELINE_STAGE_HOST_BIT, kWrites, VK_ACCESS_HOST_READ_BIT);
  std::shared_ptr<const Recording> recording = std::exchange(recording_, nullptr);
  ONNXIFI_RETURN_IF_ERROR(
      runtime_.Check(runtime_.api().EndCommandBuffer(recording->commands()), "end a recording"));
  return recording;
}

Status Stream::Replay(std::shared_ptr<const Recording> recording) {
  ONNXIFI_RETURN_IF_ERROR(CheckNotRecording());
  const bool is_awaited = std::ranges::any_of(
      awaited_, [&](const Use& awaited) { return recording->Conflicts(awaited); });
  if (is_awaited) ONNXIFI_RETURN_IF_ERROR(Finish());
  ONNXIFI_RETURN_IF_ERROR(End());
  ended_.reserve(ended_.size() + 1);
  VkCommandBuffer commands = recording->commands();
  batch_->kept.push_back(std::move(recording));
  batch_->kept_in_use = batch_->kept.size();
  ended_.push_back(commands);
  Open();
  return base::Ok();
}

void Stream::Barrier(VkPipelineStageFlags from, VkPipelineStageFlags to, VkAccessFlags from_access,
                     VkAccessFlags to_access) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = from_access;
  barrier.dstAccessMask = to_access;
  runtime_.api().CmdPipelineBarrier(target(), from, to, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

Status Stream::Prepare(std::span<const Use> uses) {
  if (recording_ != nullptr) {
    if (recording_->Add(uses)) Barrier(kWork, kWork, kWrites, kAll);
    return base::Ok();
  }
  // What the host is going to read where it lies is not overwritten before.
  const bool is_awaited = std::ranges::any_of(awaited_, [&](const Use& awaited) {
    return std::ranges::any_of(uses, [&](const Use& use) { return use.Conflicts(awaited); });
  });
  if (is_awaited) ONNXIFI_RETURN_IF_ERROR(Finish());
  ONNXIFI_RETURN_IF_ERROR(Begin());
  if (hazards_.Add(uses)) Barrier(kWork, kWork, kWrites, kAll);
  batch_->kept_in_use = batch_->kept.size();
  return base::Ok();
}

Status Stream::Start(const Dispatch& dispatch, Timestamps* timestamps) {
  const DeviceInfo& info = runtime_.info();
  // As few rows of groups as can be, as even as can be.
  const uint64_t rows = (dispatch.group_count + info.most_groups_x - 1) / info.most_groups_x;
  if (rows > info.most_groups_y) {
    return Status(Code::kNoDeviceResources,
                  "A kernel of " + std::to_string(dispatch.group_count) + " groups exceeds the " +
                      std::to_string(uint64_t{info.most_groups_x} * info.most_groups_y) + " that " +
                      info.name + " starts at a time.");
  }
  if (rows == 0) return base::Ok();
  const uint64_t columns = (dispatch.group_count + rows - 1) / rows;
  ONNXIFI_RETURN_IF_ERROR(Prepare(dispatch.uses));
  const DeviceApi& api = runtime_.api();
  api.CmdBindPipeline(target(), VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline);
  api.CmdPushConstants(target(), runtime_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                       static_cast<uint32_t>(dispatch.constants.size_bytes()),
                       dispatch.constants.data());
  if (timestamps != nullptr) ONNXIFI_RETURN_IF_ERROR(timestamps->Mark(target()).status());
  api.CmdDispatch(target(), static_cast<uint32_t>(columns), static_cast<uint32_t>(rows), 1);
  if (timestamps != nullptr) ONNXIFI_RETURN_IF_ERROR(timestamps->Mark(target()).status());
  return base::Ok();
}

Result<Stream::Staged> Stream::Stage(int64_t wanted_bytes) {
  int64_t size_bytes = std::min(wanted_bytes, kStagingPieceBytes);
  if (staged_bytes_ + size_bytes > kMaxStagedBytes) ONNXIFI_RETURN_IF_ERROR(Finish());
  Result<std::unique_ptr<device::Allocation>> piece = heap_.Allocate(Purpose::kStaging, size_bytes);
  const auto is_used_up = [&] {
    return !piece.ok() && piece.status().code() == Code::kNoDeviceResources;
  };
  if (is_used_up() && staged_bytes_ > 0) {
    // Nobody waits for others, who may wait for what this stream has.
    ONNXIFI_RETURN_IF_ERROR(Finish());
    piece = heap_.Allocate(Purpose::kStaging, size_bytes);
  }
  if (is_used_up()) {
    size_bytes = std::min(size_bytes, kLastPieceBytes);
    piece = heap_.Allocate(Purpose::kLastStaging, size_bytes);
  }
  if (!piece.ok()) return std::move(piece).status();
  ONNXIFI_ASSIGN_OR_RETURN(const Heap::Location place, heap_.Find((*piece)->data()));
  staged_bytes_ += size_bytes;
  Keep(*std::move(piece));
  return Staged{place, size_bytes};
}

void Stream::RecordCopy(const Heap::Location& from, const Heap::Location& to, int64_t size_bytes) {
  const VkBufferCopy region{static_cast<VkDeviceSize>(from.offset_bytes),
                            static_cast<VkDeviceSize>(to.offset_bytes),
                            static_cast<VkDeviceSize>(size_bytes)};
  runtime_.api().CmdCopyBuffer(target(), from.buffer, to.buffer, 1, &region);
}

Status Stream::Upload(const std::byte* from_host, std::byte* to, int64_t size_bytes) {
  if (size_bytes == 0) return base::Ok();
  ONNXIFI_RETURN_IF_ERROR(CheckNotRecording());
  ONNXIFI_ASSIGN_OR_RETURN(Heap::Location place, heap_.Find(to));
  Reap();
  if (place.mapped != nullptr && !is_open_ && submitted_.empty()) {
    std::memcpy(place.mapped, from_host, static_cast<size_t>(size_bytes));
    return base::Ok();
  }
  for (int64_t done = 0; done < size_bytes;) {
    ONNXIFI_ASSIGN_OR_RETURN(const Staged staged, Stage(size_bytes - done));
    std::memcpy(staged.place.mapped, from_host + done, static_cast<size_t>(staged.size_bytes));
    const std::array<Use, 1> uses = {Use::Of(to + done, staged.size_bytes, /*is_written=*/true)};
    ONNXIFI_RETURN_IF_ERROR(Prepare(uses));
    RecordCopy(staged.place, place, staged.size_bytes);
    place.offset_bytes += staged.size_bytes;
    done += staged.size_bytes;
  }
  return base::Ok();
}

Status Stream::Download(const std::byte* from, std::byte* to_host, int64_t size_bytes) {
  if (size_bytes == 0) return base::Ok();
  ONNXIFI_RETURN_IF_ERROR(CheckNotRecording());
  ONNXIFI_ASSIGN_OR_RETURN(Heap::Location place, heap_.Find(from));
  if (place.mapped != nullptr && runtime_.info().memory_types.device.is_cached) {
    // The end of the submission is the order of things.
    Open();
    arrivals_.push_back({place.mapped, to_host, size_bytes});
    awaited_.push_back(Use::Of(from, size_bytes, /*is_written=*/false));
    return base::Ok();
  }
  for (int64_t done = 0; done < size_bytes;) {
    ONNXIFI_ASSIGN_OR_RETURN(const Staged staged, Stage(size_bytes - done));
    const std::array<Use, 1> uses = {Use::Of(from + done, staged.size_bytes, /*is_written=*/false)};
    ONNXIFI_RETURN_IF_ERROR(Prepare(uses));
    RecordCopy(place, staged.place, staged.size_bytes);
    arrivals_.push_back({staged.place.mapped, to_host + done, staged.size_bytes});
    place.offset_bytes += staged.size_bytes;
    done += staged.size_bytes;
  }
  return base::Ok();
}

Status Stream::Copy(const std::byte* from, std::byte* to, int64_t size_bytes) {
  if (size_bytes == 0) return base::Ok();
  ONNXIFI_ASSIGN_OR_RETURN(const Heap::Location source, heap_.Find(from));
  ONNXIFI_ASSIGN_OR_RETURN(const Heap::Location target, heap_.Find(to));
  const std::array<Use, 2> uses = {Use::Of(from, size_bytes, /*is_written=*/false),
                                   Use::Of(to, size_bytes, /*is_written=*/true)};
  ONNXIFI_RETURN_IF_ERROR(Prepare(uses));
  RecordCopy(source, target, size_bytes);
  return base::Ok();
}

Result<uint64_t> Stream::HandOver(Until until) {
  if (!is_unsubmitted_) {
    // What is awaited may be the work of other streams alone.
    if (ended_.empty()) ONNXIFI_RETURN_IF_ERROR(Begin());
    ONNXIFI_RETURN_IF_ERROR(End());
    is_unsubmitted_ = true;
  }
  if (before_submission_) ONNXIFI_RETURN_IF_ERROR(before_submission_(until));
  ONNXIFI_ASSIGN_OR_RETURN(const uint64_t submission, runtime_.Submit(ended_));
  is_unsubmitted_ = false;
  ++submission_count_;
  return submission;
}

Status Stream::Complete(Until until) {
  ONNXIFI_RETURN_IF_ERROR(CheckNotRecording());
  Reap();
  if (!is_open_) return until == Until::kDone ? FinishSubmitted() : base::Ok();
  // What is under way is not lost for want of memory.
  std::unique_ptr<Batch> next;
  const bool is_left = until == Until::kSubmitted && arrivals_.empty();
  if (is_left) next = NextBatch();
  Result<uint64_t> submission = HandOver(until);
  Status status = submission.ok() ? base::Ok() : std::move(submission).status();
  if (status.ok() && is_left) {
    batch_->submission = *submission;
    submitted_.push_back(std::exchange(batch_, std::move(next)));
    Clear();
    return base::Ok();
  }
  if (status.ok()) status = runtime_.Wait(*submission);
  // A submission that fails for want of memory changes nothing.
  const bool is_kept = is_unsubmitted_ && unsubmitted_ == Unsubmitted::kKept;
  if (!status.ok() && is_kept && status.code() != Code::kBackendUnavailable) return status;
  if (status.ok()) {
    for (const Arrival& arrival : arrivals_) {
      std::memcpy(arrival.to_host, arrival.from, static_cast<size_t>(arrival.size_bytes));
    }
  } else {
    lost_ = status;
  }
  Retire(*batch_);
  Clear();
  Reap();
  return status;
}

std::unique_ptr<Stream::Batch> Stream::NextBatch() {
  submitted_.reserve(submitted_.size() + 1);
  std::unique_ptr<Batch> next;
  if (spare_.empty()) {
    next = std::make_unique<Batch>();
  } else {
    next = std::move(spare_.back());
    spare_.pop_back();
  }
  return next;
}

Status Stream::FinishSubmitted() {
  if (submitted_.empty()) return base::Ok();
  Status status = runtime_.Wait(submitted_.back()->submission);
  if (!status.ok()) lost_ = status;
  // The device is done with it, or lost.
  for (const std::unique_ptr<Batch>& batch : submitted_) Retire(*batch);
  submitted_.clear();
  return status;
}

void Stream::Reap() {
  size_t done = 0;
  while (done < submitted_.size() && runtime_.IsDone(submitted_[done]->submission)) ++done;
  for (size_t k = 0; k < done; ++k) {
    Retire(*submitted_[k]);
    spare_.push_back(std::move(submitted_[k]));
  }
  submitted_.erase(submitted_.begin(), submitted_.begin() + static_cast<ptrdiff_t>(done));
}

void Stream::Retire(Batch& batch) {
  runtime_.retirement().End(batch.opening);
  batch.used_buffers = 0;
  batch.kept.erase(batch.kept.begin(),
                   batch.kept.begin() + static_cast<ptrdiff_t>(batch.kept_in_use));
  batch.kept_in_use = 0;
}

void Stream::Clear() {
  is_open_ = false;
  is_unsubmitted_ = false;
  commands_ = VK_NULL_HANDLE;
  ended_.clear();
  failure_ = base::Ok();
  arrivals_.clear();
  awaited_.clear();
  staged_bytes_ = 0;
}

}  // namespace onnxifi::vulkan
