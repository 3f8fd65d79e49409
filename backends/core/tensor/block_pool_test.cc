// SPDX-License-Identifier: Apache-2.0
//
// BlockPool: blocks do not overlap whatever the order in which they come and go, what is released
// is used again, and no more than a little stays in memory without a block.

#include "backends/core/tensor/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace onnxifi::tensor {
namespace {

#if defined(__linux__)

// Keeps a number in every byte of each block, to see that nobody else wrote there.
class Blocks {
 public:
  explicit Blocks(BlockPool& pool) : pool_(pool) {}
  ~Blocks() {
    while (!blocks_.empty()) Release(0);
  }
  void Add(size_t size_bytes) {
    std::byte* const data = pool_.Allocate(size_bytes);
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % BlockPool::kAlignment, 0);
    const auto mark = static_cast<unsigned char>(++added_);
    std::memset(data, mark, size_bytes);
    blocks_.push_back({data, size_bytes, mark});
  }
  void Release(size_t position) {
    const Block block = blocks_[position];
    blocks_[position] = blocks_.back();
    blocks_.pop_back();
    EXPECT_TRUE(std::all_of(block.data, block.data + block.size_bytes,
                            [&](std::byte byte) { return byte == std::byte{block.mark}; }));
    pool_.Release(block.data);
  }
  size_t size() const { return blocks_.size(); }

 private:
  struct Block {
    std::byte* data;
    size_t size_bytes;
    unsigned char mark;
  };
  BlockPool& pool_;
  std::vector<Block> blocks_;
  int added_ = 0;
};

TEST(BlockPoolTest, KeepsBlocksApart) {
  BlockPool pool;
  std::mt19937 generator(1);
  {
    Blocks blocks(pool);
    for (int step = 0; step < 3000; ++step) {
      // Grows to some 60 blocks, of all sizes.
      if (blocks.size() < 2 || generator() % 60 > blocks.size()) {
        const size_t most = size_t{1} << (6 + generator() % 16);
        blocks.Add(generator() % 50 == 0 ? BlockPool::kMaxBlockBytes : generator() % most);
      } else {
        blocks.Release(generator() % blocks.size());
      }
      ASSERT_LE(pool.idle_bytes(), BlockPool::kMaxIdleBytes);
    }
  }
  EXPECT_LE(pool.idle_bytes(), BlockPool::kMaxIdleBytes);
  pool.ReleaseIdle();
  EXPECT_EQ(pool.mapped_bytes(), 0);
}

TEST(BlockPoolTest, BeginsSmall) {
  BlockPool pool;
  std::byte* const block = pool.Allocate(100000);
  EXPECT_EQ(pool.mapped_bytes(), BlockPool::kFirstChunkBytes);
  pool.Release(block);
}

TEST(BlockPoolTest, UsesAgainWhatWasReleased) {
  BlockPool pool;
  std::vector<std::byte*> blocks;
  for (int k = 0; k < 20; ++k) blocks.push_back(pool.Allocate(500000));
  const size_t mapped_bytes = pool.mapped_bytes();
  // Two neighbours make room for one block, at the place of the first.
  pool.Release(blocks[10]);
  pool.Release(blocks[11]);
  EXPECT_EQ(pool.Allocate(1000000), std::min(blocks[10], blocks[11]));
  // In any order: behind the last, in front of it, between two.
  for (const int k : {5, 4, 7, 6}) pool.Release(blocks[static_cast<size_t>(k)]);
  EXPECT_EQ(pool.Allocate(2000000), blocks[4]);
  EXPECT_EQ(pool.mapped_bytes(), mapped_bytes);
}

TEST(BlockPoolTest, GivesBackWhatHoldsNothing) {
  BlockPool pool;
  std::vector<std::byte*> blocks;
  for (int k = 0; k < 100; ++k) {
    blocks.push_back(pool.Allocate(1 << 20));
    std::memset(blocks.back(), 1, 1 << 20);
  }
  EXPECT_GE(pool.mapped_bytes(), size_t{100} << 20);
  for (std::byte* block : blocks) pool.Release(block);
  EXPECT_LE(pool.idle_bytes(), BlockPool::kMaxIdleBytes);
  // Chunks too, but those of the pages that are kept.
  EXPECT_LE(pool.mapped_bytes(), 2 * BlockPool::kChunkBytes + BlockPool::kFirstChunkBytes);
}

TEST(BlockPoolTest, TakesCallsFromAllThreads) {
  BlockPool pool;
  std::vector<std::thread> threads;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&pool, seed] {
      std::mt19937 generator(seed);
      Blocks blocks(pool);
      for (int step = 0; step < 500; ++step) {
        if (blocks.size() < 10) {
          blocks.Add(generator() % 200000);
        } else {
          blocks.Release(generator() % blocks.size());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  pool.ReleaseIdle();
  EXPECT_EQ(pool.mapped_bytes(), 0);
}

#endif

}  // namespace
}  // namespace onnxifi::tensor
