// SPDX-License-Identifier: Apache-2.0
//
// What definitions of com.microsoft, and of ONNX's experiments, refuse by themselves, and with
// which sentence. What they compute is compared with ONNX Runtime by the conformance suite of
// domains.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <limits>
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
constexpr int kFloat16 = onnx::TensorProto::FLOAT16;
constexpr int64_t kUnknown = -1;  // an extent
constexpr int kInt32 = onnx::TensorProto::INT32;
constexpr int kInt64 = onnx::TensorProto::INT64;

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
      for (const int64_t extent : input.extents) {
        onnx::TensorShapeProto::Dimension* dim = shape->add_dim();
        if (extent != kUnknown) dim->set_dim_value(extent);
      }
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

  void Set(const std::string& name, const std::vector<int64_t>& numbers) {
    onnx::AttributeProto& attribute = attributes_[name];
    attribute.set_type(onnx::AttributeProto::INTS);
    attribute.mutable_ints()->Assign(numbers.begin(), numbers.end());
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
std::string Refusal(const char* op_type, const Node& node, const char* domain = "com.microsoft") {
  const onnx::OpSchema* schema = KnownDomains().FindSchema(op_type, domain, 1);
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

// Zero points that run on from column to column, where each column's begin with a byte.
TEST(RefusalsTest, MatMulNBitsOfOtherNumbers) {
  const auto refusal = [](int64_t bytes, int64_t scales, Input zero_points) {
    Node node({{kFloat, {3, 32}}, {kUint8, {6, 2, bytes}}, {kFloat, {scales}}, zero_points}, 1);
    for (const auto& [name, number] :
         std::map<std::string, int64_t>{{"K", 32}, {"N", 6}, {"bits", 4}, {"block_size", 16}}) {
      node.Set(name, number);
    }
    return Refusal("MatMulNBits", node);
  };
  EXPECT_EQ(refusal(8, 12, {kUint8, {6}}), "");
  EXPECT_EQ(refusal(8, 12, {kFloat, {6, 2}}), "");
  EXPECT_EQ(refusal(8, 12, {kUint8, {kUnknown}}), "");
  EXPECT_EQ(refusal(8, 12, {}), "");
  EXPECT_THAT(refusal(8, 12, {kUint8, {3}}),
              HasSubstr("Input 3 (zero_points) has 3 elements; the blocks of 6 columns take 6."));
  EXPECT_THAT(refusal(8, 12, {kFloat, {6}}),
              HasSubstr("Input 3 (zero_points) has 6 elements; the blocks of 6 columns take 12."));
  EXPECT_THAT(refusal(8, 6, {}),
              HasSubstr("Input 2 (scales) has 6 elements; the blocks of 6 columns take 12."));
  EXPECT_THAT(refusal(16, 12, {}),
              HasSubstr("Input 1 (B) has 192 elements; the blocks of 6 columns take 96."));
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

// 5 tokens of 4 heads of 6 numbers, keys and values of `kv` heads.
Node LinearAttention(int64_t heads, int64_t kv) {
  Node node({{kFloat, {2, 5, 24}}, {kFloat, {2, 5, 24}}, {kFloat, {2, 5, 24}}}, 2);
  node.Set("q_num_heads", heads);
  node.Set("kv_num_heads", kv);
  node.Set("update_rule", "linear");
  return node;
}

TEST(RefusalsTest, LinearAttentionOfWrongNumbers) {
  EXPECT_EQ(Refusal("LinearAttention", LinearAttention(4, 4)), "");
  EXPECT_THAT(Refusal("LinearAttention", LinearAttention(4, 3)),
              HasSubstr("q_num_heads (4) and kv_num_heads (3) are no multiples of each other."));
  EXPECT_THAT(Refusal("LinearAttention", LinearAttention(2, 1)),
              HasSubstr("Input 1 has rows of 24 elements for 1 heads of 12."));
  Node node = LinearAttention(4, 4);
  node.Set("state_window", 9);
  EXPECT_THAT(Refusal("LinearAttention", node),
              HasSubstr("Attribute state_window is 9; 0 to 8 states are kept."));
  node = LinearAttention(4, 4);
  node.Set("update_rule", "rwkv");
  EXPECT_THAT(Refusal("LinearAttention", node), HasSubstr("Attribute update_rule is 'rwkv'"));
}

TEST(RefusalsTest, CausalConvolutionOfOtherForms) {
  const auto refusal = [](const char* attribute, int64_t number, std::vector<int64_t> extents) {
    Node node({{kFloat, extents}, {kFloat, {6, 1, 4}}}, 2);
    node.Set(attribute, number);
    return Refusal("CausalConvWithState", node);
  };
  EXPECT_EQ(refusal("dilation", 2, {1, 6, 9}), "");
  EXPECT_EQ(refusal("channels_last", 1, {1, 9, 2, 3}), "");
  EXPECT_THAT(refusal("ndim", 2, {1, 6, 9, 9}), HasSubstr("Attribute ndim is 2"));
  EXPECT_THAT(refusal("dilation", 0, {1, 6, 9}), HasSubstr("Attribute dilation is 0, below 1."));
  EXPECT_THAT(refusal("dilation", 1, {1, 6, 9, 9}), HasSubstr("Input 0 has 4 axes instead of 3."));
}

TEST(RefusalsTest, GatedNormOfOtherForms) {
  const auto refusal = [](const std::string& activation, int64_t row) {
    Node node({{kFloat, {2, row}}, {kFloat, {4}}, {kFloat, {2, row}}}, 1);
    node.Set("activation", activation);
    return Refusal("GatedRMSNorm", node);
  };
  EXPECT_EQ(refusal("swish", 12), "");
  EXPECT_THAT(refusal("relu", 12), HasSubstr("Attribute activation is 'relu'"));
  EXPECT_THAT(refusal("silu", 10),
              HasSubstr("Input 0 has rows of 10 elements, no multiple of the 4 of the scale."));
}

// Which blocks of channels a filter has, its extents tell in part: 24 outputs are blocks of 8
// alone, 12 inputs of blocks of 16 alone. One of the two is not this processor's.
TEST(RefusalsTest, BlocksOfChannelsOfAnotherProcessor) {
  const auto convolution = [](int64_t outputs, int64_t inputs, int64_t group) {
    Node node({{kFloat, {1, inputs * group, 5, 5}}, {kFloat, {outputs, inputs, 3, 3}}}, 1);
    node.Set("group", group);
    return Refusal("Conv", node, "com.microsoft.nchwc");
  };
  EXPECT_EQ(convolution(48, 3, 1), "");
  EXPECT_EQ(convolution(48, 64, 1), "");
  EXPECT_EQ(convolution(48, 1, 48), "");
  EXPECT_EQ(convolution(64, 32, 2), "");
  const std::string of_eight = convolution(24, 3, 1);
  const std::string of_sixteen = convolution(32, 12, 1);
  EXPECT_NE(of_eight.empty(), of_sixteen.empty());
  EXPECT_THAT(of_eight + of_sixteen, HasSubstr("those of this processor."));
  EXPECT_THAT(of_eight + of_sixteen, HasSubstr("at ORT_ENABLE_EXTENDED it is for all."));
  EXPECT_THAT(convolution(20, 3, 1),
              HasSubstr("The filter of 20 outputs and 3 inputs in 1 groups"));
  EXPECT_THAT(convolution(48, 3, 0), HasSubstr("Attribute group is 0, below 1."));
  const auto output = [](int64_t channels) {
    Node node({{kFloat, {1, 32, 5, 5}}}, 1);
    node.Set("channels", channels);
    return Refusal("ReorderOutput", node, "com.microsoft.nchwc");
  };
  EXPECT_EQ(output(30), "");
  EXPECT_THAT(output(12), HasSubstr("An image of 12 channels in 32 does not come in blocks of"));
  EXPECT_THAT(output(0), HasSubstr("Attribute channels is 0, below 1."));
  EXPECT_THAT(output(33), HasSubstr("Attribute channels is 33; input 0 has 32 channels."));
  Node node({{kFloat, {1, 32, 5, 5}}}, 1);
  node.Set("scales", std::vector<int64_t>{2, 2});
  EXPECT_THAT(Refusal("Upsample", node, "com.microsoft.nchwc"),
              HasSubstr("Attribute scales has 2 numbers instead of 4."));
}

TEST(RefusalsTest, HyperConnectionsOfWrongExtents) {
  const auto norm = [](int64_t branches, Input scale) {
    Node node({{kFloat, {2, 20}}, scale}, 1);
    node.Set("num_branches", branches);
    return Refusal("BranchwiseRMSNorm", node);
  };
  EXPECT_EQ(norm(4, {kFloat, {20}}), "");
  EXPECT_THAT(norm(3, {}),
              HasSubstr("Input 0 has rows of 20 elements, no multiple of 3 branches."));
  EXPECT_THAT(norm(4, {kFloat, {6}}), HasSubstr("Input 1 has 6 elements for 4 branches of 5."));
  EXPECT_THAT(norm(-1, {}), HasSubstr("attribute num_branches is -1"));
  Node node({{kFloat, {2, 4, 5}}, {kFloat, {4}}}, 1);
  EXPECT_THAT(Refusal("HyperConnectionPreMix", node),
              HasSubstr("Input 1 has 1 axes for streams of 3."));
}

TEST(RefusalsTest, RotationsByPositionsOfOtherForms) {
  const auto refusal = [](const std::vector<int64_t>& sections, int64_t layout, int64_t heads) {
    Node node({{kFloat, {2, 5, 24}}, {kInt64, {3, 2, 5}}, {kFloat, {9, 4}}, {kFloat, {9, 4}}}, 1);
    node.Set("mrope_section", sections);
    node.Set("mrope_layout", layout);
    node.Set("num_heads", heads);
    return Refusal("MRotaryEmbedding", node);
  };
  EXPECT_EQ(refusal({2, 1, 1}, 0, 3), "");
  EXPECT_THAT(refusal({2, 2}, 0, 3), HasSubstr("Attribute mrope_section has 2 numbers"));
  EXPECT_THAT(refusal({2, 2, 1}, 0, 3), HasSubstr("covers 5 pairs; the cosines have 4."));
  EXPECT_THAT(refusal({2, 1, 1}, 2, 3), HasSubstr("Attribute mrope_layout is 2"));
  EXPECT_THAT(refusal({2, 1, 1}, 1, 0), HasSubstr("Attribute num_heads is 0, below 1"));
}

TEST(RefusalsTest, SparseAttentionOfWrongNumbers) {
  const auto refusal = [](int64_t layouts, int64_t kv, int64_t block) {
    Node node({{kFloat, {1, 1, 64}},
               {kFloat, {1, 1, 32}},
               {kFloat, {1, 1, 32}},
               {kFloat, {1, 2, 9, 16}},
               {kFloat, {1, 2, 9, 16}},
               {kInt32, {layouts, 3}},
               {kInt32, {layouts, 4}},
               {kInt32, {1}},
               {kInt32, {1}}},
              3);
    node.Set("num_heads", 4);
    node.Set("kv_num_heads", kv);
    node.Set("sparse_block_size", block);
    return Refusal("SparseAttention", node);
  };
  EXPECT_EQ(refusal(2, 2, 16), "");
  EXPECT_THAT(refusal(3, 2, 16), HasSubstr("no multiple of the 3 layouts of input 5."));
  EXPECT_THAT(refusal(2, 3, 16), HasSubstr("is no multiple of kv_num_heads (3)."));
  EXPECT_THAT(refusal(2, 2, 0), HasSubstr("Attribute sparse_block_size is 0, below 1."));
}

TEST(RefusalsTest, AttentionOfDecodersInOtherForms) {
  const auto refusal = [](int64_t tokens, int64_t is_shared, bool has_width) {
    std::vector<Input> inputs(10);
    for (size_t k = 0; k < 3; ++k) inputs[k] = {kFloat, {4, tokens, 16}};
    inputs[5] = inputs[6] = {kFloat, {4, 2, 9, 8}};
    inputs[7] = {kInt32, {1}};
    if (has_width) inputs[8] = {kInt32, {1}};
    Node node(inputs, 3);
    node.Set("num_heads", 2);
    node.Set("past_present_share_buffer", is_shared);
    return Refusal("DecoderMaskedMultiHeadAttention", node);
  };
  EXPECT_EQ(refusal(1, 1, false), "");
  EXPECT_THAT(refusal(2, 1, false), HasSubstr("Input 0 has 2 tokens of each sample"));
  EXPECT_THAT(refusal(1, 0, false), HasSubstr("attribute past_present_share_buffer is not"));
  EXPECT_THAT(refusal(1, 1, true), HasSubstr("not both the number of beams and the beams"));
}

TEST(RefusalsTest, ArrayOperatorsOfWrongNumbers) {
  Node repeats({{kInt64, {1, 5}}, {kFloat, {1, 9}}}, 1);
  repeats.Set("ngram_size", 0);
  EXPECT_THAT(Refusal("NGramRepeatBlock", repeats),
              HasSubstr("Attribute ngram_size is 0, below 1."));
  Node sampled({{kFloat, {1, 1, 4, 4}}, {kFloat, {1, 2, 2, 2}}}, 1);
  sampled.Set("mode", "linear");
  EXPECT_THAT(Refusal("GridSample", sampled), HasSubstr("Attribute mode is 'linear'"));
  Node finite({{kFloat, {3}}}, 1);
  finite.Set("isnan_only", 1);
  finite.Set("isinf_only", 1);
  EXPECT_THAT(Refusal("IsAllFinite", finite), HasSubstr("are both set."));
}

TEST(RefusalsTest, PackedAttentionOfWrongNumbers) {
  const auto refusal = [](int64_t heads, int64_t columns, const std::vector<int64_t>& sizes) {
    Node node({{kFloat, {7, 6}},
               {kFloat, {6, columns}},
               {kFloat, {columns}},
               {kInt32, {3, 4}},
               {kInt32, {4}}},
              1);
    node.Set("num_heads", heads);
    if (!sizes.empty()) node.Set("qkv_hidden_sizes", sizes);
    return Refusal("PackedAttention", node);
  };
  EXPECT_EQ(refusal(2, 24, {}), "");
  EXPECT_EQ(refusal(2, 28, {8, 8, 12}), "");
  EXPECT_THAT(refusal(0, 24, {}), HasSubstr("Attribute num_heads is 0, below 1."));
  EXPECT_THAT(refusal(3, 24, {}), HasSubstr("The 24 columns of input 1 are no queries, keys and "
                                            "values of 3 heads."));
  EXPECT_THAT(refusal(2, 28, {8, 12, 8}), HasSubstr("The 28 columns of input 1"));
}

TEST(RefusalsTest, BiasesByDistanceOfWrongNumbers) {
  const auto refusal = [](int64_t buckets, int64_t max_distance) {
    Node node({{kFloat, {buckets, 3}}, {kInt64, {1}}, {kInt64, {1}}}, 1);
    node.Set("max_distance", max_distance);
    node.Set("is_bidirectional", 1);
    return Refusal("RelativePositionBias", node);
  };
  EXPECT_EQ(refusal(32, 128), "");
  EXPECT_THAT(refusal(32, 8), HasSubstr("Attribute max_distance is 8 for 16 buckets of a side"));
  EXPECT_THAT(refusal(2, 8), HasSubstr("Attribute max_distance is 8 for 1 buckets of a side"));
  EXPECT_EQ(refusal(kUnknown, 8), "");
  EXPECT_THAT(refusal(kUnknown, 1), HasSubstr("Attribute max_distance is 1 for any number of"));
  EXPECT_THAT(refusal(kUnknown, 1 << 21), HasSubstr("is at most 1048576."));
  std::vector<Input> inputs = {{kFloat, {2, 5, 12}}, {kFloat, {12}}, {kFloat, {1, 3, 5, 5}},
                               {kFloat, {4, 7}},     {kFloat, {7}},  {kFloat, {1, 3, 1, 1}},
                               {kInt32, {2, 5}}};
  Node node(inputs, 1);
  node.Set("num_heads", 3);
  EXPECT_THAT(Refusal("GatedRelativePositionBias", node), HasSubstr("Input 6 (token_offset) is"));
  inputs.pop_back();
  Node odd(inputs, 1);
  odd.Set("num_heads", 3);
  EXPECT_THAT(Refusal("GatedRelativePositionBias", odd), HasSubstr("the weights have 7 columns"));
}

TEST(RefusalsTest, ConvolutionsOfPackedTokens) {
  std::vector<Input> inputs = {{kFloat, {7, 5}},    {kFloat, {5, 1, 3}}, {kInt32, {4}}, {},
                               {kFloat, {3, 5, 4}}, {kInt32, {3}}};
  const auto refusal = [&](int64_t dilation, int64_t capacity, int outputs) {
    Node node(inputs, outputs);
    node.Set("dilation", dilation);
    node.Set("state_update_capacity", capacity);
    return Refusal("VarlenCausalConvWithState", node);
  };
  EXPECT_EQ(refusal(2, 8, 3), "");
  EXPECT_THAT(refusal(2, 9, 3), HasSubstr("Attribute state_update_capacity is 9; 0 to 8 tokens"));
  EXPECT_THAT(refusal(2, 0, 2), HasSubstr("Input 5 (capture_count) is given where attribute"));
  EXPECT_THAT(refusal(0, 8, 3), HasSubstr("Attribute dilation is 0, below 1."));
  EXPECT_THAT(refusal(3, 8, 3), HasSubstr("Input 4 keeps 4 tokens for 3 taps that are 3 apart."));
  inputs.pop_back();
  EXPECT_EQ(refusal(2, 0, 2), "");
  EXPECT_THAT(refusal(2, 2, 3), HasSubstr("Input 5 (capture_count) is missing where attribute"));
  EXPECT_THAT(refusal(2, 0, 3), HasSubstr("Output 2 is wanted where attribute"));
  Node node(inputs, 2);
  node.Set("dilation", 2);
  node.Set("activation", "relu");
  EXPECT_THAT(Refusal("VarlenCausalConvWithState", node), HasSubstr("activation is 'relu'"));
}

// 7 tokens of 3 sequences; 2 heads of keys, 4 of values.
Node DeltaNet(std::vector<Input> changed = {}, const char* attribute = "scale_of_nothing",
              const std::string& text = "") {
  std::vector<Input> inputs = {{kFloat, {7, 2, 6}},   {kFloat, {7, 2, 6}}, {kFloat, {7, 4, 5}},
                               {kInt32, {4}},         {kFloat, {7, 4}},    {kFloat, {7, 4}},
                               {kFloat, {3, 4, 5, 6}}};
  for (size_t k = 0; k < changed.size(); ++k) inputs[k] = changed[k];
  Node node(inputs, 2);
  node.Set(attribute, text);
  return node;
}

TEST(RefusalsTest, RecurrencesOfPackedTokens) {
  const auto refusal = [](const Node& node) { return Refusal("GatedDeltaNet", node); };
  const Input queries = {kFloat, {7, 2, 6}}, keys = {kFloat, {7, 2, 6}};
  EXPECT_EQ(refusal(DeltaNet()), "");
  EXPECT_THAT(refusal(DeltaNet({}, "update_rule", "none")), HasSubstr("update_rule is 'none'"));
  EXPECT_THAT(refusal(DeltaNet({}, "gate_activation", "tanh")), HasSubstr("activation is 'tanh'"));
  EXPECT_THAT(refusal(DeltaNet({}, "beta_activation", "tanh")), HasSubstr("activation is 'tanh'"));
  EXPECT_THAT(refusal(DeltaNet({queries, keys, {}})), HasSubstr("not both key and value"));
  EXPECT_THAT(refusal(DeltaNet({queries, {kFloat, {7, 3, 6}}})),
              HasSubstr("There are 2 heads of queries and 3 of keys."));
  EXPECT_THAT(refusal(DeltaNet({queries, keys, {kFloat, {7, 3, 5}}})),
              HasSubstr("The 3 heads of values are no multiple of 2 of keys."));
  EXPECT_THAT(refusal(DeltaNet({queries, keys, {kFloat, {7, 4, 5}}, {kInt32, {4}}, {kFloat, {7}}})),
              HasSubstr("Input 4 (decay) has 1 axes instead of 2 or 3."));
  EXPECT_THAT(refusal(DeltaNet({{kFloat, {7, 45}}, {}, {}})),
              HasSubstr("Input 0 has rows of 45 elements"));
  EXPECT_EQ(refusal(DeltaNet({{kFloat, {7, 44}}, {}, {}})), "");
  EXPECT_THAT(refusal(DeltaNet({{kFloat, {1, 7, 2, 6}}, {kFloat, {1, 7, 2, 6}}})),
              HasSubstr("Input 3 (cu_seqlens) is given beside an axis of samples."));
  Node shown = DeltaNet();
  shown.Set("state_update_capacity", 2);
  EXPECT_THAT(refusal(shown), HasSubstr("Input 9 (capture_count) is missing"));
}

TEST(RefusalsTest, RecurrencesThatShowWhatTokensAdd) {
  std::vector<Input> inputs = {{kFloat, {7, 2, 6}},
                               {kFloat, {7, 2, 6}},
                               {kFloat, {7, 2, 5}},
                               {kInt32, {4}},
                               {kFloat, {7, 2}},
                               {kFloat, {7, 2}},
                               {},
                               {},
                               {},
                               {kInt32, {3}}};
  Node node(inputs, 3);
  node.Set("state_update_capacity", 2);
  EXPECT_THAT(Refusal("GatedDeltaNet", node), HasSubstr("Attribute state_update_capacity is 2"));
}

// 7 tokens of 3 sequences, 4 heads that share 2 of keys, 8 numbers each, in blocks of 4 tokens.
Node Paged(int cache = kFloat16, std::vector<Input> scales = {}) {
  std::vector<Input> inputs = {{kFloat16, {7, 32}},    {kFloat16, {7, 16}},    {kFloat16, {7, 16}},
                               {cache, {11, 4, 2, 8}}, {cache, {11, 4, 2, 8}}, {kInt32, {4}},
                               {kInt32, {3}},          {kInt32, {3, 3}}};
  inputs.resize(14);
  for (const Input& scale : scales) inputs.push_back(scale);
  Node node(inputs, 3);
  node.Set("num_heads", 4);
  node.Set("kv_num_heads", 2);
  return node;
}

TEST(RefusalsTest, CachesInBlocks) {
  const auto refusal = [](const char* attribute, auto value, Node node = Paged()) {
    node.Set(attribute, value);
    return Refusal("PagedAttention", node);
  };
  EXPECT_EQ(refusal("is_causal", 0), "");
  EXPECT_THAT(refusal("kv_cache_layout", "LATENT"), HasSubstr("kv_cache_layout is 'LATENT'"));
  EXPECT_THAT(refusal("v_head_size", 4), HasSubstr("Attribute v_head_size is 4"));
  EXPECT_THAT(refusal("rotary_offset", 8), HasSubstr("Attribute rotary_offset is 8"));
  EXPECT_THAT(refusal("num_heads", 3), HasSubstr("num_heads (3) is no multiple of kv_num_heads"));
  EXPECT_THAT(refusal("num_heads", 6), HasSubstr("Input 0 has rows of 32 elements instead of 6"));
  EXPECT_THAT(refusal("do_rotary", 1), HasSubstr("not both cosines and sines"));
  EXPECT_THAT(refusal("k_cache_dtype", "int4"),
              HasSubstr("k_cache_dtype is 'int4' for a cache of"));
  EXPECT_THAT(refusal("k_quant_type", "PER_TOKEN"), HasSubstr("k_quant_type is 'PER_TOKEN'"));
  EXPECT_THAT(
      refusal("k_quant_type", "PER_TENSOR"),
      HasSubstr("A cache of float16 has no scale, and attribute k_quant_type is PER_TENSOR"));
  EXPECT_THAT(refusal("is_causal", 1, Paged(kInt8)), HasSubstr("A cache of int8 has no scale"));
  EXPECT_THAT(refusal("is_causal", 1, Paged(kUint8)), HasSubstr("Input 3 is uint8; elements of"));
  EXPECT_THAT(refusal("k_quant_type", "PER_TENSOR", Paged(kInt8, {{kFloat, {1}}})),
              HasSubstr("attribute v_quant_type is NONE"));
}

TEST(RefusalsTest, WeightsOfFewBits) {
  Node wide({{kFloat16, {3, 32}}, {kFloat8, {4, 32}}, {kFloat, {4, 2}}, {kFloat, {2}}}, 1);
  wide.Set("block_size", 16);
  EXPECT_THAT(Refusal("MatMulBlockQuantizedFp8Weight", wide),
              HasSubstr("Input 3 is no single number: its axis 0 has 2 elements."));
  wide.Set("block_size", 0);
  EXPECT_THAT(Refusal("MatMulBlockQuantizedFp8Weight", wide),
              HasSubstr("Attribute block_size is 0, below 1."));
  Node narrow({{kFloat16, {3, 32}}, {kUint8, {4, 16}}, {kUint8, {4, 2}}, {kFloat, {1}}}, 1);
  EXPECT_EQ(Refusal("MatMulBlockQuantizedFp4Weight", narrow), "");
  narrow.Set("block_size", -16);
  EXPECT_THAT(Refusal("MatMulBlockQuantizedFp4Weight", narrow),
              HasSubstr("Attribute block_size is -16, below 1."));
}

// A token behind others, of 2 heads that share 1 of keys, in a cache with room for 6 tokens.
TEST(RefusalsTest, CachesOfAWindow) {
  std::vector<Input> inputs = {
      {kFloat, {1, 1, 16}},   {kFloat, {1, 1, 8}}, {kFloat, {1, 1, 8}}, {kFloat, {1, 1, 6, 8}},
      {kFloat, {1, 1, 6, 8}}, {kInt32, {1}},       {kInt32, {}}};
  const auto refusal = [&inputs](int64_t window, int64_t causal = 1, int outputs = 3) {
    Node node(inputs, outputs);
    node.Set("num_heads", 2);
    node.Set("kv_num_heads", 1);
    node.Set("sliding_window_cache", 1);
    node.Set("local_window_size", window);
    node.Set("causal", causal);
    if (outputs > 3) node.Set("qk_output", 1);
    return Refusal("GroupQueryAttention", node);
  };
  EXPECT_EQ(refusal(6), "");
  EXPECT_THAT(refusal(0), HasSubstr("set where local_window_size is 0; it is at least 1."));
  EXPECT_THAT(refusal(7), HasSubstr("A cache of 6 tokens keeps no window of 7."));
  EXPECT_THAT(refusal(6, 0), HasSubstr("Attribute causal is 0"));
  EXPECT_THAT(refusal(6, 1, 4), HasSubstr("Output 3 is wanted"));
  inputs.resize(10);
  inputs.push_back({kFloat, {1, 2, 1, 7}});
  EXPECT_THAT(refusal(6), HasSubstr("Input 10 (attention_bias) is given"));
  inputs.resize(7);
  inputs[3] = inputs[4] = {};
  EXPECT_THAT(refusal(6), HasSubstr("sliding_window_cache is set without a cache."));
}

TEST(RefusalsTest, ScoresOfCausalAttention) {
  Node node({{kFloat, {1, 2, 8}}, {kFloat, {1, 2, 8}}, {kFloat, {1, 2, 8}}}, 4);
  node.Set("num_heads", 2);
  EXPECT_EQ(Refusal("MultiHeadAttention", node), "");
  node.Set("unidirectional", 1);
  EXPECT_THAT(Refusal("MultiHeadAttention", node), HasSubstr("Output 3 (scores) is wanted"));
  Node pairs({{kFloat, {4, 3}}, {kFloat, {4, 2}}}, 1);
  EXPECT_THAT(Refusal("ComplexMul", pairs), HasSubstr("a last axis of 3 elements instead of 2."));
}

TEST(RefusalsTest, HashesOfTextAndOfWrongSeeds) {
  Node text({{onnx::TensorProto::STRING, {3}}}, 1);
  EXPECT_THAT(Refusal("MurmurHash3", text),
              HasSubstr("Input 0 is text; numbers alone are hashed."));
  Node seeded({{kInt32, {3}}}, 1);
  EXPECT_EQ(Refusal("MurmurHash3", seeded), "");
  seeded.Set("seed", int64_t{-1});
  EXPECT_THAT(Refusal("MurmurHash3", seeded),
              HasSubstr("Attribute seed is -1; a seed is a uint32."));
}

// 2 rows of 5 tokens, 3 tokens joined at most, 2 heads of each.
TEST(RefusalsTest, HashesOfTokensOfWrongExtents) {
  const auto refusal = [](int input, std::vector<int64_t> extents) {
    std::vector<Input> inputs = {{kInt64, {2, 5}}, {kInt64, {3}}, {kInt64, {4}},   {kInt64, {2, 2}},
                                 {kInt64, {4}},    {kInt64, {}},  {kInt32, {2, 5}}};
    inputs[static_cast<size_t>(input)].extents = std::move(extents);
    Node node(inputs, 2);
    node.Set("max_ngram_size", 3);
    node.Set("n_head_per_ngram", 2);
    node.Set("pad_id", int64_t{0});
    return Refusal("NGramHashMapping", node);
  };
  EXPECT_EQ(refusal(0, {2, 5}), "");
  EXPECT_EQ(refusal(0, {kUnknown, kUnknown}), "");
  EXPECT_EQ(refusal(1, {4}), "");
  for (const int input : {1, 2, 4}) EXPECT_EQ(refusal(input, {kUnknown}), "") << input;
  for (const int input : {3, 6}) EXPECT_EQ(refusal(input, {kUnknown, kUnknown}), "") << input;
  EXPECT_THAT(refusal(0, {5}), HasSubstr("Input 0 has 1 axes instead of 2."));
  EXPECT_THAT(refusal(1, {2}), HasSubstr("Input 1 has 2 factors for 3 tokens."));
  EXPECT_THAT(refusal(1, {1, 3}), HasSubstr("Input 1 has 2 axes instead of 1."));
  EXPECT_THAT(refusal(2, {3}), HasSubstr("Axis 0 of input 2 has 3 elements instead of 4."));
  EXPECT_THAT(refusal(2, {1, 4}), HasSubstr("Input 2 has 2 axes instead of 1."));
  EXPECT_THAT(refusal(3, {2, 3}), HasSubstr("Axis 1 of input 3 has 3 elements instead of 2."));
  EXPECT_THAT(refusal(3, {1, 2}), HasSubstr("Axis 0 of input 3 has 1 elements instead of 2."));
  EXPECT_THAT(refusal(4, {1}), HasSubstr("Axis 0 of input 4 has 1 elements instead of 4."));
  EXPECT_THAT(refusal(5, {1}), HasSubstr("Input 5 has 1 axes instead of 0."));
  EXPECT_THAT(refusal(6, {1, 5}), HasSubstr("Axis 0 of input 6 has 1 elements instead of 2."));
  EXPECT_THAT(refusal(6, {2, 3}), HasSubstr("Axis 1 of input 6 has 3 elements instead of 5."));
}

TEST(RefusalsTest, PartsAndChannelsThatAnImageDoesNotHave) {
  Node crop({{kFloat, {1, 3, 9, 8}}}, 1);
  crop.Set("border", std::vector<int64_t>{1, 2, 3, 7});
  EXPECT_EQ(Refusal("Crop", crop, ""), "");
  crop.Set("border", std::vector<int64_t>{1, 2, 3, 8});
  EXPECT_THAT(Refusal("Crop", crop, ""),
              HasSubstr("ask for 2 and 8 elements of axis 2, which has 9."));
  crop.Set("scale", std::vector<int64_t>{4, 8});
  EXPECT_THAT(Refusal("Crop", crop, ""),
              HasSubstr("ask for 1 and 8 elements of axis 3, which has 8."));
  constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
  for (const std::vector<int64_t>& border :
       std::vector<std::vector<int64_t>>{{kMaxInt64, 0, 1, 0},
                                         {1, 0, kMaxInt64, 0},
                                         {0, kMaxInt64, 0, kMaxInt64},
                                         {0, -1, 0, 0}}) {
    Node large({{kFloat, {1, 3, 9, 8}}}, 1);
    large.Set("border", border);
    EXPECT_THAT(Refusal("Crop", large, ""), HasSubstr("Attributes border and scale ask for"));
  }
  crop.Set("border", std::vector<int64_t>{1, 2});
  EXPECT_THAT(Refusal("Crop", crop, ""), HasSubstr("have 2 and 2 numbers"));
  EXPECT_THAT(Refusal("ImageScaler", Node({{kFloat, {1, 3, 4, 4}}}, 1), ""),
              HasSubstr("bias has 0 numbers for 3 channels."));
}

}  // namespace
}  // namespace onnxifi::domains
