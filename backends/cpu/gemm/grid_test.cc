// SPDX-License-Identifier: Apache-2.0
//
// How products are divided between threads: all of them exactly once, and none where waking another
// thread takes longer than the work.

#include "backends/cpu/gemm/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "backends/cpu/processor/processor.h"

namespace onnxifi::gemm {
namespace {

TEST(GridTest, KeepsLittleWorkOnOneThread) {
  const Grid grid = ChooseGrid({/*blocks=*/4, /*rows=*/14, /*depth=*/8, /*panels=*/2}, 8);
  EXPECT_EQ(grid.row_parts, 1);
  EXPECT_EQ(grid.panel_parts, 1);
}

TEST(GridTest, DividesRowsWhereThereAreMany) {
  const Grid grid = ChooseGrid({/*blocks=*/400, /*rows=*/14, /*depth=*/64, /*panels=*/2}, 4);
  EXPECT_EQ(grid.row_parts, 16);
  EXPECT_EQ(grid.panel_parts, 1);
}

TEST(GridTest, DividesColumnsWhereThereAreFewRows) {
  const Grid grid = ChooseGrid({/*blocks=*/1, /*rows=*/49, /*depth=*/512, /*panels=*/64}, 4);
  EXPECT_EQ(grid.row_parts, 1);
  EXPECT_GE(grid.panel_parts, 4);
}

TEST(GridTest, DividesBothWaysWhereThatReadsLess) {
  const Grid grid = ChooseGrid({/*blocks=*/32, /*rows=*/16, /*depth=*/512, /*panels=*/16}, 16);
  EXPECT_GT(grid.row_parts, 1);
  EXPECT_GT(grid.panel_parts, 1);
}

TEST(GridTest, LeavesColumnsWholeWhereAsked) {
  const Work work = {/*blocks=*/2, /*rows=*/49, /*depth=*/512, /*panels=*/64,
                     /*are_panels_divided=*/false};
  const Grid grid = ChooseGrid(work, 4);
  EXPECT_EQ(grid.row_parts, 2);
  EXPECT_EQ(grid.panel_parts, 1);
}

// More columns make the same rows worth another thread.
TEST(GridTest, CountsTheColumnsThatItLeavesWhole) {
  Work work = {/*blocks=*/8, /*rows=*/64, /*depth=*/9, /*panels=*/1, /*are_panels_divided=*/false};
  EXPECT_EQ(ChooseGrid(work, 2).row_parts, 1);
  work.panels = 64;
  EXPECT_GE(ChooseGrid(work, 2).row_parts, 2);
}

TEST(GridTest, HasOnePartForNothing) {
  const Grid grid = ChooseGrid({0, 14, 64, 2}, 8);
  EXPECT_EQ(grid.row_parts * grid.panel_parts, 1);
}

TEST(GridTest, CoversEveryBlockAndPanelOnce) {
  threads::ThreadPool pool(3);
  for (const Grid& grid : {Grid{1, 1}, Grid{3, 2}, Grid{2, 5}}) {
    const Work work = {/*blocks=*/11, /*rows=*/14, /*depth=*/8, /*panels=*/7};
    std::vector<std::atomic<int>> seen(77);
    const int64_t threads = ThreadsOf(grid, pool);
    EXPECT_EQ(threads, std::min<int64_t>(3, grid.row_parts * grid.panel_parts));
    std::atomic<int> parts = 0;
    ForParts(work, grid, pool, [&](int64_t thread, const Part& part) {
      EXPECT_LT(thread, threads);
      ++parts;
      for (int64_t block = part.first_block; block < part.end_block; ++block) {
        for (int64_t panel = part.first_panel; panel < part.end_panel; ++panel) {
          ++seen[static_cast<size_t>(block * 7 + panel)];
        }
      }
    });
    for (const std::atomic<int>& times : seen) EXPECT_EQ(times, 1);
    EXPECT_EQ(parts, grid.row_parts * grid.panel_parts);
  }
}

}  // namespace
}  // namespace onnxifi::gemm
