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
#include "backends/core/domains/microsoft/quantization.h"
#include "backends/core/domains/microsoft/rotary.h"

namespace onnxifi::microsoft {
namespace {

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

// Of a cache that keeps the last tokens alone.
Status CheckSlidingWindow(const Definition& d) {
  const int64_t window = d.Int("local_window_size");
  if (window < 1) {
    return d.Invalid("Attribute sliding_window_cache is set where local_window_size is " +
                     std::to_string(window) + "; it is at least 1.");
  }
  if (!d.Has(kPastKey)) return d.Invalid("Attribute sliding_window_cache is set without a cache.");
  const std::optional<int64_t> room = d.Extent(kPastKey, 2);
  if (room && *room < window) {
    return d.Invalid("A cache of " + std::to_string(*room) + " tokens keeps no window of " +
                     std::to_string(window) + ".");
  }
  if (d.Int("causal") == 0) {
    return d.Unsupported("Attribute causal is 0; a window looks back (1).");
  }
  if (d.Has(kBias)) {
    return d.Unsupported("Input 10 (attention_bias) is given; a cache of a window has none.");
  }
  if (d.Wants(3)) {
    return d.Unsupported("Output 3 is wanted; scores of a cache of a window are not shown.");
  }
  return base::Ok();
}

// Limits of this definition, each by name.
Status CheckLimits(const Definition& d) {
  if (d.Has(kKey) != d.Has(kValue)) return d.Invalid("It has not both key and value, or neither.");
  if (d.Has(kPastKey) != d.Has(kPastValue)) {
    return d.Invalid("It has not both past key and past value, or neither.");
  }
  if (d.Int("sliding_window_cache") != 0) ONNXIFI_RETURN_IF_ERROR(CheckSlidingWindow(d));
  const int64_t shown = d.Int("qk_output");
  if (shown < 0 || shown > 2 || (shown == 0 && d.Wants(3))) {
    return d.Invalid("Attribute qk_output is " + std::to_string(shown) +
                     "; output 3 is the scores (1) or the shares (2).");
  }
  return base::Ok();
}

// How a cache keeps keys or values: as floats, or as integers that a scale makes floats of.
class CacheFormat {
 public:
  static Result<CacheFormat> Read(const Definition& d, const char* attribute, int past, int scale);

  // [batch, heads, tokens, size] as the cache keeps it, and back in type `type`.
  Value Quantized(Definition& d, Value floats) const;
  Value Dequantized(Definition& d, Value kept, ElementType type) const;
  bool is_of_floats() const { return bits_ == 0; }

