// SPDX-License-Identifier: Apache-2.0
//
// SparseAttention: attention of new tokens to a cache, of which each query sees only some blocks of
// keys. The blocks of row r of layout l are
//   block_col_indices[l, j],  block_row_indices[l, r] <= j < block_row_indices[l, r + 1]
// and heads take the layouts in turn. Sample b has key_total_sequence_lengths[b] tokens with the
// new ones, which are the last of them; in the first run of a sequence there are no others.

#include <string>
#include <utility>
#include <vector>

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
  kRows,
  kColumns,
  kTotal,
  kLengths,
  kCosines,
};

struct Heads {
  int64_t q = 0, kv = 0, layouts = 0;
  std::optional<int64_t> size;
};

Result<Heads> ReadHeads(const Definition& d) {
  Heads heads;
  heads.q = d.Int("num_heads");
  heads.kv = d.Int("kv_num_heads");
  if (heads.q < 1 || heads.kv < 1 || heads.q % heads.kv != 0) {
    return d.Invalid("Attribute num_heads (" + std::to_string(heads.q) +
                     ") is no multiple of kv_num_heads (" + std::to_string(heads.kv) + ").");
  }
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kQuery, 3));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kRows, 2));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kColumns, 2));
  ONNXIFI_ASSIGN_OR_RETURN(heads.layouts, d.NeedExtent(kRows, 0));
  if (heads.layouts < 1 || heads.q % heads.layouts != 0) {
    return d.Invalid("Attribute num_heads (" + std::to_string(heads.q) +
                     ") is no multiple of the " + std::to_string(heads.layouts) +
                     " layouts of input 5.");
  }
  if (d.Has(kKey) != d.Has(kValue)) return d.Invalid("It has not both key and value, or neither.");
  const int64_t count = d.Has(kKey) ? heads.q : heads.q + 2 * heads.kv;
  const std::optional<int64_t> row = d.Extent(kQuery, 2);
  if (row && (*row < 1 || *row % count != 0)) {
    return d.Invalid("Input 0 has rows of " + std::to_string(*row) + " elements, which " +
                     std::to_string(count) + " heads do not share evenly.");
  }
  if (row) heads.size = *row / count;
  return heads;
}

// Whether a row of blocks sees a block of keys: bool [layouts, rows, blocks].
Value Blocks(Definition& d) {
  const Value rows = d.Cast(d.In(kRows), ElementType::kInt64);
  const Value count = d.Sub(d.ExtentOf(d.In(kRows), 1), d.Ints1D({1}));
  const Value places = CountTo(d, d.ExtentOf(d.In(kColumns), 1));
  const Value starts = d.Unsqueeze(d.Slice(rows, 1, d.Ints1D({0}), count), {2});
  const Value ends = d.Unsqueeze(d.Slice(rows, 1, d.Ints1D({1}), d.ExtentOf(rows, 1)), {2});
  const Value is_of_row = d.Apply(
      "And", {d.Apply("GreaterOrEqual", {places, starts}), d.Apply("Less", {places, ends})});
  const Value columns = d.Unsqueeze(d.Cast(d.In(kColumns), ElementType::kInt64), {2});
  const Value is_block = d.Apply("Equal", {columns, CountTo(d, count)});
  const ElementType wide = ElementType::kFloat32;
  const Value hits = d.MatMul(d.Cast(is_of_row, wide), d.Cast(is_block, wide));
  return d.Cast(hits, ElementType::kBool);
}

