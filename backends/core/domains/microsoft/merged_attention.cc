// SPDX-License-Identifier: Apache-2.0
//
// Attention and QAttention: self-attention with the projection of queries, keys and values in it,
// by one matrix for the three.

#include <cmath>
#include <utility>

#include "backends/core/domains/microsoft/attention.h"
#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/padding_mask.h"
#include "backends/core/domains/microsoft/quantization.h"

namespace onnxifi::microsoft {
namespace {

// Which inputs the rest of the two operators is; -1 where one has no such input.
struct Positions {
  int mask, past, score_bias, past_length;
};

Status CheckLimits(const Definition& d, const Positions& at) {
  if (d.Int("num_heads") < 1) {
    return d.Invalid("Attribute num_heads is " + std::to_string(d.Int("num_heads")) + ", below 1.");
  }
  const bool shares_buffer = d.Int("past_present_share_buffer") != 0;
  if (shares_buffer && at.past_length < 0) {
    return d.Unsupported("Attribute past_present_share_buffer is " +
                         std::to_string(d.Int("past_present_share_buffer")) +
                         "; no input says how much of the buffer is past, so only 0 is supported.");
  }
  const bool has_length = at.past_length >= 0 && d.Has(at.past_length);
  if (shares_buffer != has_length || (shares_buffer && !d.Has(at.past))) {
    return d.Invalid(
        "A past that is a buffer comes with attribute past_present_share_buffer and input "
        "past_sequence_length, and any other with neither.");
  }
  return base::Ok();
}

// Tokens before the new ones: int64 [1].
Value PastLength(Definition& d, const Positions& at) {
  if (at.past_length >= 0 && d.Has(at.past_length)) {
    return d.Reshape(d.Cast(d.In(at.past_length), ElementType::kInt64), {1});
  }
  return d.Has(at.past) ? d.ExtentOf(d.In(at.past), 3) : d.Ints1D({0});
}

// Queries and keys [batch, heads, sequence, size] turned by the angles position / 10000^(2 n /
// dimension), each pair being elements n and n + dimension / 2.
Status RotateByPosition(Definition& d, int64_t size, const Value& past_length,
                        std::initializer_list<Value*> rotated) {
  const int64_t given = d.Int("rotary_embedding_dim");
  const int64_t dimension = given == 0 ? size : given;
  if (dimension < 2 || dimension > size || dimension % 2 != 0) {
    return d.Invalid("Attribute rotary_embedding_dim is " + std::to_string(given) +
                     ", which gives " + std::to_string(dimension) +
                     " elements to turn in a head of " + std::to_string(size) +
                     "; an even number of them is required.");
  }
  std::vector<float> frequencies;
  for (int64_t n = 0; n < dimension / 2; ++n) {
    frequencies.push_back(static_cast<float>(
        std::pow(10000.0, -2.0 * static_cast<double>(n) / static_cast<double>(dimension))));
  }
  const Value& any = **rotated.begin();
  const Value count = CountTo(d, d.ExtentOf(any, 2));
  const Value positions = d.Cast(d.Add(count, past_length), ElementType::kFloat32);
  const Value angles = d.Mul(d.Unsqueeze(positions, {1}),
                             d.Apply("Constant", {}, {{"value_floats", std::move(frequencies)}}));
  const Value cosines = d.Apply("Cos", {angles}), sines = d.Apply("Sin", {angles});
  // Rows of the two tables.
  const Value rows = d.Apply(
      "Expand", {d.Unsqueeze(count, {0}), d.Concat({d.ExtentOf(any, 0), d.Ints1D({1})}, 0)});
  Definition::Attributes attributes;
  if (dimension != size) attributes.emplace_back("rotary_embedding_dim", dimension);
  for (Value* value : rotated) {
    *value = d.Apply("RotaryEmbedding",
                     {d.Cast(*value, ElementType::kFloat32), cosines, sines, rows}, attributes);
  }
  return base::Ok();
}

// Of [batch, sequence, q + k + v], all projections of input 0.
Status Define(Definition& d, const Value& projections, const std::vector<int64_t>& sizes,
              ElementType type, const Positions& at) {
  const int64_t heads = d.Int("num_heads");
  const std::vector<Value> parts = d.Split(projections, 2, sizes);
  Value q = SplitHeads(d, parts[0], heads);
  Value k = SplitHeads(d, parts[1], heads);
  Value v = SplitHeads(d, parts[2], heads);
  const Value past_length = PastLength(d, at);
  if (d.Int("do_rotary") != 0) {
    ONNXIFI_RETURN_IF_ERROR(RotateByPosition(d, sizes[0] / heads, past_length, {&q, &k}));
    for (Value* value : {&q, &k}) *value = d.Cast(*value, type);
  }
  Cached cached = {k, v, k, v};
  if (d.Has(at.past)) {
    // [2, batch, heads, sequence, size]
    const Value past_k = d.Squeeze(d.Slice(d.In(at.past), 0, 0, 1), {0});
    const Value past_v = d.Squeeze(d.Slice(d.In(at.past), 0, 1, 2), {0});
    if (d.Int("past_present_share_buffer") != 0) {
      cached = ExtendBuffers(d, past_k, past_v, k, v, past_length);
    } else {
      cached.present_k = cached.k = d.Concat({past_k, k}, 2);
      cached.present_v = cached.v = d.Concat({past_v, v}, 2);
    }
  }
  const ScoreExtents extents = {d.ExtentOf(q, 0), d.ExtentOf(q, 2), d.ExtentOf(cached.k, 2)};
  Attention attention;
  attention.q = q;
  attention.k = cached.k;
  attention.v = cached.v;
  attention.type = type;
  attention.heads = attention.kv_heads = heads;
  attention.scale = d.Float("scale");
  if (d.Has(at.mask)) {
    ONNXIFI_ASSIGN_OR_RETURN(const Value is_there, KeysThatAreThere(d, at.mask, extents));
    attention.bias = Filter(d, is_there, extents, type);
  }
  if (at.score_bias >= 0 && d.Has(at.score_bias)) {
    const Value given = d.In(at.score_bias);
    attention.bias = attention.bias ? d.Add(*attention.bias, given) : given;
  }
  if (d.Int("unidirectional") != 0) attention.mask = Causal(d, extents);
  d.Return(0, MergeHeads(d, Attend(d, attention).result));
  if (d.Wants(1)) {
    d.Return(1,
             d.Concat({d.Unsqueeze(cached.present_k, {0}), d.Unsqueeze(cached.present_v, {0})}, 0));
  }
  return base::Ok();
}

// The columns of the projection that are queries, keys and values.
Result<std::vector<int64_t>> ReadSizes(const Definition& d, int weights) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 3));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(weights, 2));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t columns, d.NeedExtent(weights, 1));
  std::vector<int64_t> sizes = d.Ints("qkv_hidden_sizes");
  const int64_t heads = d.Int("num_heads");
  if (sizes.empty()) sizes.assign(3, columns / 3);
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != columns || sizes[0] != sizes[1] ||
      sizes[0] % heads != 0 || sizes[2] % heads != 0) {
    return d.Invalid("Input " + std::to_string(weights) + " has " + std::to_string(columns) +
                     " columns, which are no queries, keys and values of " + std::to_string(heads) +
                     " heads.");
  }
  return sizes;
}