 private:
  int64_t bits_ = 0;  // 8: int8, 4: two in a uint8, 0: floats
  int scale_ = 0;
};

Result<CacheFormat> CacheFormat::Read(const Definition& d, const char* attribute, int past,
                                      int scale) {
  CacheFormat format;
  const std::string kind = d.String(attribute);
  if (kind == "NONE") return format;
  if (kind != "PER_TENSOR" && kind != "PER_CHANNEL") {
    return d.Invalid("Attribute " + std::string(attribute) + " is '" + kind +
                     "'; there are NONE, PER_TENSOR and PER_CHANNEL.");
  }
  if (!d.Has(scale)) return d.Invalid("A quantized cache has no scale.");
  format.scale_ = scale;
  format.bits_ = d.Int("kv_cache_bit_width");
  if (format.bits_ != 4 && format.bits_ != 8) {
    return d.Unsupported("Attribute kv_cache_bit_width is " + std::to_string(format.bits_) +
                         "; a quantized cache has 4 or 8 bits.");
  }
  const ElementType type = d.Has(past) ? d.Type(past) : ElementType::kUndefined;
  const ElementType wanted = format.bits_ == 8 ? ElementType::kInt8 : ElementType::kUint8;
  if (type != ElementType::kUndefined && type != wanted) {
    return d.Unsupported("A cache of " + std::to_string(format.bits_) + " bits is " +
                         std::string(tensor::Name(type)) + " instead of " +
                         std::string(tensor::Name(wanted)) + ".");
  }
  return format;
}

Value CacheFormat::Quantized(Definition& d, Value floats) const {
  if (bits_ == 0) return floats;
  const auto half = static_cast<double>(int64_t{1} << (bits_ - 1));
  const ElementType wide = ElementType::kFloat32;
  const Value steps = d.Apply("Round", {d.Div(d.Cast(std::move(floats), wide), d.In(scale_))});
  const Value bounded = d.Apply("Clip", {steps, d.Scalar(-half, wide), d.Scalar(half - 1, wide)});
  if (bits_ == 8) return d.Cast(bounded, ElementType::kInt8);
  const Value codes = d.Cast(d.Add(bounded, d.Scalar(half, wide)), ElementType::kUint8);
  // The first of two in the low bits.
  const std::vector<Value> pair = d.Split(d.Reshape(codes, {0, 0, 0, -1, 2}), 4, {1, 1});
  const Value high =
      d.Apply("BitShift", {pair[1], d.Scalar(4, ElementType::kUint8)}, {{"direction", "LEFT"}});
  return d.Squeeze(d.Apply("BitwiseOr", {pair[0], high}), {4});
}

Value CacheFormat::Dequantized(Definition& d, Value kept, ElementType type) const {
  if (bits_ == 0) return kept;
  const ElementType wide = ElementType::kFloat32;
  Value numbers = d.Cast(Unpack(d, std::move(kept), bits_), wide);
  if (bits_ == 4) numbers = d.Sub(std::move(numbers), d.Scalar(8, wide));
  Value floats = d.Mul(std::move(numbers), d.In(scale_));
  return type == wide ? floats : d.Cast(std::move(floats), type);
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
    const Value of_queries =
        d.Apply("Expand", {d.Unsqueeze(lengths, {1}), d.Apply("Shape", {positions})});
    return d.Apply("Less", {keys, d.Unsqueeze(of_queries, {1, 3})});
  }
  const Value mask = d.Apply("LessOrEqual", {keys, ends});
  const int64_t window = d.Int("local_window_size");
  if (window < 0) return mask;
  const Value first = d.Sub(ends, d.Int0D(window));
  return d.Apply("And", {mask, d.Apply("Greater", {keys, first})});
}

// A cache of the last tokens alone. Behind T tokens of a sample it has the last L(T) of them in its
// first rows; where one more does not fit, as many go as the room exceeds the window by, and one:
//   L(T) = T up to the room, T - step * ceil((T - room) / step) above it, step = room - window + 1
// All int64. The columns are those of the cache, then the new tokens.
class SlidingWindow {
 public:
  // `starts`, `lengths` [batch]: the tokens of each sample without the new ones, and with them.
  SlidingWindow(Definition& d, const Value& starts, const Value& lengths) : starts_(starts) {
    room_ = d.ExtentOf(d.In(kPastKey), 2);
    const Value window = d.Ints1D({d.Int("local_window_size")});
    step_ = d.Apply("Max", {d.Add(d.Sub(room_, window), d.Ints1D({1})), d.Ints1D({1})});
    old_ = Resident(d, starts);
    first_old_ = d.Sub(starts, old_);
    first_kept_ = d.Sub(lengths, Resident(d, lengths));
    is_there_ = d.Apply("Less", {CountTo(d, room_), d.Unsqueeze(old_, {1})});
  }

  // Cache `past` of floats with zeros in the rows that hold no token, which may be anything.
  Value Cleared(Definition& d, const Value& past, ElementType type) const {
    return ClearedRows(d, past, d.Unsqueeze(is_there_, {1, 3}), type);
  }

  // Which columns the queries at `positions` [batch, sequence] look at: [batch, 1, sequence,
  // columns].
  Value Mask(Definition& d, const Value& positions) const {
    const auto of_samples = [&](const Value& value) { return d.Unsqueeze(value, {1}); };
    const Value count = CountTo(d, room_);
    const Value of_cache = d.Add(of_samples(first_old_), count);
    // What stands behind the old tokens is farther ahead than any query.
    const Value never = d.Scalar(static_cast<double>(int64_t{1} << 40), ElementType::kInt64);
    const Value places = d.Concat({d.Apply("Where", {is_there_, of_cache, never}), positions}, 1);
    const Value keys = d.Unsqueeze(places, {1, 2}), queries = d.Unsqueeze(positions, {1, 3});
    const Value first = d.Sub(queries, d.Int0D(d.Int("local_window_size")));
    return d.Apply("And",
                   {d.Apply("LessOrEqual", {keys, queries}), d.Apply("Greater", {keys, first})});
  }

