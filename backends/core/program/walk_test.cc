// SPDX-License-Identifier: Apache-2.0
//
// Walk: a view that follows its walk through another layout meets the same elements; one that does
// not stay inside the axes has none.

#include "backends/core/program/walk.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace onnxifi::program {
namespace {

constexpr ElementType kFloat = ElementType::kFloat32;

View ViewOf(Dim offset, Dims strides) {
  View view;
  view.buffer = 0;
  view.type = kFloat;
  view.offset = offset;
  view.strides = std::move(strides);
  return view;
}

// A tensor [2, 3, 4, 5], dense.
const std::vector<MemoryAxis> kAxes = {{60, Dim(2)}, {20, Dim(3)}, {5, Dim(4)}, {1, Dim(5)}};

TEST(WalkTest, ViewsFollowIntoAnotherLayout) {
  struct Case {
    const char* name;
    View view;
    Shape extents;
    View expected;  // the axes at 1000, with strides 300, 7, 30 and 100
  };
  const Dims strides = {300, 7, 30, 100};
  const Case cases[] = {
      {"whole", ViewOf(0, {60, 20, 5, 1}), {2, 3, 4, 5}, ViewOf(1000, {300, 7, 30, 100})},
      {"permuted", ViewOf(0, {1, 60, 5, 20}), {5, 2, 4, 3}, ViewOf(1000, {100, 300, 30, 7})},
      {"part", ViewOf(60 + 20 + 2, {20, 5, 1}), {2, 4, 3}, ViewOf(1507, {7, 30, 100})},
      {"every second", ViewOf(5, {60, 10, 2}), {2, 2, 3}, ViewOf(1030, {300, 60, 200})},
      {"one axis as two", ViewOf(0, {10, 5, 1}), {2, 2, 5}, ViewOf(1000, {60, 30, 100})},
      {"repeated", ViewOf(3, {0, 20}), {9, 3}, ViewOf(1300, {0, 7})},
      {"an axis of 1 keeps its stride", ViewOf(0, {777, 1}), {1, 5}, ViewOf(1000, {777, 100})},
      {"one element", ViewOf(119, {}), {}, ViewOf(1000 + 300 + 14 + 90 + 400, {})},
  };
  for (const Case& each : cases) {
    const std::optional<Walk> walk = FindWalk(each.view, each.extents, kAxes);
    ASSERT_TRUE(walk) << each.name;
    EXPECT_EQ(FollowWalk(each.view, *walk, 1000, strides), each.expected) << each.name;
  }
}

TEST(WalkTest, AViewThatLeavesAnAxisHasNone) {
  View guarded = ViewOf(0, {1});
  guarded.guards.push_back({{1}, 0, 3});
  struct Case {
    const char* name;
    View view;
    Shape extents;
  };
  const Case cases[] = {
      {"into the next row", ViewOf(0, {1}), {20}},
      {"into the next row in steps", ViewOf(3, {2}), {2}},
      {"two axes along one", ViewOf(0, {1, 1}), {4, 3}},
      {"beyond the tensor", ViewOf(60, {60}), {2}},
      {"from beyond the tensor", ViewOf(120, {}), {}},
      {"backwards", ViewOf(4, {-1}), {5}},
      {"before the tensor", ViewOf(-1, {1}), {2}},
      {"guarded", guarded, {5}},
  };
  for (const Case& each : cases) {
    EXPECT_FALSE(FindWalk(each.view, each.extents, kAxes)) << each.name;
  }
}

TEST(WalkTest, ExtentsMayBeUnknown) {
  tensor::DimTable dims;
  const Dim n = dims.NewSymbol("n", /*is_data=*/false);
  const Dim m = dims.NewSymbol("m", /*is_data=*/false);
  // [n, 3 * m]: the second axis as [3, m], from its row 1 on.
  const std::vector<MemoryAxis> axes = {{m * 3, n}, {1, m * 3}};
  const View view = ViewOf(m, {m * 3, m, 1});
  const std::optional<Walk> walk = FindWalk(view, {n, 2, m}, axes);
  ASSERT_TRUE(walk);
  EXPECT_EQ(walk->first[1], m);
  EXPECT_EQ(walk->last[1], m * 3 - 1);
  EXPECT_EQ(FollowWalk(view, *walk, 5, Dims{m * 9, 1}), ViewOf(m + 5, {m * 9, m, 1}));
  EXPECT_FALSE(FindWalk(view, {n, 3, m}, axes)) << "its last row lies beyond";
  EXPECT_FALSE(FindWalk(view, {m, 2, m}, axes)) << "m may exceed n";
  EXPECT_TRUE(FindWalk(view, {m, 2, m}, std::vector<MemoryAxis>{{m * 3, {}}, {1, m * 3}}))
      << "how far it goes along the first axis is of no interest";
}

}  // namespace
}  // namespace onnxifi::program
