// SPDX-License-Identifier: Apache-2.0
//
// Story: for tests on the fake driver: what a plugin does with a driver, from the first question to
// the end of a run; and the fixture that holds every test to the rules of Vulkan.

#ifndef ONNXIFI_BACKENDS_VULKAN_TESTING_STORY_H_
#define ONNXIFI_BACKENDS_VULKAN_TESTING_STORY_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/execution/testing/story_model.h"
#include "backends/vulkan/device.h"
#include "backends/vulkan/testing/fake_driver.h"

namespace onnxifi::vulkan {

class Story {
 public:
  explicit Story(std::filesystem::path cache_folder, size_t device = 0)
      : cache_folder_(std::move(cache_folder)), device_index_(device) {}

  base::Status Open() {
    ONNXIFI_ASSIGN_OR_RETURN(instance_, Instance::Create(FakeDriver::GetApi(), false));
    ONNXIFI_ASSIGN_OR_RETURN(const FoundDevices found, FindDevices(*instance_));
    if (found.fit.size() <= device_index_) {
      return base::Status(base::Code::kBackendUnavailable, "No Vulkan device is fit.");
    }
    ONNXIFI_ASSIGN_OR_RETURN(device_,
                             Device::Open(*instance_, found.fit[device_index_], cache_folder_));
    return Load();
  }

  // The model once more, on the device that is open.
  base::Status Load() { return model_.Load(*device_); }

  // The fake driver computes nothing.
  base::Status Run(int64_t rows, execution::RunProfile* profile = nullptr) {
    return model_.Run(rows, /*computes=*/false, profile);
  }

  base::Status All() {
    ONNXIFI_RETURN_IF_ERROR(Open());
    ONNXIFI_RETURN_IF_ERROR(Run(3));
    ONNXIFI_RETURN_IF_ERROR(Run(700));
    execution::RunProfile profile;
    return Run(4, &profile);
  }

  Device& device() { return *device_; }

 private:
  const std::filesystem::path cache_folder_;
  const size_t device_index_;
  std::unique_ptr<Instance> instance_;
  std::unique_ptr<Device> device_;
  execution::StoryModel model_;
};

// A GPU whose memory the host cannot write but for a window of it, and the host's own memory.
inline FakeDevice DeviceWithMemoryOfItsOwn() {
  FakeDevice device;
  device.heaps = {{uint64_t{256} << 20, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT},
                  {uint64_t{512} << 20, 0},
                  {uint64_t{32} << 20, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}};
  constexpr VkMemoryPropertyFlags kMapped =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  device.memory_types = {{VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0},
                         {kMapped, 1},
                         {kMapped | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 1},
                         {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | kMapped, 2}};
  return device;
}

// After each test no object is left, and nothing was done against the rules.
class FakeDriverTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(FakeDriver::LiveObjects(), 0);
    FakeDriver::Reset();
    std::string name = (std::filesystem::temp_directory_path() / "vulkan_fault.XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override {
    EXPECT_EQ(FakeDriver::LiveObjects(), 0);
    EXPECT_THAT(FakeDriver::Misuses(), testing::IsEmpty());
    FakeDriver::Reset();
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path folder_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_TESTING_STORY_H_