  // The rows of the cache behind the run, of all columns [batch, heads, columns, size].
  Value Kept(Definition& d, const Value& columns) const {
    const Value place = d.Add(d.Unsqueeze(first_kept_, {1}), CountTo(d, room_));
    const Value start = d.Unsqueeze(starts_, {1});
    const Value of_new = d.Add(d.Sub(place, start), room_);
    const Value of_old = d.Sub(place, d.Unsqueeze(first_old_, {1}));
    const Value is_new = d.Apply("GreaterOrEqual", {place, start});
    // Rows without a token have the last column.
    const Value last = d.Sub(d.ExtentOf(columns, 2), d.Ints1D({1}));
    const Value at = d.Apply("Min", {d.Apply("Where", {is_new, of_new, of_old}), last});
    const Value rows =
        d.Apply("GatherND", {d.Transpose(columns, {0, 2, 1, 3}), d.Unsqueeze(at, {2})},
                {{"batch_dims", int64_t{1}}});
    return d.Transpose(rows, {0, 2, 1, 3});
  }

 private:
  Value Resident(Definition& d, const Value& tokens) const {
    const Value excess = d.Apply("Max", {d.Sub(tokens, room_), d.Ints1D({0})});
    const Value steps = d.Div(d.Sub(d.Add(excess, step_), d.Ints1D({1})), step_);
    return d.Sub(tokens, d.Mul(step_, steps));
  }

  Value starts_, room_, step_;
  Value old_, first_old_;  // how many of a sample are in the cache, and the place of the first
  Value is_there_;         // bool [batch, room]: whether a row of the cache holds one
  Value first_kept_;       // the same behind the run
};

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
  ONNXIFI_ASSIGN_OR_RETURN(const CacheFormat of_keys,
                           CacheFormat::Read(d, "k_quant_type", kPastKey, kKeyScale));
  ONNXIFI_ASSIGN_OR_RETURN(const CacheFormat of_values,
                           CacheFormat::Read(d, "v_quant_type", kPastValue, kValueScale));
  Value present_k = of_keys.Quantized(d, k), present_v = of_values.Quantized(d, v);
  // Keys and values that queries may look at, as the cache keeps them.
  Value seen_k, seen_v, mask;
  std::optional<Value> has_token;
  if (d.Int("sliding_window_cache") != 0) {
    const SlidingWindow window(d, starts, lengths);
    const auto past = [&](int input, const CacheFormat& format) {
      return format.is_of_floats() ? window.Cleared(d, d.In(input), d.Type(input)) : d.In(input);
    };
    seen_k = d.Concat({past(kPastKey, of_keys), present_k}, 2);
    seen_v = d.Concat({past(kPastValue, of_values), present_v}, 2);
    mask = window.Mask(d, positions);
    present_k = window.Kept(d, seen_k);
    present_v = window.Kept(d, seen_v);
  } else if (d.Has(kPastKey)) {
    present_k = ExtendCache(d, d.In(kPastKey), present_k, total, starts);
    present_v = ExtendCache(d, d.In(kPastValue), present_v, total, starts);
  }

  if (mask.empty()) {
    seen_k = d.Slice(present_k, 2, d.Ints1D({0}), total);
    seen_v = d.Slice(present_v, 2, d.Ints1D({0}), total);
    mask = Mask(d, positions, lengths, total);
    // `total` is of the longest sample: others end before, and each in a padded first run, but
    // where there is one token of one sample. Integers are always numbers.
    if (of_values.is_of_floats() && (d.Extent(kQuery, 0) != 1 || d.Extent(kQuery, 1) != 1)) {
      has_token = RowsWithToken(d, lengths, total);
    }
  }

  Attention attention;
  attention.q = q;
  attention.k = of_keys.Dequantized(d, seen_k, type);
  attention.v = of_values.Dequantized(d, seen_v, type);
  attention.type = type;
  attention.heads = heads.q;
  attention.kv_heads = heads.kv;
  attention.mask = mask;
  attention.has_token = has_token;
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
