// SPDX-License-Identifier: Apache-2.0
//
// LSTM, GRU and RNN. Per direction the input projection of all time steps is one product, in front
// of a scan over time whose body is a cell.

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "backends/core/ops/contract/matmul.h"
#include "backends/core/ops/contract/product.h"
#include "backends/core/ops/control/bodies.h"
#include "backends/core/ops/recurrent/cell.h"
#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/concat.h"

namespace onnxifi::ops {
namespace {

// Inputs of all three, in ONNX's order; those from kInitialC on are LSTM's.
enum Input { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kP };

struct KnownFunction {
  std::string_view name;
  bool has_alpha, has_beta;
  float alpha, beta;
};
constexpr std::array kFunctions = {
    KnownFunction{"Affine", true, true, 1.0f, 0.0f},
    KnownFunction{"Elu", true, false, 1.0f, 0.0f},
    KnownFunction{"HardSigmoid", true, true, 0.2f, 0.5f},
    KnownFunction{"LeakyRelu", true, false, 0.01f, 0.0f},
    KnownFunction{"Relu", false, false, 0.0f, 0.0f},
    KnownFunction{"ScaledTanh", true, true, 1.0f, 1.0f},
    KnownFunction{"Sigmoid", false, false, 0.0f, 0.0f},
    KnownFunction{"Softplus", false, false, 0.0f, 0.0f},
    KnownFunction{"Softsign", false, false, 0.0f, 0.0f},
    KnownFunction{"Tanh", false, false, 0.0f, 0.0f},
    KnownFunction{"ThresholdedRelu", true, false, 1.0f, 0.0f},
};

// The activations of all directions. Each function that has a parameter takes the next of the
// attribute's numbers, while there are any.
Result<std::vector<Activation>> ReadActivations(const Lowering& lowering, Cell::Kind kind,
                                                int directions) {
  const auto* given = lowering.node().FindAttribute<std::vector<std::string>>("activations");
  std::vector<std::string> defaults{"Tanh"};
  if (kind == Cell::Kind::kGru) defaults = {"Sigmoid", "Tanh"};
  if (kind == Cell::Kind::kLstm) defaults = {"Sigmoid", "Tanh", "Tanh"};
  const size_t count = defaults.size() * static_cast<size_t>(directions);
  std::vector<std::string> names;
  if (given != nullptr && !given->empty()) {
    names = *given;
    // RNN's default names two functions whatever the direction is.
    const size_t most = kind == Cell::Kind::kRnn ? size_t{2} : count;
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
    const auto* known = std::find_if(kFunctions.begin(), kFunctions.end(),
                                     [&](const KnownFunction& f) { return f.name == name; });
    if (known == kFunctions.end()) {
      return lowering.UnsupportedAttribute("Attribute activations names '" + name +
                                           "', which is not a function of ONNX's list.");
    }
    Activation& activation = activations.emplace_back(Activation{name, known->alpha, known->beta});
    if (known->has_alpha && alphas != nullptr && next_alpha < alphas->size()) {
      activation.alpha = (*alphas)[next_alpha++];
    }
    if (known->has_beta && betas != nullptr && next_beta < betas->size()) {
      activation.beta = (*betas)[next_beta++];
    }
  }
  return activations;
}

// An operator of any direction, its inputs checked.
struct Recurrent {
  Cell cell;  // without activations
  int directions = 1;
  bool is_reverse = false;  // the first direction
  bool is_batchwise = false;
  std::vector<Activation> activations;
  Operand x;  // [T, B, I]
  Dim steps, batch;
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

Result<Recurrent> CheckNode(Lowering& lowering, Cell::Kind kind) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
  Recurrent node;
  Cell& cell = node.cell;
  cell.kind = kind;
  cell.type = lowering.In(kX).type();
  if (!tensor::IsFloat(cell.type)) return lowering.UnsupportedType(kX);
  for (int input : {kW, kR, kB, kInitialH, kInitialC, kP}) {
    if (lowering.Has(input) && lowering.In(input).type() != cell.type) {
      return lowering.UnsupportedType(input);
    }
  }
  const std::string direction = lowering.String("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return lowering.InvalidModel("Attribute direction is '" + direction +
                                 "', not forward, reverse or bidirectional.");
  }
  node.directions = direction == "bidirectional" ? 2 : 1;
  node.is_reverse = direction == "reverse";
  node.is_batchwise = lowering.Int("layout", 0) != 0;
  ONNXIFI_ASSIGN_OR_RETURN(node.activations, ReadActivations(lowering, kind, node.directions));
  cell.clip = lowering.Float("clip", 0.0f);
  cell.has_lengths = lowering.Has(kLengths);
  cell.has_peepholes = kind == Cell::Kind::kLstm && lowering.Has(kP);
  cell.couples_gates = lowering.Int("input_forget", 0) != 0;
  cell.resets_linear = lowering.Int("linear_before_reset", 0) != 0;
  cell.has_recurrent_bias = kind == Cell::Kind::kGru && cell.resets_linear && lowering.Has(kB);
  ONNXIFI_ASSIGN_OR_RETURN(cell.hidden_size, HiddenSize(lowering));
  if (cell.hidden_size < 1) {
    return lowering.InvalidModel("The hidden size is " + std::to_string(cell.hidden_size) +
                                 " and must be positive.");
  }

