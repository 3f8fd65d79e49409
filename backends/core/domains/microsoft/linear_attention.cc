// SPDX-License-Identifier: Apache-2.0
//
// What the model builder writes for layers of linear attention (Gated DeltaNet, Mamba): the
// recurrence, its gates, the convolution before it and the normalization behind it. The recurrence
// and the convolution are ONNX's of the same names, which have fewer forms.

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

constexpr int64_t kMaxStateWindow = 8;  // the largest that the operators' documentation allows

Result<int64_t> ReadStateWindow(const Definition& d) {
  const int64_t window = d.Int("state_window");
  if (window >= 0 && window <= kMaxStateWindow) return window;
  return d.Invalid("Attribute state_window is " + std::to_string(window) + "; 0 to " +
                   std::to_string(kMaxStateWindow) + " states are kept.");
}

// The newest of the states that input `past` keeps along its first axis.
Value NewestState(Definition& d, int past, int64_t window) {
  if (window == 0) return d.In(past);
  return d.Squeeze(d.Slice(d.In(past), 0, window - 1, window), {0});
}

// States of single positions along a new first axis. The state in slot j is that after position
// `length` - window + j, and zeros where that is before the first one.
Value JoinStates(Definition& d, std::vector<Value> states, const Value& length, ElementType type,
                 int rank) {
  const auto window = static_cast<int64_t>(states.size());
  for (Value& state : states) state = d.Unsqueeze(std::move(state), {0});
  const Value joined = window == 1 ? states.front() : d.Concat(std::move(states), 0);
  const Value slots = d.Apply("Range", {d.Int0D(0), d.Int0D(window), d.Int0D(1)});
  const Value positions = d.Add(d.Sub(slots, d.Int0D(window)), length);
  const Value is_there = d.Apply("GreaterOrEqual", {positions, d.Int0D(0)});
  std::vector<int64_t> extents(static_cast<size_t>(rank + 1), 1);
  extents.front() = window;
  return d.Apply("Where", {d.Reshape(is_there, std::move(extents)), joined, d.Scalar(0, type)});
}

// [batch, sequence, heads * size] as [batch, sequence, to * size]: each head stands for neighbours.
// `size` is int64 [1].
Value RepeatHeads(Definition& d, Value value, const Value& size, int64_t to) {
  const Value repeats = d.Div(d.Mul(size, d.Ints1D({to})), d.ExtentOf(value, 2));
  const Value one = d.Ints1D({1});
  const Value apart = d.ReshapeTo(std::move(value), d.Concat({d.Ints1D({0, 0, -1, 1}), size}, 0));
  const Value repeated = d.Apply("Expand", {apart, d.Concat({one, one, one, repeats, one}, 0)});
  return d.ReshapeTo(repeated, d.Concat({d.Ints1D({0, 0}), d.Mul(size, d.Ints1D({to}))}, 0));
}

// The same of numbers.
Value RepeatHeads(Definition& d, Value value, int64_t from, int64_t to) {
  if (from == to) return value;
  const Value apart = d.Reshape(std::move(value), {0, 0, from, 1, -1});
  const Value repeated = d.Apply("Expand", {apart, d.Ints1D({1, 1, 1, to / from, 1})});
  return d.Reshape(repeated, {0, 0, -1});
}

// LinearAttention.
enum Input { kQuery, kKey, kValue, kPast, kDecay, kBeta };

struct Heads {
  int64_t q = 0;  // as many as the recurrence sees: at least `kv`
  int64_t kv = 0;
};

// Inputs of one position after another, as ONNX's operator takes them.
struct Tokens {
  std::vector<Value> inputs;  // by position, without the state; empty: omitted
  Definition::Attributes attributes;
};

