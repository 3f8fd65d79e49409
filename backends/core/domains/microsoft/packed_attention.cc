// SPDX-License-Identifier: Apache-2.0
//
// Sequences without their padding, as ONNX Runtime's packing mode of encoders has them: rows of
// tokens, [tokens, size], beside the place of each token in [batch * sequence], after those of
// tokens the places of padding. Attention puts the padding back, masks it, and takes it out.

#include <string>
#include <utility>
#include <vector>

#include "backends/core/domains/microsoft/attention.h"
#include "backends/core/domains/microsoft/microsoft.h"

namespace onnxifi::microsoft {
namespace {

using base::Status;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

Value Wide(Definition& d, int input) { return d.Cast(d.In(input), ElementType::kInt64); }

// [tokens, size] as [batch, sequence, size], with zeros for padding. `offsets` is the input of the
// places.
Value Restore(Definition& d, const Value& rows, int offsets, ElementType type) {
  const Value places = d.Reshape(Wide(d, offsets), {-1});
  const Value of_tokens = d.Slice(places, 0, d.Ints1D({0}), d.ExtentOf(rows, 0));
  const Value size = d.ExtentOf(rows, 1);
  const Value empty =
      d.Apply("Expand", {d.Scalar(0, type), d.Concat({d.Apply("Shape", {places}), size}, 0)});
  const Value all = d.Apply("ScatterND", {empty, d.Unsqueeze(of_tokens, {1}), rows});
  return d.ReshapeTo(all, d.Concat({d.Apply("Shape", {d.In(offsets)}), size}, 0));
}

Status DefineRestorePadding(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 2));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(1, 2));
  d.Return(0, Restore(d, d.In(0), 1, d.Type(0)));
  return base::Ok();
}

// Which places are padding is known when the program runs, and so is the number of tokens.
Status DefineRemovePadding(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 3));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(1, 1));
  const Value counts = Wide(d, 1);
  const Value extents = d.Slice(d.Apply("Shape", {d.In(0)}), 0, 0, 2);
  const Value is_token = d.Reshape(
      d.Apply("Less", {CountTo(d, d.ExtentOf(d.In(0), 1)), d.Unsqueeze(counts, {1})}), {-1});
  const Value tokens = d.Reshape(d.Apply("NonZero", {is_token}), {-1});
  const Value padding = d.Reshape(d.Apply("NonZero", {d.Apply("Not", {is_token})}), {-1});
  const Value flat = d.ReshapeTo(d.In(0), d.Concat({d.Ints1D({-1}), d.ExtentOf(d.In(0), 2)}, 0));
  d.Return(0, d.Apply("Gather", {flat, tokens}));
  const auto narrow = [&d](Value value) { return d.Cast(std::move(value), ElementType::kInt32); };
  d.Return(1, narrow(d.ReshapeTo(d.Concat({tokens, padding}, 0), extents)));
  const Value sums = d.Apply("CumSum", {counts, d.Int0D(0)});
  d.Return(2, narrow(d.Concat({d.Ints1D({0}), sums}, 0)));
  d.Return(3, narrow(d.Apply("ReduceMax", {counts, d.Ints1D({0})})));
  return base::Ok();
}

// What both operators of attention have, by the positions of inputs.
struct Packed {
  Value q, k, v;  // [batch, heads, sequence, size]
  int64_t heads = 0;
  int offsets = 0, sums = 0, bias = 0;
};

Status Attend(Definition& d, const Packed& packed) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(packed.offsets, 2));
  const Value sums = Wide(d, packed.sums);
  const Value starts = d.Slice(sums, 0, d.Ints1D({0}), d.Ints1D({-1}));
  const Value lengths = d.Sub(d.Slice(sums, 0, d.Ints1D({1}), d.ExtentOf(sums, 0)), starts);
  const Value keys = CountTo(d, d.ExtentOf(packed.k, 2));
  const Value is_there = d.Apply("Less", {keys, d.Reshape(lengths, {-1, 1, 1, 1})});
  Attention attention;
  attention.q = packed.q;
  attention.k = packed.k;
  attention.v = packed.v;
  attention.type = d.Type(0);
  attention.heads = attention.kv_heads = packed.heads;
  attention.scale = d.Float("scale");
  const Value extents = d.Concat(
      {d.ExtentOf(packed.q, 0), d.Ints1D({1}), d.ExtentOf(packed.q, 2), d.ExtentOf(packed.k, 2)},
      0);
  attention.mask = d.Apply("Expand", {is_there, extents});
  if (d.Has(packed.bias)) attention.bias = d.In(packed.bias);
  const Value result = MergeHeads(d, microsoft::Attend(d, attention).result);
  const Value rows = d.ReshapeTo(result, d.Concat({d.Ints1D({-1}), d.ExtentOf(result, 2)}, 0));
  const Value places = d.Reshape(Wide(d, packed.offsets), {-1});
  const Value of_tokens = d.Slice(places, 0, d.Ints1D({0}), d.ExtentOf(d.In(0), 0));
  d.Return(0, d.Apply("Gather", {rows, of_tokens}));
  return base::Ok();
}

