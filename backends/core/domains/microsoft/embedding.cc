// SPDX-License-Identifier: Apache-2.0
//
// Embeddings: of words with their positions, normalized; of words by their characters; and
// rotations by position.

#include <algorithm>
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
// or the first one's alone. Neither is_packed_batching nor scale changes what ONNX Runtime
// computes: the one permits it a sequence longer than the tables, the other its kernels do not
// read.
Status DefineRotaryEmbedding(Definition& d) {
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

// Cosines or sines (input `table`) of each token, [batch, sequence, pairs], where each pair is at
// the token's position of its own stream; times the scale of what is turned.
Value AnglesOfStreams(Definition& d, int table, const std::vector<int64_t>& streams) {
  Value angles;
  for (int64_t stream = 0; stream < 3; ++stream) {
    if (std::ranges::find(streams, stream) == streams.end()) continue;
    const Value positions = d.Squeeze(d.Slice(d.In(1), 0, stream, stream + 1), {0});
    const Value all = d.Apply("Gather", {d.In(table), positions});
    if (angles.empty()) {
      angles = all;
      continue;
    }
    const Value is_of_stream = d.Apply("Equal", {d.Ints1D(streams), d.Int0D(stream)});
    angles = d.Apply("Where", {is_of_stream, all, angles});
  }
  const float scale = d.HasAttribute("scale") ? d.Float("scale") : 1.0F;
  return scale == 1.0F ? angles : d.Mul(angles, d.Scalar(scale, d.Type(table)));
}

// Which of the positions (0: time, 1: height, 2: width) turns each pair.
Result<std::vector<int64_t>> StreamsOfPairs(const Definition& d) {
  const std::vector<int64_t> sections = d.Ints("mrope_section");
  if (sections.size() != 3 || std::ranges::any_of(sections, [](int64_t n) { return n < 0; })) {
    return d.Invalid("Attribute mrope_section has " + std::to_string(sections.size()) +
                     " numbers; 3 that are not negative are required.");
  }
  const int64_t layout = d.Int("mrope_layout");
  if (layout != 0 && layout != 1) {
    return d.Invalid("Attribute mrope_layout is " + std::to_string(layout) +
                     "; sections are contiguous (0) or interleaved (1).");
  }
  std::vector<int64_t> streams;
  for (int64_t stream = 0; stream < 3; ++stream) {
    streams.insert(streams.end(), static_cast<size_t>(sections[static_cast<size_t>(stream)]),
                   layout == 0 ? stream : 0);
  }
  const auto pairs = static_cast<int64_t>(streams.size());
  const std::optional<int64_t> known = d.Extent(2, 1);
  if (pairs == 0 || (known && *known != pairs)) {
    return d.Invalid("Attribute mrope_section covers " + std::to_string(pairs) +
                     " pairs; the cosines have " + std::to_string(known.value_or(0)) + ".");
  }
  if (layout == 1) {
    for (int64_t stream = 1; stream < 3; ++stream) {
      const int64_t end = 3 * sections[static_cast<size_t>(stream)];
      for (int64_t k = stream; k < std::min(end, pairs); k += 3) {
        streams[static_cast<size_t>(k)] = stream;
      }
    }
  }
  return streams;
}

// Input [batch, sequence, heads * size] or [batch, heads, sequence, size]; positions [3, batch,
// sequence] in time, height and width, each of which turns some of the pairs.
Status DefineMRotaryEmbedding(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(1, 3));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(2, 2));
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<int64_t> streams, StreamsOfPairs(d));
  const auto turned = 2 * static_cast<int64_t>(streams.size());
  const std::optional<int> rank = d.Rank(0);
  if (rank != 3 && rank != 4) {
    return d.Invalid("Input 0 has not 3 or 4 axes that are known.");
  }
  Definition::Attributes attributes = {
      {"interleaved", d.Int("interleaved")},
      {"rotary_embedding_dim", d.Int("rotary_embedding_dim") == 0 ? int64_t{0} : turned}};
  Value x = d.In(0);
  if (rank == 3) {
    const int64_t heads = d.Int("num_heads");
    if (heads < 1) {
      return d.Invalid("Attribute num_heads is " + std::to_string(heads) +
                       ", below 1, for heads that are not apart.");
    }
    x = SplitHeads(d, x, heads);
  }
  const Value y = d.Apply("RotaryEmbedding",
                          {x, AnglesOfStreams(d, 2, streams), AnglesOfStreams(d, 3, streams)},
                          std::move(attributes));
  d.Return(0, rank == 3 ? MergeHeads(d, y) : y);
  return base::Ok();
}

