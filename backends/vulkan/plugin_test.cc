// SPDX-License-Identifier: Apache-2.0
//
// What the plugin lists and says of drivers of every kind. Devices are looked for once per process,
// so that each case is a process of its own.

#include <gtest/gtest.h>
#include <onnx/onnxifi.h>
#include <onnx/onnxifi_ext.h>
#include <onnxifi/sdk.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/vulkan/testing/fake_driver.h"

namespace onnxifi::vulkan {
namespace {

class PluginDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Prints the names of the devices, or what the plugin says if it lists none, and ends with 0.
[[noreturn]] void List(const std::function<void()>& prepare) {
  FakeDriver::Reset();
  prepare();
  std::vector<onnxBackendID> ids(10);
  size_t count = ids.size();
  const onnxStatus status = onnxGetBackendIDs(ids.data(), &count);
  for (size_t k = 0; k < count && status == ONNXIFI_STATUS_SUCCESS; ++k) {
    std::array<char, 100> name{};
    size_t size = name.size();
    if (onnxGetBackendInfo(ids[k], ONNXIFI_BACKEND_DEVICE, name.data(), &size) !=
        ONNXIFI_STATUS_SUCCESS) {
      std::_Exit(1);
    }
    std::fprintf(stderr, "[%s]", name.data());
  }
  if (count == 0) {
    onnxExtensionFunctionPointer address = nullptr;
    std::array<char, 1000> text{};
    size_t size = text.size();
    if (onnxGetExtensionFunctionAddress(nullptr, "onnxGetLastErrorMessage", &address) !=
            ONNXIFI_STATUS_SUCCESS ||
        reinterpret_cast<onnxGetLastErrorMessageFunction>(reinterpret_cast<void (*)()>(address))(
            text.data(), &size) != ONNXIFI_STATUS_SUCCESS) {
      std::_Exit(1);
    }
    std::fprintf(stderr, "[%s]", text.data());
  }
  std::_Exit(status == ONNXIFI_STATUS_SUCCESS ? 0 : 1);
}

FakeDevice Device(const char* name, std::set<std::string> lacks) {
  FakeDevice device;
  device.name = name;
  device.lacks = std::move(lacks);
  return device;
}

TEST_F(PluginDeathTest, ListsTheFitDevices) {
  EXPECT_EXIT(List([] {
                FakeDriver::SetDevices({Device("One", {}), Device("Two", {"shaderInt8"}),
                                        Device("Three", {"shaderFloat64"})});
              }),
              testing::ExitedWithCode(0), "^\\[One\\]\\[Three\\]$");
}

TEST_F(PluginDeathTest, NamesWhatEachDeviceLacks) {
  EXPECT_EXIT(
      List([] {
        FakeDriver::SetDevices(
            {Device("One", {"shaderInt64", "shaderInt8"}), Device("Two", {"timelineSemaphore"})});
      }),
      testing::ExitedWithCode(0),
      "\\[No Vulkan device is fit: One lacks shaderInt64, Two lacks timelineSemaphore\\.\\]");
}

TEST_F(PluginDeathTest, SaysThatThereIsNoDeviceDriverOrNewLoader) {
  EXPECT_EXIT(List([] { FakeDriver::SetDevices({}); }), testing::ExitedWithCode(0),
              "\\[No Vulkan driver has a device\\.\\]");
  EXPECT_EXIT(List([] { FakeDriver::Fail("CreateInstance", VK_ERROR_INCOMPATIBLE_DRIVER); }),
              testing::ExitedWithCode(0),
              "\\[Vulkan cannot create an instance: no compatible driver\\.\\]");
  EXPECT_EXIT(List([] { FakeDriver::SetLoaderVersion(VK_API_VERSION_1_0); }),
              testing::ExitedWithCode(0),
              "\\[The Vulkan loader has version 1\\.0; the backend needs 1\\.2\\.\\]");
  EXPECT_EXIT(List([] { FakeDriver::Fail("EnumeratePhysicalDevices", VK_ERROR_DEVICE_LOST); }),
              testing::ExitedWithCode(0), "\\[Vulkan cannot list its devices: device lost\\.\\]");
}

}  // namespace
}  // namespace onnxifi::vulkan
