// SPDX-License-Identifier: Apache-2.0
//
// Recurrent: an item computes every hidden unit that is its own, all gates of it, from the states
// of the row in shared memory. Where a reset comes before a product, the group meets once more in
// a time step. What one launch leaves of the states is in working memory, for the next.

#include <array>
#include <string>
#include <vector>

#include "backends/core/codegen/family.h"
#include "backends/core/codegen/recurrent_kernels.h"
#include "backends/core/codegen/recurrent_numbers.h"
#include "backends/core/program/activation_expr.h"

namespace onnxifi::codegen {
namespace {

using program::Activation;
using program::Recurrent;
using Kind = Recurrent::Kind;

class RecurrentWriter {
 public:
  RecurrentWriter(Writer& writer, const Source& source)
      : writer_(writer),
        step_(source.step),
        recurrent_(*source.step.As<Recurrent>()),
        type_(LaneType(recurrent_.type)),
        hidden_(static_cast<int>(source.step.domain[3].constant())),
        directions_(static_cast<int>(source.step.domain[0].constant())) {
    if (recurrent_.type == tensor::ElementType::kFloat64) writer_.UseFloat64();
  }

  // [directions][gates * hidden][hidden] to [directions][hidden][gates * hidden].
  Launch TurnWeights() {
    const std::string turned = writer_.UseScratch(/*is_write=*/true, kTurnedWeights, type_);
    writer_.Open("if (ITEM < count)");
    const std::string item = writer_.Declare("idx", "AS(idx, ITEM)");
    const int rows = recurrent_.gates() * hidden_;
    const std::string row = writer_.Declare("idx", Text(item, " % ", rows));
    const std::string rest = writer_.Declare("idx", Text(item, " / ", rows));
    const std::string k = writer_.Declare("idx", Text(rest, " % ", hidden_));
    const std::string direction = writer_.Declare("idx", Text(rest, " / ", hidden_));
    const std::string weight = Load(Recurrent::kWeights, {direction, row, k});
    writer_.Line("STORE(", turned, ", ", item, ", ", weight, ");");
    writer_.Close();
    return {.given_items = kRecurrentItems, .group_size = kRecurrentGroupSize};
  }

  Launch Recur() {
    writer_.Share(Text(type_, " states[", 2 * hidden_, "]"));
    if (IsLstm()) writer_.Share(Text(type_, " cells[", hidden_, "]"));
    if (recurrent_.HasTwoProducts()) {
      writer_.Share(Text(type_, " updates[", hidden_, "]"));
      writer_.Share(Text(type_, " scaled[", hidden_, "]"));
    }
    weights_ = writer_.UseScratch(/*is_write=*/false, kTurnedWeights, type_);
    kept_hidden_ = writer_.UseScratch(/*is_write=*/true, kHiddenStates, type_);
    if (IsLstm()) kept_cell_ = writer_.UseScratch(/*is_write=*/true, kCellStates, type_);
    const std::string batch = writer_.UseGiven(kRecurrentBatch);
    const std::string time = writer_.UseGiven(kRecurrentTime);
    const std::string first = writer_.UseGiven(kFirstStep);
    const std::string end = writer_.UseGiven(kEndStep);
    // A group behind the last one does what the first does and stores nothing: all items of all
    // groups meet at every barrier.
    is_stored_ = writer_.Declare("bool", "GROUP < count");
    const std::string group =
        writer_.Declare("idx", Text(is_stored_, " ? AS(idx, GROUP) : AS(idx, 0)"));
    const Writer::Division division = writer_.DeclareDivision(group, batch);
    direction_ = division.quotient;
    row_ = division.rest;
    first_kept_ = writer_.Declare("idx", Text(group, " * ", hidden_));
    first_weight_ = writer_.Declare(
        "idx", Text(direction_, " * ", hidden_ * hidden_, " * ", recurrent_.gates()));
    std::string length = time;
    if (Has(Recurrent::kLengths)) {
      length = writer_.Declare("idx", Text("AS(idx, ", Load(Recurrent::kLengths, {row_}), ")"));
    }
    OpenUnits();
    LoadState("states[u]", Recurrent::kHidden, kept_hidden_, first);
    if (IsLstm()) LoadState("cells[u]", Recurrent::kCell, kept_cell_, first);
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Line("int from = 0;");
    writer_.Open("for (idx at = ", first, "; at < ", end, "; ++at)");
    std::string back = recurrent_.is_reverse ? "true" : "false";
    if (directions_ == 2 && !recurrent_.is_reverse) back = Text(direction_, " == 1");
    time_ = writer_.Declare("idx", Text(back, " ? ", time, " - 1 - at : at"));
    writer_.Line("const bool goes_on = ", time_, " < ", length, ";");
    writer_.Line("const int to = ", hidden_, " - from;");
    WriteTimeStep();
    writer_.Line("from = to;");
    writer_.Line("BARRIER;");
    writer_.Close();
    OpenUnits();
    KeepState("states[from + u]", Recurrent::kLastHidden, kept_hidden_, end, time);
    if (IsLstm()) KeepState("cells[u]", Recurrent::kLastCell, kept_cell_, end, time);
    writer_.Close();
    return {.given_items = kRecurrentItems,
            .has_group_per_item = true,
            .group_size = kRecurrentGroupSize};
  }

