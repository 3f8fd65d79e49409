// SPDX-License-Identifier: Apache-2.0
//
// CrossingValue: what a device may say of a value, and what it may not.

#include "onnxifi/partitioned/crossing_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onnxifi::partitioned {
namespace {

using testing::HasSubstr;

CrossingValue MakeValue(std::vector<int64_t> extents) {
  CrossingValue value;
  value.name = "t";
  value.data_type = ONNXIFI_DATATYPE_FLOAT32;
  value.extents = std::move(extents);
  value.has_rank = true;
  return value;
}

TEST(CrossingValue, AgreesWhereNeitherSideKnowsAnotherExtent) {
  const CrossingValue value = MakeValue({2, -1});
  for (const std::vector<int64_t>& told :
       {std::vector<int64_t>{2, 5}, {2, -1}, {-1, 0}, {-1, -1}}) {
    EXPECT_TRUE(value.Check(ONNXIFI_DATATYPE_FLOAT32, told).ok()) << ShapeText(told);
  }
}

TEST(CrossingValue, FindsEachContradiction) {
  const CrossingValue value = MakeValue({2, -1});
  const auto refusal = [&](onnxEnum type, const std::vector<int64_t>& told) {
    const base::Status status = value.Check(type, told);
    EXPECT_EQ(status.code(), base::Code::kBackendUnavailable);
    return status.Text();
  };
  EXPECT_THAT(refusal(ONNXIFI_DATATYPE_FLOAT32, {3, 5}), HasSubstr("[3, 5] instead of [2, ?]"));
  EXPECT_THAT(refusal(ONNXIFI_DATATYPE_FLOAT32, {2}), HasSubstr("[2] instead of [2, ?]"));
  EXPECT_THAT(refusal(ONNXIFI_DATATYPE_FLOAT32, {2, -2}), HasSubstr("'t' has shape"));
  EXPECT_THAT(refusal(ONNXIFI_DATATYPE_INT32, {2, 5}), HasSubstr("element type"));
}

TEST(CrossingValue, TakesAnyShapeWhereTheModelHasNone) {
  CrossingValue value = MakeValue({});
  EXPECT_FALSE(value.Check(ONNXIFI_DATATYPE_FLOAT32, std::vector<int64_t>{4}).ok());
  value.has_rank = false;
  EXPECT_TRUE(value.Check(ONNXIFI_DATATYPE_FLOAT32, std::vector<int64_t>{4}).ok());
  EXPECT_FALSE(value.Check(ONNXIFI_DATATYPE_INT8, std::vector<int64_t>{4}).ok());
}

TEST(IsKnown, WantsARankAndEachExtent) {
  EXPECT_TRUE(IsKnown({"t", ONNXIFI_DATATYPE_FLOAT32, true, {2, 0}}));
  EXPECT_FALSE(IsKnown({"t", ONNXIFI_DATATYPE_FLOAT32, true, {2, -1}}));
  EXPECT_FALSE(IsKnown({"t", ONNXIFI_DATATYPE_FLOAT32, false, {}}));
}

}  // namespace
}  // namespace onnxifi::partitioned
