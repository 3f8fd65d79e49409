// SPDX-License-Identifier: Apache-2.0
//
// Layers of linear attention over tokens of several sequences without padding, as the model builder
// writes them for servers that take new sequences while others run: the recurrence and the
// convolution before it. ONNX's LinearAttention computes the recurrence, over sequences of one
// length: zeros in place of padding leave the state as it is.

#include <string>
#include <utility>
#include <vector>

#include "backends/core/domains/microsoft/attention.h"
#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/packed_tokens.h"
#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {
namespace {

using base::Result;
using base::Status;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

constexpr int64_t kMaxCapacity = 8;  // the largest that the operators' documentation allows

Value Wide(Definition& d, Value value) { return d.Cast(std::move(value), ElementType::kFloat32); }

// How many of the first tokens of each sequence output 2 shows.
Result<int64_t> ReadCapacity(const Definition& d, int counts) {
  const int64_t capacity = d.Int("state_update_capacity");
  if (capacity < 0 || capacity > kMaxCapacity) {
    return d.Invalid("Attribute state_update_capacity is " + std::to_string(capacity) + "; 0 to " +
                     std::to_string(kMaxCapacity) + " tokens are shown.");
  }
  if (d.Has(counts) != (capacity > 0)) {
    return d.Invalid("Input " + std::to_string(counts) + " (capture_count) is " +
                     (capacity > 0 ? "missing" : "given") +
                     " where attribute state_update_capacity is " + std::to_string(capacity) + ".");
  }
  if (capacity == 0 && d.Wants(2)) {
    return d.Invalid("Output 2 is wanted where attribute state_update_capacity is 0.");
  }
  return capacity;
}

// VarlenCausalConvWithState.
enum ConvInput { kX, kWeight, kConvSums, kBias, kConvState, kConvCounts };

Status DefineConvolution(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kX, 2));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kConvState, 3));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kWeight, 3));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t capacity, ReadCapacity(d, kConvCounts));
  const int64_t dilation = d.Int("dilation");
  if (dilation < 1) {
    return d.Invalid("Attribute dilation is " + std::to_string(dilation) + ", below 1.");
  }
  const std::string activation = d.String("activation");
  const bool has_gate = activation == "silu" || activation == "swish";
  if (!has_gate && activation != "none") {
    return d.Invalid("Attribute activation is '" + activation +
                     "'; there are none, silu and swish.");
  }
  const std::optional<int64_t> taps = d.Extent(kWeight, 2), given = d.Extent(kConvState, 2);
  if (taps && (*taps < 1 || (given && (*taps - 1) * dilation != *given))) {
    return d.Invalid("Input 4 keeps " + std::to_string(given.value_or(0)) + " tokens for " +
                     std::to_string(*taps) + " taps that are " + std::to_string(dilation) +
                     " apart.");
  }
  const ElementType type = d.Type(kX);
  const PackedTokens packed = ReadPackedTokens(d, kConvSums, d.ExtentOf(d.In(kX), 0));
  const Value sequences = d.ExtentOf(d.In(kConvState), 0);
  const Value kept = d.ExtentOf(d.In(kConvState), 2);

  // The kept tokens of all sequences, then the new ones: [sequences * kept + tokens, channels].
  const Value old = d.ReshapeTo(d.Transpose(d.In(kConvState), {0, 2, 1}),
                                d.Concat({d.Ints1D({-1}), d.ExtentOf(d.In(kX), 1)}, 0));
  const Value rows = d.Concat({old, d.In(kX)}, 0);
  const Value before = d.Mul(sequences, kept);
  // Which of the rows stands at `place` of a sequence; a place below 0 is a kept one.
  const auto row_at = [&](const Value& sequence, const Value& start, const Value& place) {
    const Value is_new = d.Apply("GreaterOrEqual", {place, d.Int0D(0)});
    const Value of_kept = d.Add(d.Mul(d.Add(sequence, d.Int0D(1)), kept), place);
    return d.Apply("Where", {is_new, d.Add(d.Add(before, start), place), of_kept});
  };

  // [tokens, taps, channels]
  const Value weight = d.Transpose(d.Squeeze(d.In(kWeight), {1}), {1, 0});
  const Value back = d.Sub(d.Mul(CountTo(d, d.ExtentOf(weight, 0)), d.Int0D(dilation)), kept);
  const Value starts = d.Apply("Gather", {packed.starts, packed.sequence});
  const Value read =
      d.Apply("Gather", {rows, row_at(d.Unsqueeze(packed.sequence, {1}), d.Unsqueeze(starts, {1}),
                                      d.Add(d.Unsqueeze(packed.place, {1}), back))});
  Value sum = d.Apply("ReduceSum", {d.Mul(Wide(d, read), Wide(d, weight)), d.Ints1D({1})},
                      {{"keepdims", int64_t{0}}});
  if (d.Has(kBias)) sum = d.Add(sum, Wide(d, d.In(kBias)));
  if (has_gate) sum = d.Mul(sum, d.Apply("Sigmoid", {sum}));
  d.Return(0, d.Cast(sum, type));

  // The last of each sequence, old ones included.
  const Value of_first = d.Unsqueeze(packed.starts, {1});
  const Value last = d.Add(d.Unsqueeze(packed.lengths, {1}), d.Sub(CountTo(d, kept), kept));
  const Value at = row_at(d.Unsqueeze(CountTo(d, sequences), {1}), of_first, last);
  d.Return(1, d.Transpose(d.Apply("Gather", {rows, at}), {0, 2, 1}));

  if (capacity == 0) return base::Ok();
  const Value shown = CountTo(d, d.Ints1D({capacity}));
  const Value count =
      d.Apply("Min", {d.Cast(d.In(kConvCounts), ElementType::kInt64), packed.lengths});
  const Value is_shown = d.Apply("Less", {shown, d.Unsqueeze(count, {1})});
  const Value token = d.Apply("Where", {is_shown, d.Add(of_first, shown), d.Int0D(0)});
  d.Return(2, d.Apply("Where", {d.Unsqueeze(is_shown, {2}), d.Apply("Gather", {d.In(kX), token}),
                                d.Scalar(0, type)}));
  return base::Ok();
}