Status CheckHeads(const Definition& d) {
  const int64_t heads = d.Int("num_heads");
  if (heads >= 1) return base::Ok();
  return d.Invalid("Attribute num_heads is " + std::to_string(heads) + ", below 1.");
}

Status DefinePackedAttention(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(CheckHeads(d));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 2));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t all, d.NeedExtent(1, 1));
  std::vector<int64_t> sizes = d.Ints("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, all / 3);
  const int64_t heads = d.Int("num_heads");
  const auto is_shared = [heads](int64_t size) { return size > 0 && size % heads == 0; };
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != all || sizes[0] != sizes[1] ||
      !is_shared(sizes[0]) || !is_shared(sizes[2])) {
    return d.Invalid("The " + std::to_string(all) +
                     " columns of input 1 are no queries, keys and "
                     "values of " +
                     std::to_string(heads) + " heads.");
  }
  const Value product = d.Add(d.MatMul(d.In(0), d.In(1)), d.In(2));
  const std::vector<Value> parts = d.Split(Restore(d, product, 3, d.Type(0)), 2, sizes);
  return Attend(d, {SplitHeads(d, parts[0], heads), SplitHeads(d, parts[1], heads),
                    SplitHeads(d, parts[2], heads), heads, /*offsets=*/3, /*sums=*/4, /*bias=*/5});
}

Status DefinePackedMultiHeadAttention(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(CheckHeads(d));
  const int64_t heads = d.Int("num_heads");
  const ElementType type = d.Type(0);
  std::vector<Value> rows;  // [tokens, hidden] of queries, keys and values
  if (d.Has(1) && d.Has(2)) {
    ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 2));
    rows = {d.In(0), d.In(1), d.In(2)};
  } else {
    ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 4));
    for (int64_t part = 0; part < 3; ++part) {
      rows.push_back(d.Reshape(d.Slice(d.In(0), 2, part, part + 1), {0, -1}));
    }
  }
  if (d.Has(3)) {
    const Value hidden = d.ExtentOf(rows[0], 1);
    const Value twice = d.Add(hidden, hidden);
    rows[0] = d.Add(rows[0], d.Slice(d.In(3), 0, d.Ints1D({0}), hidden));
    rows[1] = d.Add(rows[1], d.Slice(d.In(3), 0, hidden, twice));
    rows[2] = d.Add(rows[2], d.Slice(d.In(3), 0, twice, d.ExtentOf(d.In(3), 0)));
  }
  for (Value& part : rows) part = SplitHeads(d, Restore(d, part, 4, type), heads);
  return Attend(d, {rows[0], rows[1], rows[2], heads, /*offsets=*/4, /*sums=*/5, /*bias=*/6});
}

constexpr model::DomainOperator kOperators[] = {
    {R"(PackedAttention(input: T, weights: T, bias: T, token_offset: M,
                        cumulative_sequence_length: M, attention_bias?: T) -> (output: T)
        num_heads: int required
        qkv_hidden_sizes: ints
        scale: float
        T = float | float16
        M = int32)",
     DefinePackedAttention},
    {R"(PackedMultiHeadAttention(query: T, key?: T, value?: T, bias?: T, token_offset: M,
                                 cumulative_sequence_length: M, attention_bias?: T) -> (output: T)
        mask_filter_value: float
        num_heads: int required
        scale: float
        T = float | float16
        M = int32)",
     DefinePackedMultiHeadAttention},
    {R"(RemovePadding(input: T, sequence_token_count: M)
            -> (output: T, token_offset: M, cumulated_seq_len: M, max_seq_len: M)
        T = float | float16
        M = int32)",
     DefineRemovePadding},
    {R"(RestorePadding(input: T, token_offset: M) -> (output: T)
        T = float | float16
        M = int32)",
     DefineRestorePadding},
};

}  // namespace

std::span<const model::DomainOperator> PackedAttentionOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