Status DefineAttention(Definition& d) {
  const Positions at = {.mask = 3, .past = 4, .score_bias = 5, .past_length = 6};
  ONNXIFI_RETURN_IF_ERROR(CheckLimits(d, at));
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, ReadSizes(d, 1));
  Value projections = d.MatMul(d.In(0), d.In(1));
  if (d.Has(2)) projections = d.Add(projections, d.In(2));
  return Define(d, projections, sizes, d.Type(0), at);
}

Status DefineQAttention(Definition& d) {
  const Positions at = {.mask = 5, .past = 8, .score_bias = -1, .past_length = -1};
  ONNXIFI_RETURN_IF_ERROR(CheckLimits(d, at));
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, ReadSizes(d, 1));
  std::vector<Value> inputs = {d.In(0), d.In(1)};
  if (d.Has(6) || d.Has(7)) {
    inputs.emplace_back();
    if (d.Has(6)) {
      ONNXIFI_ASSIGN_OR_RETURN(inputs.back(), ScalarInput(d, 6));
    }
  }
  if (d.Has(7)) {
    const bool is_whole = d.Rank(7) == 0 || d.Extent(7, 0) == 1;
    inputs.push_back(d.In(7));
    if (is_whole) {
      ONNXIFI_ASSIGN_OR_RETURN(inputs.back(), ScalarInput(d, 7));
    }
  }
  const Value sums = d.Apply("MatMulInteger", std::move(inputs));
  const Value scale = d.Cast(d.Mul(d.In(3), d.In(4)), ElementType::kFloat32);
  const Value products = d.Mul(d.Cast(sums, ElementType::kFloat32), scale);
  const Value projections = d.Add(products, d.Cast(d.In(2), ElementType::kFloat32));
  const ElementType type = d.Type(2);
  return Define(d, d.Cast(projections, type), sizes, type, at);
}

constexpr model::DomainOperator kOperators[] = {
    {R"(Attention(input: T, weights: T, bias?: T, mask_index?: int32, past?: T, attention_bias?: T,
                  past_sequence_length?: int32) -> (output: T, present?: T)
        do_rotary: int
        mask_filter_value: float
        num_heads: int required
        past_present_share_buffer: int
        qkv_hidden_sizes: ints
        rotary_embedding_dim: int
        scale: float
        unidirectional: int = 0
        T = float | float16 | bfloat16)",
     DefineAttention},
    {R"(QAttention(input: T1, weight: T2, bias: T3, input_scale: T3, weight_scale: T3,
                   mask_index?: int32, input_zero_point?: T1, weight_zero_point?: T2, past?: T3)
            -> (output: T3, present?: T3)
        do_rotary: int
        mask_filter_value: float
        num_heads: int required
        past_present_share_buffer: int
        scale: float
        unidirectional: int = 0
        T1 = int8 | uint8
        T2 = int8 | uint8
        T3 = float | float16)",
     DefineQAttention},
};

}  // namespace

std::span<const model::DomainOperator> MergedAttentionOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
