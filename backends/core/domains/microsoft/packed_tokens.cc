// SPDX-License-Identifier: Apache-2.0
//
// Tokens of several sequences in definitions: gathers by positions that the sums of lengths tell.

#include "backends/core/domains/microsoft/packed_tokens.h"

#include "backends/core/domains/microsoft/attention.h"

namespace onnxifi::microsoft {

using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

PackedTokens ReadPackedTokens(Definition& d, int sums, const Value& tokens) {
  const Value all = d.Cast(d.In(sums), ElementType::kInt64);
  const Value ends = d.Slice(all, 0, d.Ints1D({1}), d.ExtentOf(all, 0));
  PackedTokens packed;
  packed.starts = d.Slice(all, 0, d.Ints1D({0}), d.Ints1D({-1}));
  packed.lengths = d.Sub(ends, packed.starts);
  // A token is of the sequence before which as many end as are not behind it.
  const Value count = CountTo(d, tokens);
  const Value is_behind = d.Apply("GreaterOrEqual", {d.Unsqueeze(count, {1}), ends});
  packed.sequence = d.Apply("ReduceSum", {d.Cast(is_behind, ElementType::kInt64), d.Ints1D({1})},
                            {{"keepdims", int64_t{0}}});
  packed.place = d.Sub(count, d.Apply("Gather", {packed.starts, packed.sequence}));
  packed.longest = d.Apply("ReduceMax", {packed.lengths, d.Ints1D({0})});
  const Value places = CountTo(d, packed.longest);
  packed.is_there = d.Apply("Less", {places, d.Unsqueeze(packed.lengths, {1})});
  packed.padded = d.Apply(
      "Where", {packed.is_there, d.Add(d.Unsqueeze(packed.starts, {1}), places), d.Int0D(0)});
  return packed;
}

Value WithPadding(Definition& d, const PackedTokens& packed, const Value& rows) {
  return d.Apply("Gather", {rows, packed.padded});
}

Value WithoutPadding(Definition& d, const PackedTokens& packed, const Value& padded) {
  // Rows of all sequences, then those of tokens.
  const Value extents = d.Apply("Shape", {padded}, {{"start", int64_t{2}}});
  const Value rows = d.ReshapeTo(padded, d.Concat({d.Ints1D({-1}), extents}, 0));
  const Value at = d.Add(d.Mul(packed.sequence, packed.longest), packed.place);
  return d.Apply("Gather", {rows, at});
}

}  // namespace onnxifi::microsoft
