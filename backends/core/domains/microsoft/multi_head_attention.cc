// SPDX-License-Identifier: Apache-2.0
//
// MultiHeadAttention: attention of projected queries, keys and values, apart or packed.

#include <utility>

#include "backends/core/domains/microsoft/attention.h"
#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/padding_mask.h"

namespace onnxifi::microsoft {
namespace {

using base::Result;
using base::Status;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

// The inputs by their positions.
enum Input {
  kQuery,
  kKey,
  kValue,
  kBias,
  kPadding,
  kScoreBias,
  kPastKey,
  kPastValue,
  kPastLength,
  kBeams,
};

// [batch, heads, sequence, size] each.
struct Projections {
  Value q, k, v;
};

Result<Projections> ReadProjections(Definition& d, int64_t heads) {
  Projections parts;
  const std::optional<int> rank = d.Rank(kQuery);
  if (!rank) return d.UnsupportedShape("Input 0 has a number of axes that is not known.");
  const auto part_of = [&d](int input, int64_t part) {
    // [batch, sequence, heads, parts, size]
    const Value one = d.Squeeze(d.Slice(d.In(input), 3, part, part + 1), {3});
    return d.Transpose(one, {0, 2, 1, 3});
  };
  if (*rank == 5) {
    return Projections{part_of(kQuery, 0), part_of(kQuery, 1), part_of(kQuery, 2)};
  }
  if (*rank != 3 || !d.Has(kKey)) {
    return d.Invalid("Input 0 has " + std::to_string(*rank) +
                     " axes; queries have 3 and stand beside keys, or are packed with them in 5.");
  }
  parts.q = SplitHeads(d, d.In(kQuery), heads);
  if (d.Rank(kKey) == 5) {
    parts.k = part_of(kKey, 0);
    parts.v = part_of(kKey, 1);
    return parts;
  }
  if (!d.Has(kValue))
    return d.Invalid("Input 2 (value) is missing beside a key that is not packed.");
  // Keys and values of an encoder come with their heads apart.
  parts.k = d.Rank(kKey) == 4 ? d.In(kKey) : SplitHeads(d, d.In(kKey), heads);
  parts.v = d.Rank(kValue) == 4 ? d.In(kValue) : SplitHeads(d, d.In(kValue), heads);
  return parts;
}

// The bias of the projections, [hidden of q + of k + of v], which heads share: one part for each,
// or none where keys and values are past the projection.
struct Biases {
  Value q, k, v;
};

// Of numbers.
Result<Biases> SplitBias(Definition& d, int64_t heads, int64_t size, int64_t all) {
  const int64_t hidden = heads * size;
  if (all <= 2 * hidden || (all - 2 * hidden) % heads != 0) {
    return d.Invalid("Input 3 has " + std::to_string(all) + " elements, which do not fit " +
                     std::to_string(heads) + " heads of " + std::to_string(size) + ".");
  }
  const std::vector<Value> parts = d.Split(d.In(kBias), 0, {hidden, hidden, all - 2 * hidden});
  const auto per_head = [&](const Value& part) { return d.Reshape(part, {1, heads, 1, -1}); };
  return Biases{per_head(parts[0]), per_head(parts[1]), per_head(parts[2])};
}

// Of symbols: a part has as many elements as the heads that it is added to, or a run is refused.
Biases SliceBias(Definition& d, int64_t heads, const Projections& parts) {
  const auto per_head = [&](const Value& start, const Value& end, const Value& projection) {
    const Value size = d.ExtentOf(projection, 3);
    return d.ReshapeTo(d.Slice(d.In(kBias), 0, start, end),
                       d.Concat({d.Ints1D({1, heads, 1}), size}, 0));
  };
  const Value hidden = d.Mul(d.ExtentOf(parts.q, 3), d.Ints1D({heads}));
  const Value twice = d.Add(hidden, hidden), all = d.ExtentOf(d.In(kBias), 0);
  return {per_head(d.Ints1D({0}), hidden, parts.q), per_head(hidden, twice, parts.k),
          per_head(twice, all, parts.v)};
}

Status AddBias(Definition& d, int64_t heads, Projections& parts) {
  if (!d.Has(kBias)) return base::Ok();
  std::optional<int64_t> size = d.Extent(kQuery, 4);
  if (d.Rank(kQuery) == 3) {
    size = d.Extent(kQuery, 2);
    if (size) *size /= heads;
  }
  const std::optional<int64_t> all = d.Extent(kBias, 0);
  Biases biases;
  if (size && all) {
    ONNXIFI_ASSIGN_OR_RETURN(biases, SplitBias(d, heads, *size, *all));
  } else {
    biases = SliceBias(d, heads, parts);
  }
  parts.q = d.Add(parts.q, biases.q);
  // Keys and values that have their heads apart are past the projection.
  if (d.Rank(kKey) != 4) parts.k = d.Add(parts.k, biases.k);
  if (d.Rank(kValue) != 4) parts.v = d.Add(parts.v, biases.v);
  return base::Ok();
}

// A search with beams adds one token at a time to buffers that beams share. ONNX Runtime reads the
// beams of the tokens then alone: neither of several tokens at once, nor without a buffer.
void ReadBeams(Definition& d, const Projections& parts, const Value& past_length, Cached& cached) {
  const std::optional<int64_t> tokens = d.Extent(kQuery, 1);
  if (!d.Has(kBeams) || (tokens && *tokens != 1)) return;
  const Value width = d.ExtentOf(d.In(kBeams), 1);
  Value beams = d.In(kBeams);
  if (!tokens) {
    const Value own = d.Unsqueeze(CountTo(d, width), {0, 2});
    const Value is_one = d.Apply("Equal", {d.ExtentOf(parts.q, 2), d.Int0D(1)});
    beams = d.Apply("Where", {is_one, d.Cast(beams, ElementType::kInt64), own});
  }
  cached.k = OfBeams(d, cached.k, beams, width, past_length);
  cached.v = OfBeams(d, cached.v, beams, width, past_length);
}

Status Define(Definition& d) {
  const int64_t heads = d.Int("num_heads");
  if (heads < 1) {
    return d.Invalid("Attribute num_heads is " + std::to_string(heads) + ", below 1.");
  }
  if (d.Has(kBeams)) ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kBeams, 3));
  if (d.Has(kPastKey) != d.Has(kPastValue)) {
    return d.Invalid("It has not both past key and past value, or neither.");
  }
  if (d.Has(kPastLength) && !d.Has(kPastKey)) {
    return d.Invalid("It has a length of the past, and no past.");
  }
  if (d.Wants(3) && d.Int("unidirectional") != 0) {
    return d.Unsupported("Output 3 (scores) is wanted beside attribute unidirectional, of which " +
                         std::to_string(d.Int("unidirectional")) + " is not supported.");
  }
  const ElementType type = d.Type(kQuery);
  ONNXIFI_ASSIGN_OR_RETURN(Projections parts, ReadProjections(d, heads));
  ONNXIFI_RETURN_IF_ERROR(AddBias(d, heads, parts));
  Cached cached = {parts.k, parts.v, parts.k, parts.v};
  if (d.Has(kPastLength)) {
    const Value length = d.Reshape(d.Cast(d.In(kPastLength), ElementType::kInt64), {1});
    cached = ExtendBuffers(d, d.In(kPastKey), d.In(kPastValue), parts.k, parts.v, length);
    ReadBeams(d, parts, length, cached);
  } else if (d.Has(kPastKey)) {
    cached.present_k = cached.k = d.Concat({d.In(kPastKey), parts.k}, 2);
    cached.present_v = cached.v = d.Concat({d.In(kPastValue), parts.v}, 2);
  }
  const ScoreExtents extents = {d.ExtentOf(parts.q, 0), d.ExtentOf(parts.q, 2),
                                d.ExtentOf(cached.k, 2)};
  Attention attention;
  attention.q = parts.q;
  attention.k = cached.k;
  attention.v = cached.v;
  attention.type = type;
  attention.heads = attention.kv_heads = heads;
  attention.scale = d.Float("scale");
  if (d.Has(kPadding)) {
    ONNXIFI_ASSIGN_OR_RETURN(const Value is_there, KeysThatAreThere(d, kPadding, extents));
    attention.bias = Filter(d, is_there, extents, type);
  }
  if (d.Has(kScoreBias)) {
    attention.bias = attention.bias ? d.Add(*attention.bias, d.In(kScoreBias)) : d.In(kScoreBias);
  }
  if (d.Int("unidirectional") != 0) attention.mask = Causal(d, extents);
  if (d.Wants(3)) attention.shown = Attention::Shown::kScores;
  const Attended attended = Attend(d, attention);
  d.Return(0, MergeHeads(d, attended.result));
  if (d.Wants(3)) d.Return(3, attended.shown);
  d.Return(1, cached.present_k);
  d.Return(2, cached.present_v);
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(MultiHeadAttention(query: T, key?: T, value?: T, bias?: T, key_padding_mask?: int32,
                           attention_bias?: T, past_key?: T, past_value?: T,
                           past_sequence_length?: int32, cache_indirection?: int32)
            -> (output: T, present_key?: T, present_value?: T, qk?: QK)
        mask_filter_value: float
        num_heads: int required
        scale: float
        unidirectional: int = 0
        T = float | float16 | bfloat16
        QK = float | float16 | bfloat16)",
     Define},
};

}  // namespace

std::span<const model::DomainOperator> MultiHeadAttentionOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
