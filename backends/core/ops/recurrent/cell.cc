// SPDX-License-Identifier: Apache-2.0
//
// Cell of RNN, GRU and LSTM.

#include "backends/core/ops/recurrent/cell.h"

#include <map>
#include <utility>

#include "backends/core/tensor/convert.h"

namespace onnxifi::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using graph::ValueIds;
using tensor::ElementType;
using Attributes = std::map<std::string, graph::Attribute, std::less<>>;

class CellGraph {
 public:
  explicit CellGraph(const Cell& cell) : cell_(cell) {}

  ValueId AddInput(std::string name) {
    graph_.inputs.push_back(AddValue(std::move(name)));
    return graph_.inputs.back();
  }
  void AddOutput(ValueId value) { graph_.outputs.push_back(value); }
  Graph Take() { return std::move(graph_); }

  ValueId Apply(std::string op_type, int version, ValueIds inputs, Attributes attributes = {}) {
    const ValueId result = AddValue(op_type + std::to_string(graph_.nodes.size()));
    AddNode(std::move(op_type), version, std::move(inputs), {result}, std::move(attributes));
    return result;
  }
  ValueId Add(ValueId a, ValueId b) { return Apply("Add", 14, {a, b}); }
  ValueId Sub(ValueId a, ValueId b) { return Apply("Sub", 14, {a, b}); }
  ValueId Mul(ValueId a, ValueId b) { return Apply("Mul", 14, {a, b}); }
  // state * weights' [+ addend]
  ValueId Project(ValueId state, ValueId weights, ValueId addend = graph::kNoValue) {
    ValueIds inputs{state, weights};
    if (addend != graph::kNoValue) inputs.push_back(addend);
    return Apply("Gemm", 13, std::move(inputs), {{"transB", int64_t{1}}});
  }
  // Parts of axis 1, `lengths` in units of the hidden size.
  std::vector<ValueId> Split(ValueId value, const std::vector<int64_t>& lengths) {
    std::vector<int64_t> split;
    std::vector<ValueId> parts;
    ValueIds outputs;
    for (int64_t length : lengths) {
      split.push_back(length * cell_.hidden_size);
      parts.push_back(AddValue("part" + std::to_string(graph_.values.size())));
      outputs.push_back(parts.back());
    }
    AddNode("Split", 11, {value}, std::move(outputs),
            {{"axis", int64_t{1}}, {"split", std::move(split)}});
    return parts;
  }
  ValueId Scalar(double number) {
    tensor::Tensor scalar = *tensor::Tensor::Allocate(cell_.type, {});
    tensor::StoreScalar(
        cell_.type, scalar.mutable_data(), 0,
        tensor::CastScalar(ElementType::kFloat64, cell_.type, tensor::Scalar{.f = number}));
    graph::Value value;
    value.type.kind = graph::Type::Kind::kTensor;
    value.type.element = cell_.type;
    value.type.extents.emplace();
    value.constant = std::move(scalar);
    return graph_.AddValue(std::move(value));
  }
  // Activation `position`, after clipping.
  ValueId Activate(int position, ValueId x) {
    const Activation& activation = cell_.activations[static_cast<size_t>(position)];
    const std::string& function = activation.function;
    if (cell_.clip > 0) x = Apply("Clip", 13, {x, Scalar(-cell_.clip), Scalar(cell_.clip)});
    const auto scaled = [&](ValueId value, float factor) {
      return factor == 1.0f ? value : Mul(value, Scalar(factor));
    };
    if (function == "Affine") {
      const ValueId product = scaled(x, activation.alpha);
      return Add(product, Scalar(activation.beta));
    }
    if (function == "ScaledTanh") {
      return scaled(Apply("Tanh", 13, {scaled(x, activation.beta)}), activation.alpha);
    }
    if (function == "HardSigmoid") {
      return Apply(function, 22, {x}, {{"alpha", activation.alpha}, {"beta", activation.beta}});
    }
    if (function == "LeakyRelu") return Apply(function, 16, {x}, {{"alpha", activation.alpha}});
    if (function == "Elu" || function == "ThresholdedRelu") {
      return Apply(function, 22, {x}, {{"alpha", activation.alpha}});
    }
    const int version = function == "Relu"                                 ? 14
                        : function == "Softsign" || function == "Softplus" ? 22
                                                                           : 13;
    return Apply(function, version, {x});
  }

 private:
  ValueId AddValue(std::string name) {
    graph::Value value;
    value.name = std::move(name);
    return graph_.AddValue(std::move(value));
  }
  void AddNode(std::string op_type, int version, ValueIds inputs, ValueIds outputs,
               Attributes attributes) {
    Node node;
    node.op_type = std::move(op_type);
    node.since_version = version;
    node.index = static_cast<int>(graph_.nodes.size());
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.attributes = std::move(attributes);
    graph_.nodes.push_back(std::move(node));
  }

  const Cell& cell_;
  Graph graph_;
};

