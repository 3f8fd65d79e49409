// SPDX-License-Identifier: Apache-2.0
//
// SharedNumber: what one has added, all others of the same file see.

#include "backends/mock/testing/shared_number.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace onnxifi::mock {
namespace {

TEST(SharedNumber, IsTheSameForAllWhoOpenItsFile) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("onnxifi-number-" + std::to_string(getpid()));
  const auto one = SharedNumber::Open(file);
  const auto other = SharedNumber::Open(file);
  std::filesystem::remove(file);
  ASSERT_TRUE(one.ok()) << one.status().Text();
  ASSERT_TRUE(other.ok()) << other.status().Text();
  EXPECT_EQ((*one)->Get(), 0);
  (*one)->Add(int64_t{7} << 40);
  (*other)->Add(-3);
  EXPECT_EQ((*one)->Get(), (int64_t{7} << 40) - 3);
  EXPECT_EQ((*other)->Get(), (int64_t{7} << 40) - 3);
}

TEST(SharedNumber, SaysWhyThereIsNone) {
  const auto none = SharedNumber::Open("/nonexistent/number");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.status().Text(), testing::AllOf(testing::HasSubstr("'/nonexistent/number'"),
                                                   testing::HasSubstr("No such file")));
}

}  // namespace
}  // namespace onnxifi::mock
