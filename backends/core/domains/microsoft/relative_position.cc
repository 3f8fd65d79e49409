// SPDX-License-Identifier: Apache-2.0
//
// Biases of attention by the distance of query and key, as T5 and WavLM have them.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/domains/microsoft/attention.h"
#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {
namespace {

using base::Status;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

// The logarithm of a float32, rounded to float32 once: quotients of logarithms decide which bucket
// a distance has, and a table of unknown extents is to decide alike.
float LogOf(float value) { return static_cast<float>(std::log(static_cast<double>(value))); }

// The bucket of each distance up to `max_distance`: half of the buckets have one distance each, the
// others share the rest by its logarithm.
std::vector<int64_t> BucketsOfDistances(int64_t buckets, int64_t max_distance) {
  const int64_t exact = buckets / 2;
  std::vector<int64_t> found;
  for (int64_t distance = 0; distance <= max_distance; ++distance) {
    if (distance < exact) {
      found.push_back(distance);
      continue;
    }
    const auto unit = static_cast<float>(exact);
    const float share =
        LogOf(static_cast<float>(distance) / unit) / LogOf(static_cast<float>(max_distance) / unit);
    const auto beyond = static_cast<int64_t>(share * static_cast<float>(buckets - exact));
    found.push_back(std::min(exact + beyond, buckets - 1));
  }
  return found;
}

// The same for a number of buckets (int64 [1]) that is known when the program runs.
Value BucketsOfDistances(Definition& d, const Value& buckets, int64_t max_distance) {
  const ElementType wide = ElementType::kFloat32;
  const Value exact = d.Div(buckets, d.Ints1D({2}));
  const Value unit = d.Cast(d.Apply("Max", {exact, d.Ints1D({1})}), wide);
  const Value distances = CountTo(d, d.Ints1D({max_distance + 1}));
  const auto logarithm = [&](const Value& value) {
    return d.Cast(d.Apply("Log", {d.Cast(d.Div(value, unit), ElementType::kFloat64)}), wide);
  };
  const Value share = d.Div(logarithm(d.Cast(d.Apply("Max", {distances, d.Int0D(1)}), wide)),
                            logarithm(d.Scalar1D(static_cast<double>(max_distance), wide)));
  const Value steps = d.Mul(share, d.Cast(d.Sub(buckets, exact), wide));
  const Value beyond = d.Cast(d.Apply("Floor", {steps}), ElementType::kInt64);
  const Value last = d.Sub(buckets, d.Ints1D({1}));
  const Value bounded =
      d.Apply("Max", {d.Apply("Min", {d.Add(exact, beyond), last}), d.Ints1D({0})});
  return d.Apply("Where", {d.Apply("Less", {distances, exact}), distances, bounded});
}

// output[0, h, i, j] is of head h and the bucket of j - i. The table's shape is [buckets, heads],
// its elements are those of [heads, buckets].
Status DefineRelativePositionBias(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 2));
  const std::optional<int64_t> buckets = d.Extent(0, 0);
  const bool has_sides = d.Int("is_bidirectional") != 0;
  const int64_t sides = has_sides ? 2 : 1;
  const int64_t max_distance = d.Int("max_distance");
  constexpr int64_t kMaxDistance = 1 << 20;  // elements of a table
  const int64_t known = buckets ? *buckets / sides : 2;
  if (known < 2 || max_distance <= known / 2 || max_distance > kMaxDistance) {
    return d.Invalid("Attribute max_distance is " + std::to_string(max_distance) + " for " +
                     (buckets ? std::to_string(known) : "any number of") +
                     " buckets of a side; it exceeds half of them, of "
                     "which there are at least 2, and is at most " +
                     std::to_string(kMaxDistance) + ".");
  }
  const Value of_side = d.Div(d.ExtentOf(d.In(0), 0), d.Ints1D({sides}));
  const auto count = [&d](int input) {
    return CountTo(d, d.Reshape(d.Cast(d.In(input), ElementType::kInt64), {1}));
  };
  const Value offsets = d.Sub(count(2), d.Unsqueeze(count(1), {1}));
  const Value distances = d.Apply("Min", {d.Apply("Abs", {offsets}), d.Int0D(max_distance)});
  Value bucket = d.Apply("Gather", {buckets ? d.Ints1D(BucketsOfDistances(known, max_distance))
                                            : BucketsOfDistances(d, of_side, max_distance),
                                    distances});
  if (has_sides) {
    const Value is_behind = d.Apply("Greater", {offsets, d.Int0D(0)});
    bucket = d.Add(bucket, d.Mul(d.Cast(is_behind, ElementType::kInt64), of_side));
  }
  const Value table =
      d.ReshapeTo(d.In(0), d.Concat({d.ExtentOf(d.In(0), 1), d.ExtentOf(d.In(0), 0)}, 0));
  d.Return(0, d.Unsqueeze(d.Apply("Gather", {table, bucket}, {{"axis", int64_t{1}}}), {0}));
  return base::Ok();
}

// bias * (u * (r * eco_a - 1) + 2), where u and r are sigmoids of sums over the two halves of a
// product of each query.
Status DefineGatedRelativePositionBias(Definition& d) {
  if (d.Has(6))
    return d.Unsupported("Input 6 (token_offset) is given; queries have their padding.");
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 3));
  const int64_t heads = d.Int("num_heads");
  const std::optional<int64_t> columns = d.Extent(3, 1);
  if (heads < 1 || (columns && *columns % 2 != 0)) {
    return d.Invalid("Attribute num_heads is " + std::to_string(heads) +
                     ", at least 1, and the weights have " + std::to_string(columns.value_or(0)) +
                     " columns, an even number.");
  }
  const ElementType type = d.Type(0);
  const auto wide = [&d](Value value) { return d.Cast(std::move(value), ElementType::kFloat32); };
  const Value q = wide(SplitHeads(d, d.Add(d.In(0), d.In(1)), heads));
  const Value product = d.Add(d.MatMul(q, wide(d.In(3))), wide(d.In(4)));
  // [batch, heads, sequence, 2]
  const Value halves = d.ReshapeTo(
      product, d.Concat({d.Slice(d.Apply("Shape", {product}), 0, 0, 3), d.Ints1D({2, -1})}, 0));
  const Value sums = d.Apply("ReduceSum", {halves, d.Ints1D({-1})}, {{"keepdims", int64_t{0}}});
  const std::vector<Value> gates = d.Split(d.Apply("Sigmoid", {sums}), 3, {1, 1});
  const Value one = d.Scalar(1, ElementType::kFloat32), two = d.Scalar(2, ElementType::kFloat32);
  const Value inner = d.Sub(d.Mul(gates[1], wide(d.In(5))), one);
  const Value gate = d.Add(d.Mul(gates[0], inner), two);
  d.Return(0, d.Cast(d.Mul(gate, wide(d.In(2))), type));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(GatedRelativePositionBias(query_layer: T, query_bias: T, rel_pos: T, weight: T, bias: T,
                                  eco_a: T, token_offset?: M) -> (output: T)
        num_heads: int required
        T = float | float16
        M = int32)",
     DefineGatedRelativePositionBias},
    {R"(RelativePositionBias(bias_table: T, query_length: U, key_length: U) -> (output: T)
        is_bidirectional: int = 0
        max_distance: int required
        T = float | float16
        U = int64)",
     DefineRelativePositionBias},
};

}  // namespace

std::span<const model::DomainOperator> RelativePositionOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
