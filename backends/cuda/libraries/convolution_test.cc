// SPDX-License-Identifier: Apache-2.0
//
// Convolutions by cuDNN wherever it can, compared with the reference: on the emulated device and
// library, or on a GPU.

#include <gmock/gmock.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/tiled_fixture.h"

namespace onnxifi::codegen {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr ElementType kHalf = ElementType::kFloat16;

class LibraryConvolutionTest : public StepTest {
 protected:
  void SetUp() override {
    setenv(kUse, "cudnn", /*replace=*/1);
    setenv("ONNXIFI_EMULATED_TWICE", "1", /*replace=*/1);
    StepTest::SetUp();
    unsetenv(kUse);
    if (device_ == nullptr || tested_->name() == "Emulated GPU") return;
    const RandomStep step = MakeConvolution(1, 1, 5, 6, {{9, 3}}, kFloat, 1);
    const auto selection = device_->Select({step.program, step.program.steps[0]});
    if (selection->recipe->implementation() != "cuDNN") {
      GTEST_SKIP() << selection->rejected[0].sentence();
    }
  }

  // The library on a GPU has the engines that it has.
  bool is_emulated() const { return tested_->name() == "Emulated GPU"; }
  void ExpectBy(const RandomStep& step, const std::string& detail) {
    ExpectRight(step, "cuDNN");
    const std::string found = DetailOf(step, reads_at_run_);
    if (found.starts_with("channels ")) ++by_library_;
    if (is_emulated()) EXPECT_EQ(found, detail);
  }
  // By the kernel that would have been without the library.
  void ExpectPassedOver(const RandomStep& step, const std::string& reason) {
    ExpectRight(step, "cuDNN");
    const std::string found = DetailOf(step, reads_at_run_);
    if (!is_emulated()) return;
    EXPECT_THAT(found, AllOf(StartsWith("tiled "), HasSubstr("cuDNN passed over: " + reason)));
  }
  void ExpectNotAsked(const RandomStep& step, const std::string& reason) {
    const auto selection = device_->Select({step.program, step.program.steps[0]});
    ASSERT_TRUE(selection.ok());
    EXPECT_NE(selection->recipe->implementation(), "cuDNN");
    ASSERT_FALSE(selection->rejected.empty());
    EXPECT_THAT(std::string(selection->rejected[0].sentence()), HasSubstr(reason));
  }

