// SPDX-License-Identifier: Apache-2.0
//
// MemoryPool: sizes are rounded to classes an eighth apart at most, so that a piece that is given
// back fits what is asked for next.

#include "backends/core/device/memory_pool.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace onnxifi::device {
namespace {

// A multiple of any element and of what packed elements are written by.
constexpr int64_t kMinBytes = 256;

int64_t RoundUp(int64_t size_bytes) {
  return (std::max(size_bytes, kMinBytes) + kMinBytes - 1) / kMinBytes * kMinBytes;
}

int64_t RoundToClass(int64_t size_bytes) {
  const int64_t size = std::max(size_bytes, kMinBytes);
  const int64_t step =
      std::max(kMinBytes, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size)) / 8));
  return (size + step - 1) / step * step;
}

}  // namespace

class MemoryPool::Pooled final : public Allocation {
 public:
  Pooled(MemoryPool& pool, std::unique_ptr<Allocation> piece)
      : pool_(pool), piece_(std::move(piece)) {}
  ~Pooled() override { pool_.GiveBack(std::move(piece_)); }
  Pooled(const Pooled&) = delete;
  Pooled& operator=(const Pooled&) = delete;

  std::byte* data() override { return piece_->data(); }
  int64_t size_bytes() const override { return piece_->size_bytes(); }

 private:
  MemoryPool& pool_;
  std::unique_ptr<Allocation> piece_;
};

base::Result<std::unique_ptr<Allocation>> MemoryPool::New(int64_t size_bytes) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Allocation> piece, make_(size_bytes));
  const std::lock_guard lock(mutex_);
  ++made_count_;
  return piece;
}

base::Result<std::unique_ptr<Allocation>> MemoryPool::Allocate(int64_t size_bytes) {
  const int64_t wanted = RoundToClass(size_bytes);
  std::unique_ptr<Allocation> piece;
  {
    const std::lock_guard lock(mutex_);
    const auto found = idle_.lower_bound(wanted);
    if (found != idle_.end() && found->first <= wanted + wanted / 4) {
      idle_bytes_ -= found->first;
      piece = std::move(found->second);
      idle_.erase(found);
    }
  }
  if (piece == nullptr) {
    base::Result<std::unique_ptr<Allocation>> made = New(wanted);
    if (!made.ok()) {
      // What the pool keeps may be what is missing.
      std::multimap<int64_t, std::unique_ptr<Allocation>> idle;
      {
        const std::lock_guard lock(mutex_);
        idle.swap(idle_);
        idle_bytes_ = 0;
      }
      if (!idle.empty()) {
        idle.clear();
        made = New(wanted);
      }
      // Or what the class has beyond what was asked for.
      if (!made.ok() && RoundUp(size_bytes) < wanted) made = New(RoundUp(size_bytes));
      if (!made.ok()) return std::move(made).status();
    }
    piece = *std::move(made);
  }
  return std::unique_ptr<Allocation>(std::make_unique<Pooled>(*this, std::move(piece)));
}

void MemoryPool::GiveBack(std::unique_ptr<Allocation> piece) {
  const int64_t size_bytes = piece->size_bytes();
  const std::lock_guard lock(mutex_);
  // Else `piece` is given up after the lock.
  if (size_bytes > most_idle_bytes_ - idle_bytes_) return;
  idle_bytes_ += size_bytes;
  idle_.emplace(size_bytes, std::move(piece));
}

int64_t MemoryPool::made_count() const {
  const std::lock_guard lock(mutex_);
  return made_count_;
}

int64_t MemoryPool::idle_bytes() const {
  const std::lock_guard lock(mutex_);
  return idle_bytes_;
}

}  // namespace onnxifi::device