Result<Tokens> ReadTokens(Definition& d) {
  Heads heads{d.Int("q_num_heads"), d.Int("kv_num_heads")};
  if (heads.q < 1 || heads.kv < 1 || (heads.q % heads.kv != 0 && heads.kv % heads.q != 0)) {
    return d.Invalid("Attributes q_num_heads (" + std::to_string(heads.q) + ") and kv_num_heads (" +
                     std::to_string(heads.kv) + ") are no multiples of each other.");
  }
  const int64_t queries = std::max(heads.q, heads.kv);
  Value key;
  const std::optional<int64_t> q_row = d.Extent(kQuery, 2), k_row = d.Extent(kKey, 2);
  if (q_row && k_row && *q_row >= heads.q) {
    const int64_t keys = *k_row / (*q_row / heads.q);
    if (keys < 1 || heads.kv % keys != 0) {
      return d.Invalid("Input 1 has rows of " + std::to_string(*k_row) + " elements for " +
                       std::to_string(heads.kv) + " heads of " + std::to_string(*q_row / heads.q) +
                       ".");
    }
    key = RepeatHeads(d, d.In(kKey), keys, heads.kv);
  } else {
    const Value size = d.Div(d.ExtentOf(d.In(kQuery), 2), d.Ints1D({heads.q}));
    key = RepeatHeads(d, d.In(kKey), size, heads.kv);
  }
  Tokens tokens;
  tokens.inputs = {RepeatHeads(d, d.In(kQuery), heads.q, queries), key, d.In(kValue), "", "", ""};
  if (d.Has(kDecay)) tokens.inputs[kDecay] = d.In(kDecay);
  if (d.Has(kBeta)) {
    tokens.inputs[kBeta] = d.In(kBeta);
    if (d.Extent(kBeta, 2) == 1 && heads.kv != 1) {
      tokens.inputs[kBeta] = d.Apply("Expand", {d.In(kBeta), d.Ints1D({1, 1, heads.kv})});
    }
  }
  tokens.attributes = d.Given({"chunk_size", "scale"});
  tokens.attributes.emplace_back("q_num_heads", queries);
  tokens.attributes.emplace_back("kv_num_heads", heads.kv);
  tokens.attributes.emplace_back("update_rule", d.String("update_rule"));
  return tokens;
}

Status DefineLinearAttention(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t window, ReadStateWindow(d));
  ONNXIFI_ASSIGN_OR_RETURN(Tokens tokens, ReadTokens(d));
  const std::string rule = d.String("update_rule");
  const bool has_gate = rule == "gated" || rule == "gated_delta";
  const bool has_rate = rule == "delta" || rule == "gated_delta";
  if (!has_gate && !has_rate && rule != "linear") {
    return d.Invalid("Attribute update_rule is '" + rule +
                     "'; there are delta, gated, gated_delta and linear.");
  }
  // A rule takes no notice of inputs that it has no use for.
  if (!has_gate) tokens.inputs[kDecay].clear();
  if (!has_rate) tokens.inputs[kBeta].clear();
  if (d.Has(kPast)) tokens.inputs[kPast] = NewestState(d, kPast, window);
  if (window == 0) {
    while (tokens.inputs.back().empty()) tokens.inputs.pop_back();
    const std::vector<Value> results =
        d.ApplyAll("LinearAttention", std::move(tokens.inputs), 2, std::move(tokens.attributes));
    d.Return(0, results[0]);
    d.Return(1, results[1]);
    return base::Ok();
  }
  // All tokens but the last `window`, then one at a time. As many tokens of zeros before them,
  // which leave the state as it is, make sure that none of the parts is empty.
  const Value length = d.ExtentOf(d.In(kQuery), 1);
  for (size_t k = 0; k < tokens.inputs.size(); ++k) {
    Value& input = tokens.inputs[k];
    if (k == kPast || input.empty()) continue;
    input = d.Apply("Pad", {input, d.Ints1D({window, 0}), "", d.Ints1D({1})});
  }
  std::vector<Value> outputs, states;
  Value start = d.Ints1D({0});
  for (int64_t slot = 0; slot <= window; ++slot) {
    const Value end = d.Add(length, d.Ints1D({slot}));
    std::vector<Value> inputs = tokens.inputs;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (k != kPast && !inputs[k].empty()) inputs[k] = d.Slice(inputs[k], 1, start, end);
    }
    if (slot != 0) inputs[kPast] = states.back();
    while (inputs.back().empty()) inputs.pop_back();
    const std::vector<Value> results =
        d.ApplyAll("LinearAttention", std::move(inputs), 2, tokens.attributes);
    outputs.push_back(results[0]);
    states.push_back(results[1]);
    start = end;
  }
  states.erase(states.begin());
  const ElementType type = d.Type(d.Has(kPast) ? kPast : kQuery);
  const Value all = d.Concat(std::move(outputs), 1);
  d.Return(0, d.Slice(all, 1, d.Ints1D({window}), d.ExtentOf(all, 1)));
  d.Return(1, JoinStates(d, std::move(states), length, type, 4));
  return base::Ok();
}

