// SPDX-License-Identifier: Apache-2.0
//
// MemoryPool over memory of the host's: what is used again, what is given up, and when.

#include "backends/core/device/memory_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace onnxifi::device {
namespace {

using base::Code;
using base::Result;
using base::Status;

// Counts what is there of it, and has no more than its limit.
class Source {
 public:
  class Piece final : public Allocation {
   public:
    Piece(Source& source, int64_t size_bytes)
        : source_(source), bytes_(static_cast<size_t>(size_bytes)) {}
    ~Piece() override { source_.live_bytes_ -= size_bytes(); }
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;
    std::byte* data() override { return bytes_.data(); }
    int64_t size_bytes() const override { return static_cast<int64_t>(bytes_.size()); }

   private:
    Source& source_;
    std::vector<std::byte> bytes_;
  };

  explicit Source(int64_t most_bytes = INT64_MAX) : most_bytes_(most_bytes) {}

  MemoryPool::Make AsMake() {
    return [this](int64_t size_bytes) -> Result<std::unique_ptr<Allocation>> {
      ++asked_;
      if ((live_bytes_ += size_bytes) > most_bytes_) {
        live_bytes_ -= size_bytes;
        return Status(Code::kNoDeviceMemory, "The source has no more.");
      }
      return std::unique_ptr<Allocation>(std::make_unique<Piece>(*this, size_bytes));
    };
  }
  int64_t live_bytes() const { return live_bytes_; }
  int64_t asked() const { return asked_; }

 private:
  const int64_t most_bytes_;
  std::atomic<int64_t> live_bytes_ = 0;
  std::atomic<int64_t> asked_ = 0;
};

TEST(MemoryPoolTest, PiecesAreLargeEnoughAndNotMuchLarger) {
  Source source;
  MemoryPool pool(source.AsMake());
  for (const int64_t size : {0L, 1L, 255L, 256L, 257L, 4095L, 4097L, 100'000L, 1'000'003L}) {
    const auto piece = pool.Allocate(size);
    ASSERT_TRUE(piece.ok());
    EXPECT_GE((*piece)->size_bytes(), size);
    // A piece that is used again may be a quarter larger than its class, which is an eighth.
    EXPECT_LE((*piece)->size_bytes(), size + size / 2 + 256) << size;
    EXPECT_EQ((*piece)->size_bytes() % 256, 0) << size;
  }
}

TEST(MemoryPoolTest, WhatIsGivenBackServesWhoAsksNext) {
  Source source;
  MemoryPool pool(source.AsMake());
  const std::byte* first = nullptr;
  {
    const auto piece = pool.Allocate(100'000);
    first = (*piece)->data();
    EXPECT_EQ(pool.idle_bytes(), 0);
  }
  EXPECT_GT(pool.idle_bytes(), 100'000);
  const auto again = pool.Allocate(99'000);
  EXPECT_EQ((*again)->data(), first);
  EXPECT_EQ(pool.idle_bytes(), 0);
  // Not what somebody has, and not what is much too large.
  const auto other = pool.Allocate(99'000);
  EXPECT_NE((*other)->data(), first);
  EXPECT_EQ(pool.made_count(), 2);
  { const auto large = pool.Allocate(1'000'000); }
  const auto small = pool.Allocate(300);
  EXPECT_EQ(pool.made_count(), 4);
  EXPECT_LT((*small)->size_bytes(), 1000);
}

TEST(MemoryPoolTest, NoMoreIsIdleThanItMayBe) {
  Source source;
  MemoryPool pool(source.AsMake(), /*most_idle_bytes=*/10'000);
  {
    const auto a = pool.Allocate(4096);
    const auto b = pool.Allocate(4096);
    const auto c = pool.Allocate(4096);
    EXPECT_EQ(source.live_bytes(), 3 * 4096);
  }
  EXPECT_EQ(pool.idle_bytes(), 2 * 4096);
  EXPECT_EQ(source.live_bytes(), 2 * 4096);
  { const auto larger_than_all = pool.Allocate(20'000); }
  EXPECT_EQ(source.live_bytes(), 2 * 4096);
}

TEST(MemoryPoolTest, WhatIsIdleIsGivenUpBeforeMemoryRunsOut) {
  Source source(/*most_bytes=*/100'000);
  MemoryPool pool(source.AsMake());
  { const auto idle = pool.Allocate(60'000); }
  EXPECT_GT(source.live_bytes(), 0);
  const auto piece = pool.Allocate(90'000);
  ASSERT_TRUE(piece.ok());
  EXPECT_EQ(source.live_bytes(), (*piece)->size_bytes());
  EXPECT_EQ(pool.idle_bytes(), 0);
  // Nothing is idle now, so nobody asks twice.
  const int64_t asked = source.asked();
  EXPECT_EQ(pool.Allocate(90'000).status().code(), Code::kNoDeviceMemory);
  EXPECT_EQ(source.asked(), asked + 1);
}

TEST(MemoryPoolTest, WhereAClassIsTooLargeWhatWasAskedForMayFit) {
  Source source(/*most_bytes=*/100'000);
  MemoryPool pool(source.AsMake());
  // Its class has 106,496.
  const auto piece = pool.Allocate(99'000);
  ASSERT_TRUE(piece.ok()) << piece.status().Text();
  EXPECT_EQ((*piece)->size_bytes(), 99'072);
}

TEST(MemoryPoolTest, ThreadsShareIt) {
  Source source;
  {
    MemoryPool pool(source.AsMake(), /*most_idle_bytes=*/30'000);
    std::vector<std::thread> threads;
    std::atomic<int> mixed_up = 0;
    for (int k = 0; k < 4; ++k) {
      threads.emplace_back([&, k] {
        for (int64_t turn = 1; turn <= 300; ++turn) {
          const auto piece = pool.Allocate(turn * 37 % 9000);
          const auto mark = static_cast<std::byte>(k + 1);
          *(*piece)->data() = mark;
          std::this_thread::yield();
          if (*(*piece)->data() != mark) ++mixed_up;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(mixed_up, 0);
    EXPECT_EQ(source.live_bytes(), pool.idle_bytes());
  }
  EXPECT_EQ(source.live_bytes(), 0);
}

}  // namespace
}  // namespace onnxifi::device