 private:
  bool IsLstm() const { return recurrent_.kind == Kind::kLstm; }
  bool Has(Recurrent::Read read) const {
    return step_.reads[static_cast<size_t>(read)].buffer != program::kNoBuffer;
  }
  bool Has(Recurrent::Write write) const {
    return step_.writes[static_cast<size_t>(write)].buffer != program::kNoBuffer;
  }

  std::string Load(Recurrent::Read read, const std::vector<std::string>& at) {
    const tensor::ElementType type = step_.reads[static_cast<size_t>(read)].type;
    return writer_.Declare(LaneType(type), WriteLoad(writer_, step_, read, at));
  }
  std::string Declare(const std::string& value) { return writer_.Declare(type_, value); }

  // The loop of an item over its hidden units.
  void OpenUnits() {
    writer_.Open("for (int u = LANE; u < ", hidden_, "; u += ", kRecurrentGroupSize, ")");
    unit_ = writer_.Declare("idx", "AS(idx, u)");
  }
  std::string UnitOf(int gate) {
    return writer_.Declare("idx", Text(unit_, " + ", gate * hidden_));
  }

  void LoadState(const std::string& place, Recurrent::Read read, const std::string& kept,
                 const std::string& first) {
    writer_.Open("if (", first, " > 0)");
    writer_.Line(place, " = LOAD(", kept, ", ", first_kept_, " + ", unit_, ");");
    writer_.Close();
    writer_.Open("else");
    writer_.Line(place, " = ", Has(read) ? Load(read, {direction_, row_, unit_}) : "0", ";");
    writer_.Close();
  }

  void KeepState(const std::string& state, Recurrent::Write write, const std::string& kept,
                 const std::string& end, const std::string& time) {
    const std::string value = Declare(state);
    writer_.Open("if (", is_stored_, ")");
    writer_.Line("STORE(", kept, ", ", first_kept_, " + ", unit_, ", ", value, ");");
    if (Has(write)) {
      writer_.Open("if (", end, " == ", time, ")");
      const std::vector<std::string> at = {direction_, row_, unit_};
      WriteStore(writer_, step_, write, at, value);
      writer_.Close();
    }
    writer_.Close();
  }

  // Declares the sums of `gates` gates from `first` on, of a unit: of the states at `states`.
  std::vector<std::string> Multiply(const std::string& states, int first, int gates) {
    std::vector<std::string> sums;
    for (int gate = 0; gate < gates; ++gate) {
      sums.push_back(writer_.NewName("s"));
      writer_.Line(type_, " ", sums.back(), " = 0;");
    }
    writer_.Open("for (int k = 0; k < ", hidden_, "; ++k)");
    const std::string state = Declare(Text(states, "k]"));
    const std::string row = writer_.Declare(
        "idx", Text(first_weight_, " + AS(idx, k) * ", recurrent_.gates() * hidden_, " + ", unit_));
    for (int gate = 0; gate < gates; ++gate) {
      const std::string weight =
          Text("LOAD(", weights_, ", ", row, " + ", (first + gate) * hidden_, ")");
      const std::string& sum = sums[static_cast<size_t>(gate)];
      if (recurrent_.type == tensor::ElementType::kFloat32) {
        writer_.Line(sum, " = M_fma(", state, ", ", weight, ", ", sum, ");");
      } else {
        writer_.Line(sum, " += ", state, " * ", weight, ";");
      }
    }
    writer_.Close();
    return sums;
  }

  std::string Projected(int gate) {
    return Load(Recurrent::kProjected, {direction_, time_, row_, UnitOf(gate)});
  }

