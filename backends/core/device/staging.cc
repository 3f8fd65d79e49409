// SPDX-License-Identifier: Apache-2.0
//
// Staging: a queue takes chunks from the pool until it has none left, then its own oldest one anew.
// A queue that finds all of them with other queues leaves the copy to the driver.

#include "backends/core/device/staging.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace onnxifi::device {
namespace {

using base::Status;

// Pieces begin where copies are fast, and a piece that is shorter than the rest of its tensor is no
// shorter than this.
constexpr size_t kAlignment = 256;
constexpr size_t kMinPieceBytes = size_t{64} << 10;

}  // namespace

std::unique_ptr<StagingChunk> StagingPool::Take(StagingDriver& driver) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<StagingChunk> chunk;
  if (!idle_.empty()) {
    chunk = std::move(idle_.back());
    idle_.pop_back();
  } else if (made_count_ < max_chunks_) {
    chunk = driver.MakeChunk(chunk_bytes_);
    if (chunk != nullptr) ++made_count_;
  }
  return chunk;
}

void StagingPool::Give(std::unique_ptr<StagingChunk> chunk) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(chunk));
}

void StagingPool::Drop(std::unique_ptr<StagingChunk> chunk) {
  chunk.reset();
  const std::lock_guard lock(mutex_);
  --made_count_;
}

Status Staging::Seal(Part& part) {
  part.used_bytes = pool_.chunk_bytes();
  return driver_.Mark(*part.chunk);
}

void Staging::Write(Part& part) {
  for (const Pending& pending : part.downloads) {
    std::memcpy(pending.to_host, pending.from, pending.size_bytes);
  }
  part.downloads.clear();
}

Status Staging::MakeRoom(size_t size_bytes) {
  if (!parts_.empty() && !IsFull(parts_.back())) {
    Part& last = parts_.back();
    const size_t begin = (last.used_bytes + kAlignment - 1) / kAlignment * kAlignment;
    const size_t wanted_bytes = std::min(size_bytes, kMinPieceBytes);
    if (begin < pool_.chunk_bytes() && pool_.chunk_bytes() - begin >= wanted_bytes) {
      last.used_bytes = begin;
      return base::Ok();
    }
    ONNXIFI_RETURN_IF_ERROR(Seal(last));
  }
  bool is_done = false;
  if (!parts_.empty()) {
    ONNXIFI_ASSIGN_OR_RETURN(is_done, driver_.IsDone(*parts_.front().chunk));
  }
  if (!is_done) {
    if (std::unique_ptr<StagingChunk> chunk = pool_.Take(driver_); chunk != nullptr) {
      parts_.push_back({std::move(chunk), 0, {}});
      return base::Ok();
    }
    if (parts_.empty()) return base::Ok();
    ONNXIFI_RETURN_IF_ERROR(driver_.Wait(*parts_.front().chunk));
  }
  Part part = std::move(parts_.front());
  parts_.pop_front();
  Write(part);
  part.used_bytes = 0;
  parts_.push_back(std::move(part));
  return base::Ok();
}

template <typename Copy, typename Whole>
Status Staging::InPieces(size_t size_bytes, const Copy& copy, const Whole& whole) {
  for (size_t done_bytes = 0; done_bytes < size_bytes;) {
    const size_t left_bytes = size_bytes - done_bytes;
    ONNXIFI_RETURN_IF_ERROR(MakeRoom(left_bytes));
    if (parts_.empty()) return whole();
    Part& part = parts_.back();
    const size_t piece_bytes = std::min(left_bytes, pool_.chunk_bytes() - part.used_bytes);
    ONNXIFI_RETURN_IF_ERROR(
        copy(part, part.chunk->memory() + part.used_bytes, done_bytes, piece_bytes));
    part.used_bytes += piece_bytes;
    done_bytes += piece_bytes;
    if (IsFull(part)) ONNXIFI_RETURN_IF_ERROR(Seal(part));
  }
  return base::Ok();
}

Status Staging::Upload(const std::byte* from_host, std::byte* to, size_t size_bytes) {
  return InPieces(
      size_bytes,
      [&](Part&, std::byte* memory, size_t done_bytes, size_t piece_bytes) {
        std::memcpy(memory, from_host + done_bytes, piece_bytes);
        return driver_.Upload(memory, to + done_bytes, piece_bytes);
      },
      [&] { return driver_.Upload(from_host, to, size_bytes); });
}

Status Staging::Download(const std::byte* from, std::byte* to_host, size_t size_bytes) {
  return InPieces(
      size_bytes,
      [&](Part& part, std::byte* memory, size_t done_bytes, size_t piece_bytes) {
        ONNXIFI_RETURN_IF_ERROR(driver_.Download(from + done_bytes, memory, piece_bytes));
        part.downloads.push_back({memory, to_host + done_bytes, piece_bytes});
        return base::Ok();
      },
      [&] { return driver_.Download(from, to_host, size_bytes); });
}

Status Staging::CopyOut() {
  for (Part& part : parts_) {
    if (part.downloads.empty()) continue;
    if (!IsFull(part)) ONNXIFI_RETURN_IF_ERROR(Seal(part));
    ONNXIFI_RETURN_IF_ERROR(driver_.Wait(*part.chunk));
    Write(part);
  }
  return base::Ok();
}

void Staging::Clear(bool is_done) {
  for (Part& part : parts_) {
    if (is_done) {
      pool_.Give(std::move(part.chunk));
    } else {
      pool_.Drop(std::move(part.chunk));
    }
  }
  parts_.clear();
}

}  // namespace onnxifi::device
