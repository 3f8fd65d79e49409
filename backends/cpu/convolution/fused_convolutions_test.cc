// SPDX-License-Identifier: Apache-2.0
//
// Depthwise convolutions that are computed together with those of 1 x 1 around them, against the
// reference, which computes one after the other: strides, dilations and padding, several images,
// rings that are written over, groups, summands, and results in a part of a wider tensor.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/execution/testing/run_program.h"
#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/plugin/pipeline.h"
#include "backends/core/reference/device.h"
#include "backends/cpu/device.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/processor/testing/each_target.h"
#include "backends/cpu/processor/testing/stated_caches.h"

namespace onnxifi::cpu {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::testing::GraphBuilder;
using tensor::ElementType;
using tensor::Tensor;
using Ints = std::vector<int64_t>;

constexpr ElementType kFloat = ElementType::kFloat32;

struct Case {
  bool has_before = true, has_behind = true;
  int64_t batch = 1, height = 37, width = 61;
  int64_t channels = 6, between = 160, results = 20;
  int64_t kernel = 3, stride = 1, dilation = 1, pad_begin = 1, pad_end = 1;
  int64_t groups_behind = 1;
  bool has_sum = false;      // with what the fused steps read
  bool is_sliced = false;    // the result is a part of a concatenation
  bool is_symbolic = false;  // the number of images
  bool has_bounds = true;
};

class Network {
 public:
  explicit Network(const Case& test) : test_(test), random_(7) {
    graph::Type type;
    type.kind = graph::Type::Kind::kTensor;
    type.element = kFloat;
    type.extents.emplace();
    type.extents->push_back(test.is_symbolic ? graph::Extent{-1, "images"}
                                             : graph::Extent{test.batch, ""});
    for (const int64_t extent : {int64_t{3}, test.height, test.width}) {
      type.extents->push_back({extent, ""});
    }
    const ValueId x = builder_.AddInput("x", type);
    const int64_t first_channels = test.has_before ? test.channels : test.between;
    // So that what the fused steps read lies with its channels innermost.
    const ValueId first = Convolve(x, 3, first_channels, 5, 1, {2, 2, 2, 2}, 1, 1);
    // Before the fused steps, which follow each other.
    const ValueId other = Convolve(first, first_channels, 9, 3, 1, Ints(4, 1));
    ValueId at = first;
    if (test.has_before) at = Bound(Convolve(at, test.channels, test.between, 1, 1, Ints(4, 0)));
    at = Bound(Convolve(at, test.between, test.between, test.kernel, test.stride,
                        {test.pad_begin, test.pad_begin, test.pad_end, test.pad_end}, test.dilation,
                        test.between));
    if (test.has_behind) {
      at = Convolve(at, test.between, test.results, 1, 1, Ints(4, 0), 1, test.groups_behind);
      if (test.has_sum) at = builder_.AddNode("Add", 14, {at, first});
    }
    if (test.is_sliced) {
      at = builder_.AddNode("Concat", 13, {other, at}, {{"axis", int64_t{1}}});
    }
    // So that the result is no output, whose layout would be the caller's. Maxima do not depend on
    // the processor, as sums of oneDNN do.
    graph_ = builder_.Take({builder_.AddNode(
        "MaxPool", 12, {at}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}})});
  }

  const Graph& graph() const { return graph_; }
  Tensor Input() { return Random({test_.batch, 3, test_.height, test_.width}, 1); }

 private:
  Tensor Random(const tensor::Extents& extents, float most) {
    std::vector<float> values(static_cast<size_t>(tensor::ElementCount(extents)));
    std::uniform_real_distribution<float> uniform(-most, most);
    for (float& value : values) value = uniform(random_);
    return Tensor::FromValues<float>(kFloat, extents, values);
  }
  ValueId Convolve(ValueId x, int64_t in, int64_t out, int64_t kernel, int64_t stride,
                   const Ints& pads, int64_t dilation = 1, int64_t group = 1) {
    const int64_t depth = in / group * kernel * kernel;
    const ValueId w = builder_.AddConstant(
        Random({out, in / group, kernel, kernel}, std::sqrt(3.0F / static_cast<float>(depth))));
    const ValueId bias = builder_.AddConstant(Random({out}, 0.3F));
    return builder_.AddNode("Conv", 11, {x, w, bias},
                            {{"pads", pads},
                             {"strides", Ints{stride, stride}},
                             {"dilations", Ints{dilation, dilation}},
                             {"group", group}});
  }
  ValueId Bound(ValueId x) {
    if (!test_.has_bounds) return x;
    const float low = -0.4F, high = 0.7F;
    return builder_.AddNode(
        "Clip", 13,
        {x, builder_.AddConstant(Tensor::FromValues<float>(kFloat, {}, {&low, 1})),
         builder_.AddConstant(Tensor::FromValues<float>(kFloat, {}, {&high, 1}))});
  }

  const Case test_;
  std::mt19937 random_;
  GraphBuilder builder_;
  Graph graph_;
};

struct Answer {
  std::vector<float> values;
  std::string chain;  // the kernel that is one, and what it says of itself
};