  std::string Activate(int function, const std::string& x) {
    const std::string argument = Declare(x);
    const auto write = [&](int direction) {
      const Activation& activation =
          recurrent_
              .activations[static_cast<size_t>(direction * recurrent_.functions() + function)];
      Scope scope;
      scope.accumulator = argument;
      const program::ExprId root =
          ActivationExpr(activation, recurrent_.clip, Accumulator(local_.exprs, recurrent_.type))
              .id();
      return WriteExpressions(writer_, local_, step_, scope, {&root, 1})[0];
    };
    const auto first = static_cast<size_t>(function);
    const auto second = static_cast<size_t>(recurrent_.functions() + function);
    if (directions_ == 1 || recurrent_.activations[first] == recurrent_.activations[second]) {
      return write(0);
    }
    const std::string result = writer_.NewName("a");
    writer_.Line(type_, " ", result, ";");
    writer_.Open("if (", direction_, " == 0)");
    writer_.Line(result, " = ", write(0), ";");
    writer_.Close();
    writer_.Open("else");
    writer_.Line(result, " = ", write(1), ";");
    writer_.Close();
    return result;
  }

  std::string Gate(int function, int gate, const std::string& sum) {
    return Activate(function, Text(sum, " + ", Projected(gate)));
  }

  void WriteTimeStep() {
    if (recurrent_.HasTwoProducts()) WriteReset();
    OpenUnits();
    writer_.Line(type_, " next = states[from + u];");
    writer_.Line(type_, " element = 0;");
    writer_.Open("if (goes_on)");
    switch (recurrent_.kind) {
      case Kind::kRnn:
        writer_.Line("next = ", Gate(0, 0, Multiply("states[from + ", 0, 1)[0]), ";");
        break;
      case Kind::kGru:
        WriteGru();
        break;
      case Kind::kLstm:
        WriteLstm();
        break;
    }
    writer_.Line("element = next;");
    writer_.Close();
    writer_.Line("states[to + u] = next;");
    if (Has(Recurrent::kSequence)) {
      const std::vector<std::string> at = {direction_, time_, row_, unit_};
      writer_.Open("if (", is_stored_, ")");
      WriteStore(writer_, step_, Recurrent::kSequence, at, "element");
      writer_.Close();
    }
    writer_.Close();
  }

  void WriteReset() {
    writer_.Open("if (goes_on)");
    OpenUnits();
    const std::vector<std::string> sums = Multiply("states[from + ", 0, 2);
    writer_.Line("updates[u] = ", Gate(0, 0, sums[0]), ";");
    writer_.Line("scaled[u] = ", Gate(0, 1, sums[1]), " * states[from + u];");
    writer_.Close();
    writer_.Close();
    writer_.Line("BARRIER;");
  }

  void WriteGru() {
    std::string update, recurrent;
    if (recurrent_.HasTwoProducts()) {
      update = Declare("updates[u]");
      recurrent = Multiply("scaled[", 2, 1)[0];
    } else {
      const std::vector<std::string> sums = Multiply("states[from + ", 0, 3);
      update = Gate(0, 0, sums[0]);
      const std::string reset = Gate(0, 1, sums[1]);
      std::string inner = sums[2];
      if (Has(Recurrent::kHiddenBias)) {
        inner = Text("(", inner, " + ", Load(Recurrent::kHiddenBias, {direction_, unit_}), ")");
      }
      recurrent = Declare(Text(reset, " * ", inner));
    }
    const std::string candidate = Gate(1, 2, recurrent);
    writer_.Line("next = (1 - ", update, ") * ", candidate, " + ", update, " * next;");
  }

  void WriteLstm() {
    const std::vector<std::string> sums = Multiply("states[from + ", 0, 4);
    const auto gate = [&](int number, int peephole, const std::string& cell) {
      std::string sum = sums[static_cast<size_t>(number)];
      if (Has(Recurrent::kPeepholes)) {
        sum = Text(sum, " + ", Load(Recurrent::kPeepholes, {direction_, UnitOf(peephole)}), " * ",
                   cell);
      }
      return Gate(0, number, sum);
    };
    const std::string before = Declare("cells[u]");
    const std::string input = gate(0, 0, before);
    const std::string forget =
        recurrent_.couples_gates ? Declare(Text("1 - ", input)) : gate(2, 2, before);
    const std::string candidate = Gate(1, 3, sums[3]);
    const std::string cell = Declare(Text(forget, " * ", before, " + ", input, " * ", candidate));
    writer_.Line("cells[u] = ", cell, ";");
    const std::string output = gate(1, 1, cell);
    writer_.Line("next = ", output, " * ", Activate(2, cell), ";");
  }

  Writer& writer_;
  const program::Step& step_;
  const Recurrent& recurrent_;
  const std::string type_;
  const int hidden_, directions_;
  program::Program local_;  // expressions of the activations
  std::string weights_, kept_hidden_, kept_cell_;
  std::string is_stored_, direction_, row_, time_, unit_;
  std::string first_kept_, first_weight_;
};

}  // namespace

Launch WriteRecurrent(Writer& writer, const Source& source, int kernel) {
  RecurrentWriter text(writer, source);
  return kernel == kTurnWeights ? text.TurnWeights() : text.Recur();
}

}  // namespace onnxifi::codegen
