// SPDX-License-Identifier: Apache-2.0
//
// ExpandRecurrent: a Recurrent becomes a scan over time per direction: a Control whose body has a
// product of the hidden state and the weights, and a Map with all that a cell does to an element.
// Where one product waits for another, the body has two of each.

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/program/activation_expr.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/recurrent_extents.h"

namespace onnxifi::program {
namespace {

using Kind = Recurrent::Kind;

constexpr ElementType kPositionType = ElementType::kInt32;

Operand AddTemporary(Program& program, ElementType type, const Shape& shape) {
  const BufferId buffer = program.AddBuffer({Buffer::Kind::kTemporary, type, shape});
  return {DenseView(buffer, type, shape), shape};
}

// A Map while its expressions are written.
class MapMaker {
 public:
  MapMaker(Program& program, Shape domain, int node) : program_(program) {
    step_.domain = std::move(domain);
    step_.node = node;
  }
  // The element of an operand that is broadcast to the domain.
  Expr Read(const Operand& operand) {
    step_.reads.push_back(BroadcastTo(operand, step_.domain));
    return Load(program_.exprs, operand.type(), static_cast<int>(step_.reads.size()) - 1);
  }
  void Write(const Operand& target, Expr value) {
    step_.writes.push_back(target.view);
    roots_.push_back(value.id());
  }
  Operand Write(Expr value) {
    Operand target = AddTemporary(program_, value.type(), step_.domain);
    Write(target, value);
    return target;
  }
  Step Take() {
    step_.body = Map{std::move(roots_)};
    return std::move(step_);
  }

 private:
  Program& program_;
  Step step_;
  ExprIds roots_;
};

// The body of the scan of one direction. Inputs are the states, then what belongs to the time step
// (projected inputs and, with lengths, its position), then weights, lengths, peepholes and bias;
// outputs are the states, then the element of the sequence if that is written.
class BodyMaker {
 public:
  BodyMaker(const Step& step, int direction)
      : step_(step),
        recurrent_(*step.As<Recurrent>()),
        activations_(recurrent_.activations.data() + direction * recurrent_.functions()),
        hidden_size_(step.domain[3]) {}

  std::unique_ptr<Program> Make() {
    batch_ = step_.domain[2];
    if (!batch_.is_constant()) batch_ = body_->dims->NewSymbol("batch", /*is_data=*/false);
    AddInputs();
    switch (recurrent_.kind) {
      case Kind::kRnn:
        MakeRnn();
        break;
      case Kind::kGru:
        MakeGru();
        break;
      case Kind::kLstm:
        MakeLstm();
        break;
    }
    return std::move(body_);
  }

 private:
  bool Has(Recurrent::Read read) const { return step_.reads[read].buffer != kNoBuffer; }

  Operand AddInput(const std::string& name, ElementType type, const Shape& shape) {
    const auto index = static_cast<int>(body_->inputs.size());
    const BufferId buffer = body_->AddBuffer({Buffer::Kind::kInput, type, shape, index});
    body_->inputs.push_back({name, buffer, shape});
    return {DenseView(buffer, type, shape), shape};
  }

  void AddInputs() {
    const ElementType type = recurrent_.type;
    const Dim gates = hidden_size_ * Dim(recurrent_.gates());
    const Shape state = {batch_, hidden_size_};
    hidden_ = AddInput("hidden", type, state);
    if (recurrent_.kind == Kind::kLstm) cell_ = AddInput("cell", type, state);
    projected_ = AddInput("projected", type, {batch_, gates});
    if (Has(Recurrent::kLengths)) position_ = AddInput("position", kPositionType, {});
    weights_ = AddInput("weights", type, {gates, hidden_size_});
    if (Has(Recurrent::kLengths)) {
      lengths_ = InsertAxis(AddInput("lengths", kPositionType, {batch_}), 1);
    }
    if (Has(Recurrent::kPeepholes)) {
      peepholes_ = AddInput("peepholes", type, {hidden_size_ * Dim(3)});
    }
    if (Has(Recurrent::kHiddenBias)) bias_ = AddInput("bias", type, {hidden_size_});
  }

  // Elements of gate `gate` along the last axis.
  Operand Gate(const Operand& operand, int gate) const {
    return Slice(operand, operand.rank() - 1, hidden_size_ * Dim(gate), 1, hidden_size_);
  }

  // state . weights of `gates` gates from `first` on: [batch, gates * H].
  Operand Multiply(const Operand& state, int first, int gates) {
    const Dim columns = hidden_size_ * Dim(gates);
    const Operand part = Permute(Slice(weights_, 0, hidden_size_ * Dim(first), 1, columns), {1, 0});
    const Operand product = AddTemporary(*body_, recurrent_.type, {batch_, columns});
    Contract contract;
    contract.m_axes = 1;
    contract.n_axes = 1;
    contract.inner = {hidden_size_};
    contract.accumulator = recurrent_.type;
    contract.a_prologue = Load(body_->exprs, recurrent_.type, 0).id();
    contract.b_prologue = Load(body_->exprs, recurrent_.type, 1).id();
    contract.roots = {Accumulator(body_->exprs, recurrent_.type).id()};
    Add({product.shape, {state.view, part.view}, {product.view}, std::move(contract), step_.node});
    return product;
  }

