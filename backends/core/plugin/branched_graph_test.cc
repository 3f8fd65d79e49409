// SPDX-License-Identifier: Apache-2.0
//
// BranchedGraph: runs take either branch of an If, whichever comes first, without being compiled
// again; likewise runs of a Squeeze without axes, whatever it removes; and extents whose branch
// does not fit what reads it are refused.

#include "backends/core/plugin/branched_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "backends/core/plugin/hardware.h"
#include "backends/core/reference/device.h"

namespace onnxifi::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReferenceHardware : public Hardware {
 public:
  std::string plugin_name() const override { return "reference"; }
  std::vector<DeviceDescription> Enumerate() override { return {{.name = "Reference"}}; }
  const device::Selector& selector(int /*index*/) const override { return selector_; }
  base::Result<std::unique_ptr<device::Device>> Open(
      int /*index*/, const abi::BackendProperties& /*properties*/) override {
    return std::unique_ptr<device::Device>(std::make_unique<reference::Device>());
  }

 private:
  const reference::Device selector_;
};

// A squeeze of axis 1 of x [2, d, 3] as torch.onnx.export writes it, and what reads it.
std::string MakeModel(const std::string& reader) {
  onnx::ModelProto model;
  const std::string text = R"(
    <ir_version: 8, opset_import: ["" : 17]>
    graph (float[2, d, 3] x) => (float[a, b] y) <int64[1] one = {1}> {
      extents = Shape(x)
      extent = Gather<axis = 0>(extents, one)
      is_one = Equal(extent, one)
      squeezed = If(is_one)<
        then_branch = t () => (float[a, b] s) { s = Squeeze(x, one) },
        else_branch = e () => (float[a, b, c] i) { i = Identity(x) }>
      y = )" + reader + R"((squeezed)
    })";
  const auto parsed = onnx::OnnxParser::Parse(model, text.c_str());
  EXPECT_TRUE(parsed.IsOK()) << parsed.ErrorMessage();
  return model.SerializeAsString();
}

// The same by a Squeeze that names no axes. `declared`: of its result.
std::string MakePlainModel(const std::string& reader, const std::string& declared = "") {
  onnx::ModelProto model;
  const std::string text = R"(
    <ir_version: 8, opset_import: ["" : 17]>
    graph (float[2, d, 3] x) => (float[a, b] y) )" +
                           declared +
                           R"( {
      squeezed = Squeeze(x)
      y = )" + reader + R"((squeezed)
    })";
  const auto parsed = onnx::OnnxParser::Parse(model, text.c_str());
  EXPECT_TRUE(parsed.IsOK()) << parsed.ErrorMessage();
  return model.SerializeAsString();
}

std::vector<float> Counting(size_t count) {
  std::vector<float> numbers;
  for (size_t k = 0; k < count; ++k) numbers.push_back(static_cast<float>(k));
  return numbers;
}

class BranchedGraphTest : public ::testing::Test {
 protected:
  void Open(std::string model) {
    model_ = std::move(model);
    const auto ids = provider_->EnumerateBackendIds();
    ASSERT_TRUE(ids.ok());
    auto backend = ids->front()->InitBackend({});
    ASSERT_TRUE(backend.ok()) << backend.status().Text();
    backend_ = *std::move(backend);
    const abi::GraphRequest request = {.model = std::as_bytes(std::span(model_))};
    auto graph = backend_->InitGraph(request);
    ASSERT_TRUE(graph.ok()) << graph.status().Text();
    graph_ = *std::move(graph);
  }
  ~BranchedGraphTest() override {
    if (graph_ != nullptr) graph_->Close();
  }

  static abi::TensorDescriptor Describe(const char* name, const std::vector<uint64_t>& shape,
                                        std::vector<float>& numbers) {
    return {.name = name,
            .data_type = ONNXIFI_DATATYPE_FLOAT32,
            .shape = shape,
            .buffer = reinterpret_cast<onnxPointer>(numbers.data())};
  }

  // Of x [2, extent, 3], into y of this shape.
  base::Result<std::shared_ptr<const abi::Binding>> Bind(uint64_t extent, std::vector<float>& x,
                                                         const std::vector<uint64_t>& shape,
                                                         std::vector<float>& y) {
    abi::GraphTensors tensors;
    tensors.inputs.push_back(Describe("x", {2, extent, 3}, x));
    tensors.outputs.push_back(Describe("y", shape, y));
    return graph_->Bind(std::move(tensors));
  }

  // Runs of the graph, which negates x [2, extent, 3] without axis 1 where that is 1.
  void ExpectRuns() {
    // The model declares the rank of one branch alone.
    EXPECT_FALSE(graph_->signature()->outputs[0].has_shape);
    for (const uint64_t extent : {1, 3, 1, 2, 5}) {
      std::vector<float> x = Counting(6 * extent), y(x.size());
      const std::vector<uint64_t> shape =
          extent == 1 ? std::vector<uint64_t>{2, 3} : std::vector<uint64_t>{2, extent, 3};
      const std::vector<abi::TensorDescriptor> inputs = {Describe("x", {2, extent, 3}, x)};
      const auto inferred = graph_->InferOutputShapes(inputs);
      ASSERT_TRUE(inferred.ok()) << inferred.status().Text();
      EXPECT_EQ((*inferred)[0].extents, tensor::Extents(shape.begin(), shape.end()));
      const auto binding = Bind(extent, x, shape, y);
      ASSERT_TRUE(binding.ok()) << binding.status().Text();
      const auto event = graph_->Run(*binding, nullptr);
      ASSERT_TRUE(event.ok()) << event.status().Text();
      ASSERT_TRUE((*event)->Wait().ok());
      for (size_t k = 0; k < y.size(); ++k) EXPECT_EQ(y[k], -x[k]);
      // The rank of the other branch is wrong.
      const auto refused = Bind(
          extent, x, extent == 1 ? std::vector<uint64_t>{2, 1, 3} : std::vector<uint64_t>{2, 3}, y);
      EXPECT_EQ(refused.status().code(), base::Code::kMismatchingShape);
    }
    const auto counters = graph_->Counters();
    ASSERT_TRUE(counters.ok());
    EXPECT_EQ(counters->lowerings, 2U);
    EXPECT_EQ(counters->runs, 5U);
  }

