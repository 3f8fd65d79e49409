// SPDX-License-Identifier: Apache-2.0
//
// Memory that others made, on the fake driver: what of the host's is used in place and what is
// copied, what of opaque file descriptors is refused, and that nothing is left after a fault.

#include "backends/vulkan/imports.h"

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/vulkan/testing/fake_caller.h"
#include "backends/vulkan/testing/fake_driver.h"
#include "backends/vulkan/testing/story.h"

namespace onnxifi::vulkan {
namespace {

using base::Code;
using testing::HasSubstr;

constexpr int64_t kPage = 4096;
constexpr int64_t kMin = Imports::kMinHostBytes;

int CountFds() {
  DIR* const folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

class ImportsTest : public FakeDriverTest {
 protected:
  void Open(const FakeDevice& device) {
    Close();
    FakeDriver::SetDevices({device});
    auto instance = Instance::Create(FakeDriver::GetApi(), false);
    ASSERT_TRUE(instance.ok()) << instance.status().Text();
    instance_ = *std::move(instance);
    const auto found = FindDevices(*instance_);
    ASSERT_TRUE(found.ok()) << found.status().Text();
    auto runtime = Runtime::Open(*instance_, found->fit.at(0));
    ASSERT_TRUE(runtime.ok()) << runtime.status().Text();
    runtime_ = *std::move(runtime);
    heap_ = std::make_unique<Heap>(*runtime_);
    imports_ = std::make_unique<Imports>(*runtime_, *heap_);
    objects_ = FakeDriver::LiveObjects();
  }
  void Close() {
    imports_.reset();
    heap_.reset();
    runtime_.reset();
    instance_.reset();
  }
  void SetUp() override {
    FakeDriverTest::SetUp();
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, 4 * kMin)));
  }
  void TearDown() override {
    Close();
    FakeDriverTest::TearDown();
  }

  std::unique_ptr<Instance> instance_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Heap> heap_;
  std::unique_ptr<Imports> imports_;
  std::unique_ptr<std::byte, decltype(&std::free)> memory_{nullptr, &std::free};
  int64_t objects_ = 0;
};

TEST_F(ImportsTest, UseMemoryOfTheHostsWhereItLies) {
  Open(UnifiedDevice());
  // On pages that it shares with others.
  std::byte* const begin = memory_.get() + kPage + 48;
  const auto imported = imports_->ImportHost(begin, kMin + 4);
  ASSERT_NE(imported, nullptr);
  EXPECT_GE(imported->size_bytes(), kMin + 4);
  EXPECT_EQ(FakeDriver::LiveObjects(), objects_ + 2);
  // What the device does there, the host sees.
  const auto own = heap_->Allocate(Purpose::kTensor, 64);
  ASSERT_TRUE(own.ok());
  const Heap::Location target = *heap_->Find(imported->data() + 100);
  const Heap::Location source = *heap_->Find((*own)->data());
  EXPECT_EQ(target.rest_bytes, kMin + 4 - 100);
  std::fill_n(begin, kMin, std::byte{3});
  std::fill_n(source.mapped, 64, std::byte{7});
  {
    Stream stream(*runtime_, *heap_, {}, Stream::Unsubmitted::kDropped);
    ASSERT_TRUE(stream.Copy((*own)->data(), imported->data() + 100, 64).ok());
    ASSERT_TRUE(stream.Finish().ok());
  }
  EXPECT_EQ(begin[99], std::byte{3});
  EXPECT_EQ(begin[100], std::byte{7});
  EXPECT_EQ(begin[163], std::byte{7});
  EXPECT_EQ(begin[164], std::byte{3});
}