// GatedDeltaNet.
enum DeltaInput {
  kQuery,
  kKey,
  kValue,
  kSums,
  kDecay,
  kBeta,
  kState,
  kDecayScale,
  kDecayBias,
  kCounts,
  kIsActive,
};

// Queries, keys and values: [..., heads, size] each.
struct Projections {
  Value q, k, v;
};

Status CheckHeads(const Definition& d, std::optional<int64_t> queries, std::optional<int64_t> keys,
                  std::optional<int64_t> values) {
  if (queries && keys && *queries != *keys) {
    return d.Invalid("There are " + std::to_string(*queries) + " heads of queries and " +
                     std::to_string(*keys) + " of keys.");
  }
  if (keys && values && (*keys < 1 || *values % *keys != 0)) {
    return d.Invalid("The " + std::to_string(*values) + " heads of values are no multiple of " +
                     std::to_string(*keys) + " of keys.");
  }
  return base::Ok();
}

Result<Projections> ReadProjections(Definition& d) {
  if (d.Has(kKey) != d.Has(kValue)) {
    return d.Invalid("It has not both key and value, or neither.");
  }
  if (d.Has(kKey)) {
    ONNXIFI_RETURN_IF_ERROR(
        CheckHeads(d, d.Extent(kQuery, -2), d.Extent(kKey, -2), d.Extent(kValue, -2)));
    return Projections{d.In(kQuery), d.In(kKey), d.In(kValue)};
  }
  if (!d.Has(kState)) return d.Invalid("Queries, keys and values in one input need a state.");
  const std::optional<int64_t> row = d.Extent(kQuery, -1), heads = d.Extent(kState, 1),
                               width = d.Extent(kState, 2), size = d.Extent(kState, 3);
  if (row && heads && width && size) {
    const int64_t of_keys = *row - *heads * *width;
    if (*size < 1 || of_keys < 1 || of_keys % (2 * *size) != 0) {
      return d.Invalid("Input 0 has rows of " + std::to_string(*row) +
                       " elements, which are no queries, keys and values of the state's heads.");
    }
    ONNXIFI_RETURN_IF_ERROR(CheckHeads(d, std::nullopt, of_keys / (2 * *size), *heads));
  }
  const Value query = d.In(kQuery), state = d.In(kState);
  const Value leading = d.Apply("Shape", {query}, {{"end", int64_t{-1}}});
  const Value end = d.ExtentOf(query, -1);
  const Value of_values = d.Mul(d.ExtentOf(state, 1), d.ExtentOf(state, 2));
  const Value part = d.Div(d.Sub(end, of_values), d.Ints1D({2}));
  const Value twice = d.Add(part, part);
  const auto in_heads = [&](const Value& first, const Value& last, int64_t axis) {
    const Value size_of_head = d.Concat({d.Ints1D({-1}), d.ExtentOf(state, axis)}, 0);
    return d.ReshapeTo(d.Slice(query, -1, first, last), d.Concat({leading, size_of_head}, 0));
  };
  return Projections{in_heads(d.Ints1D({0}), part, 3), in_heads(part, twice, 3),
                     in_heads(twice, end, 2)};
}