struct Peepholes {
  ValueId input = graph::kNoValue;
  ValueId output = graph::kNoValue;
  ValueId forget = graph::kNoValue;
};

// i = f(i~ + Pi * C); f = f(f~ + Pf * C); C' = f * C + i * g(c~)
// o = f(o~ + Po * C'); H' = o * h(C')
std::vector<ValueId> LstmStates(CellGraph& graph, const Cell& cell, ValueId hidden, ValueId memory,
                                ValueId projected, ValueId weights, const Peepholes& peepholes) {
  const std::vector<ValueId> gates =
      graph.Split(graph.Project(hidden, weights, projected), {1, 1, 1, 1});
  const auto peep = [&](ValueId gate, ValueId peephole, ValueId state) {
    return peephole == graph::kNoValue ? gate : graph.Add(gate, graph.Mul(peephole, state));
  };
  const ValueId input = graph.Activate(0, peep(gates[0], peepholes.input, memory));
  const ValueId forget = cell.couples_gates
                             ? graph.Sub(graph.Scalar(1), input)
                             : graph.Activate(0, peep(gates[2], peepholes.forget, memory));
  const ValueId candidate = graph.Activate(1, gates[3]);
  const ValueId next = graph.Add(graph.Mul(forget, memory), graph.Mul(input, candidate));
  const ValueId output = graph.Activate(0, peep(gates[1], peepholes.output, next));
  return {graph.Mul(output, graph.Activate(2, next)), next};
}

// z, r = f(z~), f(r~); H' = (1 - z) * h + z * H
ValueId GruState(CellGraph& graph, const Cell& cell, ValueId hidden, ValueId projected,
                 const std::vector<ValueId>& weights, ValueId bias) {
  const std::vector<ValueId> inputs = graph.Split(projected, {2, 1});
  ValueId gates, linear = graph::kNoValue;
  if (cell.resets_linear) {
    const std::vector<ValueId> recurrent = graph.Split(graph.Project(hidden, weights[0]), {2, 1});
    gates = graph.Add(inputs[0], recurrent[0]);
    linear = bias == graph::kNoValue ? recurrent[1] : graph.Add(recurrent[1], bias);
  } else {
    gates = graph.Project(hidden, weights[0], inputs[0]);
  }
  const std::vector<ValueId> parts = graph.Split(gates, {1, 1});
  const ValueId update = graph.Activate(0, parts[0]);
  const ValueId reset = graph.Activate(0, parts[1]);
  const ValueId sum = cell.resets_linear
                          ? graph.Add(inputs[1], graph.Mul(reset, linear))
                          : graph.Project(graph.Mul(reset, hidden), weights[1], inputs[1]);
  const ValueId candidate = graph.Activate(1, sum);
  return graph.Add(graph.Mul(graph.Sub(graph.Scalar(1), update), candidate),
                   graph.Mul(update, hidden));
}

}  // namespace

Graph MakeCell(const Cell& cell) {
  CellGraph graph(cell);
  std::vector<ValueId> before{graph.AddInput("hidden")};
  if (cell.kind == Cell::Kind::kLstm) before.push_back(graph.AddInput("memory"));
  const ValueId projected = graph.AddInput("projected");
  const ValueId position = cell.has_lengths ? graph.AddInput("position") : graph::kNoValue;
  std::vector<ValueId> weights{graph.AddInput("weights")};
  if (cell.kind == Cell::Kind::kGru && !cell.resets_linear) {
    weights.push_back(graph.AddInput("hidden_weights"));
  }
  const ValueId lengths = cell.has_lengths ? graph.AddInput("lengths") : graph::kNoValue;
  Peepholes peepholes;
  if (cell.has_peepholes) {
    peepholes.input = graph.AddInput("input_peephole");
    peepholes.output = graph.AddInput("output_peephole");
    peepholes.forget = graph.AddInput("forget_peephole");
  }
  const ValueId bias = cell.has_recurrent_bias ? graph.AddInput("bias") : graph::kNoValue;

  std::vector<ValueId> after;
  switch (cell.kind) {
    case Cell::Kind::kRnn:
      after = {graph.Activate(0, graph.Project(before[0], weights[0], projected))};
      break;
    case Cell::Kind::kGru:
      after = {GruState(graph, cell, before[0], projected, weights, bias)};
      break;
    case Cell::Kind::kLstm:
      after = LstmStates(graph, cell, before[0], before[1], projected, weights[0], peepholes);
      break;
  }
  ValueId element = after[0];
  if (cell.has_lengths) {
    // Past the end of a sequence its states stay, and its outputs are zeros.
    const ValueId is_inside = graph.Apply("Less", 13, {position, lengths});
    element = graph.Apply("Where", 16, {is_inside, element, graph.Scalar(0)});
    for (size_t k = 0; k < after.size(); ++k) {
      after[k] = graph.Apply("Where", 16, {is_inside, after[k], before[k]});
    }
  }
  for (ValueId state : after) graph.AddOutput(state);
  graph.AddOutput(element);
  return graph.Take();
}

}  // namespace onnxifi::ops
