// SPDX-License-Identifier: Apache-2.0
//
// LSTM, GRU and RNN: the input projection of all time steps and directions is one product, in front
// of a step of the family Recurrent.

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "backends/core/ops/contract/matmul.h"
#include "backends/core/ops/contract/product.h"
#include "backends/core/ops/registry.h"
#include "backends/core/program/recurrent_extents.h"

namespace onnxifi::ops {
namespace {

using program::Activation;
using program::CellFunction;
using program::Recurrent;
using Kind = Recurrent::Kind;

// Inputs of all three, in ONNX's order; those from kInitialC on are LSTM's.
enum Input { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kP };

struct KnownFunction {
  CellFunction function;
  bool has_alpha, has_beta;
  float alpha, beta;
};
constexpr std::array kFunctions = {
    KnownFunction{CellFunction::kAffine, true, true, 1.0f, 0.0f},
    KnownFunction{CellFunction::kElu, true, false, 1.0f, 0.0f},
    KnownFunction{CellFunction::kHardSigmoid, true, true, 0.2f, 0.5f},
    KnownFunction{CellFunction::kLeakyRelu, true, false, 0.01f, 0.0f},
    KnownFunction{CellFunction::kRelu, false, false, 0.0f, 0.0f},
    KnownFunction{CellFunction::kScaledTanh, true, true, 1.0f, 1.0f},
    KnownFunction{CellFunction::kSigmoid, false, false, 0.0f, 0.0f},
    KnownFunction{CellFunction::kSoftplus, false, false, 0.0f, 0.0f},
    KnownFunction{CellFunction::kSoftsign, false, false, 0.0f, 0.0f},
    KnownFunction{CellFunction::kTanh, false, false, 0.0f, 0.0f},
    KnownFunction{CellFunction::kThresholdedRelu, true, false, 1.0f, 0.0f},
};

// The activations of all directions. Each function that has a parameter takes the next of the
// attribute's numbers, while there are any.
Result<std::vector<Activation>> ReadActivations(const Lowering& lowering, Kind kind,
                                                int directions) {
  const auto* given = lowering.node().FindAttribute<std::vector<std::string>>("activations");
  std::vector<std::string> defaults{"Tanh"};
  if (kind == Kind::kGru) defaults = {"Sigmoid", "Tanh"};
  if (kind == Kind::kLstm) defaults = {"Sigmoid", "Tanh", "Tanh"};
  const size_t count = defaults.size() * static_cast<size_t>(directions);
  std::vector<std::string> names;
  if (given != nullptr && !given->empty()) {
    names = *given;
    // RNN's default names two functions whatever the direction is.
    const size_t most = kind == Kind::kRnn ? size_t{2} : count;
    if (names.size() < count || names.size() > std::max(count, most)) {
      return lowering.InvalidModel("Attribute activations has " + std::to_string(names.size()) +
                                   " entries where " + std::to_string(count) + " are required.");
    }
    names.resize(count);
  } else {
    while (names.size() < count) names.insert(names.end(), defaults.begin(), defaults.end());
  }
  const std::vector<float>* alphas = lowering.Floats("activation_alpha");
  const std::vector<float>* betas = lowering.Floats("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  std::vector<Activation> activations;
  for (const std::string& name : names) {
    const auto* known =
        std::find_if(kFunctions.begin(), kFunctions.end(),
                     [&](const KnownFunction& f) { return Name(f.function) == name; });
    if (known == kFunctions.end()) {
      return lowering.UnsupportedAttribute("Attribute activations names '" + name +
                                           "', which is not a function of ONNX's list.");
    }
    Activation& activation =
        activations.emplace_back(Activation{known->function, known->alpha, known->beta});
    if (known->has_alpha && alphas != nullptr && next_alpha < alphas->size()) {
      activation.alpha = (*alphas)[next_alpha++];
    }
    if (known->has_beta && betas != nullptr && next_beta < betas->size()) {
      activation.beta = (*betas)[next_beta++];
    }
  }
  return activations;
}

// A node, its inputs checked.
struct Node {
  Recurrent recurrent;
  ElementType type;  // of the inputs
  int directions = 1;
  bool is_batchwise = false;
  bool has_peepholes = false;
  Operand x;  // [T, B, I]
  Dim steps, batch, hidden;

  Dim gates() const { return hidden * Dim(recurrent.gates()); }
  // Of initial states, as the node has them.
  Shape StateShape() const {
    return is_batchwise ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  }
};

// Refuses an input that has other axes than `shape`.
Status CheckShape(Lowering& lowering, int input, std::string_view name, const Shape& shape) {
  const Operand& operand = lowering.In(input);
  if (operand.rank() != static_cast<int>(shape.size())) {
    return lowering.InvalidModel(std::string(name) + " has " + std::to_string(operand.rank()) +
                                 " axes instead of " + std::to_string(shape.size()) + ".");
  }
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(
        operand.shape[axis], shape[axis],
        "Axis " + std::to_string(axis) + " of " + std::string(name) + " and what it goes with"));
  }
  return base::Ok();
}

Result<int64_t> HiddenSize(const Lowering& lowering) {
  if (lowering.HasAttribute("hidden_size")) return lowering.Int("hidden_size", 0);
  const Operand& weights = lowering.In(kR);
  if (weights.rank() == 3 && weights.shape[2].is_constant()) return weights.shape[2].constant();
  return lowering.UnsupportedShape(
      "The hidden size is neither an attribute nor a known extent of R.");
}

Result<Node> CheckNode(Lowering& lowering, Kind kind) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
  Node node;
  Recurrent& recurrent = node.recurrent;
  recurrent.kind = kind;
  node.type = lowering.In(kX).type();
  if (!tensor::IsFloat(node.type)) return lowering.UnsupportedType(kX);
  recurrent.type = tensor::ArithmeticType(node.type);
  for (int input : {kW, kR, kB, kInitialH, kInitialC, kP}) {
    if (lowering.Has(input) && lowering.In(input).type() != node.type) {
      return lowering.UnsupportedType(input);
    }
  }
  const std::string direction = lowering.String("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return lowering.InvalidModel("Attribute direction is '" + direction +
                                 "', not forward, reverse or bidirectional.");
  }
  node.directions = direction == "bidirectional" ? 2 : 1;
  recurrent.is_reverse = direction == "reverse";
  node.is_batchwise = lowering.Int("layout", 0) != 0;
  ONNXIFI_ASSIGN_OR_RETURN(recurrent.activations, ReadActivations(lowering, kind, node.directions));
  const float clip = lowering.Float("clip", 0.0f);
  recurrent.clip = clip > 0 ? clip : 0;
  node.has_peepholes = kind == Kind::kLstm && lowering.Has(kP);
  recurrent.couples_gates = kind == Kind::kLstm && lowering.Int("input_forget", 0) != 0;
  recurrent.resets_linear = kind == Kind::kGru && lowering.Int("linear_before_reset", 0) != 0;
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t hidden_size, HiddenSize(lowering));
  if (hidden_size < 1) {
    return lowering.InvalidModel("The hidden size is " + std::to_string(hidden_size) +
                                 " and must be positive.");
  }
  node.hidden = hidden_size;

  node.x = lowering.In(kX);
  if (node.x.rank() != 3) {
    return lowering.InvalidModel("X has " + std::to_string(node.x.rank()) + " axes instead of 3.");
  }
  if (node.is_batchwise) node.x = program::Permute(node.x, {1, 0, 2});
  node.steps = node.x.shape[0];
  node.batch = node.x.shape[1];
  const Dim directions = node.directions;
  const Dim gates = node.gates();
  ONNXIFI_RETURN_IF_ERROR(CheckShape(lowering, kW, "W", {directions, gates, node.x.shape[2]}));
  ONNXIFI_RETURN_IF_ERROR(CheckShape(lowering, kR, "R", {directions, gates, node.hidden}));
  if (lowering.Has(kB)) {
    ONNXIFI_RETURN_IF_ERROR(CheckShape(lowering, kB, "B", {directions, gates * Dim(2)}));
  }
  if (lowering.Has(kLengths)) {
    if (lowering.In(kLengths).type() != ElementType::kInt32) {
      return lowering.UnsupportedType(kLengths);
    }
    ONNXIFI_RETURN_IF_ERROR(CheckShape(lowering, kLengths, "sequence_lens", {node.batch}));
  }
  for (int input : {kInitialH, kInitialC}) {
    if (!lowering.Has(input)) continue;
    ONNXIFI_RETURN_IF_ERROR(CheckShape(
        lowering, input, input == kInitialH ? "initial_h" : "initial_c", node.StateShape()));
  }
  if (node.has_peepholes) {
    ONNXIFI_RETURN_IF_ERROR(CheckShape(lowering, kP, "P", {directions, node.hidden * Dim(3)}));
  }
  return node;
}

