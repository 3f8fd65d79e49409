// SPDX-License-Identifier: Apache-2.0
//
// PagedAttention: attention of new tokens of several sequences, packed without padding, to a cache
// that is cut into blocks. Row n of the cache, [blocks * block size, kv heads, size], has the token
// at place p of sequence s where
//   n = block_table[s, p / block size] * block size + p % block size
// New tokens follow the old ones of their sequence, past_seqlens of which are in the cache.

#include <string>
#include <utility>
#include <vector>

#include "backends/core/domains/microsoft/attention.h"
#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/packed_tokens.h"
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
  kKeyCache,
  kValueCache,
  kSums,
  kPast,
  kBlocks,
  kCosines,
  kSines,
  kSlots,
  kSink,
  kQueryNorm,
  kKeyNorm,
  kKeyScale,
  kValueScale,
};

Value Integers(Definition& d, int input) { return d.Cast(d.In(input), ElementType::kInt64); }

// Limits of this definition, each by name.
Status CheckLimits(const Definition& d) {
  if (d.Has(kKey) != d.Has(kValue)) return d.Invalid("It has not both key and value, or neither.");
  if (d.Has(kQueryNorm) != d.Has(kKeyNorm)) {
    return d.Invalid("It has not weights of norms for both queries and keys, or neither.");
  }
  const std::string layout = d.String("kv_cache_layout");
  if (layout != "SEPARATE") {
    return d.Unsupported("Attribute kv_cache_layout is '" + layout +
                         "'; keys and values have a cache each (SEPARATE).");
  }
  if (!d.Has(kValueCache)) return d.Invalid("Input 4 (value_cache) is missing.");
  if (d.Int("v_head_size") != 0) {
    return d.Unsupported("Attribute v_head_size is " + std::to_string(d.Int("v_head_size")) +
                         "; values are as wide as keys (0).");
  }
  if (d.Int("rotary_offset") != 0) {
    return d.Unsupported("Attribute rotary_offset is " + std::to_string(d.Int("rotary_offset")) +
                         "; a rotation begins with the first channel (0).");
  }
  return base::Ok();
}

// How a cache keeps keys or values.
class CacheFormat {
 public:
  static Result<CacheFormat> Read(const Definition& d, const char* quantization,
                                  const char* element, int cache, int scale);

  // [..., kv heads, size] as the cache keeps it, and back.
  Value Kept(Definition& d, Value floats) const;
  Value Floats(Definition& d, Value kept, ElementType type) const;

 private:
  // One number, or one for each channel: [kv heads, size].
  Value Scale(Definition& d) const {
    return is_of_channels_ ? d.Squeeze(d.In(scale_), {1}) : d.In(scale_);
  }

  ElementType type_ = ElementType::kUndefined;
  int scale_ = 0;  // 0: none
  bool is_of_channels_ = false;
};

Result<CacheFormat> CacheFormat::Read(const Definition& d, const char* quantization,
                                      const char* element, int cache, int scale) {
  CacheFormat format;
  format.type_ = d.Type(cache);
  const std::string kind = d.String(quantization), name = d.String(element);
  if (format.type_ == ElementType::kUint8) {
    return d.Unsupported("Input " + std::to_string(cache) +
                         " is uint8; elements of a cache are not packed.");
  }
  if (!name.empty() && name != tensor::Name(format.type_)) {
    return d.Invalid("Attribute " + std::string(element) + " is '" + name + "' for a cache of " +
                     std::string(tensor::Name(format.type_)) + ".");
  }
  const bool is_quantized =
      format.type_ == ElementType::kInt8 || format.type_ == ElementType::kFloat8E4M3Fn;
  if (kind != "NONE" && kind != "PER_TENSOR" && kind != "PER_CHANNEL") {
    return d.Invalid("Attribute " + std::string(quantization) + " is '" + kind +
                     "'; there are NONE, PER_TENSOR and PER_CHANNEL.");
  }
  if ((kind != "NONE") != is_quantized || d.Has(scale) != is_quantized) {
    return d.Invalid("A cache of " + std::string(tensor::Name(format.type_)) + " has " +
                     (d.Has(scale) ? "a" : "no") + " scale, and attribute " + quantization +
                     " is " + kind + ".");
  }
  if (is_quantized) format.scale_ = scale;
  format.is_of_channels_ = kind == "PER_CHANNEL";
  return format;
}

Value CacheFormat::Kept(Definition& d, Value floats) const {
  if (scale_ == 0) return floats;
  const ElementType wide = ElementType::kFloat32;
  const Value steps = d.Div(d.Cast(std::move(floats), wide), Scale(d));
  if (type_ != ElementType::kInt8) return d.Cast(steps, type_);
  const Value bounded =
      d.Apply("Clip", {d.Apply("Round", {steps}), d.Scalar(-128, wide), d.Scalar(127, wide)});
  return d.Cast(bounded, type_);
}