  node.x = lowering.In(kX);
  if (node.x.rank() != 3) {
    return lowering.InvalidModel("X has " + std::to_string(node.x.rank()) + " axes instead of 3.");
  }
  if (node.is_batchwise) node.x = program::Permute(node.x, {1, 0, 2});
  node.steps = node.x.shape[0];
  node.batch = node.x.shape[1];
  const Dim directions = node.directions;
  const Dim hidden = cell.hidden_size;
  const Dim gates = cell.hidden_size * cell.gate_count();
  ONNXIFI_RETURN_IF_ERROR(CheckShape(lowering, kW, "W", {directions, gates, node.x.shape[2]}));
  ONNXIFI_RETURN_IF_ERROR(CheckShape(lowering, kR, "R", {directions, gates, hidden}));
  if (lowering.Has(kB)) {
    ONNXIFI_RETURN_IF_ERROR(
        CheckShape(lowering, kB, "B", {directions, cell.hidden_size * cell.gate_count() * 2}));
  }
  if (cell.has_lengths) {
    if (lowering.In(kLengths).type() != ElementType::kInt32) {
      return lowering.UnsupportedType(kLengths);
    }
    ONNXIFI_RETURN_IF_ERROR(CheckShape(lowering, kLengths, "sequence_lens", {node.batch}));
  }
  for (int input : {kInitialH, kInitialC}) {
    if (!lowering.Has(input)) continue;
    const Shape shape = node.is_batchwise ? Shape{node.batch, directions, hidden}
                                          : Shape{directions, node.batch, hidden};
    ONNXIFI_RETURN_IF_ERROR(
        CheckShape(lowering, input, input == kInitialH ? "initial_h" : "initial_c", shape));
  }
  if (cell.has_peepholes) {
    ONNXIFI_RETURN_IF_ERROR(CheckShape(lowering, kP, "P", {directions, cell.hidden_size * 3}));
  }
  return node;
}

// Elements [first, first + count) of axis `axis`, in units of the hidden size.
Operand Gates(const Operand& operand, int axis, int64_t hidden, int64_t first, int64_t count) {
  return program::Slice(operand, axis, first * hidden, 1, count * hidden);
}

// Direction `direction` of an input whose axis `axis` is that of directions, under extents that are
// known to be its own.
Operand DirectionOf(const Operand& operand, int axis, int direction) {
  return program::RemoveAxis(program::Slice(operand, axis, direction, 1, 1), axis);
}

// X * W' + Wb + Rb of all time steps: [T, B, gates * H].
Result<Operand> ProjectInput(Lowering& lowering, const Recurrent& node, int direction) {
  const int64_t gates = node.cell.hidden_size * node.cell.gate_count();
  Operand weights = DirectionOf(lowering.In(kW), 0, direction);
  weights.shape[0] = gates;
  ONNXIFI_ASSIGN_OR_RETURN(const MatMulAxes axes,
                           MakeMatMulAxes(lowering, node.x, program::Permute(weights, {1, 0})));
  const ElementType type = node.cell.type;
  std::optional<Operand> bias;
  if (lowering.Has(kB)) {
    const Operand both = DirectionOf(lowering.In(kB), 0, direction);
    StepBuilder sum(lowering, {gates});
    const Expr input = sum.ReadArithmetic(program::Slice(both, 0, 0, 1, gates));
    Expr recurrent = sum.ReadArithmetic(program::Slice(both, 0, gates, 1, gates));
    if (node.cell.has_recurrent_bias) {
      // That of the hidden gate is added before the reset.
      const Expr gate = sum.Coordinate(0);
      recurrent = Select(gate < Like(gate, static_cast<double>(2 * node.cell.hidden_size)),
                         recurrent, Like(recurrent, 0));
    }
    bias = sum.WriteMap(input + recurrent, tensor::ArithmeticType(type));
  }
  StepBuilder step(lowering, axes.out);
  program::Contract contract = MatMulContract(axes);
  Expr value = SumOfProducts(step, {axes.a}, {axes.b}, tensor::ArithmeticType(type), contract);
  if (bias) value = value + step.Read(*bias);
  contract.roots = {Cast(value, type).id()};
  Operand out = lowering.Temporary(type, axes.out);
  step.Finish(std::move(contract), {out.view});
  return out;
}

Operand InitialState(Lowering& lowering, const Recurrent& node, int input, int direction) {
  const Shape shape{node.batch, node.cell.hidden_size};
  if (lowering.Has(input)) {
    Operand state = DirectionOf(lowering.In(input), node.is_batchwise ? 1 : 0, direction);
    state.shape = shape;
    return state;
  }
  StepBuilder zeros(lowering, shape);
  return zeros.WriteMap(program::Constant(zeros.exprs(), node.cell.type, 0), node.cell.type);
}

// What the body of one direction gets for all time steps, as MakeCell orders them.
std::vector<Operand> Invariants(Lowering& lowering, const Recurrent& node, int direction) {
  const Cell& cell = node.cell;
  const int64_t hidden = cell.hidden_size;
  const Operand weights = DirectionOf(lowering.In(kR), 0, direction);
  std::vector<Operand> invariants;
  if (cell.kind == Cell::Kind::kGru && !cell.resets_linear) {
    invariants.push_back(Gates(weights, 0, hidden, 0, 2));
    invariants.push_back(Gates(weights, 0, hidden, 2, 1));
  } else {
    invariants.push_back(Gates(weights, 0, hidden, 0, cell.gate_count()));
  }
  for (Operand& part : invariants) part.shape[1] = hidden;
  if (cell.has_lengths) {
    Operand lengths = lowering.In(kLengths);
    lengths.shape[0] = node.batch;
    invariants.push_back(program::InsertAxis(lengths, 1));
  }
  if (cell.has_peepholes) {
    const Operand peepholes = DirectionOf(lowering.In(kP), 0, direction);
    for (int gate = 0; gate < 3; ++gate) {
      invariants.push_back(Gates(peepholes, 0, hidden, gate, 1));
    }
  }
  if (cell.has_recurrent_bias) {
    const Operand bias = DirectionOf(lowering.In(kB), 0, direction);
    invariants.push_back(Gates(bias, 0, hidden, 5, 1));
  }
  return invariants;
}

BodyLowering::Input InputOf(const Operand& operand, size_t first_axis = 0) {
  return {operand.type(),
          {operand.shape.begin() + static_cast<ptrdiff_t>(first_axis), operand.shape.end()}};
}

// The final states [B, H], then the hidden state of each time step [T, B, H].
Result<std::vector<Operand>> LowerDirection(Lowering& lowering, const Recurrent& node,
                                            int direction) {
  Cell cell = node.cell;
  const size_t per_direction = node.activations.size() / static_cast<size_t>(node.directions);
  const auto first = node.activations.begin() +
                     static_cast<ptrdiff_t>(per_direction * static_cast<size_t>(direction));
  cell.activations.assign(first, first + static_cast<ptrdiff_t>(per_direction));

  std::vector<Operand> carried{InitialState(lowering, node, kInitialH, direction)};
  if (cell.kind == Cell::Kind::kLstm) {
    carried.push_back(InitialState(lowering, node, kInitialC, direction));
  }
  ONNXIFI_ASSIGN_OR_RETURN(Operand projected, ProjectInput(lowering, node, direction));
  std::vector<Operand> scanned{std::move(projected)};
  if (cell.has_lengths) {
    StepBuilder positions(lowering, {node.steps});
    scanned.push_back(positions.WriteMap(Cast(positions.Coordinate(0), ElementType::kInt32),
                                         ElementType::kInt32));
  }
  const std::vector<Operand> invariants = Invariants(lowering, node, direction);

  std::vector<BodyLowering::Input> inputs;
  for (const Operand& operand : carried) inputs.push_back(InputOf(operand));
  for (const Operand& operand : scanned) inputs.push_back(InputOf(operand, 1));
  for (const Operand& operand : invariants) inputs.push_back(InputOf(operand));
  const graph::Graph body = MakeCell(cell);
  ONNXIFI_ASSIGN_OR_RETURN(BodyLowering::Body lowered, lowering.bodies().LowerBody(body, inputs));
  // What all time steps read are formal inputs of the body, at the place of captured ones.
  lowered.captures = invariants;

  const bool is_reverse = node.is_reverse || direction == 1;
  ControlBuilder builder(lowering, program::Control::Kind::kScan);
  builder.control().carried = static_cast<int>(carried.size());
  for (const Operand& operand : carried) builder.AddRead(&operand);
  for (const Operand& operand : scanned) {
    builder.control().scanned.push_back({0, is_reverse});
    builder.AddRead(&operand);
  }
  builder.control().stacked.push_back({0, is_reverse});
  builder.AddBody(std::move(lowered));
  std::vector<Operand> results;
  for (const Operand& operand : carried) {
    results.push_back(builder.AddTensor(cell.type, operand.shape));
  }
  results.push_back(builder.AddTensor(cell.type, {node.steps, node.batch, cell.hidden_size}));
  builder.Emit();
  return results;
}

template <Cell::Kind kind>
Status LowerRecurrent(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Recurrent node, CheckNode(lowering, kind));
  std::vector<std::vector<Operand>> by_result;
  for (int direction = 0; direction < node.directions; ++direction) {
    ONNXIFI_ASSIGN_OR_RETURN(std::vector<Operand> results,
                             LowerDirection(lowering, node, direction));
    by_result.resize(results.size());
    for (size_t k = 0; k < results.size(); ++k) {
      // Directions are the axis before that of the batch.
      by_result[k].push_back(program::InsertAxis(results[k], results[k].rank() - 2));
    }
  }
  const auto set = [&](int output, size_t result) -> Status {
    if (!lowering.Wants(output)) return base::Ok();
    const int rank = by_result[result][0].rank();
    ONNXIFI_ASSIGN_OR_RETURN(Operand joined, Concatenate(lowering, by_result[result], rank - 3));
    if (node.is_batchwise) {
      joined = program::Permute(
          joined, rank == 4 ? std::vector<int>{2, 0, 1, 3} : std::vector<int>{1, 0, 2});
    }
    lowering.Set(output, std::move(joined));
    return base::Ok();
  };
  ONNXIFI_RETURN_IF_ERROR(set(0, by_result.size() - 1));
  ONNXIFI_RETURN_IF_ERROR(set(1, 0));
  if (kind == Cell::Kind::kLstm) ONNXIFI_RETURN_IF_ERROR(set(2, 1));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"GRU", 22, LowerRecurrent<Cell::Kind::kGru>},
    {"LSTM", 22, LowerRecurrent<Cell::Kind::kLstm>},
    {"RNN", 22, LowerRecurrent<Cell::Kind::kRnn>},
};

}  // namespace

std::span<const Operator> RecurrentOperators() { return kOperators; }

}  // namespace onnxifi::ops
