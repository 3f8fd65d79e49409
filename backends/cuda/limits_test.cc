// SPDX-License-Identifier: Apache-2.0
//
// Graphs that are larger than the device's memory, through the exported interface, on an emulated
// device of little of it: a status with both numbers, nothing is left behind, and what fits runs.

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>

#include "backends/cuda/testing/caller_fixture.h"

namespace onnxifi::cuda {
namespace {

using testing::HasSubstr;

constexpr int64_t kMemoryMib = 48;
constexpr int64_t kWidth = 1024;

// tokens [N, 1024] times a matrix of so many columns for each of `products`, summed.
std::vector<std::byte> Products(const std::vector<int64_t>& products) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("products");
  const auto describe = [](onnx::ValueInfoProto& value, const char* name) {
    value.set_name(name);
    auto& type = *value.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_param("N");
    return type.mutable_shape()->add_dim();
  };
  describe(*graph.add_input(), "tokens")->set_dim_value(kWidth);
  describe(*graph.add_output(), "sums")->set_dim_value(1);
  onnx::NodeProto& sum = *graph.add_node();
  sum.set_op_type("Sum");
  sum.add_output("sums");
  for (const int64_t columns : products) {
    const std::string number = std::to_string(graph.initializer_size());
    onnx::TensorProto& weights = *graph.add_initializer();
    weights.set_name("weights" + number);
    weights.set_data_type(onnx::TensorProto::FLOAT);
    weights.add_dims(kWidth);
    weights.add_dims(columns);
    weights.set_raw_data(std::string(static_cast<size_t>(kWidth * columns) * sizeof(float), '\0'));
    onnx::NodeProto& product = *graph.add_node();
    product.set_op_type("MatMul");
    product.add_input("tokens");
    product.add_input(weights.name());
    product.add_output("product" + number);
    onnx::NodeProto& most = *graph.add_node();
    most.set_op_type("ReduceMax");
    most.add_input(product.output(0));
    most.add_output("most" + number);
    most.add_attribute()->set_name("axes");
    most.mutable_attribute(0)->set_type(onnx::AttributeProto::INTS);
    most.mutable_attribute(0)->add_ints(1);
    sum.add_input(most.output(0));
  }
  // Nodes come in order.
  onnx::NodeProto last = sum;
  graph.mutable_node()->DeleteSubrange(0, 1);
  *graph.add_node() = last;
  const std::string text = model.SerializeAsString();
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

class LimitsTest : public CallerTest {
 protected:
  void SetUp() override {
    setenv("ONNXIFI_EMULATED_MEMORY_MIB", std::to_string(kMemoryMib).c_str(), /*replace=*/1);
    CallerTest::SetUp();
    if (context_ == nullptr) return;
    live_ = Function<int(const char*)>("emulated_live");
    if (live_ == nullptr) GTEST_SKIP() << "The driver is not the emulated one.";
  }

  // What becomes of a run of so many tokens.
  static Outcome Run(const Graph& graph, uint64_t tokens) {
    std::vector<float> values(tokens * kWidth, 1);
    std::vector<float> sums(tokens, 7);
    const Outcome bound = graph.SetIO(
        std::vector{Tensor{"tokens", ONNXIFI_DATATYPE_FLOAT32, {tokens, kWidth}, values.data()}},
        std::vector{Tensor{"sums", ONNXIFI_DATATYPE_FLOAT32, {tokens, 1}, sums.data()}});
    if (!bound.ok()) return bound;
    const Outcome ran = graph.RunAndWait();
    if (ran.ok()) {
      EXPECT_EQ(sums, std::vector<float>(tokens, 0));
    }
    return ran;
  }
  static void ExpectRefused(const Outcome& outcome, onnxStatus status) {
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().status, status) << outcome.error().Text();
    EXPECT_THAT(outcome.error().sentence, HasSubstr(std::to_string(kMemoryMib << 20)));
    EXPECT_THAT(outcome.error().sentence, testing::ContainsRegex("[0-9]{8}.*[0-9]{8}"));
  }

  int (*live_)(const char*) = nullptr;
};

TEST_P(LimitsTest, WeightsThatAreMoreThanTheMemoryAreRefused) {
  const int before = live_("memory");
  {
    const Backend backend = InitBackend();
    // One of 64 MiB, and three of 20 MiB.
    for (const std::vector<int64_t>& products : {std::vector<int64_t>{16384}, {5120, 5120, 5120}}) {
      const auto graph = backend.InitGraph(Products(products));
      ExpectRefused(graph.ok() ? Run(*graph, 1) : Outcome(graph.error()),
                    ONNXIFI_STATUS_NO_DEVICE_MEMORY);
    }
    const auto fits = backend.InitGraph(Products({5120}));
    ASSERT_TRUE(fits.ok()) << fits.error().Text();
    const Outcome ran = Run(*fits, 2);
    EXPECT_TRUE(ran.ok()) << ran.error().Text();
  }
  EXPECT_EQ(live_("memory"), before);
}

TEST_P(LimitsTest, ARunOfMoreThanTheMemoryIsRefusedAndTheNextOneIsRight) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(Products({256}));
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  for (int turn = 0; turn < 2; ++turn) {
    const Outcome small = Run(*graph, 3);
    ASSERT_TRUE(small.ok()) << small.error().Text();
    // 64 MiB of tokens alone, which SetIO finds: the product lays them out.
    ExpectRefused(Run(*graph, 16384), ONNXIFI_STATUS_NO_DEVICE_MEMORY);
    // 44 MiB, and no room for what else there is, which the run finds: the wait for it has no
    // NO_DEVICE_MEMORY to answer with.
    ExpectRefused(Run(*graph, 11264), ONNXIFI_STATUS_INTERNAL_ERROR);
  }
  const Outcome small = Run(*graph, 5);
  ASSERT_TRUE(small.ok()) << small.error().Text();
}

INSTANTIATE_TEST_SUITE_P(Libraries, LimitsTest, BothLibraries(), LibraryName);

}  // namespace
}  // namespace onnxifi::cuda
