// SPDX-License-Identifier: Apache-2.0
//
// DecoderMaskedMultiHeadAttention: attention of one new token, to itself and a cache or to what an
// encoder made, as decoders run it in a search with beams. The caches of a sample's beams are rows
// beside each other, and token t of beam w stands in the row of beam cache_indirection[b, w, t].

#include <string>
#include <utility>
#include <vector>

#include "backends/core/domains/microsoft/attention.h"
#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/padding_mask.h"

namespace onnxifi::microsoft {
namespace {

using base::Status;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

// The inputs by their positions.
enum Input {
  kQuery,
  kKey,
  kValue,
  kPadding,
  kScoreBias,
  kPastKey,
  kPastValue,
  kPastLength,
  kBeamWidth,
  kBeams,
  kBias,
};

struct Projections {
  Value q, k, v;  // [batch, heads, 1, size]; keys and values of an encoder have their own length
};

// Part `part` of the bias of the projections, [3 * hidden], for the heads of `value`.
Value WithBias(Definition& d, Value value, int64_t part, int64_t heads) {
  if (!d.Has(kBias)) return value;
  const Value of_part = d.Slice(d.Reshape(d.In(kBias), {3, heads, 1, -1}), 0, part, part + 1);
  return d.Add(std::move(value), of_part);
}

Status CheckInputs(const Definition& d) {
  if (d.Int("num_heads") < 1) {
    return d.Invalid("Attribute num_heads is " + std::to_string(d.Int("num_heads")) + ", below 1.");
  }
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kQuery, 3));
  const std::optional<int64_t> tokens = d.Extent(kQuery, 1);
  if (tokens && *tokens != 1) {
    return d.Invalid("Input 0 has " + std::to_string(*tokens) +
                     " tokens of each sample; a decoder "
                     "adds 1.");
  }
  if (d.Has(kKey) != d.Has(kValue)) return d.Invalid("It has not both key and value, or neither.");
  if (d.Has(kPastKey) != d.Has(kPastValue)) {
    return d.Invalid("It has not both past key and past value, or neither.");
  }
  if (!d.Has(kPastKey)) {
    return d.Has(kKey) ? d.NeedRank(kKey, 4) : d.Invalid("It has neither a key nor a past.");
  }
  if (d.Int("past_present_share_buffer") == 0 || !d.Has(kPastLength)) {
    return d.Unsupported(
        "A past without a length and attribute past_present_share_buffer is not "
        "supported: caches are buffers for the longest sequence.");
  }
  if (d.Has(kBeams) != d.Has(kBeamWidth)) {
    return d.Invalid("It has not both the number of beams and the beams of tokens, or neither.");
  }
  return base::Ok();
}

Projections ReadProjections(Definition& d, int64_t heads) {
  Projections parts;
  if (!d.Has(kKey)) {
    const Value packed = SplitHeads(d, d.In(kQuery), 3 * heads);
    const std::vector<Value> split = d.Split(packed, 1, {heads, heads, heads});
    parts = {split[0], split[1], split[2]};
  } else if (!d.Has(kPastKey)) {
    // Of an encoder: past the projection.
    return {WithBias(d, SplitHeads(d, d.In(kQuery), heads), 0, heads), d.In(kKey), d.In(kValue)};
  } else {
    parts = {SplitHeads(d, d.In(kQuery), heads), SplitHeads(d, d.In(kKey), heads),
             SplitHeads(d, d.In(kValue), heads)};
  }
  return {WithBias(d, parts.q, 0, heads), WithBias(d, parts.k, 1, heads),
          WithBias(d, parts.v, 2, heads)};
}

Status Define(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(CheckInputs(d));
  const int64_t heads = d.Int("num_heads");
  const Projections parts = ReadProjections(d, heads);
  Cached cached = {parts.k, parts.v, parts.k, parts.v};
  if (d.Has(kPastKey)) {
    const Value length = d.Reshape(d.Cast(d.In(kPastLength), ElementType::kInt64), {1});
    cached = ExtendBuffers(d, d.In(kPastKey), d.In(kPastValue), parts.k, parts.v, length);
    if (d.Has(kBeams)) {
      const Value width = d.Reshape(d.Cast(d.In(kBeamWidth), ElementType::kInt64), {1});
      cached.k = OfBeams(d, cached.k, d.In(kBeams), width, length);
      cached.v = OfBeams(d, cached.v, d.In(kBeams), width, length);
    }
    d.Return(1, cached.present_k);
    d.Return(2, cached.present_v);
  }
  const ScoreExtents extents = {d.ExtentOf(parts.q, 0), d.Ints1D({1}), d.ExtentOf(cached.k, 2)};
  Attention attention;
  attention.q = parts.q;
  attention.k = cached.k;
  attention.v = cached.v;
  attention.type = d.Type(kQuery);
  attention.heads = attention.kv_heads = heads;
  attention.scale = d.Float("scale");
  if (d.Has(kPadding)) {
    ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kPadding, 2));
    ONNXIFI_ASSIGN_OR_RETURN(const Value is_there, KeysThatAreThere(d, kPadding, extents));
    attention.bias = Filter(d, is_there, extents, attention.type);
  }
  if (d.Has(kScoreBias)) {
    attention.bias = attention.bias ? d.Add(*attention.bias, d.In(kScoreBias)) : d.In(kScoreBias);
  }
  if (d.Wants(3)) attention.shown = Attention::Shown::kScores;
  const Attended attended = Attend(d, attention);
  d.Return(0, MergeHeads(d, attended.result));
  if (d.Wants(3)) d.Return(3, attended.shown);
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(DecoderMaskedMultiHeadAttention(query: T, key?: T, value?: T, mask_index?: int32,
            attention_bias?: T, past_key?: T, past_value?: T, past_sequence_length?: int32,
            beam_width?: int32, cache_indirection?: int32, bias?: T)
            -> (output: T, present_key?: T, present_value?: T, qk?: QK)
        mask_filter_value: float
        num_heads: int required
        output_qk: int
        past_present_share_buffer: int
        scale: float
        T = float | float16
        QK = float | float16)",
     Define},
};

}  // namespace

std::span<const model::DomainOperator> DecoderAttentionOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
