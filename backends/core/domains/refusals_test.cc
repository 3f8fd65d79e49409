// SPDX-License-Identifier: Apache-2.0
//
// What definitions of com.microsoft refuse by themselves, and with which sentence. What they
// compute is compared with ONNX Runtime by the conformance suite of domains.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/core/domains/known_domains.h"
#include "backends/core/model/definition.h"

namespace onnxifi::domains {
namespace {

using ::testing::HasSubstr;

constexpr int kFloat = onnx::TensorProto::FLOAT;
constexpr int kUint8 = onnx::TensorProto::UINT8;
constexpr int kInt8 = onnx::TensorProto::INT8;
constexpr int kFloat8 = onnx::TensorProto::FLOAT8E4M3FN;
constexpr int kInt32 = onnx::TensorProto::INT32;

struct Input {
  int type = 0;  // 0: omitted
  std::vector<int64_t> extents = {};
};

class Node final : public model::DefinedNode {
 public:
  Node(std::vector<Input> inputs, int outputs) : outputs_(outputs) {
    for (const Input& input : inputs) {
      onnx::TypeProto& type = types_.emplace_back();
      if (input.type == 0) continue;
      type.mutable_tensor_type()->set_elem_type(input.type);
      auto* shape = type.mutable_tensor_type()->mutable_shape();
      for (const int64_t extent : input.extents) shape->add_dim()->set_dim_value(extent);
    }
  }
  void Set(const std::string& name, int64_t number) {
    onnx::AttributeProto& attribute = attributes_[name];
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(number);
  }
  void Set(const std::string& name, const std::string& text) {
    onnx::AttributeProto& attribute = attributes_[name];
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(text);
  }

  const onnx::AttributeProto* FindAttribute(const std::string& name) const override {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? nullptr : &found->second;
  }
  int input_count() const override { return static_cast<int>(types_.size()); }
  bool Has(int input) const override {
    return input < input_count() && types_[static_cast<size_t>(input)].has_tensor_type();
  }
  const onnx::TypeProto* FindType(int input) const override {
    return Has(input) ? &types_[static_cast<size_t>(input)] : nullptr;
  }
  int output_count() const override { return outputs_; }
  bool Wants(int output) const override { return output < outputs_; }

 private:
  std::vector<onnx::TypeProto> types_;
  std::map<std::string, onnx::AttributeProto> attributes_;
  int outputs_;
};

// Empty where the node is defined.
std::string Refusal(const char* op_type, const Node& node) {
  const onnx::OpSchema* schema = KnownDomains().FindSchema(op_type, "com.microsoft", 1);
  const auto body = KnownDomains().Define(*schema, node);
  return body.ok() ? "" : body.status().Text();
}

// 3 tokens of 4 numbers, 5 experts with 6 inner ones, bytes as weights; behind them 8 other inputs.
Node QMoE(int weights = kUint8, Input scale = {}) {
  std::vector<Input> inputs = {
      {kFloat, {3, 4}},     {kFloat, {3, 5}}, {weights, {5, 6, 4}}, {kFloat, {5, 6}}, {},
      {weights, {5, 4, 6}}, {kFloat, {5, 4}}};
  inputs.resize(15);
  inputs.push_back(scale);
  Node node(inputs, 1);
  node.Set("expert_weight_bits", 8);
  return node;
}

TEST(RefusalsTest, QMoEOfOtherThanIntegers) {
  EXPECT_EQ(Refusal("QMoE", QMoE()), "");
  EXPECT_THAT(Refusal("QMoE", QMoE(kUint8, {kFloat, {5}})),
              HasSubstr("Input 15 scales floats of few bits"));
  EXPECT_THAT(Refusal("QMoE", QMoE(kFloat8)), HasSubstr("weights are integers in uint8"));
  Node node = QMoE();
  node.Set("quant_type", "nvfp4");
  EXPECT_THAT(Refusal("QMoE", node), HasSubstr("Attribute quant_type is 'nvfp4'"));
}

TEST(RefusalsTest, QMoEOfWrongNumbers) {
  Node node = QMoE();
  node.Set("k", 6);
  EXPECT_THAT(Refusal("QMoE", node), HasSubstr("Attribute k is 6; there are 5 experts."));
  node = QMoE();
  node.Set("expert_weight_bits", 3);
  EXPECT_THAT(Refusal("QMoE", node), HasSubstr("Weights have 3 bits instead of 2, 4 or 8."));
  node = QMoE();
  node.Set("activation_type", "swish");
  EXPECT_THAT(Refusal("QMoE", node), HasSubstr("Attribute activation_type is 'swish'"));
}

// A token behind 6, of 2 heads that share 1 of keys, 16 numbers each.
Node Attention(int cache, bool has_scales) {
  std::vector<Input> inputs = {
      {kFloat, {1, 1, 32}},   {kFloat, {1, 1, 16}}, {kFloat, {1, 1, 16}}, {cache, {1, 1, 6, 16}},
      {cache, {1, 1, 6, 16}}, {kInt32, {1}},        {kInt32, {}}};
  inputs.resize(12);
  if (has_scales) inputs.resize(14, {kFloat, {1}});
  Node node(inputs, 3);
  node.Set("num_heads", 2);
  node.Set("kv_num_heads", 1);
  node.Set("k_quant_type", "PER_TENSOR");
  node.Set("v_quant_type", "PER_TENSOR");
  node.Set("kv_cache_bit_width", 8);
  return node;
}

TEST(RefusalsTest, GroupQueryAttentionOfOtherCaches) {
  EXPECT_EQ(Refusal("GroupQueryAttention", Attention(kInt8, true)), "");
  EXPECT_THAT(Refusal("GroupQueryAttention", Attention(kInt8, false)),
              HasSubstr("A quantized cache has no scale."));
  EXPECT_THAT(Refusal("GroupQueryAttention", Attention(kUint8, true)),
              HasSubstr("A cache of 8 bits is uint8 instead of int8."));
  Node node = Attention(kInt8, true);
  node.Set("kv_cache_bit_width", 2);
  EXPECT_THAT(Refusal("GroupQueryAttention", node),
              HasSubstr("Attribute kv_cache_bit_width is 2; a quantized cache has 4 or 8 bits."));
  node = Attention(kInt8, true);
  node.Set("v_quant_type", "PER_TOKEN");
  EXPECT_THAT(Refusal("GroupQueryAttention", node),
              HasSubstr("Attribute v_quant_type is 'PER_TOKEN'"));
}

TEST(RefusalsTest, UnfoldTensorOfWrongNumbers) {
  const auto refusal = [](int64_t axis, int64_t size, int64_t step) {
    Node node({{kFloat, {5, 7}}}, 1);
    node.Set("dim", axis);
    node.Set("size", size);
    node.Set("step", step);
    return Refusal("UnfoldTensor", node);
  };
  EXPECT_EQ(refusal(-2, 5, 1), "");
  EXPECT_THAT(refusal(-3, 1, 1), HasSubstr("Attribute dim is -3, no axis of input 0, which has 2"));
  EXPECT_THAT(refusal(0, 6, 1), HasSubstr("Attribute size (6) exceeds axis 0 of input 0 (5)."));
  EXPECT_THAT(refusal(0, 2, 0), HasSubstr("step (0) are not both at least 1."));
}

}  // namespace
}  // namespace onnxifi::domains