TEST_F(ImportsTest, HaveOneImportOfARangeHoweverOftenItIsUsed) {
  Open(UnifiedDevice());
  auto first = imports_->ImportHost(memory_.get(), 2 * kMin);
  ASSERT_NE(first, nullptr);
  auto part = imports_->ImportHost(memory_.get() + kPage + 16, kMin);
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(part->data() - first->data(), kPage + 16);
  EXPECT_EQ(FakeDriver::LiveObjects(), objects_ + 2);
  // What overlaps it and is more is copied.
  EXPECT_EQ(imports_->ImportHost(memory_.get() + kMin, 2 * kMin), nullptr);
  // A neighbour on the same page is another.
  auto next = imports_->ImportHost(memory_.get() + 2 * kMin, kMin + 64);
  EXPECT_NE(next, nullptr);
  EXPECT_EQ(FakeDriver::LiveObjects(), objects_ + 4);
  first.reset();
  EXPECT_EQ(FakeDriver::LiveObjects(), objects_ + 4);
  EXPECT_TRUE(heap_->Find(part->data()).ok());
  part.reset();
  EXPECT_EQ(FakeDriver::LiveObjects(), objects_ + 2);
  // Nothing is remembered of it.
  EXPECT_NE(imports_->ImportHost(memory_.get() + kMin, kMin), nullptr);
}

TEST_F(ImportsTest, LeaveWhatDoesNotPayOrFitToCopies) {
  Open(UnifiedDevice());
  EXPECT_EQ(imports_->ImportHost(memory_.get(), kMin - 1), nullptr);
  EXPECT_EQ(imports_->ImportHost(memory_.get() + 8, kMin), nullptr);
  FakeDevice device = UnifiedDevice();
  device.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  Open(device);
  EXPECT_EQ(imports_->ImportHost(memory_.get(), kMin), nullptr);
  device = UnifiedDevice();
  device.extensions = {};
  Open(device);
  EXPECT_EQ(imports_->ImportHost(memory_.get(), kMin), nullptr);
  device = UnifiedDevice();
  device.refused_handle_types = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  Open(device);
  EXPECT_EQ(imports_->ImportHost(memory_.get(), kMin), nullptr);
  // A caller's device that was made without the extension.
  FakeDriver::Hide("GetMemoryHostPointerPropertiesEXT");
  Open(UnifiedDevice());
  EXPECT_EQ(imports_->ImportHost(memory_.get(), kMin), nullptr);
  FakeDriver::Recover();
  // Nobody knows what lies beyond the tensor's own pages.
  device = UnifiedDevice();
  device.host_memory_alignment = 16 * kPage;
  Open(device);
  std::byte* const aligned =
      memory_.get() + (-reinterpret_cast<uintptr_t>(memory_.get())) % (16 * kPage);
  EXPECT_EQ(imports_->ImportHost(aligned + kPage, kMin), nullptr);
  EXPECT_EQ(imports_->ImportHost(aligned, kMin + kPage), nullptr);
  EXPECT_NE(imports_->ImportHost(aligned, kMin), nullptr);
  // Memory of the host's whose writes the device would not see.
  device = UnifiedDevice();
  device.memory_types = {
      {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0},
      {VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, 0},
      {VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, 0}};
  Open(device);
  EXPECT_NE(imports_->ImportHost(memory_.get(), kMin), nullptr);
  EXPECT_EQ(FakeDriver::AllocatedTypes().back(), 2U);
}

TEST_F(ImportsTest, CopyAfterEachFaultAndLeaveNothing) {
  for (const char* const function : {"GetMemoryHostPointerPropertiesEXT", "CreateBuffer",
                                     "AllocateMemory", "BindBufferMemory"}) {
    Open(UnifiedDevice());
    for (const VkResult result : {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                  VK_ERROR_INVALID_EXTERNAL_HANDLE}) {
      FakeDriver::Fail(function, result, 0, 1);
      EXPECT_EQ(imports_->ImportHost(memory_.get(), kMin), nullptr) << function;
      EXPECT_EQ(FakeDriver::LiveObjects(), objects_) << function;
    }
    EXPECT_NE(imports_->ImportHost(memory_.get(), kMin), nullptr) << function;
  }
}

