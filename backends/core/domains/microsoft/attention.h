// SPDX-License-Identifier: Apache-2.0
//
// Attention in definitions: what the operators of this domain have in common, as ONNX's Attention
// or, where that cannot say it, as product, softmax and product.

#ifndef ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_ATTENTION_H_
#define ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_ATTENTION_H_

#include <cstdint>
#include <optional>

#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {

struct Attention {
  using Value = model::Definition::Value;

  // [batch, heads, sequence, head size]; K and V may have fewer heads, each shared by neighbours.
  Value q, k, v;
  tensor::ElementType type = tensor::ElementType::kUndefined;  // of all three
  int64_t heads = 1, kv_heads = 1;
  // Bool, true where a query looks at a key, [batch, 1, queries, keys], and numbers that are added
  // to scores, of `type`, which broadcast to [batch, heads, queries, keys].
  std::optional<Value> mask, bias;
  float scale = 0;    // 0: one over the root of the head size
  float softcap = 0;  // 0: none
  // Whether the mask leaves each query a key. A softmax of nothing would be no number.
  bool has_key_for_each = false;
  // Bool, true where a row of K and V holds a token, [batch, 1, keys, 1]. The others, at which the
  // mask lets no query look, may be anything, NaN and infinity among it, and reach no result.
  std::optional<Value> has_token;
  // A number per head that takes part in the softmax and has no key: [heads], of `type`.
  std::optional<Value> sink;
  // What Attend tells besides: nothing; the scores before the softmax, 0 where the mask is false;
  // or the softmax of them.
  enum class Shown : uint8_t { kNothing, kScores, kShares };
  Shown shown = Shown::kNothing;
};

struct Attended {
  model::Definition::Value result;  // [batch, heads, queries, head size of V], of the type
  model::Definition::Value shown;   // [batch, heads, queries, keys], likewise; empty for nothing
};

// Sums and shares are float32 at least.
Attended Attend(model::Definition& d, Attention attention);

// [batch, sequence, heads * size] as [batch, heads, sequence, size], and back.
model::Definition::Value SplitHeads(model::Definition& d, model::Definition::Value value,
                                    int64_t heads);
model::Definition::Value MergeHeads(model::Definition& d, model::Definition::Value value);

// The cache `past` [batch, heads, sequence, size] with the tokens `fresh` of each sample from
// position `starts` (int64 [batch]) on, behind its old ones. It grows to `total` (int64 [1]) tokens
// unless it has room for more.
model::Definition::Value ExtendCache(model::Definition& d, const model::Definition::Value& past,
                                     const model::Definition::Value& fresh,
                                     const model::Definition::Value& total,
                                     const model::Definition::Value& starts);

// `rows` [batch, heads, tokens, size] of floats with zeros where `has_token` [batch, 1, tokens, 1]
// is false.
model::Definition::Value ClearedRows(model::Definition& d, const model::Definition::Value& rows,
                                     const model::Definition::Value& has_token,
                                     tensor::ElementType type);

// Which of `count` rows (int64 [1]) hold a token, for `has_token`: those before `ends`, int64
// [batch].
model::Definition::Value RowsWithToken(model::Definition& d, const model::Definition::Value& ends,
                                       const model::Definition::Value& count);

// Keys and values with those of the past before them: the whole cache, and the tokens in it.
struct Cached {
  model::Definition::Value present_k, present_v, k, v;
};

// Of a cache that is a buffer for the longest sequence, in which all samples have `past_length`
// tokens, int64 [1].
Cached ExtendBuffers(model::Definition& d, const model::Definition::Value& past_k,
                     const model::Definition::Value& past_v, const model::Definition::Value& k,
                     const model::Definition::Value& v,
                     const model::Definition::Value& past_length);

// Tokens of the past of `cache` [rows, heads, tokens, size], each out of the row of its beam, and
// the newest ones out of the row itself. Rows are those of `width` (int64 [1]) beams of each
// sample; token t of beam w of sample b stands in the row of beam `beams`[b, w, t].
model::Definition::Value OfBeams(model::Definition& d, const model::Definition::Value& cache,
                                 const model::Definition::Value& beams,
                                 const model::Definition::Value& width,
                                 const model::Definition::Value& past_length);

// int64 [extent]: 0, 1, ... `extent` is int64 [1].
model::Definition::Value CountTo(model::Definition& d, const model::Definition::Value& extent);

// 16-bit floats.
inline bool IsNarrow(tensor::ElementType type) {
  return type == tensor::ElementType::kFloat16 || type == tensor::ElementType::kBfloat16;
}

}  // namespace onnxifi::microsoft

#endif  // ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_ATTENTION_H_
