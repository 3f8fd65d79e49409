// SPDX-License-Identifier: Apache-2.0
//
// GroupQueryAttention: attention of new tokens to a cache of keys and values, as decoders run it.
// Sample b has seqlens_k[b] + 1 tokens with the new ones, which are the last of them; the first run
// of a sequence has nothing else. Query s stands at
//   position(b, s) = past(b) + s,   past(b) = seqlens_k[b] + 1 - sequence, or 0 in the first run
// and looks at the keys up to its own position, and no farther back than the window.

#include <cmath>
#include <utility>

#include "backends/core/domains/microsoft/attention.h"
#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/rotary.h"

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
  kPastKey,
  kPastValue,
  kSeqlens,
  kTotal,
  kCosines,
  kSines,
  kPositions,
  kBias,
  kSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm,
};

struct Heads {
  int64_t q = 0, kv = 0;
  std::optional<int64_t> size;
};

Result<Heads> ReadHeads(const Definition& d) {
  Heads heads{d.Int("num_heads"), d.Int("kv_num_heads"), std::nullopt};
  if (heads.q < 1 || heads.kv < 1 || heads.q % heads.kv != 0) {
    return d.Invalid("Attribute num_heads (" + std::to_string(heads.q) +
                     ") is no multiple of kv_num_heads (" + std::to_string(heads.kv) + ").");
  }
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kQuery, 3));
  const std::optional<int64_t> hidden = d.Extent(kQuery, 2);
  if (!hidden) return heads;
  const int64_t count = d.Has(kKey) ? heads.q : heads.q + 2 * heads.kv;
  if (*hidden < 1 || *hidden % count != 0) {
    return d.Invalid("Input 0 has rows of " + std::to_string(*hidden) + " elements, which " +
                     std::to_string(count) + " heads do not share evenly.");
  }
  heads.size = *hidden / count;
  return heads;
}

// Limits of this definition, each by name.
Status CheckLimits(const Definition& d) {
  if (d.Has(kKey) != d.Has(kValue)) return d.Invalid("It has not both key and value, or neither.");
  if (d.Has(kPastKey) != d.Has(kPastValue)) {
    return d.Invalid("It has not both past key and past value, or neither.");
  }
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    if (d.String(name) != "NONE") {
      return d.Unsupported("Attribute " + std::string(name) + " is '" + d.String(name) +
                           "'; a cache is of floats ('NONE').");
    }
  }
  if (d.Int("sliding_window_cache") != 0) {
    return d.Unsupported("Attribute sliding_window_cache is " +
                         std::to_string(d.Int("sliding_window_cache")) +
                         "; a cache keeps all tokens (0).");
  }
  const int64_t shown = d.Int("qk_output");
  if (shown < 0 || shown > 2 || (shown == 0 && d.Wants(3))) {
    return d.Invalid("Attribute qk_output is " + std::to_string(shown) +
                     "; output 3 is the scores (1) or the shares (2).");
  }
  return base::Ok();
}

// Queries, keys and values: [batch, sequence, heads, size] each.
std::vector<Value> ReadProjections(Definition& d, const Heads& heads) {
  const auto split = [&d](int input, int64_t count) {
    return d.Reshape(d.In(input), {0, 0, count, -1});
  };
  if (d.Has(kKey)) {
    return {split(kQuery, heads.q), split(kKey, heads.kv), split(kValue, heads.kv)};
  }
  return d.Split(split(kQuery, heads.q + 2 * heads.kv), 2, {heads.q, heads.kv, heads.kv});
}

// With the heads before the sequence, normalized by input `weight` where that is there.
Value Normalized(Definition& d, Value heads, int weight) {
  if (d.Has(weight)) {
    heads = d.Apply("RMSNormalization", {std::move(heads), d.In(weight)},
                    {{"axis", int64_t{-1}}, {"epsilon", d.Float("qk_norm_epsilon")}});
  }
  return d.Transpose(std::move(heads), {0, 2, 1, 3});
}

// Which keys each query looks at: [batch, 1, queries, keys].
Value Mask(Definition& d, const Value& positions, const Value& lengths, const Value& total) {
  const Value keys = CountTo(d, total);
  const Value ends = d.Unsqueeze(positions, {1, 3});
  if (d.Int("causal") == 0) {
    return d.Apply("Less", {keys, d.Reshape(lengths, {-1, 1, 1, 1})});
  }
  const Value mask = d.Apply("LessOrEqual", {keys, ends});
  const int64_t window = d.Int("local_window_size");
  if (window < 0) return mask;
  const Value first = d.Sub(ends, d.Int0D(window));
  return d.Apply("And", {mask, d.Apply("Greater", {keys, first})});
}