  void Add(Step step) { body_->steps.push_back(std::move(step)); }

  MapMaker StartMap() { return {*body_, {batch_, hidden_size_}, step_.node}; }

  Expr Activate(int function, Expr x) const {
    return ActivationExpr(activations_[function], recurrent_.clip, x);
  }

  // Ends the last Map: states as the next time step gets them, and the element of the sequence.
  void Finish(MapMaker map, Expr hidden, std::optional<Expr> cell = std::nullopt) {
    Expr element = hidden;
    if (lengths_) {
      const Expr is_inside = map.Read(*position_) < map.Read(*lengths_);
      element = Select(is_inside, hidden, Like(hidden, 0));
      hidden = Select(is_inside, hidden, map.Read(hidden_));
      if (cell) cell = Select(is_inside, *cell, map.Read(cell_));
    }
    AddOutput("hidden", map.Write(hidden));
    if (cell) AddOutput("cell", map.Write(*cell));
    if (step_.writes[Recurrent::kSequence].buffer != kNoBuffer) {
      AddOutput("element", map.Write(element));
    }
    Add(map.Take());
  }

  void AddOutput(const std::string& name, const Operand& operand) {
    body_->outputs.push_back({name, operand.view.buffer, operand.shape});
  }

  void MakeRnn() {
    const Operand product = Multiply(hidden_, 0, 1);
    MapMaker map = StartMap();
    const Expr sum = map.Read(projected_) + map.Read(product);
    Finish(std::move(map), Activate(0, sum));
  }

  void MakeGru() {
    const bool is_linear = recurrent_.resets_linear;
    const Operand product = Multiply(hidden_, 0, is_linear ? 3 : 2);
    const auto gate = [&](MapMaker& map, int number) {
      return Activate(0, map.Read(Gate(projected_, number)) + map.Read(Gate(product, number)));
    };
    Operand inner;  // what the hidden gate gets of the state
    if (!is_linear) {
      MapMaker reset = StartMap();
      const Expr scaled = gate(reset, 1) * reset.Read(hidden_);
      const Operand state = reset.Write(scaled);
      Add(reset.Take());
      inner = Multiply(state, 2, 1);
    }
    MapMaker map = StartMap();
    Expr recurrent;
    if (is_linear) {
      recurrent = map.Read(Gate(product, 2));
      if (bias_) recurrent = recurrent + map.Read(*bias_);
      recurrent = gate(map, 1) * recurrent;
    } else {
      recurrent = map.Read(inner);
    }
    const Expr update = gate(map, 0);
    const Expr candidate = Activate(1, map.Read(Gate(projected_, 2)) + recurrent);
    const Expr next = (Like(update, 1) - update) * candidate + update * map.Read(hidden_);
    Finish(std::move(map), next);
  }

  void MakeLstm() {
    const Operand product = Multiply(hidden_, 0, 4);
    MapMaker map = StartMap();
    const Expr before = map.Read(cell_);
    // `peephole`: its place, or -1.
    const auto gate = [&](int function, int number, int peephole, Expr cell) {
      Expr sum = map.Read(Gate(projected_, number)) + map.Read(Gate(product, number));
      if (peepholes_ && peephole >= 0) sum = sum + map.Read(Gate(*peepholes_, peephole)) * cell;
      return Activate(function, sum);
    };
    const Expr input = gate(0, 0, 0, before);
    const Expr forget = recurrent_.couples_gates ? Like(input, 1) - input : gate(0, 2, 2, before);
    const Expr next = forget * before + input * gate(1, 3, -1, before);
    const Expr output = gate(0, 1, 1, next);
    Finish(std::move(map), output * Activate(2, next), next);
  }

  const Step& step_;
  const Recurrent& recurrent_;
  const Activation* const activations_;  // of the direction
  const Dim hidden_size_;
  std::unique_ptr<Program> body_ = std::make_unique<Program>();
  Dim batch_;
  Operand hidden_, cell_, projected_, weights_;
  std::optional<Operand> position_, lengths_, peepholes_, bias_;
};

class Expander {
 public:
  Expander(Program& program, std::vector<Step>& steps) : program_(program), steps_(steps) {}

  void Expand(const Step& step) {
    for (int direction = 0; direction < step.domain[0].constant(); ++direction) {
      ExpandDirection(step, direction);
    }
  }

 private:
  // What a direction sees of a read or write that has an axis of directions.
  static Operand PartOf(const View& view, const Shape& shape, int direction) {
    return RemoveAxis(Slice({view, shape}, 0, direction, 1, 1), 0);
  }

  void Copy(const Operand& from, const Operand& to, int node) {
    MapMaker map(program_, to.shape, node);
    map.Write(to, map.Read(from));
    steps_.push_back(map.Take());
  }

