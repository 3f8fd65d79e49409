// SPDX-License-Identifier: Apache-2.0

#include "backends/core/base/small_vector.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

namespace onnxifi::base {
namespace {

struct Pair {
  Pair(int64_t first = -7) : first(first) {}  // NOLINT(google-explicit-constructor)
  bool operator==(const Pair&) const = default;

  int64_t first;
  int64_t second = 3;
};
using Pairs = SmallVector<Pair, 4>;

Pairs Counting(int64_t count, int64_t from = 0) {
  Pairs pairs;
  for (int64_t k = 0; k < count; ++k) pairs.push_back(from + k);
  return pairs;
}

std::vector<int64_t> Numbers(const Pairs& pairs) {
  std::vector<int64_t> numbers;
  for (const Pair& pair : pairs) {
    EXPECT_EQ(pair.second, 3);
    numbers.push_back(pair.first);
  }
  return numbers;
}

bool IsInside(const Pairs& pairs) {
  const auto* begin = reinterpret_cast<const std::byte*>(&pairs);
  const auto* data = reinterpret_cast<const std::byte*>(pairs.data());
  return std::less_equal<>()(begin, data) && std::less<>()(data, begin + sizeof(pairs));
}

TEST(SmallVectorTest, KeepsAsManyInsideAsItsTypeSaysAndMoreOnTheHeap) {
  EXPECT_TRUE(IsInside(Pairs()));
  EXPECT_TRUE(IsInside(Counting(4)));
  EXPECT_FALSE(IsInside(Counting(5)));
  EXPECT_EQ(Numbers(Counting(5)), (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST(SmallVectorTest, IsMadeFromCountsRangesAndLists) {
  EXPECT_EQ(Numbers(Pairs(3)), (std::vector<int64_t>{-7, -7, -7}));
  EXPECT_EQ(Numbers(Pairs(5, 9)), (std::vector<int64_t>{9, 9, 9, 9, 9}));
  EXPECT_EQ(Numbers({4, 6, 8}), (std::vector<int64_t>{4, 6, 8}));
  const std::vector<int64_t> source = {5, 4, 3, 2, 1, 0};
  EXPECT_EQ(Numbers(Pairs(source.begin(), source.end())), source);
  EXPECT_EQ(Numbers(Pairs(source.rbegin(), source.rbegin() + 2)), (std::vector<int64_t>{0, 1}));
}

// From every kind of place to every other, within the object and on the heap.
TEST(SmallVectorTest, CopiesAndMovesBetweenAllSizes) {
  for (int64_t from : {0, 1, 4, 5, 11}) {
    for (int64_t to : {0, 3, 4, 5, 23}) {
      const std::vector<int64_t> expected = Numbers(Counting(from, 100));
      Pairs source = Counting(from, 100);
      const Pairs copy(source);
      EXPECT_EQ(Numbers(copy), expected);
      Pairs target = Counting(to);
      target = copy;
      EXPECT_EQ(Numbers(target), expected);
      target.push_back(1);
      EXPECT_EQ(Numbers(copy), expected);

      Pairs moved(std::move(source));
      EXPECT_EQ(Numbers(moved), expected);
      EXPECT_TRUE(source.empty());  // NOLINT(bugprone-use-after-move)
      source = Counting(to);
      EXPECT_EQ(Numbers(source), Numbers(Counting(to)));
      source = std::move(moved);
      EXPECT_EQ(Numbers(source), expected);
      EXPECT_TRUE(moved.empty());  // NOLINT(bugprone-use-after-move)
      moved.push_back(2);
      EXPECT_EQ(Numbers(moved), std::vector<int64_t>{2});
      EXPECT_EQ(Numbers(source), expected);
    }
  }
}

TEST(SmallVectorTest, AssignsToItself) {
  for (int64_t count : {0, 4, 9}) {
    Pairs pairs = Counting(count);
    Pairs& same = pairs;
    pairs = same;
    EXPECT_EQ(Numbers(pairs), Numbers(Counting(count)));
    pairs = std::move(same);
    EXPECT_EQ(Numbers(pairs), Numbers(Counting(count)));
  }
}

TEST(SmallVectorTest, SwapsWhatLiesInsideWithWhatLiesOnTheHeap) {
  Pairs a = Counting(2, 50);
  Pairs b = Counting(7);
  std::swap(a, b);
  EXPECT_EQ(Numbers(a), Numbers(Counting(7)));
  EXPECT_EQ(Numbers(b), Numbers(Counting(2, 50)));
}

TEST(SmallVectorTest, AddsElementsOfItsOwnWhileItGrows) {
  for (int64_t count : {4, 8, 16}) {
    Pairs pairs = Counting(count, 10);
    pairs.push_back(pairs.front());
    EXPECT_EQ(pairs.back(), Pair(10));
    pairs = Counting(count, 10);
    pairs.insert(pairs.begin() + 1, pairs.back());
    EXPECT_EQ(pairs[1], Pair(10 + count - 1));
    EXPECT_EQ(pairs[2], Pair(11));
    pairs = Counting(count, 10);
    pairs.resize(100, pairs[2]);
    EXPECT_EQ(pairs[99], Pair(12));
    pairs.assign(100, pairs[1]);
    EXPECT_EQ(pairs[99], Pair(11));
  }
}

TEST(SmallVectorTest, ComparesElements) {
  EXPECT_EQ(Counting(3), Counting(3));
  EXPECT_NE(Counting(3), Counting(4));
  EXPECT_NE(Counting(3), Counting(3, 1));
  Pairs shrunk = Counting(9);
  shrunk.resize(3);  // keeps its memory on the heap
  EXPECT_EQ(shrunk, Counting(3));
  EXPECT_EQ(Pairs(shrunk), Counting(3));
}

TEST(SmallVectorTest, IsASpan) {
  const Pairs pairs = Counting(6);
  const std::span<const Pair> span = pairs;
  EXPECT_EQ(span.data(), pairs.data());
  EXPECT_EQ(span.size(), 6u);
}

// Every operation against std::vector, with sizes on both sides of the limit.
TEST(SmallVectorTest, DoesWhatAVectorDoes) {
  std::mt19937 random(11);
  const auto below = [&](size_t limit) { return limit == 0 ? 0 : random() % limit; };
  for (int round = 0; round < 300; ++round) {
    SmallVector<int32_t, 5> small;
    std::vector<int32_t> vector;
    for (int step = 0; step < 60; ++step) {
      const auto value = static_cast<int32_t>(random());
      const size_t at = below(vector.size() + 1);
      const std::vector<int32_t> more(below(4), value);
      const auto position = [&](auto& list) { return list.begin() + static_cast<ptrdiff_t>(at); };
      switch (below(12)) {
        case 0:
        case 1:
          small.push_back(value);
          vector.push_back(value);
          break;
        case 2:
          EXPECT_EQ(small.emplace_back(value), vector.emplace_back(value));
          break;
        case 3:
          EXPECT_EQ(*small.insert(position(small), value), *vector.insert(position(vector), value));
          break;
        case 4: {
          const int32_t* inserted = small.insert(position(small), more.begin(), more.end());
          EXPECT_EQ(inserted - small.begin(), static_cast<ptrdiff_t>(at));
          vector.insert(position(vector), more.begin(), more.end());
          break;
        }
        case 5:
          small.insert(position(small), more.size(), value);
          vector.insert(position(vector), more.size(), value);
          break;
        case 6:
          if (at < vector.size()) {
            const int32_t* erased = small.erase(position(small));
            EXPECT_EQ(erased - small.begin(), static_cast<ptrdiff_t>(at));
            vector.erase(position(vector));
          }
          break;
        case 7: {
          const auto last = static_cast<ptrdiff_t>(at + below(vector.size() + 1 - at));
          small.erase(position(small), small.begin() + last);
          vector.erase(position(vector), vector.begin() + last);
          break;
        }
        case 8:
          small.resize(at + more.size(), value);
          vector.resize(at + more.size(), value);
          break;
        case 9:
          if (vector.empty()) break;
          small.pop_back();
          vector.pop_back();
          break;
        case 10:
          if (step % 7 != 0) break;
          small.assign(more.begin(), more.end());
          vector.assign(more.begin(), more.end());
          break;
        case 11:
          small.reserve(at * 2);
          EXPECT_GE(small.capacity(), at * 2);
          break;
      }
      ASSERT_EQ(std::vector<int32_t>(small.begin(), small.end()), vector);
      ASSERT_EQ(std::vector<int32_t>(small.rbegin(), small.rend()),
                std::vector<int32_t>(vector.rbegin(), vector.rend()));
      if (!vector.empty()) {
        ASSERT_EQ(small.back(), vector.back());
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::base
