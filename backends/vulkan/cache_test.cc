// SPDX-License-Identifier: Apache-2.0
//
// Kernels on disk, from one process to the next; on the fake driver.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "backends/vulkan/testing/fake_driver.h"
#include "backends/vulkan/testing/story.h"

namespace onnxifi::vulkan {
namespace {

namespace fs = std::filesystem;
using Modules = std::set<std::vector<uint32_t>>;

class CacheTest : public FakeDriverTest {
 protected:
  // What the next process finds: how many kernels it compiles from source.
  static int64_t CompiledBy(const fs::path& folder) {
    FakeDriver::Recover();
    Story story(folder);
    const base::Status status = story.All();
    EXPECT_TRUE(status.ok()) << status.Text();
    return story.device().compiled_count();
  }
  // What the driver was given since.
  static Modules GivenModules() {
    Modules modules;
    for (const auto& words : FakeDriver::Modules()) modules.insert(words);
    return modules;
  }
  static std::vector<fs::path> FilesIn(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  }
};

TEST_F(CacheTest, KernelsComeFromTheDiskTheSecondTime) {
  const int64_t compiled = CompiledBy(folder_);
  EXPECT_GT(compiled, 1);
  const Modules modules = GivenModules();
  EXPECT_EQ(static_cast<int64_t>(FilesIn(folder_).size()), compiled);
  EXPECT_EQ(CompiledBy(folder_), 0);
  EXPECT_EQ(GivenModules(), modules);
}

// What drivers make of SPIR-V takes them longer than SPIR-V takes the compiler.
TEST_F(CacheTest, DriversGetBackWhatTheyMadeOfAKernel) {
  const int64_t compiled = CompiledBy(folder_);
  EXPECT_EQ(FakeDriver::PipelinesFromCache(), 0);
  EXPECT_EQ(CompiledBy(folder_), 0);
  EXPECT_EQ(FakeDriver::PipelinesFromCache(), compiled);
}

TEST_F(CacheTest, DriversThatKeepNothingCostNothing) {
  for (const char* const function : {"CreatePipelineCache", "GetPipelineCacheData"}) {
    FakeDriver::Recover();
    FakeDriver::Fail(function, VK_ERROR_OUT_OF_HOST_MEMORY);
    {
      Story story(folder_ / function);
      const base::Status status = story.All();
      EXPECT_TRUE(status.ok()) << status.Text();
    }
    EXPECT_EQ(CompiledBy(folder_ / function), 0) << function;
    EXPECT_EQ(FakeDriver::PipelinesFromCache(), 0) << function;
  }
}

// Drivers do not look at what they are given: it must not reach them.
TEST_F(CacheTest, DamagedKernelsOnDiskAreCompiledAnew) {
  const int64_t compiled = CompiledBy(folder_);
  const Modules modules = GivenModules();
  const auto damage = [&](const char* what, const std::function<void(const fs::path&)>& how) {
    for (const fs::path& file : FilesIn(folder_)) how(file);
    EXPECT_EQ(CompiledBy(folder_), compiled) << what;
    EXPECT_EQ(GivenModules(), modules) << what;
    EXPECT_EQ(CompiledBy(folder_), 0) << what;
    EXPECT_EQ(GivenModules(), modules) << what;
  };
  damage("cut", [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); });
  damage("empty", [](const fs::path& file) { fs::resize_file(file, 0); });
  for (const std::streamoff at : {-1, -100, -1000}) {
    damage("flipped", [&](const fs::path& file) {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(at, std::ios::end);
      const int byte = stream.get();
      stream.seekp(at, std::ios::end);
      stream.put(static_cast<char>(byte ^ 1));
    });
  }
  damage("of something else",
         [](const fs::path& file) { std::ofstream(file) << "something else"; });
  damage("longer", [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) + 4096); });
  damage("larger than memory", [](const fs::path& file) {
    // The header says what the file has: a terabyte behind the key, without a block on the disk.
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(8);
    uint64_t key_bytes = 0;
    stream.read(reinterpret_cast<char*>(&key_bytes), sizeof(key_bytes));
    const uint64_t binary_bytes = uint64_t{1} << 40;
    stream.seekp(16);
    stream.write(reinterpret_cast<const char*>(&binary_bytes), sizeof(binary_bytes));
    stream.close();
    std::error_code error;
    fs::resize_file(file, 32 + key_bytes + binary_bytes, error);
    // Older than what replaces it, however coarse the clock.
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(1), error);
  });
  damage("each other's", [&, first = fs::path()](const fs::path& file) mutable {
    if (first.empty()) first = file;
    if (first != file) {
      fs::copy_file(first, file, fs::copy_options::overwrite_existing);
    } else {
      fs::resize_file(file, 10);
    }
  });
}

TEST_F(CacheTest, KernelsOfAnotherDeviceOrDriverAreCompiledAnew) {
  const int64_t compiled = CompiledBy(folder_);
  FakeDevice other_device;
  other_device.uuid = {4, 5, 6};
  FakeDevice other_version;
  other_version.driver_version = 8;
  FakeDevice other_build;
  other_build.driver_info = "1.0 (git)";
  FakeDevice other_driver;
  other_driver.driver_name = "Other driver";
  for (const FakeDevice& other : {other_device, other_version, other_build, other_driver}) {
    FakeDriver::SetDevices({other});
    EXPECT_EQ(CompiledBy(folder_), compiled) << other.driver_name << ' ' << other.driver_info;
    EXPECT_EQ(CompiledBy(folder_), 0);
  }
  // Each has entries of its own.
  FakeDriver::SetDevices({FakeDevice{}});
  EXPECT_EQ(CompiledBy(folder_), 0);
}

TEST_F(CacheTest, WhatADriverTakesNoMoreIsCompiledAnew) {
  const int64_t compiled = CompiledBy(folder_);
  FakeDriver::Recover();
  FakeDriver::Fail("CreateComputePipelines", VK_ERROR_UNKNOWN, 0, 1);
  Story story(folder_);
  const base::Status status = story.All();
  EXPECT_TRUE(status.ok()) << status.Text();
  EXPECT_EQ(story.device().compiled_count(), 1);
  EXPECT_EQ(CompiledBy(folder_), 0);
  EXPECT_GT(compiled, 1);
}

TEST_F(CacheTest, AFolderThatCannotBeWrittenCostsNothingButTime) {
  std::ofstream(folder_ / "file") << "no folder";
  const int64_t compiled = CompiledBy(folder_ / "file");
  EXPECT_GT(compiled, 1);
  EXPECT_EQ(CompiledBy(folder_ / "file"), compiled);
}

}  // namespace
}  // namespace onnxifi::vulkan