Value Wide(Definition& d, Value value) { return d.Cast(std::move(value), ElementType::kFloat32); }

// decay = decay_scale * softplus(a + dt_bias), beta = sigmoid(b), in float32.
Status DefineLinearAttentionGate(Definition& d) {
  const ElementType type = d.Type(0);
  const Value sum = d.Add(Wide(d, d.In(0)), d.In(1));
  d.Return(0, d.Cast(d.Mul(d.Apply("Softplus", {sum}), d.In(2)), type));
  if (!d.Wants(1)) return base::Ok();
  if (!d.Has(3)) return d.Invalid("Output 1 (beta) is wanted without input 3 (b).");
  d.Return(1, d.Cast(d.Apply("Sigmoid", {Wide(d, d.In(3))}), type));
  return base::Ok();
}

// Y = X / sqrt(mean(X^2) + epsilon) * scale * activation(gate) over groups of as many elements as
// the scale has, in float32.
Status DefineGatedRmsNorm(Definition& d) {
  const std::string activation = d.String("activation");
  if (activation != "silu" && activation != "swish" && activation != "sigmoid") {
    return d.Invalid("Attribute activation is '" + activation +
                     "'; there are sigmoid, silu and swish.");
  }
  const std::optional<int> rank = d.Rank(0);
  if (!rank) return d.UnsupportedShape("Input 0 has a number of axes that is not known.");
  const std::optional<int64_t> row = d.Extent(0, -1), group = d.Extent(1, 0);
  if (row && group && (*group < 1 || *row % *group != 0)) {
    return d.Invalid("Input 0 has rows of " + std::to_string(*row) +
                     " elements, no multiple of the " + std::to_string(*group) + " of the scale.");
  }
  const ElementType type = d.Type(0);
  const Value extents = d.Apply("Shape", {d.In(0)});
  const Value groups =
      d.Concat({d.Slice(extents, 0, 0, *rank - 1), d.Ints1D({-1}), d.Apply("Shape", {d.In(1)})}, 0);
  const Value normalized =
      d.Apply("RMSNormalization", {d.ReshapeTo(Wide(d, d.In(0)), groups), Wide(d, d.In(1))},
              {{"axis", int64_t{-1}}, {"epsilon", d.Float("epsilon")}});
  const Value gate = Wide(d, d.In(2));
  Value factor = d.Apply("Sigmoid", {gate});
  if (activation != "sigmoid") factor = d.Mul(gate, factor);
  d.Return(0, d.Cast(d.Mul(d.ReshapeTo(normalized, extents), factor), type));
  return base::Ok();
}

// CausalConvWithState.

// [channels, 1, taps] with zeros between the taps: [channels, 1, (taps - 1) * dilation + 1].
Value Dilate(Definition& d, Value weight, int64_t dilation) {
  const Value apart = d.Unsqueeze(std::move(weight), {3});
  const Value padded = d.Apply("Pad", {apart, d.Ints1D({0, dilation - 1}), "", d.Ints1D({3})});
  const Value joined = d.Reshape(padded, {0, 1, -1});
  return d.Slice(joined, 2, d.Ints1D({0}), d.Ints1D({1 - dilation}));
}

// [batch, positions, channels...] as [batch, channels, positions].
Value ChannelsFirst(Definition& d, Value value) {
  return d.Transpose(d.Reshape(std::move(value), {0, 0, -1}), {0, 2, 1});
}

