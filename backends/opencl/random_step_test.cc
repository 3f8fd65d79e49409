// SPDX-License-Identifier: Apache-2.0
//
// Random steps of every family on an OpenCL device, compared with the reference. Skipped, with the
// reason, where the machine has no such device.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "backends/core/reference/testing/step_comparison.h"
#include "backends/opencl/device.h"

namespace onnxifi::opencl {
namespace {

using reference::Family;

class RandomStepTest : public testing::TestWithParam<Family> {};

TEST_P(RandomStepTest, AgreesWithTheReference) {
  const base::Result<Api> api = LoadApi(kLoaderLibrary);
  if (!api.ok()) GTEST_SKIP() << api.status().Text();
  const base::Result<std::vector<DeviceInfo>> devices = FindDevices(*api);
  if (!devices.ok()) GTEST_SKIP() << devices.status().Text();
  if (devices->empty()) GTEST_SKIP() << "No platform has a device.";
  const base::Result<std::unique_ptr<Device>> device =
      Device::Open(*api, devices->front(), /*cache_folder=*/{});
  ASSERT_TRUE(device.ok()) << device.status().Text();
  // Compiling takes most of the time: a kernel per step.
  constexpr int64_t kCount = 12;
  const reference::Comparison comparison =
      reference::CompareWithReference(**device, GetParam(), /*seed=*/1, kCount);
  std::printf("%s: %lld steps compared, %lld different, %lld kernels built\n",
              std::string(Name(GetParam())).c_str(), static_cast<long long>(comparison.compared),
              static_cast<long long>(comparison.different),
              static_cast<long long>((*device)->kernel_count()));
  EXPECT_EQ(comparison.different, 0) << comparison.first_difference;
  EXPECT_EQ(comparison.refused, 0);
  EXPECT_EQ(comparison.compared, kCount);
}

INSTANTIATE_TEST_SUITE_P(Families, RandomStepTest, testing::ValuesIn(reference::kFamilies),
                         [](const testing::TestParamInfo<Family>& family) {
                           return std::string(Name(family.param));
                         });

}  // namespace
}  // namespace onnxifi::opencl
