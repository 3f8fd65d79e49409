// SPDX-License-Identifier: Apache-2.0
//
// What is found of loaders, drivers and devices of every kind, and what is said of those that are
// not fit; on the fake driver.

#include "backends/vulkan/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/vulkan/testing/fake_driver.h"
#include "backends/vulkan/testing/story.h"

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Result;
using base::Status;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ApiTest, AMissingLoaderIsOneSentence) {
  const Result<Api> api = LoadApi("libvulkan-that-is-not-there.so.1");
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(api.status().code(), Code::kBackendUnavailable);
  EXPECT_THAT(api.status().Text(), HasSubstr("The Vulkan loader libvulkan-that-is-not-there.so.1"));
}

TEST(ApiTest, ALoaderWithoutItsFunctionsIsOneSentence) {
  const Result<Api> api = LoadApi("libc.so.6");
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(api.status().code(), Code::kBackendUnavailable);
  EXPECT_EQ(api.status().sentence(), "The Vulkan loader has no function vkGetInstanceProcAddr.");
}

TEST(ApiTest, FaultsHaveTheDocumentedStatuses) {
  EXPECT_TRUE(ToStatus(VK_SUCCESS, "breathe").ok());
  EXPECT_EQ(ToStatus(VK_ERROR_OUT_OF_DEVICE_MEMORY, "").code(), Code::kNoDeviceMemory);
  EXPECT_EQ(ToStatus(VK_ERROR_OUT_OF_HOST_MEMORY, "").code(), Code::kNoSystemMemory);
  EXPECT_EQ(ToStatus(VK_ERROR_TOO_MANY_OBJECTS, "").code(), Code::kNoDeviceResources);
  EXPECT_EQ(ToStatus(VK_ERROR_DEVICE_LOST, "").code(), Code::kBackendUnavailable);
  EXPECT_EQ(ToStatus(VK_ERROR_LAYER_NOT_PRESENT, "").code(), Code::kBackendUnavailable);
  EXPECT_EQ(ToStatus(VK_ERROR_UNKNOWN, "start a kernel").code(), Code::kInternalError);
  EXPECT_EQ(ToStatus(VK_ERROR_TOO_MANY_OBJECTS, "start a kernel").sentence(),
            "Vulkan cannot start a kernel: too many objects.");
}

class DriverTest : public FakeDriverTest {
 protected:
  static Result<FoundDevices> FindIn(const std::vector<FakeDevice>& devices) {
    FakeDriver::SetDevices(devices);
    ONNXIFI_ASSIGN_OR_RETURN(const auto instance, Instance::Create(FakeDriver::GetApi(), false));
    return FindDevices(*instance);
  }
};

TEST_F(DriverTest, ADeviceIsDescribed) {
  FakeDevice device;
  device.queue_families = {{VK_QUEUE_TRANSFER_BIT, 1, 0, {1, 1, 1}},
                           {VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT, 1, 0, {1, 1, 1}},
                           {VK_QUEUE_COMPUTE_BIT, 0, 0, {1, 1, 1}},
                           {VK_QUEUE_COMPUTE_BIT, 2, 36, {1, 1, 1}}};
  const Result<FoundDevices> found = FindIn({device});
  ASSERT_TRUE(found.ok()) << found.status().Text();
  EXPECT_THAT(found->left_out, IsEmpty());
  ASSERT_EQ(found->fit.size(), 1U);
  const DeviceInfo& info = found->fit[0];
  EXPECT_EQ(info.name, "Fake device");
  EXPECT_EQ(info.driver_name, "Fake driver");
  EXPECT_EQ(info.uuid, device.uuid);
  // The queue that does not draw.
  EXPECT_EQ(info.queue_family, 3U);
  EXPECT_EQ(info.timestamp_bits, 36U);
  EXPECT_EQ(info.memory_bytes, uint64_t{256} << 20);
  EXPECT_TRUE(info.capabilities.has_float64);
  EXPECT_FALSE(info.has_memory_budget);
  EXPECT_EQ(info.limits_text,
            "heap_0=268435456 bytes, device; subgroup_items=32; "
            "max_groups=65535 x 65535 x 65535; max_group_items=1024; "
            "max_shared_memory_bytes=32768; max_storage_range_bytes=134217728; "
            "max_push_constants_bytes=128; max_allocation_bytes=1073741824; "
            "max_allocations=4096");
}

TEST_F(DriverTest, ADeviceThatLacksAFeatureIsLeftOutWithItsName) {
  for (const std::string feature :
       {"bufferDeviceAddress", "scalarBlockLayout", "timelineSemaphore", "shaderInt64",
        "shaderInt16", "shaderInt8", "storageBuffer16BitAccess", "storageBuffer8BitAccess"}) {
    FakeDevice device;
    device.lacks = {feature};
    const Result<FoundDevices> found = FindIn({device});
    ASSERT_TRUE(found.ok()) << found.status().Text();
    EXPECT_THAT(found->fit, IsEmpty());
    EXPECT_THAT(found->left_out, ElementsAre("Fake device lacks " + feature));
  }
}

