// SPDX-License-Identifier: Apache-2.0
//
// Staging: the way of pageable host memory to and from a device: through chunks of pinned memory in
// a ring, so that the host fills or empties one while the device copies another. A backend says how
// its driver makes and copies them (StagingDriver).

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_STAGING_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_STAGING_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::device {

// Pinned memory, and a mark that can be put behind copies.
class StagingChunk {
 public:
  // The driver is done with it by then, or waits.
  virtual ~StagingChunk() = default;
  virtual std::byte* memory() = 0;
};

// A device's queue, as staging uses it.
class StagingDriver {
 public:
  virtual ~StagingDriver() = default;
  // Null: the driver has no more to give.
  virtual std::unique_ptr<StagingChunk> MakeChunk(size_t size_bytes) = 0;
  // Put a copy into the queue; host memory that is no chunk's is copied as the driver does it.
  virtual base::Status Upload(const std::byte* from_host, std::byte* to, size_t size_bytes) = 0;
  virtual base::Status Download(const std::byte* from, std::byte* to_host, size_t size_bytes) = 0;
  // Puts the chunk's mark behind what is in the queue.
  virtual base::Status Mark(StagingChunk& chunk) = 0;
  // Of what is before the mark.
  virtual base::Result<bool> IsDone(StagingChunk& chunk) = 0;
  virtual base::Status Wait(StagingChunk& chunk) = 0;
};

// The chunks of a device. Any thread.
class StagingPool {
 public:
  static constexpr size_t kChunkBytes = size_t{4} << 20;
  static constexpr size_t kMaxChunks = 16;  // 64 MiB

  // Tests have other sizes.
  explicit StagingPool(size_t chunk_bytes = kChunkBytes, size_t max_chunks = kMaxChunks)
      : chunk_bytes_(chunk_bytes), max_chunks_(max_chunks) {}

  // Null: all are in use, or the driver has no more to give.
  std::unique_ptr<StagingChunk> Take(StagingDriver& driver);
  void Give(std::unique_ptr<StagingChunk> chunk);
  // Of a chunk that the device may still use.
  void Drop(std::unique_ptr<StagingChunk> chunk);

  size_t chunk_bytes() const { return chunk_bytes_; }

 private:
  const size_t chunk_bytes_;
  const size_t max_chunks_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::unique_ptr<StagingChunk>> idle_;
  size_t made_count_ = 0;
};

// The copies of one queue. One thread at a time.
class Staging {
 public:
  // Both outlive it.
  Staging(StagingDriver& driver, StagingPool& pool) : driver_(driver), pool_(pool) {}
  ~Staging() { Clear(/*is_done=*/true); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // The host's memory was read when this returns, unless no chunk could be had.
  base::Status Upload(const std::byte* from_host, std::byte* to, size_t size_bytes);
  // The host's memory is written at the latest by CopyOut, or, without a chunk, in the queue.
  base::Status Download(const std::byte* from, std::byte* to_host, size_t size_bytes);
  // Waits for what was downloaded through chunks, and writes it.
  base::Status CopyOut();
  // Gives the chunks back, and forgets what was not copied out. `is_done`: nothing in the queue
  // uses them any more.
  void Clear(bool is_done);

 private:
  struct Pending {
    const std::byte* from;
    std::byte* to_host;
    size_t size_bytes;
  };
  // A chunk on its way; it has its mark once it is full.
  struct Part {
    std::unique_ptr<StagingChunk> chunk;
    size_t used_bytes = 0;
    std::vector<Pending> downloads;
  };
  bool IsFull(const Part& part) const { return part.used_bytes == pool_.chunk_bytes(); }
  // A part with room at its end, as the last of `parts_`; none could be had if that is empty.
  base::Status MakeRoom(size_t size_bytes);
  base::Status Seal(Part& part);
  static void Write(Part& part);
  // `copy(part, memory, done_bytes, size_bytes)` for each piece; `whole()` without a chunk.
  template <typename Copy, typename Whole>
  base::Status InPieces(size_t size_bytes, const Copy& copy, const Whole& whole);

  StagingDriver& driver_;
  StagingPool& pool_;
  std::deque<Part> parts_;  // the oldest first
};

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_STAGING_H_