// X as rows of the input projection: its first two axes in the order in which they lie in memory.
bool IsBatchOutermost(const Operand& x) {
  const Dim& time = x.view.strides[0];
  const Dim& batch = x.view.strides[1];
  if (x.shape[0] == Dim(1) || x.shape[1] == Dim(1) || !time.is_constant()) return false;
  return !batch.is_constant() || time.constant() < batch.constant();
}

// The bias of the projected input, of all directions: Wb + Rb, [directions * gates * H].
Operand JoinBiases(Lowering& lowering, const Node& node) {
  const Recurrent& recurrent = node.recurrent;
  const Dim directions = node.directions;
  const Dim gates = node.gates();
  Operand both = lowering.In(kB);
  both.shape = {directions, gates * Dim(2)};
  StepBuilder sum(lowering, {directions, gates});
  const Expr input = Cast(sum.Read(program::Slice(both, 1, 0, 1, gates)), recurrent.type);
  Expr second = Cast(sum.Read(program::Slice(both, 1, gates, 1, gates)), recurrent.type);
  if (recurrent.resets_linear) {
    // That of the hidden gate is added before the reset.
    const Expr hidden_gate = sum.Extent(node.hidden * Dim(2));
    second = Select(sum.Coordinate(1) < hidden_gate, second, Like(second, 0));
  }
  return lowering.Reshaped(sum.WriteMap(input + second, recurrent.type), {directions * gates});
}

