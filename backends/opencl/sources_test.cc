// SPDX-License-Identifier: Apache-2.0
//
// What the compiler of the machine's first device makes of the kernels of random steps, for that
// device and for a GPU: all are compiled, none is started. Skipped where there is no device. The
// variable ONNXIFI_TEST_SOURCES says how many.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backends/core/codegen/testing/source_collector.h"
#include "backends/opencl/device.h"

namespace onnxifi::opencl {
namespace {

constexpr size_t kFew = 100;

size_t CountOfSources() {
  const char* const text = std::getenv("ONNXIFI_TEST_SOURCES");
  return text == nullptr ? kFew : std::strtoull(text, nullptr, 10);
}

class SourcesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto api = LoadApi(kLoaderLibrary);
    if (!api.ok()) GTEST_SKIP() << api.status().Text();
    auto devices = FindDevices(*api);
    if (!devices.ok()) GTEST_SKIP() << devices.status().Text();
    if (devices->empty()) GTEST_SKIP() << "No platform has a device.";
    info_ = devices->front();
    auto device = Device::Open(*api, info_, /*cache_folder=*/{});
    ASSERT_TRUE(device.ok()) << device.status().Text();
    device_ = *std::move(device);
  }

  DeviceInfo info_;
  std::unique_ptr<Device> device_;
};

TEST_F(SourcesTest, KernelsOfRandomStepsAreCompiled) {
  for (const bool is_own : {true, false}) {
    SCOPED_TRACE(is_own ? "as for the device" : "as for a GPU");
    codegen::DeviceLimits limits = info_.limits;
    if (!is_own) limits.is_processor = limits.is_float64_fast = false;
    const std::vector<std::string> sources = codegen::CollectSources(
        codegen::OpenClDialect(), device_->kernel_driver().product_library(), limits,
        is_own ? CountOfSources() : CountOfSources() / 10);
    std::atomic<size_t> next = 0;
    std::atomic<size_t> compiled = 0;
    std::mutex mutex;
    std::string refused;  // the first, with what the compiler says; guarded
    std::vector<std::thread> threads;
    for (unsigned k = 0; k < std::max(1U, std::thread::hardware_concurrency()); ++k) {
      threads.emplace_back([&] {
        for (size_t at = next++; at < sources.size(); at = next++) {
          const auto kernel = device_->kernel_driver().Compile(sources[at]);
          compiled += kernel.ok() ? 1 : 0;
          const std::lock_guard lock(mutex);
          if (!kernel.ok() && refused.empty()) refused = kernel.status().Text() + sources[at];
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(compiled, sources.size()) << refused;
    EXPECT_GE(sources.size(), is_own ? CountOfSources() : CountOfSources() / 10);
  }
}

TEST_F(SourcesTest, AMistakeIsFound) {
  EXPECT_FALSE(device_->kernel_driver().Compile("__kernel void run() { nothing = 0; }").ok());
}

}  // namespace
}  // namespace onnxifi::opencl
