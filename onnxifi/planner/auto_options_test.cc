// SPDX-License-Identifier: Apache-2.0
//
// AutoOptions: what is left of a graph's properties for devices.

#include "onnxifi/planner/auto_options.h"

#include <gtest/gtest.h>
#include <onnxifi/auto_device.h>
#include <onnxifi/sdk.h>

#include <vector>

namespace onnxifi::planner {
namespace {

TEST(AutoOptions, DevicesGetToSeeWhetherTheyMayMeasureAndNothingElse) {
  onnxPlacement placement = {};
  placement.struct_size = sizeof(placement);
  std::vector<abi::Property> properties = {
      {ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE, 1},
      {ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE, 1},
      {ONNXIFI_SDK_GRAPH_PROPERTY_FALLBACK, 1},
      {ONNXIFI_SDK_GRAPH_PROPERTY_PLACEMENT, reinterpret_cast<uintptr_t>(&placement)}};
  const auto options = AutoOptions::Take(properties);
  ASSERT_TRUE(options.ok()) << options.status().Text();
  EXPECT_EQ(options->measures, true);
  EXPECT_TRUE(options->has_fallback);
  ASSERT_EQ(properties.size(), 2U);
  EXPECT_EQ(properties[0].key, uint64_t{ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE});
  EXPECT_EQ(properties[1].key, uint64_t{ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE});
  EXPECT_EQ(properties[1].value, 1U);
}

}  // namespace
}  // namespace onnxifi::planner