// Which keys each query sees: bool [batch, heads or 1, queries, keys].
Value Mask(Definition& d, const Heads& heads, const Value& positions, const Value& total) {
  const Value block = d.Int0D(d.Int("sparse_block_size"));
  const Value keys = CountTo(d, total);
  // [layouts, batch, queries, keys]
  Value mask = d.Apply("Gather", {Blocks(d), d.Div(positions, block)}, {{"axis", int64_t{1}}});
  mask = d.Apply("Gather", {mask, d.Div(keys, block)}, {{"axis", int64_t{3}}});
  mask = d.Transpose(mask, {1, 0, 2, 3});
  mask = d.Apply("And", {mask, d.Apply("LessOrEqual", {keys, d.Unsqueeze(positions, {1, 3})})});
  if (heads.layouts == 1) return mask;
  const Value turns =
      d.Apply("Expand", {d.Unsqueeze(mask, {1}), d.Ints1D({1, heads.q / heads.layouts, 1, 1, 1})});
  const Value extents = d.Apply("Shape", {mask});
  return d.ReshapeTo(
      turns,
      d.Concat({d.Slice(extents, 0, 0, 1), d.Ints1D({heads.q}), d.Slice(extents, 0, 2, 4)}, 0));
}

Status Define(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(const Heads heads, ReadHeads(d));
  if (d.Int("sparse_block_size") < 1) {
    return d.Invalid("Attribute sparse_block_size is " +
                     std::to_string(d.Int("sparse_block_size")) + ", below 1.");
  }
  Value q, k, v;
  if (d.Has(kKey)) {
    q = SplitHeads(d, d.In(kQuery), heads.q);
    k = SplitHeads(d, d.In(kKey), heads.kv);
    v = SplitHeads(d, d.In(kValue), heads.kv);
  } else {
    const std::vector<Value> parts = d.Split(SplitHeads(d, d.In(kQuery), heads.q + 2 * heads.kv), 1,
                                             {heads.q, heads.kv, heads.kv});
    q = parts[0];
    k = parts[1];
    v = parts[2];
  }
  const Value sequence = d.ExtentOf(d.In(kQuery), 1);
  const Value total = d.Reshape(d.Cast(d.In(kTotal), ElementType::kInt64), {1});
  const Value lengths = d.Reshape(d.Cast(d.In(kLengths), ElementType::kInt64), {-1});
  const Value is_first = d.Apply("Equal", {total, sequence});
  const Value starts = d.Apply("Where", {is_first, d.Int0D(0), d.Sub(lengths, sequence)});
  const Value positions = d.Add(d.Unsqueeze(starts, {1}), CountTo(d, sequence));
  if (d.Int("do_rotary") != 0) {
    const bool is_interleaved = d.Int("rotary_interleaved") != 0;
    ONNXIFI_ASSIGN_OR_RETURN(q, Rotate(d, q, kCosines, positions, is_interleaved, heads.size));
    ONNXIFI_ASSIGN_OR_RETURN(k, Rotate(d, k, kCosines, positions, is_interleaved, heads.size));
  }
  const Value present_k = ExtendCache(d, d.In(kPastKey), k, total, starts);
  const Value present_v = ExtendCache(d, d.In(kPastValue), v, total, starts);

  Attention attention;
  attention.q = q;
  attention.k = d.Slice(present_k, 2, d.Ints1D({0}), total);
  attention.v = d.Slice(present_v, 2, d.Ints1D({0}), total);
  attention.type = d.Type(kQuery);
  attention.heads = heads.q;
  attention.kv_heads = heads.kv;
  attention.mask = Mask(d, heads, positions, total);
  // Samples have as many tokens as the longest, where there is one sample.
  if (d.Extent(kQuery, 0) != 1) attention.has_token = RowsWithToken(d, lengths, total);
  attention.scale = d.Float("scale");
  d.Return(0, MergeHeads(d, Attend(d, attention).result));
  d.Return(1, present_k);
  d.Return(2, present_v);
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(SparseAttention(query: T, key?: T, value?: T, past_key: T, past_value: T,
                        block_row_indices: int32, block_col_indices: int32,
                        total_sequence_length: int32, key_total_sequence_lengths: int32,
                        cos_cache?: T, sin_cache?: T)
            -> (output: T, present_key: T, present_value: T)
        do_rotary: int
        kv_num_heads: int required
        num_heads: int required
        rotary_interleaved: int
        scale: float
        sparse_block_size: int required
        T = float | float16 | bfloat16)",
     Define},
};

}  // namespace

std::span<const model::DomainOperator> SparseAttentionOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
