// SPDX-License-Identifier: Apache-2.0
//
// Random steps: all are valid programs, the same seed gives the same step, and a comparison sees
// what a wrong device does.

#include "backends/core/reference/random_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "backends/core/program/verify.h"
#include "backends/core/reference/device.h"

namespace onnxifi::reference {
namespace {

TEST(RandomStepTest, StepsAreValidAndRun) {
  for (const Family family : kFamilies) {
    Device device;
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const RandomStep step = MakeRandomStep(family, seed);
      const base::Status status = program::Verify(step.program);
      ASSERT_TRUE(status.ok()) << Name(family) << " " << seed << ": " << status.Text();
      const base::Result<std::vector<tensor::Tensor>> results = RunStep(device, step);
      ASSERT_TRUE(results.ok()) << Name(family) << " " << seed << ": " << results.status().Text();
    }
  }
}

TEST(RandomStepTest, SeedsDecide) {
  for (const Family family : kFamilies) {
    std::set<std::string> texts;
    for (uint64_t seed = 0; seed < 50; ++seed) {
      const std::string text = ToString(MakeRandomStep(family, seed).program);
      EXPECT_EQ(text, ToString(MakeRandomStep(family, seed).program));
      texts.insert(text);
    }
    EXPECT_GT(texts.size(), 45u) << Name(family);
  }
}

TEST(RandomStepTest, TheReferenceAgreesWithItself) {
  Device device;
  for (const Family family : kFamilies) {
    const Comparison comparison = CompareWithReference(device, family, 77, 50);
    EXPECT_EQ(comparison.compared, 50);
    EXPECT_EQ(comparison.different, 0) << comparison.first_difference;
  }
}

// Runs every step on the reference, then disturbs one byte of what it wrote.
class Wrong final : public device::Device {
 public:
  class WrongKernel final : public device::Kernel, public device::BoundKernel {
   public:
    explicit WrongKernel(std::unique_ptr<device::Kernel> kernel) : kernel_(std::move(kernel)) {}
    WrongKernel(std::unique_ptr<device::BoundKernel> bound, program::BufferId buffer)
        : bound_(std::move(bound)), buffer_(buffer) {}
    base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                            device::Addresses constants) override {
      ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::BoundKernel> bound,
                               kernel_->Bind(step, constants));
      const bool is_empty =
          std::find(step.domain.begin(), step.domain.end(), 0) != step.domain.end();
      const program::BufferId buffer = is_empty ? program::kNoBuffer : step.writes[0].buffer;
      return std::unique_ptr<device::BoundKernel>(
          std::make_unique<WrongKernel>(std::move(bound), buffer));
    }
    base::Status Run(device::Addresses addresses) const override {
      ONNXIFI_RETURN_IF_ERROR(bound_->Run(addresses));
      if (buffer_ != program::kNoBuffer) addresses[buffer_][0] ^= std::byte{0x51};
      return base::Ok();
    }

   private:
    std::unique_ptr<device::Kernel> kernel_;
    std::unique_ptr<device::BoundKernel> bound_;
    program::BufferId buffer_ = program::kNoBuffer;
  };

  device::Memory& memory() override { return device_.memory(); }
  base::Result<device::Selection> Select(const device::Facts& facts) const override {
    return device_.Select(facts);
  }
  base::Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe& recipe) override {
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel, device_.Build(recipe));
    return std::unique_ptr<device::Kernel>(std::make_unique<WrongKernel>(std::move(kernel)));
  }

 private:
  reference::Device device_;
};

TEST(RandomStepTest, AWrongDeviceIsFound) {
  Wrong device;
  for (const Family family : {Family::kReduce, Family::kIndex}) {
    const Comparison comparison = CompareWithReference(device, family, 5, 60);
    EXPECT_EQ(comparison.compared, 60);
    EXPECT_GT(comparison.different, 20);
    EXPECT_FALSE(comparison.first_difference.empty());
  }
}

}  // namespace
}  // namespace onnxifi::reference