// Words [sequence, characters], of which those above 0 count. A convolution over the embeddings of
// a word's characters, and the largest result of those windows that the word fills: at least one.
// A word without characters has no result in ONNX Runtime's memory, and here 0.
Status DefineWordConvEmbedding(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 2));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(1, 4));
  const struct {
    const char* name;
    int input, axis;
  } sizes[] = {{"embedding_size", 1, 0}, {"conv_window_size", 1, 2}, {"char_embedding_size", 3, 1}};
  for (const auto& size : sizes) {
    const std::optional<int64_t> extent = d.Extent(size.input, size.axis);
    if (d.HasAttribute(size.name) && extent && *extent != d.Int(size.name)) {
      return d.Invalid("Attribute " + std::string(size.name) + " is " +
                       std::to_string(d.Int(size.name)) + "; input " + std::to_string(size.input) +
                       " has " + std::to_string(*extent) + ".");
    }
  }
  const Value zero = d.Cast(d.Int0D(0), ElementType::kInt32);
  const Value is_character = d.Apply("Greater", {d.In(0), zero});
  const Value counts = d.Apply(
      "ReduceSum", {d.Cast(is_character, ElementType::kInt64), d.Ints1D({1})});  // [sequence, 1]
  const Value is_word =
      d.Apply("And", {d.Slice(is_character, 1, 0, 1), d.Apply("Greater", {counts, d.Int0D(0)})});
  const Value characters = d.Apply("Gather", {d.In(3), d.Apply("Max", {d.In(0), zero})});
  const Value windows =
      d.Apply("Conv", {d.Unsqueeze(characters, {1}), d.In(1), d.In(2)});  // [.., M, windows, 1]
  const Value values = d.Apply("Tanh", {d.Squeeze(windows, {3})});
  const Value last = d.Apply("Max", {d.Sub(counts, d.ExtentOf(d.In(1), 2)), d.Int0D(0)});
  const Value is_filled =
      d.Apply("LessOrEqual", {CountTo(d, d.ExtentOf(values, 2)), last});  // [sequence, windows]
  const Value filled =
      d.Apply("Where", {d.Unsqueeze(is_filled, {1}), values, d.Scalar(-1, ElementType::kFloat32)});
  const Value most = d.Apply("ReduceMax", {filled, d.Ints1D({2})}, {{"keepdims", int64_t{0}}});
  d.Return(0, d.Apply("Where", {is_word, most, d.Scalar(0, ElementType::kFloat32)}));
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
    {R"(MRotaryEmbedding(input: T, position_ids: M, cos_cache: T, sin_cache: T) -> (output: T)
        interleaved: int
        is_packed_batching: int
        mrope_layout: int
        mrope_section: ints required
        num_heads: int
        rotary_embedding_dim: int
        scale: float
        T = float | float16 | bfloat16
        M = int64)",
     DefineMRotaryEmbedding},
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
    {R"(WordConvEmbedding(Sequence: T, W: T1, B: T1, C: T1) -> (Y: T1)
        char_embedding_size: int
        conv_window_size: int
        embedding_size: int
        T = int32
        T1 = float)",
     DefineWordConvEmbedding},
};

}  // namespace

std::span<const model::DomainOperator> EmbeddingOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