// X * W' + Wb + Rb of all time steps and directions: one product, as the step reads it.
Result<Operand> ProjectInput(Lowering& lowering, const Node& node) {
  const Recurrent& recurrent = node.recurrent;
  const Dim directions = node.directions;
  const Dim gates = node.gates();
  const bool is_batch_outermost = IsBatchOutermost(node.x);
  const Operand x = is_batch_outermost ? program::Permute(node.x, {1, 0, 2}) : node.x;
  Operand weights = lowering.In(kW);
  weights.shape = {directions, gates, x.shape[2]};
  weights = lowering.Reshaped(weights, {directions * gates, x.shape[2]});
  ONNXIFI_ASSIGN_OR_RETURN(const MatMulAxes axes,
                           MakeMatMulAxes(lowering, x, program::Permute(weights, {1, 0})));
  std::optional<Operand> bias;
  if (lowering.Has(kB)) bias = JoinBiases(lowering, node);
  StepBuilder step(lowering, axes.out);
  program::Contract contract = MatMulContract(axes);
  Expr value = SumOfProducts(step, {axes.a}, {axes.b}, recurrent.type, contract);
  if (bias) value = value + step.Read(*bias);
  contract.roots = {value.id()};
  const Operand out = lowering.Temporary(recurrent.type, axes.out);
  step.Finish(std::move(contract), {out.view});
  const Operand parts = lowering.Reshaped(out, {axes.out[0], axes.out[1], directions, gates});
  return program::Permute(
      parts, is_batch_outermost ? std::vector<int>{2, 1, 0, 3} : std::vector<int>{2, 0, 1, 3});
}