TEST_F(ImportsTest, TakeTheSameRangeOnSeveralThreads) {
  Open(UnifiedDevice());
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const auto imported = imports_->ImportHost(memory_.get(), kMin);
        ASSERT_NE(imported, nullptr);
        ASSERT_TRUE(heap_->Find(imported->data()).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(FakeDriver::LiveObjects(), objects_);
}

TEST_F(ImportsTest, UseMemoryBehindFileDescriptorsWhereItLies) {
  Open(UnifiedDevice());
  const int fds = CountFds();
  const int fd = MakeFakeMemoryFile(4 * kPage);
  auto imported = imports_->ImportFd(TellOfFakeMemory(fd, 4 * kPage, 32, 2 * kPage), 1000);
  ASSERT_TRUE(imported.ok()) << imported.status().Text();
  // The caller may close it.
  close(fd);
  EXPECT_EQ(CountFds(), fds);
  const Heap::Location place = *heap_->Find((*imported)->data() + 4);
  EXPECT_EQ(place.offset_bytes, 36);
  EXPECT_EQ(place.rest_bytes, 996);
  imported->reset();
  EXPECT_EQ(FakeDriver::LiveObjects(), objects_);
}

TEST_F(ImportsTest, RefuseFileDescriptorsThatDoNotFit) {
  Open(UnifiedDevice());
  const int fd = MakeFakeMemoryFile(kPage);
  const int fds = CountFds();
  const auto expect = [&](auto change, const std::vector<std::string>& words,
                          Code code = Code::kInvalidMemoryLocation) {
    onnxOpaqueFd told = TellOfFakeMemory(fd, kPage, 0, 1024);
    change(told);
    const auto imported = imports_->ImportFd(told, 1024);
    ASSERT_FALSE(imported.ok()) << words[0];
    EXPECT_EQ(imported.status().code(), code) << words[0];
    for (const std::string& word : words) {
      EXPECT_THAT(std::string(imported.status().sentence()), HasSubstr(word));
    }
    EXPECT_EQ(FakeDriver::LiveObjects(), objects_) << words[0];
    EXPECT_EQ(CountFds(), fds) << words[0];
  };
  expect([](onnxOpaqueFd& told) { told.fd = -1; }, {"-1 is not open"});
  expect([](onnxOpaqueFd& told) { told.fd = 9999; }, {"9999 is not open"});
  expect([](onnxOpaqueFd& told) { told.offset = 8; }, {"byte 8", "multiple of 16"});
  expect([](onnxOpaqueFd& told) { told.size_bytes = 1000; }, {"1000 bytes", "needs 1024"});
  expect([](onnxOpaqueFd& told) { told.offset = kPage - 1008; }, {"3088", "4096"});
  expect([](onnxOpaqueFd& told) { told.offset = ~uint64_t{15}; }, {"4096"});
  expect([](onnxOpaqueFd& told) { told.device_uuid[0] ^= 1; }, {"another device"});
  expect([](onnxOpaqueFd& told) { told.driver_uuid[3] ^= 1; }, {"another device or driver"});
  expect([](onnxOpaqueFd& told) { told.memory_type_index = 5; }, {"memory of type 5"});
  expect([](onnxOpaqueFd& told) { told.memory_type_index = 32; }, {"no memory type 32"});
  // The driver looks at it.
  expect([](onnxOpaqueFd& told) { told.allocation_bytes = 2 * kPage; }, {"no memory of such"});
  for (const char* const function : {"CreateBuffer", "AllocateMemory", "BindBufferMemory"}) {
    FakeDriver::Fail(function, VK_ERROR_OUT_OF_DEVICE_MEMORY, 0, 1);
    expect([](onnxOpaqueFd&) {}, {"out of device memory"}, Code::kNoDeviceMemory);
  }
  close(fd);
  FakeDevice device = UnifiedDevice();
  device.extensions = {VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME};
  Open(device);
  const auto refused = imports_->ImportFd(TellOfFakeMemory(0, kPage, 0, 1024), 1024);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kUnsupportedMemoryType);
  EXPECT_THAT(std::string(refused.status().sentence()), HasSubstr("opaque file descriptors"));
}

}  // namespace
}  // namespace onnxifi::vulkan