// Each head of length 1, as float32. `value` is [..., heads, size].
Value Normalized(Definition& d, const Value& value) {
  const ElementType wide = ElementType::kFloat32;
  const Value squares = d.Apply("ReduceSumSquare", {value, d.Ints1D({-1})});
  return d.Div(value, d.Apply("Sqrt", {d.Add(squares, d.Scalar(1e-12, wide))}));
}

// The logarithm of what is left of the state, and how much of a new value is taken, [..., heads] or
// [..., heads, size of keys] each; empty: all. float32.
struct Gates {
  Value decay, beta;
};

Result<Gates> ReadGates(Definition& d, int token_axes) {
  Gates gates;
  const ElementType wide = ElementType::kFloat32;
  const std::string kind = d.String("gate_activation"), of_beta = d.String("beta_activation");
  if (kind != "none" && kind != "qwen") {
    return d.Invalid("Attribute gate_activation is '" + kind + "'; there are none and qwen.");
  }
  if (of_beta != "none" && of_beta != "sigmoid") {
    return d.Invalid("Attribute beta_activation is '" + of_beta + "'; there are none and sigmoid.");
  }
  if (kind == "none" && (d.Has(kDecayScale) || d.Has(kDecayBias))) {
    return d.Invalid("Inputs 7 and 8 are given where attribute gate_activation is none.");
  }
  if (d.Has(kDecay)) {
    gates.decay = Wide(d, d.In(kDecay));
    if (kind == "qwen") {
      // Numbers of heads, before the size of keys where the decay has that.
      const auto of_heads = [&](int input) {
        return d.Rank(kDecay) == token_axes + 2 ? d.Unsqueeze(d.In(input), {1}) : d.In(input);
      };
      if (d.Has(kDecayBias)) gates.decay = d.Add(gates.decay, of_heads(kDecayBias));
      gates.decay = d.Apply("Softplus", {gates.decay});
      Value scale = d.Scalar(1, wide);
      if (d.Has(kDecayScale)) scale = d.Apply("Exp", {of_heads(kDecayScale)});
      gates.decay = d.Apply("Neg", {d.Mul(gates.decay, scale)});
    }
  }
  if (d.Has(kBeta)) {
    gates.beta = Wide(d, d.In(kBeta));
    if (of_beta == "sigmoid") gates.beta = d.Apply("Sigmoid", {gates.beta});
  }
  return gates;
}

