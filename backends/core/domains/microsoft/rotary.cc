// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding in definitions: ONNX's RotaryEmbedding does what this domain's does.

#include "backends/core/domains/microsoft/rotary.h"

#include <utility>

namespace onnxifi::microsoft {

using base::Result;
using model::Definition;
using Value = Definition::Value;

Result<Value> Rotate(Definition& d, Value value, int cosines, Value positions, bool is_interleaved,
                     std::optional<int64_t> head_size) {
  if (!d.Has(cosines) || !d.Has(cosines + 1)) {
    return d.Invalid("A rotation has not both cosines and sines.");
  }
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(cosines, 2));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(cosines + 1, 2));
  const std::optional<int64_t> half = d.Extent(cosines, 1);
  if (half && (*half < 1 || (head_size && 2 * *half > *head_size))) {
    return d.Invalid("Cosines for " + std::to_string(*half) + " pairs do not fit a head of " +
                     std::to_string(head_size.value_or(0)) + " elements.");
  }
  Definition::Attributes attributes = {{"interleaved", int64_t{is_interleaved}}};
  const auto turn = [&](Value turned) {
    return d.Apply("RotaryEmbedding",
                   {std::move(turned), d.In(cosines), d.In(cosines + 1), std::move(positions)},
                   std::move(attributes));
  };
  if (half) {
    if (head_size != 2 * *half) attributes.emplace_back("rotary_embedding_dim", 2 * *half);
    return turn(std::move(value));
  }
  // The attribute is a number: what a symbol turns is cut off, and comes back before the rest.
  const Value extent = d.ExtentOf(d.In(cosines), 1);
  const Value end = d.Add(extent, extent);
  const Value rest = d.Slice(value, 3, end, d.ExtentOf(value, 3));
  return d.Concat({turn(d.Slice(value, 3, d.Ints1D({0}), end)), rest}, 3);
}

}  // namespace onnxifi::microsoft
