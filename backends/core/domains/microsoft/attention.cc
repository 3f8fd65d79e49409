// SPDX-License-Identifier: Apache-2.0
//
// Attention in definitions: 16-bit floats are widened before the products, as ONNX Runtime's CPU
// kernels do.

#include "backends/core/domains/microsoft/attention.h"

#include <limits>
#include <utility>

namespace onnxifi::microsoft {

using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

namespace {

// A result as [batch, heads, sequence, size], of the queries' extents and of the size of values
// alone: those of the product follow from the mask, too, so that only its data would tell them. An
// extent of 0 is one.
Value WithExtents(Definition& d, const Value& result, const Value& query_extents, const Value& v) {
  return d.Apply("Reshape",
                 {result, d.Concat({d.Slice(query_extents, 0, 0, 3), d.ExtentOf(v, 3)}, 0)},
                 {{"allowzero", int64_t{1}}});
}

// In single products, so that scores can be told. The softmax has one more column for a sink, of
// which nothing is taken.
Attended AttendInParts(Definition& d, const Attention& a, ElementType type) {
  // [batch, kv heads, group, ...] and [batch, kv heads, 1, ...]
  const int64_t group = a.heads / a.kv_heads;
  const Value extents = d.Apply("Shape", {a.q});
  const Value q =
      d.ReshapeTo(a.q, d.Concat({d.Slice(extents, 0, 0, 1), d.Ints1D({a.kv_heads, group}),
                                 d.Slice(extents, 0, 2, 4)},
                                0));
  const Value turned = d.Transpose(d.Unsqueeze(a.k, {2}), {0, 1, 2, 4, 3});
  Value scale = d.Scalar(a.scale, type);
  if (a.scale == 0) {
    scale = d.Apply("Reciprocal", {d.Apply("Sqrt", {d.Cast(d.ExtentOf(a.q, 3), type)})});
  }
  Value scores = d.Mul(d.MatMul(q, turned), scale);
  const Value keys = d.ExtentOf(a.k, 2);
  const Value four_axes = d.Concat({d.Slice(extents, 0, 0, 3), keys}, 0);
  scores = d.ReshapeTo(scores, four_axes);
  if (a.softcap != 0) {
    const Value cap = d.Scalar(a.softcap, type);
    scores = d.Mul(d.Apply("Tanh", {d.Div(scores, cap)}), cap);
  }
  if (a.bias) scores = d.Add(scores, *a.bias);
  Attended attended;
  if (a.shown == Attention::Shown::kScores) {
    attended.shown = a.mask ? d.Apply("Where", {*a.mask, scores, d.Scalar(0, type)}) : scores;
  }
  if (a.mask) {
    const Value never = d.Scalar(-std::numeric_limits<float>::infinity(), type);
    scores = d.Apply("Where", {*a.mask, scores, never});
  }
  if (a.sink) {
    const Value column =
        d.Apply("Expand", {d.Reshape(*a.sink, {1, a.heads, 1, 1}),
                           d.Concat({d.Slice(extents, 0, 0, 3), d.Ints1D({1})}, 0)});
    scores = d.Concat({scores, column}, 3);
  }
  Value shares = d.Apply("Softmax", {scores}, {{"axis", int64_t{-1}}});
  if (a.sink) shares = d.Slice(shares, 3, d.Ints1D({0}), keys);
  if (a.shown == Attention::Shown::kShares) attended.shown = shares;
  shares = d.ReshapeTo(shares, d.Concat({d.Slice(extents, 0, 0, 1), d.Ints1D({a.kv_heads, group}),
                                         d.Slice(extents, 0, 2, 3), keys},
                                        0));
  const Value result = d.MatMul(shares, d.Unsqueeze(a.v, {2}));
  attended.result = WithExtents(d, result, extents, a.v);
  return attended;
}

// The queries that share keys as queries of one head, [batch, kv heads, group * sequence, size], so
// that no key is repeated; the mask, which is of one head, has each query's row for all of them.
Value AttendInGroups(Definition& d, const Attention& a, ElementType type) {
  const Value extents = d.Apply("Shape", {a.q});
  const Value leading = d.Slice(extents, 0, 0, 1), size = d.Slice(extents, 0, 3, 4);
  const int64_t group = a.heads / a.kv_heads;
  const Value q = d.ReshapeTo(d.Mul(a.q, d.Scalar(a.scale, type)),
                              d.Concat({leading, d.Ints1D({a.kv_heads, -1}), size}, 0));
  Value scores = d.MatMul(q, d.Transpose(a.k, {0, 1, 3, 2}));
  if (a.softcap != 0) {
    const Value cap = d.Scalar(a.softcap, type);
    scores = d.Mul(d.Apply("Tanh", {d.Div(scores, cap)}), cap);
  }
  if (a.mask) {
    const Value rows =
        d.Apply("Expand", {d.Unsqueeze(*a.mask, {2}), d.Ints1D({1, 1, group, 1, 1})});
    const Value shape = d.Apply("Shape", {*a.mask});
    const Value mask = d.ReshapeTo(
        rows, d.Concat({d.Slice(shape, 0, 0, 1), d.Ints1D({1, -1}), d.Slice(shape, 0, 3, 4)}, 0));
    const Value never = d.Scalar(-std::numeric_limits<float>::infinity(), type);
    scores = d.Apply("Where", {mask, scores, never});
  }
  const Value shares = d.Apply("Softmax", {scores}, {{"axis", int64_t{-1}}});
  const Value result = d.MatMul(shares, a.v);
  return WithExtents(d, result, extents, a.v);
}

}  // namespace

Attended Attend(Definition& d, Attention a) {
  const ElementType type = IsNarrow(a.type) ? ElementType::kFloat32 : a.type;
  if (type != a.type) {
    for (Value* value : {&a.q, &a.k, &a.v}) *value = d.Cast(*value, type);
    if (a.bias) a.bias = d.Cast(*a.bias, type);
    if (a.sink) a.sink = d.Cast(*a.sink, type);
  }
  const bool is_in_parts = a.sink || a.shown != Attention::Shown::kNothing;
  const bool is_in_groups = !is_in_parts && a.has_key_for_each && a.scale != 0 && !a.bias;
  if (a.has_token) {
    // A share of zero times NaN is NaN. Scores of such rows are replaced, but where ONNX's operator
    // adds the mask to them.
    a.v = ClearedRows(d, a.v, *a.has_token, type);
    if (!is_in_parts && !is_in_groups) a.k = ClearedRows(d, a.k, *a.has_token, type);
  }
  Attended attended;
  Value& result = attended.result;
  if (is_in_parts) {
    attended = AttendInParts(d, a, type);
  } else if (is_in_groups) {
    result = AttendInGroups(d, a, type);
  } else {
    std::optional<Value> added = a.mask;
    if (a.bias) {
      added = a.bias;
      if (a.mask) {
        const Value never = d.Scalar(-std::numeric_limits<float>::infinity(), type);
        added = d.Apply("Where", {*a.mask, *a.bias, never});
      }
    }
    Definition::Attributes attributes;
    if (a.scale != 0) attributes.emplace_back("scale", a.scale);
    if (a.softcap != 0) attributes.emplace_back("softcap", a.softcap);
    std::vector<Value> inputs = {a.q, a.k, a.v};
    if (added) inputs.push_back(*added);
    result = d.Apply("Attention", std::move(inputs), std::move(attributes));
  }
  if (type == a.type) return attended;
  result = d.Cast(std::move(result), a.type);
  if (!attended.shown.empty()) attended.shown = d.Cast(std::move(attended.shown), a.type);
  return attended;
}

Value SplitHeads(Definition& d, Value value, int64_t heads) {
  return d.Transpose(d.Reshape(std::move(value), {0, 0, heads, -1}), {0, 2, 1, 3});
}

Value MergeHeads(Definition& d, Value value) {
  return d.Reshape(d.Transpose(std::move(value), {0, 2, 1, 3}), {0, 0, -1});
}

Value ExtendCache(Definition& d, const Value& past, const Value& fresh, const Value& total,
                  const Value& starts) {
  // A cache that is a buffer for the longest sequence has the room already.
  const Value missing = d.Apply("Max", {d.Sub(total, d.ExtentOf(past, 2)), d.Ints1D({0})});
  const Value pads = d.Concat({d.Ints1D({0}), missing}, 0);
  const Value room = d.Apply("Pad", {past, pads, "", d.Ints1D({2})});
  // Sample, head and position of each row of `fresh`. What is old is copied as it lies.
  const Value batch = d.ExtentOf(fresh, 0), heads = d.ExtentOf(fresh, 1);
  const Value positions =
      d.Unsqueeze(d.Add(d.Unsqueeze(starts, {1}), CountTo(d, d.ExtentOf(fresh, 2))), {1});
  const Value shape = d.Slice(d.Apply("Shape", {fresh}), 0, 0, 3);
  std::vector<Value> indices;
  for (const Value& index :
       {d.Unsqueeze(CountTo(d, batch), {1, 2}), d.Unsqueeze(CountTo(d, heads), {1}), positions}) {
    indices.push_back(d.Unsqueeze(d.Apply("Expand", {index, shape}), {3}));
  }
  return d.Apply("ScatterND", {room, d.Concat(std::move(indices), 3), fresh});
}

Value ClearedRows(Definition& d, const Value& rows, const Value& has_token, ElementType type) {
  return d.Apply("Where", {has_token, rows, d.Scalar(0, type)});
}

Value RowsWithToken(Definition& d, const Value& ends, const Value& count) {
  return d.Unsqueeze(d.Apply("Less", {CountTo(d, count), d.Unsqueeze(ends, {1})}), {1, 3});
}

Cached ExtendBuffers(Definition& d, const Value& past_k, const Value& past_v, const Value& k,
                     const Value& v, const Value& past_length) {
  const Value total = d.Add(past_length, d.ExtentOf(k, 2));
  const Value starts = d.Apply("Expand", {past_length, d.ExtentOf(k, 0)});
  Cached cached;
  cached.present_k = ExtendCache(d, past_k, k, total, starts);
  cached.present_v = ExtendCache(d, past_v, v, total, starts);
  cached.k = d.Slice(cached.present_k, 2, d.Ints1D({0}), total);
  cached.v = d.Slice(cached.present_v, 2, d.Ints1D({0}), total);
  return cached;
}

Value OfBeams(Definition& d, const Value& cache, const Value& beams, const Value& width,
              const Value& past_length) {
  const Value rows = CountTo(d, d.ExtentOf(cache, 0));  // sample * width + beam
  const Value first = d.Mul(d.Div(rows, width), width);
  const Value extents = d.Concat({d.ExtentOf(cache, 0), d.Ints1D({-1})}, 0);
  const Value of_rows = d.ReshapeTo(d.Cast(beams, ElementType::kInt64), extents);
  const Value of_past = d.Slice(of_rows, 1, d.Ints1D({0}), past_length);
  const Value row = d.Add(of_past, d.Unsqueeze(first, {1}));  // [rows, past]
  const Value token = d.Apply("Expand", {CountTo(d, past_length), d.Apply("Shape", {row})});
  const Value places = d.Concat({d.Unsqueeze(row, {2}), d.Unsqueeze(token, {2})}, 2);
  const Value by_token = d.Transpose(cache, {0, 2, 1, 3});
  const Value past = d.Transpose(d.Apply("GatherND", {by_token, places}), {0, 2, 1, 3});
  return d.Concat({past, d.Slice(cache, 2, past_length, d.ExtentOf(cache, 2))}, 2);
}

Value CountTo(Definition& d, const Value& extent) {
  return d.Apply("Range", {d.Int0D(0), d.Squeeze(extent, {0}), d.Int0D(1)});
}

}  // namespace onnxifi::microsoft