  std::vector<bool> reads_at_run_;  // of the last step whose detail was looked at
  int by_library_ = 0;              // steps that the library computed
  static constexpr char kUse[] = "ONNXIFI_CUDA_LIBRARIES";
};

constexpr char kByLibrary[] = "channels first, results by the library";
constexpr char kWithKernel[] = "channels first, results by a kernel of ours";
constexpr char kLastByLibrary[] = "channels last, results by the library";
constexpr char kNoEngine[] = "None of cuDNN's 0 engines computes";
constexpr char kLastWithKernel[] = "channels last, results by a kernel of ours";

// Where the channels are in memory.
enum class Order : uint8_t { kFirst, kLast };

// What is made of the sums: a bias per channel, at least 0, an addend like the output, all of them
// or none.
struct Results {
  bool has_bias = false, is_rectified = false, has_addend = false;
  double scale = 1;
};

struct Case {
  int64_t images = 1, group = 1, channels = 5, outputs = 6;
  std::vector<Axis> axes = {{8, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}};
  ElementType type = kFloat, out_type = kFloat;
  Order image = Order::kFirst, weights = Order::kFirst, output = Order::kFirst;
  program::Buffer::Kind weights_kind = kConstant;
  Results results;
};

View MakeView(StepMaker& make, const Extents& extents, Order order, ElementType type,
              program::Buffer::Kind kind = kVariable) {
  if (order == Order::kFirst) return make.Buffer(extents, type, kind);
  Extents in_memory = extents;
  in_memory.erase(in_memory.begin() + 1);
  in_memory.push_back(extents[1]);
  View view = make.Buffer(in_memory, type, kind);
  const program::Dim of_channels = view.strides.back();
  view.strides.pop_back();
  view.strides.insert(view.strides.begin() + 1, of_channels);
  return view;
}

RandomStep Make(const Case& of, uint32_t seed) {
  StepMaker make(seed);
  Contract contract;
  contract.form = Contract::Form::kConv;
  contract.group = of.group;
  contract.inner = {of.channels};
  Extents a = {of.images, of.group * of.channels}, b = {of.group * of.outputs, of.channels};
  Extents domain = {of.images, of.group * of.outputs};
  for (const Axis& axis : of.axes) {
    a.push_back(axis.extent);
    b.push_back(axis.kernel);
    domain.push_back(axis.out());
    contract.inner.push_back(axis.kernel);
    contract.a_spatial.push_back(axis.extent);
    contract.strides.push_back(axis.stride);
    contract.dilations.push_back(axis.dilation);
    contract.pads_begin.push_back(axis.before);
  }
  contract.a_prologue = Cast(make.Read(MakeView(make, a, of.image, of.type)), kFloat).id();
  contract.b_prologue =
      Cast(make.Read(MakeView(make, b, of.weights, of.type, of.weights_kind)), kFloat).id();
  make.step.domain = program::Shape(domain.begin(), domain.end());
  program::Expr value = Accumulator(make.pool(), kFloat);
  if (of.results.scale != 1) value = value * Like(value, of.results.scale);
  if (of.results.has_bias) {
    View bias = make.Buffer({domain[1]}, of.out_type);
    bias.strides.assign(domain.size(), 0);
    bias.strides[1] = 1;
    value = value + Cast(make.Read(bias), kFloat);
  }
  if (of.results.has_addend) {
    value = value + Cast(make.Read(MakeView(make, domain, of.output, of.out_type)), kFloat);
  }
  if (of.results.is_rectified) value = Maximum(value, Like(value, 0));
  contract.roots = {Cast(value, of.out_type).id()};
  make.step.writes = {MakeView(make, domain, of.output, of.out_type)};
  make.step.body = std::move(contract);
  make.FinishStep(1e-3);
  make.made.roundings = 2;
  return std::move(make.made);
}

// An axis with as many zeros behind it as before it.
Axis Padded(int64_t extent, int64_t kernel, int64_t stride, int64_t dilation, int64_t pads) {
  return {extent, kernel, stride, dilation, pads, pads};
}

TEST_F(LibraryConvolutionTest, OneToThreeAxesOfAnyAttributes) {
  uint32_t seed = 0;
  for (const std::vector<Axis>& axes :
       {std::vector<Axis>{Padded(9, 3, 1, 1, 1)},
        {Padded(12, 4, 2, 1, 0)},
        {Padded(8, 3, 1, 1, 1), Padded(9, 3, 1, 1, 1)},
        {Padded(9, 1, 1, 1, 0), Padded(7, 1, 1, 1, 0)},
        {Padded(11, 5, 2, 1, 2), Padded(8, 3, 1, 2, 2)},
        {Padded(7, 7, 2, 1, 3), Padded(10, 3, 3, 1, 0)},
        {Padded(6, 2, 1, 1, 0), Padded(5, 3, 2, 1, 1), Padded(7, 3, 1, 2, 2)}}) {
    for (const int64_t images : {1, 3}) {
      for (const int64_t group : {1, 2}) {
        SCOPED_TRACE(testing::Message() << ++seed);
        ExpectBy(Make({.images = images, .group = group, .axes = axes}, seed), kByLibrary);
      }
    }
  }
}

TEST_F(LibraryConvolutionTest, DepthwiseAndOfOneChannel) {
  ExpectBy(Make({.group = 8, .channels = 1, .outputs = 1}, 1), kByLibrary);
  ExpectBy(Make({.group = 4, .channels = 1, .outputs = 2}, 2), kByLibrary);
  ExpectBy(Make({.channels = 1, .outputs = 1}, 3), kByLibrary);
}

TEST_F(LibraryConvolutionTest, TypesAndWhatIsMadeOfSums) {
  uint32_t seed = 0;
  for (const ElementType type : {kFloat, kHalf, ElementType::kBfloat16}) {
    by_library_ = 0;
    for (const ElementType out_type : {kFloat, type}) {
      for (const bool has_bias : {false, true}) {
        for (const bool is_rectified : {false, true}) {
          for (const bool has_addend : {false, true}) {
            SCOPED_TRACE(testing::Message() << ++seed << " bias " << has_bias << " relu "
                                            << is_rectified << " addend " << has_addend);
            Case of{.type = type,
                    .out_type = out_type,
                    .results = {has_bias, is_rectified, has_addend}};
            const bool is_whole = has_bias || !(is_rectified || has_addend);
            for (const Order order : {Order::kFirst, Order::kLast}) {
              of.image = of.weights = of.output = order;
              const bool is_first = order == Order::kFirst;
              if (type != kFloat && (out_type == kFloat || !is_whole)) {
                ExpectPassedOver(Make(of, seed), kNoEngine);
              } else if (is_whole) {
                ExpectBy(Make(of, seed), is_first ? kByLibrary : kLastByLibrary);
              } else {
                ExpectBy(Make(of, seed), is_first ? kWithKernel : kLastWithKernel);
              }
            }
          }
        }
      }
    }
    EXPECT_GT(by_library_, 0) << "of " << tensor::Name(type);
  }
  Case scaled{.results = {.has_bias = true, .scale = 0.25}};
  ExpectBy(Make(scaled, 100), kWithKernel);
  scaled.image = scaled.output = Order::kLast;
  ExpectBy(Make(scaled, 101), kLastWithKernel);
  // A bias, an addend like the output, at least 0.
  ExpectBy(MakeConvolution(2, 1, 5, 6, {Padded(9, 3, 1, 1, 1)}, kFloat, 102), kByLibrary);
}

TEST_F(LibraryConvolutionTest, ConstantWeightsAreLaidOutAsTheImageIs) {
  uint32_t seed = 0;
  for (const ElementType type : {kFloat, kHalf}) {
    for (const int64_t group : {1, 2}) {
      SCOPED_TRACE(testing::Message() << ++seed);
      Case of{.images = 2, .group = group, .type = type, .out_type = type};
      of.image = of.output = Order::kLast;
      ExpectBy(Make(of, seed), kLastByLibrary);
      EXPECT_FALSE(reads_at_run_[1]) << "The weights are the kernel's own.";
      EXPECT_TRUE(reads_at_run_[0]);
      of.image = of.output = Order::kFirst;
      of.weights = Order::kLast;
      ExpectBy(Make(of, seed), kByLibrary);
      EXPECT_FALSE(reads_at_run_[1]);
      of.weights = Order::kFirst;
      ExpectBy(Make(of, seed), kByLibrary);
      EXPECT_TRUE(reads_at_run_[1]);
      of.weights_kind = kVariable;
      ExpectBy(Make(of, seed), kByLibrary);
    }
  }
}

// As many zeros as before the image, of which no output sees some, or just those that outputs need.
TEST_F(LibraryConvolutionTest, PadsOfBothSides) {
  ExpectBy(Make({.axes = {{8, 3, 2, 1, 1, 0}, {12, 7, 2, 1, 3, 2}}}, 1), kByLibrary);
  ExpectBy(Make({.axes = {{8, 3, 1, 1, 1, 0}, {9, 3, 1, 1, 1, 1}}}, 2), kByLibrary);
}

TEST_F(LibraryConvolutionTest, PrecisionIsTheCallers) {
  using enum tensor::Precision;
  for (const tensor::Precision precision : {kFloat32, kTf32, kBfloat16, kFloat16}) {
    RandomStep step = Make({}, 1);
    step.program.precision = precision;
    // Numbers that TF32 does not have.
    for (size_t operand = 0; operand < 2; ++operand) {
      tensor::Tensor& tensor = step.buffers[operand];
      auto* const values = reinterpret_cast<float*>(tensor.mutable_data());
      for (int64_t k = 0; k < tensor.element_count(); ++k) {
        values[k] *= operand == 0 ? 1.0F + 0x1p-13F : 1;
      }
    }
    step.tolerance = precision == kFloat32 ? 1e-4 : 1;
    ExpectBy(step, kByLibrary);
    const auto selection = device_->Select({step.program, step.program.steps[0]});
    EXPECT_EQ(selection->recipe->precision(), precision == kFloat32 ? kFloat32 : kTf32);
    if (!is_emulated() || precision == kFloat32) continue;
    step.tolerance = 1e-4;
    const auto expected = RunStep(*std::make_unique<reference::Device>(), step);
    const auto actual = RunStep(*device_, step);
    EXPECT_TRUE(FindDifference(step, *expected, *actual)) << "The first engine rounds.";
  }
}

TEST_F(LibraryConvolutionTest, WhatIsNoConvolutionOfTheLibrarysIsNotAsked) {
  ExpectNotAsked(MakeTransposed(1, 1, 5, 6, {{9, 3}}, kFloat, 1), "of 1 to 3 spatial axes");
  ExpectNotAsked(MakeConvolution(1, 1, 2, 2, {{3, 1}, {3, 1}, {3, 1}, {3, 1}}, kFloat, 2),
                 "of 1 to 3 spatial axes");
  RandomStep padded = Make({}, 3);
  padded.program.steps[0].reads[0].guards = {{{0, 0, 1, 0}, 0, 3}};
  ExpectNotAsked(padded, "An operand is not multiplied as it lies in memory.");
}

TEST_F(LibraryConvolutionTest, WhatLiesOtherwiseIsPassedOver) {
  Case of{.weights = Order::kLast};
  of.image = Order::kLast;
  // The sums lie as the image does.
  ExpectBy(Make(of, 1), kLastWithKernel);
  of.output = Order::kLast;
  of.weights = Order::kFirst;
  of.weights_kind = kVariable;
  ExpectPassedOver(Make(of, 2), "Weights that are no constant do not lie as the image does.");
  RandomStep repeated = Make({}, 3);
  repeated.program.steps[0].reads[0].strides[2] = 0;
  ExpectPassedOver(repeated, "Image and output are not packed");
}

}  // namespace
}  // namespace onnxifi::codegen