Status Define(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(CheckLimits(d));
  ONNXIFI_ASSIGN_OR_RETURN(const Heads heads, ReadHeads(d));
  const ElementType type = d.Type(kQuery);
  const std::vector<Value> projections = ReadProjections(d, heads);
  Value q = Normalized(d, projections[0], kQueryNorm);
  Value k = Normalized(d, projections[1], kKeyNorm);
  const Value v = d.Transpose(projections[2], {0, 2, 1, 3});

  const Value sequence = d.ExtentOf(d.In(kQuery), 1);
  const Value total = d.Reshape(d.Cast(d.In(kTotal), ElementType::kInt64), {1});
  const Value lengths = d.Add(d.Reshape(d.Cast(d.In(kSeqlens), ElementType::kInt64), {-1}),
                              d.Int0D(1));  // [batch]
  const Value is_first = d.Apply("Equal", {total, sequence});
  const Value starts = d.Apply("Where", {is_first, d.Int0D(0), d.Sub(lengths, sequence)});
  const Value positions = d.Add(d.Unsqueeze(starts, {1}), CountTo(d, sequence));
  if (d.Int("do_rotary") != 0) {
    const Value at = d.Has(kPositions) ? d.In(kPositions) : positions;
    const bool is_interleaved = d.Int("rotary_interleaved") != 0;
    ONNXIFI_ASSIGN_OR_RETURN(q, Rotate(d, q, kCosines, at, is_interleaved, heads.size));
    ONNXIFI_ASSIGN_OR_RETURN(k, Rotate(d, k, kCosines, at, is_interleaved, heads.size));
  }
  Value present_k = k, present_v = v;
  if (d.Has(kPastKey)) {
    present_k = ExtendCache(d, d.In(kPastKey), k, total, starts);
    present_v = ExtendCache(d, d.In(kPastValue), v, total, starts);
  }

  Attention attention;
  attention.q = q;
  attention.k = d.Slice(present_k, 2, d.Ints1D({0}), total);
  attention.v = d.Slice(present_v, 2, d.Ints1D({0}), total);
  attention.type = type;
  attention.heads = heads.q;
  attention.kv_heads = heads.kv;
  attention.mask = Mask(d, positions, lengths, total);
  attention.has_key_for_each = true;  // its own
  attention.scale = d.Float("scale");
  if (attention.scale == 0 && heads.size) {
    attention.scale = 1 / std::sqrt(static_cast<float>(*heads.size));
  }
  attention.softcap = d.Float("softcap");
  if (d.Has(kBias)) attention.bias = d.In(kBias);
  if (d.Has(kSink)) {
    attention.sink = d.In(kSink);
  } else if (d.Int("smooth_softmax") > 0) {
    // One more score of zero.
    attention.sink = d.Apply("Expand", {d.Scalar1D(0, type), d.Ints1D({heads.q})});
  }
  const int64_t shown = d.Int("qk_output");
  if (shown != 0 && d.Wants(3)) {
    attention.shown = shown == 1 ? Attention::Shown::kScores : Attention::Shown::kShares;
  }
  const Attended attended = Attend(d, attention);
  d.Return(0, MergeHeads(d, attended.result));
  if (!attended.shown.empty()) d.Return(3, attended.shown);
  d.Return(1, present_k);
  d.Return(2, present_v);
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(GroupQueryAttention(query: T, key?: T, value?: T, past_key?: C, past_value?: C,
                            seqlens_k: int32, total_sequence_length: int32, cos_cache?: T,
                            sin_cache?: T, position_ids?: int64, attention_bias?: T, head_sink?: T,
                            k_scale?: float, v_scale?: float, q_norm_weight?: T, k_norm_weight?: T)
            -> (output: T, present_key?: C, present_value?: C, output_qk?: T)
        causal: int = 1
        do_rotary: int
        k_quant_type: string = NONE
        kv_cache_bit_width: int
        kv_num_heads: int required
        local_window_size: int = -1
        num_heads: int required
        qk_norm_epsilon: float = 1e-6
        qk_output: int = 0
        rotary_interleaved: int
        scale: float
        sliding_window_cache: int = 0
        smooth_softmax: int = -1
        softcap: float
        v_quant_type: string = NONE
        T = float16 | bfloat16 | float
        C = float | float16 | bfloat16 | uint8 | int8 | float8e4m3fn)",
     Define},
};

}  // namespace

std::span<const model::DomainOperator> GroupQueryAttentionOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
