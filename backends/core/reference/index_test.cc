// SPDX-License-Identifier: Apache-2.0
//
// Index on the reference: duplicates in order, coordinates out of range, ties, NaN, positions of
// non-zero elements.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "backends/core/reference/testing/one_step.h"

namespace onnxifi::reference {
namespace {

using program::Index;
using tensor::ElementType;

constexpr ElementType kFloat = ElementType::kFloat32;
constexpr ElementType kInt64 = ElementType::kInt64;

std::vector<float> Scatter(Index::Combine combine) {
  OneStep one;
  one.Read(kFloat, {6}, std::vector<float>{1, 2, 3, 4, 5, 6});
  one.Read(kInt64, {6}, std::vector<int64_t>{2, 0, 2, -1, 4, 0});
  one.step.domain = {6};
  one.Write(kFloat, {4}, std::vector<float>{10, 10, 10, 10});
  Index index;
  index.combine = combine;
  index.target = {4};
  one.step.body = index;
  return one.Run<float>();
}

TEST(IndexTest, ScatterCombinesDuplicatesInOrder) {
  EXPECT_EQ(Scatter(Index::Combine::kNone), (std::vector<float>{6, 10, 3, 10}));
  EXPECT_EQ(Scatter(Index::Combine::kAdd), (std::vector<float>{18, 10, 14, 10}));
  EXPECT_EQ(Scatter(Index::Combine::kMul), (std::vector<float>{120, 10, 30, 10}));
  EXPECT_EQ(Scatter(Index::Combine::kMin), (std::vector<float>{2, 10, 1, 10}));
  EXPECT_EQ(Scatter(Index::Combine::kMax), (std::vector<float>{10, 10, 10, 10}));
}

TEST(IndexTest, TopKKeepsTheLowerPositionFirst) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const bool largest : {true, false}) {
    OneStep one;
    one.Read(kFloat, {2, 5}, std::vector<float>{3, 1, 3, 2, 1, 0, nan, 5, -1, 5});
    one.step.domain = {2, 5};
    one.Write(kFloat, {2, 3}, std::vector<float>(6));
    one.Write(kInt64, {2, 3}, std::vector<int64_t>(6));
    Index index;
    index.kind = Index::Kind::kTopK;
    index.k = 3;
    index.largest = largest;
    one.step.body = index;
    EXPECT_EQ(one.Run<int64_t>(1), largest ? (std::vector<int64_t>{0, 2, 3, 1, 2, 4})
                                           : (std::vector<int64_t>{1, 4, 3, 3, 0, 2}));
    if (largest) continue;
    EXPECT_EQ(one.Run<float>(0), (std::vector<float>{1, 1, 2, -1, 0, 5}));
  }
}

TEST(IndexTest, FindsNonZeroElements) {
  const std::vector<float> x = {0, 1, -0.0f, 2, 0, 3};
  OneStep count;
  count.Read(kFloat, {2, 3}, x);
  count.step.domain = {2, 3};
  count.Write(kInt64, {}, std::vector<int64_t>(1));
  Index index;
  index.kind = Index::Kind::kCountNonZero;
  count.step.body = index;
  EXPECT_EQ(count.Run<int64_t>(), std::vector<int64_t>{3});

  OneStep positions;
  positions.Read(kFloat, {2, 3}, x);
  positions.step.domain = {2, 3};
  positions.Write(kInt64, {2, 3}, std::vector<int64_t>(6));
  index.kind = Index::Kind::kNonZero;
  positions.step.body = index;
  EXPECT_EQ(positions.Run<int64_t>(), (std::vector<int64_t>{0, 1, 1, 1, 0, 2}));
}

TEST(IndexTest, NonZeroStopsAtTheEndOfItsBuffer) {
  OneStep one;
  one.Read(kFloat, {4}, std::vector<float>{1, 1, 1, 1});
  one.step.domain = {4};
  one.Write(kInt64, {1, 2}, std::vector<int64_t>(2));
  Index index;
  index.kind = Index::Kind::kNonZero;
  one.step.body = index;
  EXPECT_EQ(one.Run<int64_t>(), (std::vector<int64_t>{0, 1}));
}

}  // namespace
}  // namespace onnxifi::reference