  // The operand itself if dense, else a dense copy.
  Operand Dense(const Operand& operand, int node) {
    if (IsDense(operand)) return operand;
    Operand copy = AddTemporary(program_, operand.type(), operand.shape);
    Copy(operand, copy, node);
    return copy;
  }

  void ExpandDirection(const Step& step, int direction) {
    const Recurrent& recurrent = *step.As<Recurrent>();
    const auto read = [&](int number) {
      return PartOf(step.reads[number], RecurrentReadShape(step, number), direction);
    };
    const auto has = [&](int number) { return step.reads[number].buffer != kNoBuffer; };
    Step scan;
    scan.node = step.node;
    Control control;
    control.kind = Control::Kind::kScan;
    const auto add = [&](const Operand& operand) {
      const Operand dense = Dense(operand, step.node);
      scan.reads.push_back(dense.view);
      control.read_shapes.push_back(dense.shape);
    };
    const bool is_lstm = recurrent.kind == Kind::kLstm;
    control.carried = is_lstm ? 2 : 1;
    const Shape state = {step.domain[2], step.domain[3]};
    for (int number = 0; number < control.carried; ++number) {
      const int initial = number == 0 ? Recurrent::kHidden : Recurrent::kCell;
      add(has(initial) ? read(initial) : Zeros(state, recurrent.type, step.node));
    }
    const bool goes_back = recurrent.GoesBack(direction);
    add(read(Recurrent::kProjected));
    control.scanned.push_back({0, goes_back});
    if (has(Recurrent::kLengths)) {
      add(Positions(step.domain[1], step.node));
      control.scanned.push_back({0, goes_back});
    }
    std::vector<int>& captures = control.captures.emplace_back();
    for (const int number : {Recurrent::kWeights, Recurrent::kLengths, Recurrent::kPeepholes,
                             Recurrent::kHiddenBias}) {
      if (!has(number)) continue;
      captures.push_back(static_cast<int>(scan.reads.size()));
      add(number == Recurrent::kLengths
              ? Operand{step.reads[number], RecurrentReadShape(step, number)}
              : read(number));
    }
    control.bodies.push_back(BodyMaker(step, direction).Make());
    control.bodies.back()->strings = program_.strings;
    control.bodies.back()->draws = program_.draws;

    std::vector<std::pair<int, Operand>> results;  // by write of the step
    for (const int number : {Recurrent::kLastHidden, Recurrent::kLastCell, Recurrent::kSequence}) {
      if (number == Recurrent::kLastCell && !is_lstm) continue;
      if (number == Recurrent::kSequence) {
        if (step.writes[number].buffer == kNoBuffer) continue;
        control.stacked.push_back({0, goes_back});
      }
      Shape shape = RecurrentWriteShape(step, number);
      shape.erase(shape.begin());
      results.emplace_back(number, Dynamic(recurrent.type, shape, control));
      scan.writes.push_back(results.back().second.view);
    }
    scan.body = std::move(control);
    steps_.push_back(std::move(scan));
    for (const auto& [number, result] : results) {
      if (step.writes[number].buffer == kNoBuffer) continue;
      Copy(result, PartOf(step.writes[number], RecurrentWriteShape(step, number), direction),
           step.node);
    }
  }

  Operand Zeros(const Shape& shape, ElementType type, int node) {
    MapMaker map(program_, shape, node);
    Operand zeros = map.Write(Constant(program_.exprs, type, 0));
    steps_.push_back(map.Take());
    return zeros;
  }

  Operand Positions(const Dim& length, int node) {
    MapMaker map(program_, {length}, node);
    Operand positions = map.Write(Cast(Coordinate(program_.exprs, 0), kPositionType));
    steps_.push_back(map.Take());
    return positions;
  }

  // An output that the scan allocates.
  Operand Dynamic(ElementType type, const Shape& shape, Control& control) {
    control.first_symbol.push_back(-1);
    const BufferId buffer = program_.AddBuffer({Buffer::Kind::kDynamic, type, shape});
    return {DenseView(buffer, type, shape), shape};
  }

  Program& program_;
  std::vector<Step>& steps_;
};

}  // namespace

void ExpandRecurrent(Program& program, const PrefersRecurrent& prefers, size_t first_step) {
  const auto stays = [&](const Step& step) {
    return step.As<Recurrent>() == nullptr || prefers(program, step);
  };
  // Steps before the first that goes stay where they are: a support check asks about each node.
  const auto begin = program.steps.begin() + static_cast<int64_t>(first_step);
  const auto first = std::find_if_not(begin, program.steps.end(), stays);
  if (first == program.steps.end()) return;
  std::vector<Step> rest(std::make_move_iterator(first),
                         std::make_move_iterator(program.steps.end()));
  program.steps.erase(first, program.steps.end());
  std::vector<Step> expanded;
  Expander expander(program, expanded);
  for (Step& step : rest) {
    if (stays(step)) {
      expanded.push_back(std::move(step));
    } else {
      expander.Expand(step);
    }
  }
  program.steps.insert(program.steps.end(), std::make_move_iterator(expanded.begin()),
                       std::make_move_iterator(expanded.end()));
}

}  // namespace onnxifi::program
