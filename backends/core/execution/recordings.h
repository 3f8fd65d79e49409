// SPDX-License-Identifier: Apache-2.0
//
// Recordings: what the runs of a graph put into queues that record (device/recording_queue.h): what
// a segment puts in for one binding and one set of addresses is recorded at its second run, or at
// the first that the caller captures, and replayed from then on. A few of each segment are kept,
// those that were used last. A recording goes before anything that it names: it keeps its binding,
// and whoever gives memory back says so before.

#ifndef ONNXIFI_BACKENDS_CORE_EXECUTION_RECORDINGS_H_
#define ONNXIFI_BACKENDS_CORE_EXECUTION_RECORDINGS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/core/device/device.h"
#include "backends/core/device/recording_queue.h"
#include "backends/core/plan/counters.h"
#include "backends/core/plan/plan.h"

namespace onnxifi::execution {

// Any thread.
class Recordings {
 public:
  // Per segment.
  static constexpr int kMaxRecordings = 8;

  // Of a graph of so many segments. `counters` outlives it.
  Recordings(plan::Counters& counters, size_t segments)
      : counters_(counters), max_recordings_(kMaxRecordings * std::max<size_t>(segments, 1)) {}

  // What a segment puts in: its kernels, at `addresses` by BufferId. `buffers` are all that they
  // touch, less the constants.
  struct PlacedSegment {
    const std::shared_ptr<const plan::SegmentBinding>& binding;
    device::Addresses addresses;
    std::span<const program::BufferId> buffers;
  };
  // True: the segment is in the queue. False: nothing of it is, because it is not recorded (yet) or
  // because a recording failed, and it is to be put in as it is.
  bool Enqueue(device::Queue& queue, const PlacedSegment& segment);

  // Drops what names any of this memory, which goes after that.
  void Forget(const std::byte* begin, int64_t size_bytes);
  void Clear();

  // Those that are kept, for tests.
  int count() const;

 private:
  struct Entry {
    std::shared_ptr<const plan::SegmentBinding> binding;
    std::vector<std::byte*> addresses;                   // by place in the segment's buffers
    std::shared_ptr<const device::Recording> recording;  // null: it ran once
  };
  std::list<Entry>::iterator Find(const Entry& key);
  // Null if any of it fails.
  static std::shared_ptr<const device::Recording> Record(device::Queue& queue,
                                                         device::RecordingQueue& recorder,
                                                         const PlacedSegment& segment);
  void Keep(Entry entry);
  void Drop(const Entry& key);

  plan::Counters& counters_;
  const size_t max_recordings_;
  // Entries also end under it: whoever is told that there is none left for his memory gives it
  // back.
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the one that was used last first
};

}  // namespace onnxifi::execution

#endif  // ONNXIFI_BACKENDS_CORE_EXECUTION_RECORDINGS_H_