Answer RunOn(device::Device& device, Network& network) {
  plugin::LoadTimes times;
  Answer answer;
  auto program = plugin::Compile(Graph(network.graph()), device, base::Log(), times);
  if (!program.ok()) {
    ADD_FAILURE() << program.status().Text();
    return answer;
  }
  plan::Counters counters;
  auto plan = plan::Plan::Create(**program, device, counters);
  if (!plan.ok()) {
    ADD_FAILURE() << plan.status().Text();
    return answer;
  }
  if (const base::Status prepared = (*plan)->Prepare(); !prepared.ok()) {
    ADD_FAILURE() << prepared.Text();
  }
  for (size_t step = 0; step < (*program)->steps.size(); ++step) {
    const int at = static_cast<int>(step);
    if ((*plan)->step_count(at) > 1) answer.chain += std::string((*plan)->implementation(at));
  }
  execution::Executor executor(**plan);
  const std::vector<Tensor> inputs = {network.Input()};
  // The second time in memory that the first has left.
  for (int run = 0; run < 2; ++run) {
    execution::TensorOutputs places(**program);
    const base::Status status = executor.Run(execution::AsInputs(inputs), places);
    if (!status.ok()) ADD_FAILURE() << status.Text();
    const auto values = places.tensors[0].values<float>();
    answer.values.assign(values.begin(), values.end());
  }
  return answer;
}

std::unique_ptr<Device> MakeDevice(int threads) {
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(threads), base::Log());
  EXPECT_TRUE(device.ok()) << device.status().Text();
  return *std::move(device);
}

void ExpectRight(const Case& test, const std::string& chain, const std::vector<int>& threads) {
  reference::Device plain;
  Network network(test);
  const Answer expected = RunOn(plain, network);
  EXPECT_EQ(expected.chain, "");
  std::vector<float> first;
  for (const int count : threads) {
    Network again(test);
    const Answer found = RunOn(*MakeDevice(count), again);
    EXPECT_EQ(found.chain, chain);
    ASSERT_EQ(found.values.size(), expected.values.size());
    for (size_t k = 0; k < found.values.size(); ++k) {
      ASSERT_NEAR(found.values[k], expected.values[k], 2e-5) << k << " of " << count << " threads";
    }
    if (first.empty()) first = found.values;
    EXPECT_EQ(found.values, first) << count << " threads";
  }
}

// A quarter of the L2 cache is the limit: images between the convolutions are fused where they are
// larger, and a few of their rows have to fit.
class FusedConvolutionsTest : public testing::Test {
 protected:
  const processor::StatedCaches caches_{processor::kLargeCaches};
};

constexpr const char* kAll = "pointwise, depthwise and pointwise";
constexpr const char* kBefore = "pointwise and depthwise";
constexpr const char* kBehind = "depthwise and pointwise";

TEST_F(FusedConvolutionsTest, TakesConvolutionsBeforeAndBehind) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    ExpectRight({}, kAll, {1, 2, 5});
    ExpectRight({.has_behind = false}, kBefore, {1, 3});
    ExpectRight({.has_before = false}, kBehind, {1, 3});
  });
}

TEST_F(FusedConvolutionsTest, TakesStridesDilationsAndPadding) {
  ExpectRight({.stride = 2}, kAll, {1, 2});
  ExpectRight({.stride = 2, .pad_begin = 0, .pad_end = 1}, kAll, {2});
  ExpectRight({.kernel = 5, .pad_begin = 2, .pad_end = 2}, kAll, {1, 2});
  ExpectRight({.kernel = 5, .stride = 3, .pad_begin = 1, .pad_end = 3}, kAll, {1, 2});
  ExpectRight({.dilation = 2, .pad_begin = 2, .pad_end = 2}, kAll, {1, 2});
  ExpectRight({.stride = 2, .dilation = 3, .pad_begin = 3, .pad_end = 1}, kAll, {1, 2});
  // Image rows of the result whose windows see padding alone.
  ExpectRight({.pad_begin = 5, .pad_end = 6}, kAll, {1, 2});
}

TEST_F(FusedConvolutionsTest, TakesImagesOneAfterTheOther) {
  Case test{.height = 11, .width = 13, .between = 33, .results = 7};
  test.batch = processor::L2Floats() / 4 / (11 * 13 * 33) + 2;
  ExpectRight(test, kAll, {1, 2, 4});
  test.stride = 2;
  ExpectRight(test, kAll, {1, 3});
}

TEST_F(FusedConvolutionsTest, AddsASummandAndBoundsNothingElse) {
  ExpectRight({.results = 6, .has_sum = true, .has_bounds = false}, kAll, {1, 2});
}

TEST_F(FusedConvolutionsTest, WritesIntoAPartOfAWiderTensor) {
  ExpectRight({.is_sliced = true}, kAll, {1, 2});
  ExpectRight({.has_behind = false, .is_sliced = true}, kBefore, {1, 2});
}

TEST_F(FusedConvolutionsTest, TakesGroups) {
  ExpectRight({.results = 48, .groups_behind = 4}, kAll, {1, 2});
}

TEST_F(FusedConvolutionsTest, TakesAsManyImagesAsComeLate) {
  ExpectRight({.batch = 3, .is_symbolic = true}, kAll, {1, 2});
}

TEST_F(FusedConvolutionsTest, FusesLessWhereTheRowsExceedTheCache) {
  const Case test{.stride = 2, .dilation = 3, .pad_begin = 3, .pad_end = 1};
  ExpectRight(test, kAll, {2});
  const processor::StatedCaches medium(processor::kMediumCaches);
  ExpectRight(test, kBehind, {2});
}

TEST_F(FusedConvolutionsTest, LeavesAloneWhatStaysNear) {
  ExpectRight({.height = 8, .width = 8, .between = 16}, "", {2});
}

}  // namespace
}  // namespace onnxifi::cpu
