// SPDX-License-Identifier: Apache-2.0
//
// Tests of sliding windows in oneDNN's numbers: whatever padding at the end is chosen, oneDNN's own
// formula has to give the output's extent back.

#include "backends/cpu/onednn/sliding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onnxifi::onednn {
namespace {

using testing::HasSubstr;

TEST(SlidingTest, GivesTheOutputBackForEveryPadding) {
  int64_t checked = 0;
  for (int64_t in = 1; in <= 12; ++in) {
    for (int64_t kernel = 1; kernel <= 4; ++kernel) {
      for (int64_t stride = 1; stride <= 3; ++stride) {
        for (int64_t dilation = 1; dilation <= 2; ++dilation) {
          for (int64_t begin = 0; begin <= 2; ++begin) {
            for (int64_t end = 0; end <= 3; ++end) {
              const int64_t reach = (kernel - 1) * dilation + 1;
              if (in + begin + end < reach) continue;
              const int64_t out = (in + begin + end - reach) / stride + 1;
              const base::Result<Sliding> sliding =
                  MakeSliding({{in}, {out}, {kernel}, {stride}, {dilation}, {begin}});
              ASSERT_TRUE(sliding.ok()) << sliding.status().Text();
              const int64_t padded = in + begin + sliding->pads_end[0];
              EXPECT_GE(sliding->pads_end[0], 0);
              EXPECT_EQ((padded - reach) / stride + 1, out);
              EXPECT_EQ(sliding->gaps[0], dilation - 1);
              ++checked;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 1000);
}

TEST(SlidingTest, RefusesAnOutputThatIsTooSmall) {
  const base::Result<Sliding> sliding = MakeSliding({{10}, {2}, {3}, {1}, {1}, {0}});
  ASSERT_FALSE(sliding.ok());
  EXPECT_EQ(sliding.status().code(), base::Code::kUnsupportedShape);
  EXPECT_THAT(sliding.status().Text(), HasSubstr("output's extent (2)"));
}

TEST(SlidingTest, RefusesNumbersThatCouldOverflow) {
  const int64_t huge = int64_t{1} << 40;
  const base::Result<Sliding> sliding = MakeSliding({{10}, {1}, {huge}, {1}, {1}, {0}});
  ASSERT_FALSE(sliding.ok());
  EXPECT_THAT(sliding.status().Text(), HasSubstr(std::to_string(huge)));
  EXPECT_FALSE(MakeSliding({{10}, {10}, {1}, {1}, {1}, {-1}}).ok());
}

TEST(SlidingTest, KnowsHowManySpatialAxesThereCanBe) {
  EXPECT_FALSE(CheckSpatialRank(0).ok());
  EXPECT_TRUE(CheckSpatialRank(1).ok());
  EXPECT_TRUE(CheckSpatialRank(3).ok());
  EXPECT_THAT(CheckSpatialRank(4).Text(), HasSubstr("(4)"));
}

}  // namespace
}  // namespace onnxifi::onednn
