// SPDX-License-Identifier: Apache-2.0
//
// SplitTest: for tests of sums of float32 as three products of TF32: a device that nobody has
// measured beside one with the rule, and the tables of errors in docs/cuda.md.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_SPLIT_FIXTURE_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_SPLIT_FIXTURE_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "backends/core/codegen/testing/step_fixture.h"
#include "backends/cuda/device.h"

namespace onnxifi::cuda {

inline constexpr int kSplitDepth = codegen::Tuning::kMinSplitDepth;

class SplitTest : public codegen::StepTest {
 protected:
  void SetUp() override { Open({}); }

  // Devices of these rules for the device "a", whose items do so many rounds of loops.
  void Open(const std::string& rules, int64_t most_rounds = INT64_MAX) {
    const auto api = LoadApi();
    if (!api.ok()) GTEST_SKIP() << api.status().Text();
    const auto compiler_api = LoadCompilerApi();
    if (!compiler_api.ok()) GTEST_SKIP() << compiler_api.status().Text();
    const auto found = FindDevices(*api);
    if (!found.ok() || found->fit.empty()) GTEST_SKIP() << "No CUDA device is fit.";
    DeviceInfo info = found->fit.front();
    const auto open = [&](const std::string& more) {
      EXPECT_TRUE(AddRules(more, "a", info.tuning).ok());
      info.tuning.Describe(info.capabilities);
      info.capabilities.most_rounds = most_rounds;
      return *Device::Open(*api, *compiler_api, info, std::filesystem::path());
    };
    plain_ = open(rules);
    split_ = open(fmt::format("a, 3xtf32, {}\n", kSplitDepth));
    device_ = split_.get();
  }

  // Of the emulated device; any other one's errors are printed.
  void ExpectInDocument(const std::string& table) const {
    std::ifstream file(ONNXIFI_TEST_DOCUMENT);
    const std::string document{std::istreambuf_iterator<char>(file), {}};
    if (document.empty() || split_->name().find("Emulated") == std::string::npos) {
      fmt::print("{}\n{}", split_->name(), table);
      return;
    }
    EXPECT_NE(document.find("\n" + table), std::string::npos)
        << "docs/cuda.md has other errors than\n"
        << table;
  }

  std::unique_ptr<Device> plain_, split_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_SPLIT_FIXTURE_H_