TEST_F(DriverTest, DevicesWithoutOtherNeedsAreLeftOut) {
  FakeDevice old;
  old.name = "Old device";
  old.api_version = VK_API_VERSION_1_1;
  FakeDevice idle;
  idle.name = "Idle device";
  idle.queue_families = {{VK_QUEUE_GRAPHICS_BIT, 1, 0, {1, 1, 1}}};
  FakeDevice closed;
  closed.name = "Closed device";
  closed.memory_types = {{VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0}};
  const Result<FoundDevices> found = FindIn({old, FakeDevice{}, idle, closed});
  ASSERT_TRUE(found.ok()) << found.status().Text();
  ASSERT_EQ(found->fit.size(), 1U);
  EXPECT_EQ(found->fit[0].name, "Fake device");
  EXPECT_THAT(found->left_out, ElementsAre("Old device has Vulkan 1.1 in place of 1.2",
                                           "Idle device lacks a queue that computes",
                                           "Closed device lacks memory that the host can write"));
}

TEST_F(DriverTest, FloatsOf64BitsAreNotNeeded) {
  FakeDevice device;
  device.lacks = {"shaderFloat64", "shaderFloat16"};
  const Result<FoundDevices> found = FindIn({device});
  ASSERT_TRUE(found.ok()) << found.status().Text();
  ASSERT_EQ(found->fit.size(), 1U);
  EXPECT_FALSE(found->fit[0].capabilities.has_float64);
  EXPECT_TRUE(Story(folder_).All().ok());
}

TEST_F(DriverTest, ProcessorsAloneAreFastInFloat64) {
  FakeDevice gpu;
  FakeDevice processor;
  processor.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
  const Result<FoundDevices> found = FindIn({gpu, processor});
  ASSERT_TRUE(found.ok()) << found.status().Text();
  ASSERT_EQ(found->fit.size(), 2U);
  EXPECT_FALSE(found->fit[0].capabilities.is_float64_fast);
  EXPECT_TRUE(found->fit[1].capabilities.is_float64_fast);
}

TEST_F(DriverTest, NoDeviceIsNoFault) {
  const Result<FoundDevices> found = FindIn({});
  ASSERT_TRUE(found.ok()) << found.status().Text();
  EXPECT_THAT(found->fit, IsEmpty());
  EXPECT_THAT(found->left_out, IsEmpty());
}

TEST_F(DriverTest, ALoaderWithoutADriverIsOneSentence) {
  FakeDriver::Fail("CreateInstance", VK_ERROR_INCOMPATIBLE_DRIVER);
  const auto instance = Instance::Create(FakeDriver::GetApi(), false);
  ASSERT_FALSE(instance.ok());
  EXPECT_EQ(instance.status().code(), Code::kBackendUnavailable);
  EXPECT_EQ(instance.status().sentence(),
            "Vulkan cannot create an instance: no compatible driver.");
}

TEST_F(DriverTest, AnOldLoaderIsOneSentence) {
  FakeDriver::SetLoaderVersion(VK_API_VERSION_1_1);
  const auto instance = Instance::Create(FakeDriver::GetApi(), false);
  ASSERT_FALSE(instance.ok());
  EXPECT_EQ(instance.status().code(), Code::kBackendUnavailable);
  EXPECT_EQ(instance.status().sentence(),
            "The Vulkan loader has version 1.1; the backend needs 1.2.");
}

TEST_F(DriverTest, AMissingLayerIsOneSentence) {
  const auto instance = Instance::Create(FakeDriver::GetApi(), true);
  ASSERT_FALSE(instance.ok());
  EXPECT_EQ(instance.status().code(), Code::kBackendUnavailable);
  EXPECT_EQ(instance.status().sentence(),
            "Vulkan cannot create an instance with the validation layer: layer not present.");
}

TEST_F(DriverTest, EveryMissingFunctionIsOneSentence) {
  std::vector<std::string> names;
#define ONNXIFI_NAME(name) names.emplace_back(#name);
  ONNXIFI_VULKAN_INSTANCE_FUNCTIONS(ONNXIFI_NAME)
  ONNXIFI_VULKAN_DEVICE_FUNCTIONS(ONNXIFI_NAME)
#undef ONNXIFI_NAME
  for (const std::string& name : names) {
    // There is no other way to be rid of these.
    if (name == "DestroyInstance" || name == "DestroyDevice") continue;
    FakeDriver::Recover();
    FakeDriver::Hide(name);
    const Status status = Story({}).Open();
    EXPECT_EQ(status.code(), Code::kBackendUnavailable) << name;
    EXPECT_EQ(status.sentence(), "The Vulkan loader has no function vk" + name + ".");
    EXPECT_EQ(FakeDriver::LiveObjects(), 0) << name;
  }
}

TEST_F(DriverTest, ADeviceThatComesBetweenTwoQuestionsIsForTheNextWhoAsk) {
  const auto instance = Instance::Create(FakeDriver::GetApi(), false);
  ASSERT_TRUE(instance.ok());
  // The second question, with room for as many as there were.
  FakeDriver::Fail("EnumeratePhysicalDevices", VK_INCOMPLETE, 1, 1);
  const Result<FoundDevices> found = FindDevices(**instance);
  EXPECT_TRUE(found.ok()) << found.status().Text();
}

}  // namespace
}  // namespace onnxifi::vulkan
