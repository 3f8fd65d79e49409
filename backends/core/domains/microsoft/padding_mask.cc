// SPDX-License-Identifier: Apache-2.0
//
// Masks of keys in definitions. Forms that only extents tell apart, such as [batch] and [2 *
// batch], have one definition that fits both, since extents may be symbols.

#include "backends/core/domains/microsoft/padding_mask.h"

#include "backends/core/domains/microsoft/attention.h"

namespace onnxifi::microsoft {

using base::Result;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

namespace {

Value IsNotZero(Definition& d, int mask) {
  return d.Apply("Greater", {d.In(mask), d.Scalar(0, d.Type(mask))});
}

Value BetweenStartAndEnd(Definition& d, int mask, const ScoreExtents& extents) {
  const Value numbers = d.Cast(d.In(mask), ElementType::kInt64);
  const Value none = d.Apply("Expand", {d.Int0D(0), extents.batch});
  const Value padded = d.Concat({numbers, none}, 0);
  const Value ends = d.Slice(padded, 0, d.Ints1D({0}), extents.batch);
  const Value starts = d.Slice(padded, 0, extents.batch, d.Mul(extents.batch, d.Ints1D({2})));
  const Value keys = CountTo(d, extents.keys);
  const Value before = d.Apply("Less", {keys, d.Reshape(ends, {-1, 1, 1, 1})});
  const Value behind = d.Apply("GreaterOrEqual", {keys, d.Reshape(starts, {-1, 1, 1, 1})});
  return d.Apply("And", {before, behind});
}

}  // namespace

Result<Value> KeysThatAreThere(Definition& d, int mask, const ScoreExtents& extents) {
  const std::optional<int> rank = d.Rank(mask);
  if (!rank) {
    return d.UnsupportedShape("Input " + std::to_string(mask) +
                              " has a number of axes that is not known.");
  }
  switch (*rank) {
    case 1:
      return BetweenStartAndEnd(d, mask, extents);
    case 2:
      return d.Unsqueeze(IsNotZero(d, mask), {1, 2});
    case 3:
      return d.Unsqueeze(IsNotZero(d, mask), {1});
    case 4: {
      const Value rows =
          d.Slice(IsNotZero(d, mask), 2, d.Sub(extents.keys, extents.queries), extents.keys);
      return d.Slice(rows, 3, d.Ints1D({0}), extents.keys);
    }
    default:
      return d.UnsupportedShape("Input " + std::to_string(mask) + " has " + std::to_string(*rank) +
                                " axes; a mask has 1 to 4.");
  }
}

Value Filter(Definition& d, const Value& is_there, const ScoreExtents& extents, ElementType type) {
  const float filter = d.HasAttribute("mask_filter_value") ? d.Float("mask_filter_value") : -10000;
  const Value added = d.Apply("Where", {is_there, d.Scalar(0, type), d.Scalar(filter, type)});
  const Value matrix = d.Concat({d.Ints1D({1, 1}), extents.queries, extents.keys}, 0);
  return d.Apply("Expand", {added, matrix});
}

Value Causal(Definition& d, const ScoreExtents& extents) {
  const Value last = d.Add(CountTo(d, extents.queries), d.Sub(extents.keys, extents.queries));
  return d.Apply("LessOrEqual", {CountTo(d, extents.keys), d.Unsqueeze(last, {1})});
}

}  // namespace onnxifi::microsoft
