// SPDX-License-Identifier: Apache-2.0
//
// Recordings: a list of segments, searched from the one that was used last. A recording that fails
// is no failed run: the segment is put in as it is, and its status is the run's.

#include "backends/core/execution/recordings.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace onnxifi::execution {
namespace {

// Ends a recording whichever way its scope is left.
class OpenRecording {
 public:
  explicit OpenRecording(device::RecordingQueue& recorder) : recorder_(&recorder) {}
  ~OpenRecording() {
    if (recorder_ != nullptr) static_cast<void>(recorder_->EndRecording());
  }
  OpenRecording(const OpenRecording&) = delete;
  OpenRecording& operator=(const OpenRecording&) = delete;

  base::Result<std::shared_ptr<const device::Recording>> End() {
    return std::exchange(recorder_, nullptr)->EndRecording();
  }

 private:
  device::RecordingQueue* recorder_;
};

}  // namespace

bool Recordings::Enqueue(device::Queue& queue, const PlacedSegment& segment) {
  auto* const recorder = dynamic_cast<device::RecordingQueue*>(&queue);
  if (recorder == nullptr) return false;
  Entry entry;
  entry.binding = segment.binding;
  entry.addresses.reserve(segment.buffers.size());
  for (const program::BufferId buffer : segment.buffers) {
    entry.addresses.push_back(segment.addresses[static_cast<size_t>(buffer)]);
  }
  bool has_run = false;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = Find(entry); found != entries_.end()) {
      has_run = true;
      entry.recording = found->recording;
      entries_.splice(entries_.begin(), entries_, found);
    }
  }
  if (!has_run && !queue.is_captured()) {
    Keep(std::move(entry));
    return false;
  }
  const bool is_new = entry.recording == nullptr;
  if (is_new) entry.recording = Record(queue, *recorder, segment);
  if (entry.recording == nullptr || !recorder->Replay(entry.recording).ok()) {
    Drop(entry);
    return false;
  }
  if (is_new) {
    ++counters_.recordings;
    Keep(std::move(entry));
  }
  return true;
}

std::shared_ptr<const device::Recording> Recordings::Record(device::Queue& queue,
                                                            device::RecordingQueue& recorder,
                                                            const PlacedSegment& segment) {
  if (!recorder.BeginRecording().ok()) return nullptr;
  OpenRecording open(recorder);
  // Commands that are under way may be the last to need it.
  queue.Keep(segment.binding);
  for (const std::unique_ptr<device::BoundKernel>& kernel : segment.binding->kernels) {
    if (kernel != nullptr && !kernel->Enqueue(queue, segment.addresses).ok()) return nullptr;
  }
  auto recording = open.End();
  return recording.ok() ? *std::move(recording) : nullptr;
}

std::list<Recordings::Entry>::iterator Recordings::Find(const Entry& key) {
  return std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.binding == key.binding && entry.addresses == key.addresses;
  });
}

void Recordings::Keep(Entry entry) {
  const std::lock_guard lock(mutex_);
  if (const auto found = Find(entry); found != entries_.end()) entries_.erase(found);
  entries_.push_front(std::move(entry));
  // Entries of segments that ran once are as few, so that extents in turn, more than are kept, are
  // put in as they are and not recorded again and again.
  const size_t max_entries = 2 * max_recordings_;
  size_t recordings = 0;
  size_t count = 0;
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto next = std::next(at);
    if (at->recording != nullptr) ++recordings;
    ++count;
    if (count > max_entries || (at->recording != nullptr && recordings > max_recordings_)) {
      entries_.erase(at);
    }
    at = next;
  }
}

void Recordings::Drop(const Entry& key) {
  const std::lock_guard lock(mutex_);
  if (const auto found = Find(key); found != entries_.end()) entries_.erase(found);
}

void Recordings::Forget(const std::byte* begin, int64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto next = std::next(at);
    const bool names_it = std::ranges::any_of(at->addresses, [&](const std::byte* address) {
      return std::less_equal<>()(begin, address) && std::less<>()(address, begin + size_bytes);
    });
    if (names_it) entries_.erase(at);
    at = next;
  }
}

void Recordings::Clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

int Recordings::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::ranges::count_if(
      entries_, [](const Entry& entry) { return entry.recording != nullptr; }));
}

}  // namespace onnxifi::execution
