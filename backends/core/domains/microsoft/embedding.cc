// SPDX-License-Identifier: Apache-2.0
//
// Embeddings: of words with their positions, normalized, and rotations by position.

#include <utility>

#include "backends/core/domains/microsoft/attention.h"
#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/quantization.h"
#include "backends/core/domains/microsoft/rotary.h"

namespace onnxifi::microsoft {
namespace {

// Output 1: the tokens of each sample that input `mask` has, or 0.
void ReturnLengths(Definition& d, int mask) {
  if (d.Has(mask)) {
    d.Return(1, d.Apply("ReduceSum", {d.In(mask), d.Ints1D({1})}, {{"keepdims", int64_t{0}}}));
  } else {
    d.Return(1, d.Apply("Expand", {d.Scalar(0, ElementType::kInt32), d.ExtentOf(d.In(0), 0)}));
  }
}

Status DefineEmbedLayerNormalization(Definition& d) {
  const ElementType type = d.Type(2);
  const auto rows = [&d](int table, const Value& positions) {
    return d.Apply("Gather", {d.In(table), positions}, {{"axis", int64_t{0}}});
  };
  const Value words = rows(2, d.In(0));
  const Value positions = d.Has(8) ? d.In(8) : d.Unsqueeze(CountTo(d, d.ExtentOf(d.In(0), 1)), {0});
  Value sum = d.Add(words, rows(3, positions));
  if (d.Has(1) != d.Has(4)) {
    return d.Invalid("It has not both segments and their embedding, or neither.");
  }
  if (d.Has(1)) sum = d.Add(sum, rows(4, d.In(1)));
  d.Return(2, sum);
  const bool is_narrow = IsNarrow(type);
  const auto widen = [&](const Value& value) {
    return is_narrow ? d.Cast(value, ElementType::kFloat32) : value;
  };
  const Value normal = d.Apply("LayerNormalization", {widen(sum), widen(d.In(5)), widen(d.In(6))},
                               {{"axis", int64_t{-1}}, {"epsilon", d.Float("epsilon")}});
  d.Return(0, is_narrow ? d.Cast(normal, type) : normal);
  ReturnLengths(d, 7);
  return base::Ok();
}

// The same of tables of bytes, each with one scale and one zero point.
Status DefineQuantizedEmbedLayerNormalization(Definition& d) {
  if (d.Has(1) != d.Has(4)) {
    return d.Invalid("It has not both segments and their embedding, or neither.");
  }
  // Tables are inputs from 2 on, their scales from 8 on, their zero points from 13 on.
  const auto rows = [&d](int table, const Value& positions) -> Result<Value> {
    const Value bytes = d.Apply("Gather", {d.In(2 + table), positions}, {{"axis", int64_t{0}}});
    ONNXIFI_ASSIGN_OR_RETURN(const Value scale, ScalarInput(d, 8 + table));
    ONNXIFI_ASSIGN_OR_RETURN(const Value zero_point, ScalarInput(d, 13 + table));
    return d.Apply("DequantizeLinear", {bytes, scale, zero_point});
  };
  ONNXIFI_ASSIGN_OR_RETURN(Value sum, rows(0, d.In(0)));
  ONNXIFI_ASSIGN_OR_RETURN(Value part, rows(1, CountTo(d, d.ExtentOf(d.In(0), 1))));
  sum = d.Add(sum, part);
  if (d.Has(1)) {
    ONNXIFI_ASSIGN_OR_RETURN(part, rows(2, d.In(1)));
    sum = d.Add(sum, part);
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Value gamma, Dequantize(d, 5, 11, 16));
  ONNXIFI_ASSIGN_OR_RETURN(const Value beta, Dequantize(d, 6, 12, 17));
  d.Return(0, d.Apply("LayerNormalization", {sum, gamma, beta},
                      {{"axis", int64_t{-1}}, {"epsilon", d.Float("epsilon")}}));
  ReturnLengths(d, 7);
  return base::Ok();
}

// Input [batch, sequence, heads * size] or [batch, heads, sequence, size]; positions of each token,
// or the first one's alone.
Status DefineRotaryEmbedding(Definition& d) {
  if (d.Int("is_packed_batching") != 0) {
    return d.Unsupported("Attribute is_packed_batching is " +
                         std::to_string(d.Int("is_packed_batching")) +
                         "; sequences have one length (0).");
  }
  if (d.HasAttribute("scale") && d.Float("scale") != 1.0F) {
    return d.Unsupported("Attribute scale is " + std::to_string(d.Float("scale")) +
                         "; rotations keep the size (1).");
  }
  const std::optional<int> rank = d.Rank(0);
  if (!rank) return d.UnsupportedShape("Input 0 has a number of axes that is not known.");
  if (*rank != 3 && *rank != 4) {
    return d.Invalid("Input 0 has " + std::to_string(*rank) + " axes; 3 or 4 are required.");
  }
  const int64_t sequence_axis = *rank == 4 ? 2 : 1;
  const std::optional<int64_t> last = d.Extent(0, -1);
  const int64_t heads = d.Int("num_heads");
  std::optional<int64_t> size = last;
  Value x = d.In(0);
  if (*rank == 3) {
    // Without the number of heads, each is turned as a whole.
    if (heads != 0) {
      size = last ? std::optional(*last / heads) : std::nullopt;
    } else {
      ONNXIFI_RETURN_IF_ERROR(d.NeedRank(2, 2));
      size = d.Extent(2, 1);
      if (size) *size *= 2;
    }
    if (last && size && (*size < 1 || *last % *size != 0)) {
      return d.Invalid("Input 0 has rows of " + std::to_string(*last) + " elements, which are no " +
                       "heads of " + std::to_string(*size) + ".");
    }
    if (heads != 0) {
      x = d.Reshape(x, {0, 0, heads, -1});
    } else if (size) {
      x = d.Reshape(x, {0, 0, -1, *size});
    } else {
      const Value half = d.ExtentOf(d.In(2), 1);
      x = d.ReshapeTo(x, d.Concat({d.Ints1D({0, 0, -1}), d.Add(half, half)}, 0));
    }
    x = d.Transpose(x, {0, 2, 1, 3});
  }
  Value positions = d.In(1);
  if (d.Rank(1) != 2) {
    const Value first = d.Reshape(positions, {1, 1});
    const Value each = d.Add(first, CountTo(d, d.ExtentOf(d.In(0), sequence_axis)));
    const Value extents = d.Concat({d.ExtentOf(d.In(0), 0), d.Ints1D({1})}, 0);
    positions = d.Apply("Expand", {each, extents});
  }
  ONNXIFI_ASSIGN_OR_RETURN(Value turned,
                           Rotate(d, x, 2, positions, d.Int("interleaved") != 0, size));
  d.Return(0, *rank == 3 ? MergeHeads(d, std::move(turned)) : std::move(turned));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(EmbedLayerNormalization(input_ids: int32, segment_ids?: int32, word_embedding: T,
                                position_embedding: T, segment_embedding?: T, gamma: T, beta: T,
                                mask?: int32, position_ids?: int32)
            -> (output: T, mask_index?: int32, embedding_sum?: T)
        epsilon: float = 1e-12
        mask_index_type: int
        T = float | float16)",
     DefineEmbedLayerNormalization},
    {R"(QEmbedLayerNormalization(input_ids: int32, segment_ids?: int32, word_embedding_quant: T2,
            position_embedding_quant: T2, segment_embedding?: T2, gamma_quant: T2, beta_quant: T2,
            mask?: int32, word_embedding_scale: T, position_embedding_scale: T,
            segment_embedding_scale?: T, gamma_scale: T, beta_scale: T,
            word_embedding_zero_point: T2, position_embedding_zero_point: T2,
            segment_embedding_zero_point?: T2, gamma_zero_point: T2, beta_zero_point: T2)
            -> (layernorm_out: T, mask_index_out: int32)
        epsilon: float = 1e-12
        T2 = int8 | uint8
        T = float)",
     DefineQuantizedEmbedLayerNormalization},
    {R"(RotaryEmbedding(input: T, position_ids: int64, cos_cache: T, sin_cache: T) -> (output: T)
        interleaved: int
        is_packed_batching: int
        num_heads: int
        rotary_embedding_dim: int
        scale: float
        T = float | float16 | bfloat16)",
     DefineRotaryEmbedding},
};

}  // namespace

std::span<const model::DomainOperator> EmbeddingOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