// The reads of the step, by position.
Result<std::vector<View>> Reads(Lowering& lowering, const Node& node, const program::Step& step) {
  const Recurrent& recurrent = node.recurrent;
  std::vector<View> reads(Recurrent::kReads);
  ONNXIFI_ASSIGN_OR_RETURN(const Operand projected, ProjectInput(lowering, node));
  reads[Recurrent::kProjected] = projected.view;
  // Of the input's own axes, whose extents are known to be these.
  const auto widened = [&](int input, const Shape& shape) {
    Operand operand = lowering.In(input);
    operand.shape = shape;
    return lowering.CastTo(operand, recurrent.type);
  };
  const auto shape_of = [&](int read) { return program::RecurrentReadShape(step, read); };
  reads[Recurrent::kWeights] = widened(kR, shape_of(Recurrent::kWeights)).view;
  const std::pair<int, Recurrent::Read> states[] = {{kInitialH, Recurrent::kHidden},
                                                    {kInitialC, Recurrent::kCell}};
  for (const auto& [input, read] : states) {
    if (!lowering.Has(input) || (read == Recurrent::kCell && recurrent.kind != Kind::kLstm)) {
      continue;
    }
    const Operand state = widened(input, node.StateShape());
    reads[read] = node.is_batchwise ? program::Permute(state, {1, 0, 2}).view : state.view;
  }
  if (lowering.Has(kLengths)) reads[Recurrent::kLengths] = lowering.In(kLengths).view;
  if (node.has_peepholes) {
    reads[Recurrent::kPeepholes] = widened(kP, shape_of(Recurrent::kPeepholes)).view;
  }
  if (recurrent.resets_linear && lowering.Has(kB)) {
    const Operand biases = widened(kB, {Dim(node.directions), node.hidden * Dim(6)});
    reads[Recurrent::kHiddenBias] =
        program::Slice(biases, 1, node.hidden * Dim(5), 1, node.hidden).view;
  }
  return reads;
}

template <Kind kind>
Status LowerRecurrent(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(Node node, CheckNode(lowering, kind));
  program::Step step;
  step.domain = {Dim(node.directions), node.steps, node.batch, node.hidden};
  step.body = node.recurrent;
  step.writes.resize(Recurrent::kWrites);
  ONNXIFI_ASSIGN_OR_RETURN(step.reads, Reads(lowering, node, step));
  // Where directions and batch stand in ONNX's orders.
  const std::vector<int> of_sequence =
      node.is_batchwise ? std::vector<int>{2, 1, 0, 3} : std::vector<int>{1, 0, 2, 3};
  const std::vector<int> of_state =
      node.is_batchwise ? std::vector<int>{1, 0, 2} : std::vector<int>{0, 1, 2};
  struct Output {
    int output;
    Recurrent::Write write;
    const std::vector<int>& axes;
  };
  const Output outputs[] = {{0, Recurrent::kSequence, of_sequence},
                            {1, Recurrent::kLastHidden, of_state},
                            {2, Recurrent::kLastCell, of_state}};
  std::vector<std::pair<int, Operand>> results;
  for (const Output& each : std::span(outputs).first(kind == Kind::kLstm ? 3 : 2)) {
    if (!lowering.Wants(each.output)) continue;
    const Shape shape = program::RecurrentWriteShape(step, each.write);
    Shape ordered;
    std::vector<int> back(each.axes.size());
    for (size_t k = 0; k < each.axes.size(); ++k) {
      const auto axis = static_cast<size_t>(each.axes[k]);
      ordered.push_back(shape[axis]);
      back[axis] = static_cast<int>(k);
    }
    results.emplace_back(each.output, lowering.Temporary(node.recurrent.type, ordered));
    step.writes[each.write] = program::Permute(results.back().second, back).view;
  }
  lowering.Emit(std::move(step));
  for (const auto& [output, result] : results) {
    lowering.Set(output, lowering.CastTo(result, node.type));
  }
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"GRU", 22, LowerRecurrent<Kind::kGru>},
    {"LSTM", 22, LowerRecurrent<Kind::kLstm>},
    {"RNN", 22, LowerRecurrent<Kind::kRnn>},
};

}  // namespace

std::span<const Operator> RecurrentOperators() { return kOperators; }

}  // namespace onnxifi::ops