Value CacheFormat::Floats(Definition& d, Value kept, ElementType type) const {
  if (scale_ == 0) return kept;
  return d.Cast(d.Mul(d.Cast(std::move(kept), ElementType::kFloat32), Scale(d)), type);
}

// Heads of new tokens, [tokens, heads, size] each, normalized and turned.
struct Heads {
  Value q, k, v;
};

Result<Heads> ReadHeads(Definition& d, int64_t heads, int64_t kv_heads, std::optional<int64_t> size,
                        const Value& positions) {
  Heads made;
  const auto split = [&](int input, int64_t count) {
    return d.Reshape(d.In(input), {0, count, -1});
  };
  if (d.Has(kKey)) {
    made = {split(kQuery, heads), split(kKey, kv_heads), split(kValue, kv_heads)};
  } else {
    const std::vector<Value> parts =
        d.Split(split(kQuery, heads + 2 * kv_heads), 1, {heads, kv_heads, kv_heads});
    made = {parts[0], parts[1], parts[2]};
  }
  const float epsilon = d.HasAttribute("qk_norm_epsilon") ? d.Float("qk_norm_epsilon") : 1e-6F;
  const bool is_interleaved = d.Int("rotary_interleaved") != 0;
  for (auto [value, weight] : {std::pair(&made.q, kQueryNorm), std::pair(&made.k, kKeyNorm)}) {
    if (d.Has(weight)) {
      *value = d.Apply("RMSNormalization", {*value, d.In(weight)},
                       {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
    }
    if (d.Int("do_rotary") == 0) continue;
    const Value apart = d.Unsqueeze(d.Transpose(*value, {1, 0, 2}), {0});
    ONNXIFI_ASSIGN_OR_RETURN(
        const Value turned,
        Rotate(d, apart, kCosines, d.Unsqueeze(positions, {0}), is_interleaved, size));
    *value = d.Transpose(d.Squeeze(turned, {0}), {1, 0, 2});
  }
  return made;
}

// The rows of a cache.
class Rows {
 public:
  explicit Rows(Definition& d)
      : table_(Integers(d, kBlocks)), block_size_(d.ExtentOf(d.In(kKeyCache), 1)) {}

  // Where `place` of `sequence` stands: both int64, and broadcast.
  Value At(Definition& d, const Value& sequence, const Value& place) const {
    const Value block = d.Div(place, block_size_);
    const Value shape = d.Apply("Shape", {d.Add(sequence, block)});
    const auto index = [&](const Value& value) {
      return d.Unsqueeze(d.Apply("Expand", {value, shape}), {-1});
    };
    const Value entry =
        d.Apply("GatherND", {table_, d.Concat({index(sequence), index(block)}, -1)});
    return d.Add(d.Mul(entry, block_size_), d.Apply("Mod", {place, block_size_}));
  }

 private:
  Value table_;  // [sequences, blocks of one]
  Value block_size_;
};

// The cache, input `cache`, with the rows of new tokens, [tokens, kv heads, size], where `slots`
// says. A slot below 0 is of none: it goes to a row behind the last, which is cut off again.
Value Write(Definition& d, int cache, const Value& slots, const Value& fresh) {
  const Value shape = d.Apply("Shape", {d.In(cache)});
  const Value flat =
      d.ReshapeTo(d.In(cache), d.Concat({d.Ints1D({-1}), d.Slice(shape, 0, 2, 4)}, 0));
  if (!d.Has(kSlots)) {
    return d.ReshapeTo(d.Apply("ScatterND", {flat, d.Unsqueeze(slots, {1}), fresh}), shape);
  }
  const Value rows = d.ExtentOf(flat, 0);
  const Value room = d.Apply("Pad", {flat, d.Ints1D({0, 1}), "", d.Ints1D({0})});
  const Value at = d.Apply("Where", {d.Apply("Less", {slots, d.Int0D(0)}), rows, slots});
  const Value written = d.Apply("ScatterND", {room, d.Unsqueeze(at, {1}), fresh});
  return d.ReshapeTo(d.Slice(written, 0, d.Ints1D({0}), rows), shape);
}

Status Define(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(CheckLimits(d));
  const int64_t heads = d.Int("num_heads"), kv_heads = d.Int("kv_num_heads");
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0) {
    return d.Invalid("Attribute num_heads (" + std::to_string(heads) +
                     ") is no multiple of kv_num_heads (" + std::to_string(kv_heads) + ").");
  }
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kQuery, 2));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kKeyCache, 4));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kValueCache, 4));
  const std::optional<int64_t> row = d.Extent(kQuery, 1), size = d.Extent(kKeyCache, 3);
  const int64_t count = d.Has(kKey) ? heads : heads + 2 * kv_heads;
  if (row && size && (*size < 1 || *row != count * *size)) {
    return d.Invalid("Input 0 has rows of " + std::to_string(*row) + " elements instead of " +
                     std::to_string(count) + " heads of " + std::to_string(*size) + ".");
  }
  ONNXIFI_ASSIGN_OR_RETURN(
      const CacheFormat of_keys,
      CacheFormat::Read(d, "k_quant_type", "k_cache_dtype", kKeyCache, kKeyScale));
  ONNXIFI_ASSIGN_OR_RETURN(
      const CacheFormat of_values,
      CacheFormat::Read(d, "v_quant_type", "v_cache_dtype", kValueCache, kValueScale));

  const ElementType type = d.Type(kQuery);
  const PackedTokens packed = ReadPackedTokens(d, kSums, d.ExtentOf(d.In(kQuery), 0));
  const Value past = Integers(d, kPast);
  const Value place = d.Add(d.Apply("Gather", {past, packed.sequence}), packed.place);
  ONNXIFI_ASSIGN_OR_RETURN(const Heads made, ReadHeads(d, heads, kv_heads, size, place));
  const Rows rows(d);
  const Value slots = d.Has(kSlots) ? Integers(d, kSlots) : rows.At(d, packed.sequence, place);
  const Value key_cache = Write(d, kKeyCache, slots, of_keys.Kept(d, made.k));
  const Value value_cache = Write(d, kValueCache, slots, of_values.Kept(d, made.v));

  // All tokens of each sequence: [sequences, longest, kv heads, size]. Behind the last of one any
  // row stands, which no query looks at.
  const Value lengths = d.Add(past, packed.lengths);
  const Value total = d.Apply("ReduceMax", {lengths, d.Ints1D({0})});
  const Value keys = CountTo(d, total);
  const Value sequences = d.Reshape(CountTo(d, d.ExtentOf(past, 0)), {-1, 1});
  const Value is_key = d.Apply("Less", {keys, d.Unsqueeze(lengths, {1})});
  const Value at = rows.At(d, sequences, d.Apply("Where", {is_key, keys, d.Int0D(0)}));
  const auto read = [&](const Value& cache, const CacheFormat& format) {
    const Value extents = d.Slice(d.Apply("Shape", {cache}), 0, 2, 4);
    const Value flat = d.ReshapeTo(cache, d.Concat({d.Ints1D({-1}), extents}, 0));
    return d.Transpose(format.Floats(d, d.Apply("Gather", {flat, at}), type), {0, 2, 1, 3});
  };

  // Which keys each query looks at: [sequences, 1, queries, keys].
  const Value queries = d.Add(d.Unsqueeze(past, {1}), CountTo(d, packed.longest));  // their places
  const Value ends = d.Unsqueeze(queries, {1, 3});
  Value mask = d.Int("is_causal") != 0
                   ? d.Apply("LessOrEqual", {keys, ends})
                   : d.Apply("And", {d.Unsqueeze(is_key, {1, 2}),
                                     d.Apply("GreaterOrEqual", {ends, d.Int0D(0)})});
  if (const int64_t window = d.Int("local_window_size"); window > 0) {
    mask = d.Apply("And", {mask, d.Apply("Greater", {keys, d.Sub(ends, d.Int0D(window))})});
  }

  Attention attention;
  attention.q = d.Transpose(WithPadding(d, packed, made.q), {0, 2, 1, 3});
  attention.k = read(key_cache, of_keys);
  attention.v = read(value_cache, of_values);
  attention.type = type;
  attention.heads = heads;
  attention.kv_heads = kv_heads;
  attention.mask = mask;
  attention.scale = d.Float("scale");
  attention.softcap = d.Float("softcap");
  if (d.Has(kSink)) attention.sink = d.In(kSink);
  d.Return(0, WithoutPadding(d, packed, MergeHeads(d, Attend(d, attention).result)));
  d.Return(1, key_cache);
  d.Return(2, value_cache);
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(PagedAttention(query: T, key?: T, value?: T, key_cache: T_CACHE, value_cache?: T_CACHE,
                       cumulative_sequence_length: S, past_seqlens: S, block_table: S,
                       cos_cache?: T, sin_cache?: T, slot_mapping?: S, head_sink?: T,
                       q_norm_weight?: T, k_norm_weight?: T, k_scale?: T_KV_SCALE,
                       v_scale?: T_KV_SCALE, attention_metadata?: S)
            -> (output: T, key_cache_out?: T_CACHE, value_cache_out?: T_CACHE)
        do_rotary: int
        is_causal: int = 1
        k_cache_dtype: string
        k_quant_type: string = NONE
        kv_cache_layout: string = SEPARATE
        kv_num_heads: int required
        local_window_size: int = -1
        num_heads: int required
        qk_norm_epsilon: float
        rotary_interleaved: int
        rotary_offset: int
        scale: float
        softcap: float
        v_cache_dtype: string
        v_head_size: int
        v_quant_type: string = NONE
        T = float16 | bfloat16
        T_CACHE = float16 | bfloat16 | int8 | float8e4m3fn | uint8
        T_KV_SCALE = float
        S = int32)",
     Define},
};

}  // namespace

std::span<const model::DomainOperator> PagedAttentionOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
