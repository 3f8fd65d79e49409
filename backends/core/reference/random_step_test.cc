// SPDX-License-Identifier: Apache-2.0
//
// Random steps: all are valid programs, the same seed gives the same step, and a comparison sees
// what a wrong device does.

#include "backends/core/reference/random_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "backends/core/program/product_operand.h"
#include "backends/core/program/verify.h"
#include "backends/core/reference/device.h"
#include "backends/core/reference/rounding_spread.h"
#include "backends/core/reference/testing/step_comparison.h"

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

// What devices choose kernels for narrow operands by is drawn often enough for each pair of types.
TEST(RandomStepTest, ProductsHaveOperandsOfNarrowTypes) {
  std::map<std::string, int> drawn;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const RandomStep made = MakeRandomStep(Family::kContract, seed);
    const program::Step& step = made.program.steps[0];
    const auto a = program::FindProductOperand(made.program, step, 0);
    const auto b = program::FindProductOperand(made.program, step, 1);
    if (!a.is_stored || !b.is_stored) continue;
    std::string text = std::string(Name(a.type)) + " " + std::string(Name(b.type));
    ++drawn[text + " " + std::string(Name(program::SumType(step)))];
    if (a.zero_point_read >= 0 && b.zero_point_read >= 0) ++drawn[text + " less zero points"];
  }
  for (const char* const products :
       {"float16 float16 float", "bfloat16 bfloat16 float", "int8 int8 int32", "uint8 int8 int32",
        "int8 uint8 int32", "uint8 uint8 int32", "uint8 int8 less zero points",
        "int8 int8 less zero points"}) {
    EXPECT_GE(drawn[products], 5) << products;
  }
}

// Types and number of everything that a step reads and writes.
std::string StructureOf(const RandomStep& step) {
  std::string text;
  const program::Step& body = step.program.steps[0];
  for (const std::vector<program::View>* views : {&body.reads, &body.writes}) {
    for (const program::View& view : *views) {
      text += std::string(tensor::Name(view.type)) + std::to_string(view.strides.size()) + " ";
    }
    text += "-> ";
  }
  return text + std::to_string(body.domain.size());
}

TEST(RandomStepTest, VariationsDifferInNumbersAlone) {
  for (const Family family : kFamilies) {
    int same_structure = 0;
    int different_text = 0;
    constexpr uint64_t kSeeds = 60;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const RandomStep one = MakeRandomStep(family, seed, 1);
      const RandomStep two = MakeRandomStep(family, seed, 2);
      ASSERT_TRUE(program::Verify(two.program).ok()) << Name(family) << " " << seed;
      EXPECT_EQ(ToString(one.program), ToString(MakeRandomStep(family, seed, 1).program));
      if (StructureOf(one) == StructureOf(two)) ++same_structure;
      if (ToString(one.program) != ToString(two.program)) ++different_text;
    }
    // An empty axis takes draws away; contractions have many axes, recurrences optional operands.
    EXPECT_GT(same_structure, 35) << Name(family);
    EXPECT_GT(different_text, 45) << Name(family);
  }
}

// A mean of values around zero, which the last places of the values move.
TEST(RandomStepTest, WhereTermsCancelLastPlacesMayDifferAndNoMore) {
  const auto make = [] { return MakeRandomStep(Family::kScan, 27); };
  const RandomStep step = make();
  Device device;
  const base::Result<std::vector<tensor::Tensor>> expected = RunStep(device, step);
  ASSERT_TRUE(expected.ok());
  const auto spread = FindRoundingSpread(make, *expected);
  ASSERT_TRUE(spread.ok());
  constexpr size_t kMeans = 6;
  constexpr size_t kElement = 82;
  const double mean = (*expected)[kMeans].AsDouble(kElement);
  const double room = (*spread)[kMeans][kElement];
  EXPECT_GT(room, 0x1p-50 * std::fabs(mean));
  EXPECT_LT(room, 0x1p-40);
  const auto differs = [&](double by) {
    std::vector<tensor::Tensor> actual;
    for (const tensor::Tensor& tensor : *expected) {
      actual.push_back(tensor::Tensor::FromBytes(tensor.type(), tensor.extents(), tensor.bytes()));
    }
    reinterpret_cast<double*>(actual[kMeans].mutable_data())[kElement] += by;
    return FindDifference(step, *expected, actual, &*spread).has_value();
  };
  EXPECT_FALSE(differs(room / 2));
  EXPECT_TRUE(differs(room * 2));
  EXPECT_TRUE(differs(1e-9));
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
