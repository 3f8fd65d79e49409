// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of float16 by cuDNN, whose engines on tensor cores want channels last: a network of
// them is laid out so without a step that transposes. Through the exported interface; expected
// values are those of the reference plugin.

#include <onnx/onnx_pb.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "backends/cuda/testing/caller_fixture.h"

namespace onnxifi::cuda {
namespace {

constexpr int64_t kImages = 2, kChannels = 4, kWide = 8, kSize = 8;

void AddInts(onnx::NodeProto& node, const char* name, const std::vector<int64_t>& values) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
}

// Two convolutions behind one another, beside one of one tap; their sum, at least 0; one more, and
// the mean of each channel.
class Network {
 public:
  Network() {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(17);
    graph().set_name("residual");
    Describe(*graph().add_input(), "image", {kImages, kChannels, kSize, kSize});
    Describe(*graph().add_output(), "means", {kImages, kWide, 1, 1});
    AddConvolution("image", "a", kChannels, 3, 1);
    AddNode("Relu", {"a"}, "b");
    AddConvolution("b", "c", kWide, 3, 2);
    AddConvolution("image", "d", kChannels, 1, 2);
    AddNode("Add", {"c", "d"}, "e");
    AddNode("Relu", {"e"}, "f");
    AddConvolution("f", "g", kWide, 3, 1);
    AddNode("GlobalAveragePool", {"g"}, "means");
  }
  std::vector<std::byte> bytes() const {
    const std::string text = model_.SerializeAsString();
    const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
  }
  static std::vector<_Float16> Draw(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> level(-0.5F, 0.5F);
    std::vector<_Float16> values(count);
    for (_Float16& value : values) value = static_cast<_Float16>(level(random));
    return values;
  }

 private:
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  static void Describe(onnx::ValueInfoProto& value, const char* name,
                       const std::vector<int64_t>& extents) {
    value.set_name(name);
    auto& type = *value.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT16);
    for (const int64_t extent : extents) type.mutable_shape()->add_dim()->set_dim_value(extent);
  }
  onnx::NodeProto& AddNode(const char* type, const std::vector<std::string>& inputs,
                           const std::string& output) {
    onnx::NodeProto& node = *graph().add_node();
    node.set_op_type(type);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }
  void AddWeights(const std::string& name, const std::vector<int64_t>& extents) {
    onnx::TensorProto& weights = *graph().add_initializer();
    weights.set_name(name);
    weights.set_data_type(onnx::TensorProto::FLOAT16);
    size_t count = 1;
    for (const int64_t extent : extents) {
      weights.add_dims(extent);
      count *= static_cast<size_t>(extent);
    }
    const auto values = Draw(count, static_cast<uint32_t>(graph().initializer_size()));
    weights.set_raw_data(values.data(), values.size() * sizeof(_Float16));
  }
  void AddConvolution(const std::string& from, const std::string& to, int64_t channels,
                      int64_t taps, int64_t stride) {
    AddWeights(to + "_weights", {kWide, channels, taps, taps});
    AddWeights(to + "_bias", {kWide});
    onnx::NodeProto& node = AddNode("Conv", {from, to + "_weights", to + "_bias"}, to);
    AddInts(node, "pads", std::vector<int64_t>(4, taps / 2));
    AddInts(node, "strides", {stride, stride});
  }

  onnx::ModelProto model_;
};

class ChannelsTest : public CallerTest {
 protected:
  void SetUp() override {
    setenv("ONNXIFI_CUDA_LIBRARIES", "cudnn", /*replace=*/1);
    CallerTest::SetUp();
  }
  static std::vector<_Float16> Run(const Graph& graph, uint32_t seed) {
    std::vector<_Float16> image = Network::Draw(kImages * kChannels * kSize * kSize, seed);
    std::vector<_Float16> means(kImages * kWide);
    const Outcome bound = graph.SetIO(
        std::vector{Tensor{
            "image", ONNXIFI_DATATYPE_FLOAT16, {kImages, kChannels, kSize, kSize}, image.data()}},
        std::vector{
            Tensor{"means", ONNXIFI_DATATYPE_FLOAT16, {kImages, kWide, 1, 1}, means.data()}});
    EXPECT_TRUE(bound.ok()) << bound.error().Text();
    const Outcome ran = graph.RunAndWait();
    EXPECT_TRUE(ran.ok()) << ran.error().Text();
    return means;
  }
};

TEST_P(ChannelsTest, ANetworkOfFloat16HasItsChannelsLast) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(Network().bytes(), {.profile = true});
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  const auto reference = Library::Open(ONNXIFI_TEST_REFERENCE);
  const auto expected = reference->FindDevice("null")->InitBackend()->InitGraph(Network().bytes());
  ASSERT_TRUE(expected.ok()) << expected.error().Text();
  for (uint32_t seed = 100; seed < 103; ++seed) {
    const std::vector<_Float16> means = Run(*graph, seed), right = Run(*expected, seed);
    for (size_t k = 0; k < means.size(); ++k) {
      EXPECT_NEAR(static_cast<float>(means[k]), static_cast<float>(right[k]), 4e-3) << k;
    }
  }
  const auto profile = graph->Profile();
  ASSERT_TRUE(profile.ok()) << profile.error().Text();
  int by_library = 0, others = 0;
  for (const StepRecord& step : *profile) {
    if (step.detail == "channels last, results by the library") {
      ++by_library;
    } else {
      ++others;
    }
  }
  // The last one. The two that read the image, which is the caller's and stays as it is, write
  // channels last by kernels of ours; another one makes more of its sums than the library does. The
  // means; and nothing that transposes.
  EXPECT_EQ(by_library, 1);
  EXPECT_EQ(others, 4);
}

INSTANTIATE_TEST_SUITE_P(Libraries, ChannelsTest, BothLibraries(), LibraryName);

}  // namespace
}  // namespace onnxifi::cuda