  const std::unique_ptr<abi::Provider> provider_ =
      MakeProvider(std::make_unique<ReferenceHardware>());
  std::string model_;
  std::unique_ptr<abi::Backend> backend_;
  std::unique_ptr<abi::Graph> graph_;
};

TEST_F(BranchedGraphTest, RunsEitherBranch) {
  Open(MakeModel("Neg"));
  ExpectRuns();
}

TEST_F(BranchedGraphTest, RunsASqueezeOfTheOnesOfARun) {
  Open(MakePlainModel("Neg"));
  ExpectRuns();
}

// As an exporter writes it that traced an input whose symbol was 1.
TEST_F(BranchedGraphTest, RunsASqueezeOfOtherOnesThanDeclared) {
  Open(MakePlainModel("Neg", "<float[2, 3] squeezed>"));
  ExpectRuns();
}

// Whichever graph a run is of, it reads what the runs before it wrote.
TEST_F(BranchedGraphTest, RunsFollowOneAnother) {
  Open(MakeModel("Neg"));
  std::vector<float> numbers = Counting(6), more(6);
  const auto squeezed = Bind(1, numbers, {2, 3}, more);
  ASSERT_TRUE(squeezed.ok()) << squeezed.status().Text();
  std::vector<float> twice(12);
  std::vector<float> negated(12);
  const auto other = Bind(2, twice, {2, 2, 3}, negated);
  ASSERT_TRUE(other.ok()) << other.status().Text();
  const auto back = Bind(1, more, {2, 3}, numbers);
  ASSERT_TRUE(back.ok()) << back.status().Text();
  const auto start = backend_->NewEvent();
  ASSERT_TRUE(start.ok());
  ASSERT_TRUE(graph_->Run(*squeezed, *start).ok());
  const auto between = graph_->Run(*other, nullptr);
  ASSERT_TRUE(between.ok());
  const auto end = graph_->Run(*back, nullptr);
  ASSERT_TRUE(end.ok());
  // Nothing overtakes the run that waits.
  EXPECT_FALSE(*(*between)->IsSignalled());
  std::ranges::copy(Counting(12), twice.begin());
  ASSERT_TRUE((*start)->Signal().ok());
  ASSERT_TRUE((*end)->Wait().ok());
  EXPECT_THAT(more, ElementsAre(0, -1, -2, -3, -4, -5));
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(negated[11], -11);
}

TEST_F(BranchedGraphTest, RefusesABranchThatDoesNotFit) {
  Open(MakeModel("Transpose<perm = [1, 0]>"));
  std::vector<float> x = Counting(12), y(12);
  ASSERT_TRUE(Bind(1, x, {3, 2}, y).ok());
  const auto refused = Bind(2, x, {3, 2, 2}, y);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), base::Code::kUnsupportedShape);
  EXPECT_THAT(refused.status().Text(), HasSubstr("The extents of the run take its else_branch"));
  EXPECT_THAT(refused.status().Text(), HasSubstr("found d = 2"));
  EXPECT_THAT(refused.status().Text(), HasSubstr("perm has 2 axes and the input 3"));
  const std::vector<abi::TensorDescriptor> inputs = {Describe("x", {2, 2, 3}, x)};
  EXPECT_FALSE(graph_->InferOutputShapes(inputs).ok());
}

// Valid where the symbol is 1 alone, which is not known when the graph is compiled.
TEST_F(BranchedGraphTest, SaysThatARankIsNotKnownYet) {
  onnx::ModelProto model;
  const auto parsed = onnx::OnnxParser::Parse(model, R"(
    <ir_version: 8, opset_import: ["" : 17]>
    graph (float[n, 3] x) => (float[a] y) {
      squeezed = Squeeze(x)
      y = Transpose<perm = [0]>(squeezed)
    })");
  ASSERT_TRUE(parsed.IsOK()) << parsed.ErrorMessage();
  model_ = model.SerializeAsString();
  const auto ids = provider_->EnumerateBackendIds();
  ASSERT_TRUE(ids.ok());
  auto backend = ids->front()->InitBackend({});
  ASSERT_TRUE(backend.ok()) << backend.status().Text();
  backend_ = *std::move(backend);
  const auto graph = backend_->InitGraph({.model = std::as_bytes(std::span(model_))});
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), base::Code::kUnsupportedShape) << graph.status().Text();
  EXPECT_THAT(graph.status().Text(),
              HasSubstr("A Squeeze without axes before it keeps all symbols"));
}

}  // namespace
}  // namespace onnxifi::plugin