Status DefineGatedDeltaNet(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t capacity, ReadCapacity(d, kCounts));
  if (capacity > 0) {
    return d.Unsupported("Attribute state_update_capacity is " + std::to_string(capacity) +
                         "; what single tokens add to the state is not shown (0).");
  }
  const std::string rule = d.String("update_rule");
  const bool has_gate = rule == "gated" || rule == "gated_delta";
  const bool has_rate = rule == "delta" || rule == "gated_delta";
  if (!has_gate && !has_rate && rule != "linear") {
    return d.Invalid("Attribute update_rule is '" + rule +
                     "'; there are delta, gated, gated_delta and linear.");
  }
  const std::optional<int> rank = d.Rank(kQuery);
  if (!rank) return d.UnsupportedShape("Input 0 has a number of axes that is not known.");
  const int token_axes = *rank - (d.Has(kKey) ? 2 : 1);
  if (token_axes != 1 && token_axes != 2) {
    return d.Invalid("Input 0 has " + std::to_string(*rank) +
                     " axes, which are no tokens, or samples and tokens.");
  }
  if (token_axes == 2 && d.Has(kSums)) {
    return d.Invalid("Input 3 (cu_seqlens) is given beside an axis of samples.");
  }
  if (token_axes == 1 && !d.Has(kSums) && !d.Has(kState)) {
    return d.Invalid("Neither input 3 (cu_seqlens) nor a state tells the number of sequences.");
  }
  if (d.Has(kDecay)) {
    const std::optional<int> of_decay = d.Rank(kDecay);
    if (!of_decay) return d.UnsupportedShape("Input 4 has a number of axes that is not known.");
    if (*of_decay != token_axes + 1 && *of_decay != token_axes + 2) {
      return d.Invalid("Input 4 (decay) has " + std::to_string(*of_decay) + " axes instead of " +
                       std::to_string(token_axes + 1) + " or " + std::to_string(token_axes + 2) +
                       ".");
    }
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Projections p, ReadProjections(d));
  ONNXIFI_ASSIGN_OR_RETURN(Gates gates, ReadGates(d, token_axes));
  Value q = Wide(d, p.q), k = Wide(d, p.k), v = Wide(d, p.v);
  if (d.Int("qk_l2_norm") != 0) {
    q = Normalized(d, q);
    k = Normalized(d, k);
  }
  const Value out_extents = d.Apply("Shape", {v});
  const Value of_gates = d.Apply("Shape", {v}, {{"end", int64_t{-1}}});
  const auto filled = [&](double number) {
    return d.Apply("Expand", {d.Scalar(number, ElementType::kFloat32), of_gates});
  };
  if (!has_gate) {
    gates.decay.clear();
  } else if (gates.decay.empty()) {
    gates.decay = filled(0);
  }
  if (has_rate && gates.beta.empty()) {
    gates.beta = filled(1);
  } else if (!has_rate && !gates.beta.empty()) {
    v = d.Mul(v, d.Unsqueeze(gates.beta, {-1}));
    gates.beta.clear();
  }

  // Every head of every sequence is a sample: [sequences * heads, longest, size].
  PackedTokens packed;
  if (d.Has(kSums)) packed = ReadPackedTokens(d, kSums, d.ExtentOf(p.v, 0));
  const Value heads = d.ExtentOf(v, -2);
  const auto as_samples = [&](const Value& tokens, bool is_empty) {
    Value rows = tokens;  // [sequences, longest, heads, size]
    if (d.Has(kSums)) {
      rows = WithPadding(d, packed, tokens);
      if (is_empty) {
        rows = d.Apply("Where", {d.Unsqueeze(packed.is_there, {2, 3}), rows,
                                 d.Scalar(0, ElementType::kFloat32)});
      }
    } else if (token_axes == 1) {
      const Value extents = d.Apply("Shape", {tokens}, {{"start", int64_t{1}}});
      rows =
          d.ReshapeTo(tokens, d.Concat({d.ExtentOf(d.In(kState), 0), d.Ints1D({-1}), extents}, 0));
    }
    const Value apart = d.Transpose(rows, {0, 2, 1, 3});
    const Value extents = d.Apply("Shape", {apart}, {{"start", int64_t{2}}});
    return d.ReshapeTo(apart, d.Concat({d.Ints1D({-1}), extents}, 0));
  };
  // A key is of neighbouring heads of values.
  const auto of_values = [&](const Value& value) {
    const Value of_keys = d.ExtentOf(value, -2), size = d.ExtentOf(value, -1);
    const Value extents = d.Apply("Shape", {value}, {{"end", int64_t{token_axes}}});
    const Value repeated = d.Apply(
        "Expand",
        {d.Unsqueeze(value, {-2}), d.Concat({extents, of_keys, d.Div(heads, of_keys), size}, 0)});
    return d.ReshapeTo(repeated, d.Concat({extents, heads, size}, 0));
  };
  const auto of_gate = [&](const Value& gate, int rank) {
    return as_samples(rank == token_axes + 1 ? d.Unsqueeze(gate, {-1}) : gate, true);
  };
  std::vector<Value> inputs = {as_samples(of_values(q), false),
                               as_samples(of_values(k), true),
                               as_samples(v, true),
                               "",
                               "",
                               ""};
  if (d.Has(kState)) {
    const Value turned = d.Transpose(d.In(kState), {0, 1, 3, 2});
    const Value extents = d.Apply("Shape", {turned}, {{"start", int64_t{2}}});
    inputs[3] = d.ReshapeTo(turned, d.Concat({d.Ints1D({-1, 1}), extents}, 0));
  }
  if (has_gate) inputs[4] = of_gate(gates.decay, d.Has(kDecay) ? *d.Rank(kDecay) : token_axes + 1);
  if (has_rate) inputs[5] = of_gate(gates.beta, token_axes + 1);
  while (inputs.back().empty()) inputs.pop_back();
  Definition::Attributes attributes = {
      {"q_num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}, {"update_rule", rule}};
  if (d.Float("scale") != 0) attributes.emplace_back("scale", d.Float("scale"));
  const std::vector<Value> results =
      d.ApplyAll("LinearAttention", std::move(inputs), 2, std::move(attributes));
  // The samples [sequences * heads, a, b] as [sequences, heads, a, b].
  const auto of_heads = [&](const Value& value) {
    const Value extents = d.Apply("Shape", {value}, {{"start", int64_t{1}}});
    return d.ReshapeTo(value, d.Concat({d.Ints1D({-1}), heads, extents}, 0));
  };
  Value rows = d.Transpose(of_heads(results[0]), {0, 2, 1, 3});
  if (d.Has(kSums)) rows = WithoutPadding(d, packed, rows);
  d.Return(0, d.Cast(d.ReshapeTo(rows, out_extents), d.Type(kQuery)));
  d.Return(1, d.Transpose(of_heads(d.Squeeze(results[1], {1})), {0, 1, 3, 2}));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(GatedDeltaNet(query: T, key?: T, value?: T, cu_seqlens?: TI, decay?: TS, beta?: TS,
                      initial_state?: TS, a_log?: TS, dt_bias?: TS, capture_count?: TI,
                      state_update_active?: TI)
            -> (output: T, final_state?: TS, state_update?: TS)
        beta_activation: string = none
        chunk_size: int = 64
        gate_activation: string = none
        qk_l2_norm: int = 0
        scale: float = 0
        state_update_capacity: int = 0
        update_rule: string = gated_delta
        T = float | float16 | bfloat16
        TS = float
        TI = int32)",
     DefineGatedDeltaNet},
    {R"(VarlenCausalConvWithState(input: T, weight: T, cumulative_sequence_length: M, bias?: T,
                                  initial_state: T, capture_count?: M)
            -> (output: T, final_state: T, state_update?: T)
        activation: string = none
        dilation: int = 1
        state_update_capacity: int = 0
        T = float | float16 | bfloat16
        M = int32)",
     DefineConvolution},
};

}  // namespace

std::span<const model::DomainOperator> PackedRecurrenceOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