Status DefineCausalConv(Definition& d) {
  if (d.Int("ndim") != 1) {
    return d.Unsupported("Attribute ndim is " + std::to_string(d.Int("ndim")) +
                         "; positions have one axis (1).");
  }
  const int64_t dilation = d.Int("dilation");
  if (dilation < 1) {
    return d.Invalid("Attribute dilation is " + std::to_string(dilation) + ", below 1.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t window, ReadStateWindow(d));
  const bool is_last = d.Int("channels_last") != 0;
  const std::optional<int> rank = d.Rank(0);
  if (!rank) return d.UnsupportedShape("Input 0 has a number of axes that is not known.");
  if (*rank < 3 || (*rank > 3 && !is_last)) {
    return d.Invalid("Input 0 has " + std::to_string(*rank) + " axes instead of " +
                     (is_last ? "3 or more." : "3."));
  }
  const Value x = is_last ? ChannelsFirst(d, d.In(0)) : d.In(0);
  const Value weight = dilation == 1 ? d.In(1) : Dilate(d, d.In(1), dilation);
  std::vector<Value> inputs = {x, weight};
  if (d.Has(2)) inputs.push_back(d.In(2));
  Value past;
  if (d.Has(3)) {
    past = NewestState(d, 3, window);
    if (is_last) past = ChannelsFirst(d, past);
    inputs.resize(3);
    inputs.push_back(past);
  }
  const std::vector<Value> results = d.ApplyAll("CausalConvWithState", std::move(inputs), 2,
                                                {{"activation", d.String("activation")}});
  const Value extents = d.Apply("Shape", {d.In(0)});
  // States by position, with the axes of channels that the input has.
  const auto as_input = [&](Value value) {
    if (!is_last) return value;
    const Value shape = d.Concat({d.Ints1D({0, -1}), d.Slice(extents, 0, 2, *rank)}, 0);
    return d.ReshapeTo(d.Transpose(std::move(value), {0, 2, 1}), shape);
  };
  d.Return(0, is_last ? d.ReshapeTo(d.Transpose(results[0], {0, 2, 1}), extents) : results[0]);
  if (window == 0) {
    d.Return(1, as_input(results[1]));
    return base::Ok();
  }
  // The state after each of the last positions is cut out of past and inputs.
  const Value kept = d.Sub(d.ExtentOf(weight, 2), d.Ints1D({1}));
  if (past.empty()) {
    const Value pads = d.Concat({kept, d.Ints1D({0})}, 0);
    past = d.Apply("Pad", {x, pads, "", d.Ints1D({2})});
  } else {
    past = d.Concat({past, x}, 2);
  }
  const Value length = d.ExtentOf(x, 2);
  std::vector<Value> states;
  for (int64_t slot = 0; slot < window; ++slot) {
    const Value start =
        d.Apply("Max", {d.Add(length, d.Ints1D({slot + 1 - window})), d.Ints1D({0})});
    states.push_back(as_input(d.Slice(past, 2, start, d.Add(start, kept))));
  }
  d.Return(1, JoinStates(d, std::move(states), length, d.Type(0), *rank));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(CausalConvWithState(input: T, weight: T, bias?: T, past_state?: T)
            -> (output: T, present_state: T)
        activation: string = none
        channels_last: int = 0
        dilation: int = 1
        ndim: int = 1
        state_window: int = 0
        T = float | float16 | bfloat16)",
     DefineCausalConv},
    {R"(GatedRMSNorm(X: T, scale: T, gate: T) -> (Y: T)
        activation: string = silu
        epsilon: float = 1e-5
        T = float | float16 | bfloat16)",
     DefineGatedRmsNorm},
    {R"(LinearAttention(query: T, key: T, value: T, past_state?: S, decay?: T, beta?: T)
            -> (output: T, present_state: S)
        chunk_size: int = 64
        kv_num_heads: int required
        q_num_heads: int required
        scale: float = 0
        state_window: int = 0
        update_rule: string = gated_delta
        T = float | float16 | bfloat16
        S = float | float16 | bfloat16)",
     DefineLinearAttention},
    {R"(LinearAttentionGate(a: T, dt_bias: TF, decay_scale: TF, b?: T) -> (decay: T, beta?: T)
        T = float | float16 | bfloat16
        TF = float)",
     DefineLinearAttentionGate},
};

}  // namespace

std::span<const model::DomainOperator> LinearAttentionOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
