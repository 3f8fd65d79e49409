// SPDX-License-Identifier: Apache-2.0
//
// Hyper-connections: several residual streams beside each other, mixed before and behind each
// layer, and the scaled sums and gates that come with them. Streams are grouped, [..., branches,
// size], or flattened, [..., branches * size], where attribute num_branches says how many there
// are. Products and sums are float32 unless an operator rounds each by its documentation.

#include <string>
#include <utility>
#include <vector>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {
namespace {

using base::Result;
using base::Status;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

Value Wide(Definition& d, Value value) { return d.Cast(std::move(value), ElementType::kFloat32); }

Value Sigmoid(Definition& d, Value value) { return d.Apply("Sigmoid", {std::move(value)}); }

// Input 0 with its streams apart, and their numbers as far as they are known.
struct Streams {
  Value values;  // float32 [..., branches, size]
  int rank = 0;  // of `values`
  std::optional<int64_t> branches, size;
  bool is_flat = false;
};

Result<Streams> ReadStreams(Definition& d) {
  const std::optional<int> rank = d.Rank(0);
  if (!rank) return d.UnsupportedShape("Input 0 has a number of axes that is not known.");
  const int64_t branches = d.Int("num_branches");
  Streams streams;
  streams.values = Wide(d, d.In(0));
  streams.is_flat = branches != 0;
  streams.rank = streams.is_flat ? *rank + 1 : *rank;
  if (branches < 0 || streams.rank < 2) {
    return d.Invalid("Input 0 has " + std::to_string(*rank) +
                     " axes, and attribute num_branches is " + std::to_string(branches) +
                     "; flattened streams have at least 1 branch, and "
                     "grouped ones 2 axes.");
  }
  const std::optional<int64_t> row = d.Extent(0, -1);
  if (!streams.is_flat) {
    streams.branches = d.Extent(0, -2);
    streams.size = row;
    return streams;
  }
  if (row && *row % branches != 0) {
    return d.Invalid("Input 0 has rows of " + std::to_string(*row) + " elements, no multiple of " +
                     std::to_string(branches) + " branches.");
  }
  streams.branches = branches;
  if (row) streams.size = *row / branches;
  std::vector<int64_t> shape(static_cast<size_t>(*rank - 1), 0);
  shape.insert(shape.end(), {branches, -1});
  streams.values = d.Reshape(streams.values, std::move(shape));
  return streams;
}

// In the shape of input 0, of type `type`.
Value Flattened(Definition& d, Value value, bool is_flat, ElementType type) {
  if (is_flat) value = d.ReshapeTo(std::move(value), d.Apply("Shape", {d.In(0)}));
  return d.Cast(std::move(value), type);
}

// Input `input`, a number for each branch or for each element of each, as what broadcasts to
// [..., branches, size]. `may_be_flat`: also [..., branches * size].
Result<Value> ReadGates(Definition& d, int input, const Streams& streams, bool may_be_flat) {
  const std::optional<int> rank = d.Rank(input);
  const std::string what = "Input " + std::to_string(input);
  if (!rank) return d.UnsupportedShape(what + " has a number of axes that is not known.");
  const Value gates = Wide(d, d.In(input));
  if (*rank == streams.rank) return gates;
  if (*rank != streams.rank - 1) {
    return d.Invalid(what + " has " + std::to_string(*rank) + " axes for streams of " +
                     std::to_string(streams.rank) + ".");
  }
  if (!may_be_flat) return d.Unsqueeze(gates, {-1});
  // A number for each branch, or one for each of its elements: the last axis is 1 or their number.
  std::vector<int64_t> shape(static_cast<size_t>(*rank - 1), 0);
  shape.insert(shape.end(), {*streams.branches, -1});
  return d.Reshape(gates, std::move(shape));
}

// Y[..., h] = reduction_scale * sum_c X[..., c, h] * pre_mix[..., c, h]
Status DefinePreMix(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(const Streams streams, ReadStreams(d));
  ONNXIFI_ASSIGN_OR_RETURN(const Value gates, ReadGates(d, 1, streams, streams.is_flat));
  const Value sum = d.Apply("ReduceSum", {d.Mul(streams.values, gates), d.Ints1D({-2})},
                            {{"keepdims", int64_t{0}}});
  const Value scaled = d.Mul(sum, d.Scalar(d.Float("reduction_scale"), ElementType::kFloat32));
  d.Return(0, d.Cast(scaled, d.Type(0)));
  return base::Ok();
}

// Y[..., k, h] = sum_c stream_mix[..., c, k] * X[..., c, h] + post_mix[..., k, h] * block[..., h]
Status DefinePostMix(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(const Streams streams, ReadStreams(d));
  ONNXIFI_ASSIGN_OR_RETURN(const Value gates, ReadGates(d, 2, streams, /*may_be_flat=*/false));
  Value mixed = streams.values;
  if (d.Has(3)) {
    ONNXIFI_RETURN_IF_ERROR(d.NeedRank(3, streams.rank));
    std::vector<int64_t> perm;
    for (int64_t axis = 0; axis < streams.rank - 2; ++axis) perm.push_back(axis);
    perm.insert(perm.end(), {streams.rank - 1, streams.rank - 2});
    mixed = d.MatMul(d.Transpose(Wide(d, d.In(3)), std::move(perm)), mixed);
  }
  const Value added = d.Mul(gates, d.Unsqueeze(Wide(d, d.In(1)), {-2}));
  d.Return(0, Flattened(d, d.Add(mixed, added), streams.is_flat, d.Type(0)));
  return base::Ok();
}

Value Normalize(Definition& d, const Value& x) {
  const Value mean = d.Apply("ReduceMean", {d.Mul(x, x), d.Ints1D({-1})});
  const Value sum = d.Add(mean, d.Scalar(d.Float("epsilon"), ElementType::kFloat32));
  return d.Div(x, d.Apply("Sqrt", {sum}));
}

// Each branch by the root of its own mean square.
Status DefineBranchwiseRmsNorm(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(const Streams streams, ReadStreams(d));
  Value y = Normalize(d, streams.values);
  if (d.Has(1)) {
    Value scale = Wide(d, d.In(1));
    const std::optional<int> rank = d.Rank(1);
    const std::optional<int64_t> row = d.Extent(1, -1);
    if (rank == 1) {
      // Of one branch, which all share, or of all of them.
      const Value size = d.Apply("Shape", {streams.values}, {{"start", int64_t{-1}}});
      scale = d.ReshapeTo(scale, d.Apply("Concat", {d.Ints1D({-1}), size}, {{"axis", int64_t{0}}}));
      const bool is_known = row && streams.branches && streams.size;
      if (is_known && *row != *streams.branches * *streams.size && *row != *streams.size) {
        return d.Invalid("Input 1 has " + std::to_string(*row) + " elements for " +
                         std::to_string(*streams.branches) + " branches of " +
                         std::to_string(*streams.size) + ".");
      }
    } else {
      ONNXIFI_RETURN_IF_ERROR(d.NeedRank(1, 2));
    }
    y = d.Mul(y, scale);
  }
  d.Return(0, Flattened(d, y, streams.is_flat, d.Type(0)));
  return base::Ok();
}

// The product is rounded before the sum.
Status DefineGatedAdd(Definition& d) {
  d.Return(0, d.Add(d.In(0), d.Mul(d.In(1), d.In(2))));
  return base::Ok();
}

// z * sigmoid(z) of the scaled input z; each of the three is rounded.
Status DefineScaledSilu(Definition& d) {
  const ElementType type = d.Type(0);
  const Value scale = d.Has(1) ? Wide(d, d.Reshape(d.In(1), {}))
                               : d.Scalar(d.Float("alpha"), ElementType::kFloat32);
  const Value z = d.Cast(d.Mul(Wide(d, d.In(0)), scale), type);
  const Value s = d.Cast(Sigmoid(d, Wide(d, z)), type);
  d.Return(0, d.Mul(z, s));
  return base::Ok();
}

// gate = sigmoid(sign(dot) * sqrt(max(|dot|, 1e-6))), dot = sum(norm(key) * norm(query)) /
// sqrt(size); the value of all branches is scaled by the gate of each.
Status DefineEngramGate(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 4));
  const ElementType type = d.Type(0), wide = ElementType::kFloat32;
  const Value key = d.Mul(Normalize(d, Wide(d, d.In(0))), Wide(d, d.In(3)));
  const Value query = d.Mul(Normalize(d, Wide(d, d.In(1))), Wide(d, d.In(4)));
  const Value sum = d.Apply("ReduceSum", {d.Mul(key, query), d.Ints1D({-1})});
  const Value size = d.Cast(d.ExtentOf(d.In(0), 3), wide);
  const Value dot = d.Div(sum, d.Apply("Sqrt", {size}));
  constexpr double kMinDot = 1e-6;
  const Value bounded = d.Apply("Max", {d.Apply("Abs", {dot}), d.Scalar(kMinDot, wide)});
  const Value root = d.Mul(d.Apply("Sign", {dot}), d.Apply("Sqrt", {bounded}));
  const Value gated = d.Mul(Sigmoid(d, root), d.Unsqueeze(Wide(d, d.In(2)), {2}));
  d.Return(0, d.Cast(gated, type));
  if (!d.Wants(1)) return base::Ok();
  if (!d.Has(5)) {
    return d.Invalid("Output 1 (gated_value_normed) is wanted without input 5 (conv_norm_scale).");
  }
  d.Return(1, d.Cast(d.Mul(Normalize(d, gated), Wide(d, d.In(5))), type));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(BranchwiseRMSNorm(X: T, scale?: M) -> (Y: T)
        epsilon: float = 1e-5
        num_branches: int = 0
        T = float | float16 | bfloat16
        M = float | float16 | bfloat16)",
     DefineBranchwiseRmsNorm},
    {R"(EngramGate(key: T, query: T, value: T, key_norm_scale: T, query_norm_scale: T,
                   conv_norm_scale?: T)
            -> (output: T, gated_value_normed?: T)
        epsilon: float = 1e-5
        T = float | float16 | bfloat16)",
     DefineEngramGate},
    {R"(GatedAdd(X: T, Y: T, gate: T) -> (output: T)
        T = float | float16 | bfloat16)",
     DefineGatedAdd},
    {R"(HyperConnectionPostMix(streams: T, block_output: T, post_mix: M, stream_mix?: M)
            -> (output: T)
        num_branches: int = 0
        T = float | float16 | bfloat16
        M = float | float16 | bfloat16)",
     DefinePostMix},
    {R"(HyperConnectionPreMix(streams: T, pre_mix: M) -> (output: T)
        num_branches: int = 0
        reduction_scale: float = 1
        T = float | float16 | bfloat16
        M = float | float16 | bfloat16)",
     DefinePreMix},
    {R"(ScaledSiLU(X: T, scale?: M) -> (Y: T)
        alpha: float = 1
        T = float | float16 | bfloat16
        M = float | float16 | bfloat16)",
     DefineScaledSilu},
};

}  // namespace

std::span<const model::DomainOperator> HyperConnectionOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
