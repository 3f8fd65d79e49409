// SPDX-License-Identifier: Apache-2.0
//
// Program: its text, for dumps between passes and for messages. One line per buffer and step,
// indented expressions below.

#include "backends/core/program/program.h"

#include <algorithm>
#include <string_view>

#include "backends/core/program/host_function.h"

namespace onnxifi::program {
namespace {

std::string_view KindName(const Buffer& buffer) {
  switch (buffer.kind) {
    case Buffer::Kind::kInput:
      return "input";
    case Buffer::Kind::kConstant:
      return "constant";
    case Buffer::Kind::kTemporary:
      return "temporary";
    case Buffer::Kind::kDynamic:
      return "dynamic";
    case Buffer::Kind::kDraws:
      return "draws";
  }
  return "buffer";
}

std::string ViewText(const View& view) {
  if (view.buffer == kNoBuffer) return "nothing";
  std::string text = "b" + std::to_string(view.buffer) + ":" +
                     std::string(tensor::Name(view.type)) + " @" + view.offset.ToString() +
                     " strides " + tensor::ToString(view.strides);
  for (const Guard& guard : view.guards) {
    text += " guard 0 <= " + guard.offset.ToString() + " + " +
            tensor::ToString(guard.coefficients) + ".c < " + guard.extent.ToString();
  }
  return text;
}

// Writes the expressions of a body, each under the name of what it is for.
class BodyText {
 public:
  BodyText(const Program& program, std::string& text) : program_(program), text_(text) {}

  void operator()(const Map& map) { Roots(map.roots); }
  void operator()(const Reduce& reduce) {
    text_ += "    axes " + std::to_string(reduce.axes) + "\n";
    ReductionText(reduce.reduction);
    Roots(reduce.roots);
  }
  void operator()(const Row& row) {
    text_ += "    axes " + std::to_string(row.axes) + "\n";
    for (const Row::Pass& pass : row.passes) {
      ReductionText(pass.reduction);
      for (ExprId result : pass.results) Line("result", result);
    }
    Roots(row.roots);
  }
  void operator()(const Scan& scan) {
    if (scan.exclusive) text_ += "    exclusive\n";
    ReductionText(scan.reduction);
    Roots(scan.roots);
  }
  void operator()(const Contract& contract) {
    text_ += "    inner " + tensor::ToString(contract.inner) + ", accumulator " +
             std::string(tensor::Name(contract.accumulator)) + "\n";
    if (contract.may_round_to_bytes) text_ += "    may round to bytes\n";
    if (contract.form != Contract::Form::kMatMul) {
      text_ +=
          contract.form == Contract::Form::kConv ? "    convolution of " : "    transposed of ";
      text_ += tensor::ToString(contract.a_spatial) + ", group " + std::to_string(contract.group);
      SlidingText(contract.strides, contract.dilations, contract.pads_begin);
    }
    Line("a", contract.a_prologue);
    Line("b", contract.b_prologue);
    Roots(contract.roots);
  }
  void operator()(const Window& window) {
    text_ += "    kernel " + tensor::ToString(window.kernel) + " over " +
             tensor::ToString(window.in_spatial);
    SlidingText(window.strides, window.dilations, window.pads_begin);
    Roots(window.roots);
  }
  void operator()(const Attention& attention) {
    text_ +=
        "    keys " + attention.keys.ToString() + ", width " + attention.width.ToString() + "\n";
    Line("query", attention.query_prologue);
    Line("key", attention.key_prologue);
    Line("value", attention.value_prologue);
    Line("score", attention.score);
    Roots(attention.roots);
  }
  void operator()(const Recurrent& recurrent) {
    constexpr std::string_view kKinds[] = {"RNN", "GRU", "LSTM"};
    text_ += "    " + std::string(kKinds[static_cast<size_t>(recurrent.kind)]) + " in " +
             std::string(tensor::Name(recurrent.type));
    if (recurrent.is_reverse) text_ += ", reverse";
    if (recurrent.couples_gates) text_ += ", input_forget";
    if (recurrent.resets_linear) text_ += ", linear_before_reset";
    if (recurrent.clip > 0) text_ += ", clip " + std::to_string(recurrent.clip);
    text_ += "\n";
    for (const Activation& activation : recurrent.activations) {
      text_ += "    activation " + std::string(Name(activation.function)) + " " +
               std::to_string(activation.alpha) + " " + std::to_string(activation.beta) + "\n";
    }
  }
  void operator()(const Index& index) {
    text_ += "    target " + tensor::ToString(index.target) + ", k " + index.k.ToString() + "\n";
  }
  void operator()(const Cut& cut) {
    text_ += "    binds " + std::to_string(cut.count) + " symbols from " +
             std::to_string(cut.first_symbol) + "\n";
  }
  void operator()(const Host& host) { text_ += "    " + std::string(Name(*host.function)) + "\n"; }
  void operator()(const Control& control) {
    for (const std::unique_ptr<Program>& body : control.bodies) {
      text_ += "    body {\n" + ToString(*body) + "    }\n";
    }
  }

 private:
  void SlidingText(const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations,
                   const Dims& pads_begin) {
    auto numbers = [](const std::vector<int64_t>& values) {
      return tensor::ToString(Shape(values.begin(), values.end()));
    };
    text_ += ", strides " + numbers(strides) + ", dilations " + numbers(dilations) + ", pads " +
             tensor::ToString(pads_begin) + "\n";
  }

  void Line(std::string_view what, ExprId root) {
    text_ += "    " + std::string(what) + " " + program::ToString(program_.exprs, root) + "\n";
  }
  void Roots(const ExprIds& roots) {
    for (ExprId root : roots) Line("root", root);
  }
  void ReductionText(const Reduction& reduction) {
    for (const Reduction::State& state : reduction.states) {
      Line("init", state.init);
      Line("update", state.update);
      Line("merge", state.merge);
    }
  }

  const Program& program_;
  std::string& text_;
};

}  // namespace

void DropConstants(Program& program) {
  for (tensor::Tensor& constant : program.constants) constant = {};
  for (Step& step : program.steps) {
    Control* control = step.As<Control>();
    if (control == nullptr) continue;
    for (std::unique_ptr<Program>& body : control->bodies) DropConstants(*body);
  }
}

void ShareDraws(Program& program, const std::shared_ptr<DrawCount>& draws) {
  program.draws = draws;
  for (Step& step : program.steps) {
    Control* control = step.As<Control>();
    if (control == nullptr) continue;
    for (std::unique_ptr<Program>& body : control->bodies) ShareDraws(*body, draws);
  }
}

BufferId FindDraws(const Program& program) {
  const auto found = std::ranges::find(program.buffers, Buffer::Kind::kDraws, &Buffer::kind);
  if (found == program.buffers.end()) return kNoBuffer;
  return static_cast<BufferId>(found - program.buffers.begin());
}

std::string ToString(const Program& program) {
  std::string text;
  for (const Port& port : program.inputs) {
    text += "input " + port.name + " b" + std::to_string(port.buffer) + " " +
            tensor::ToString(port.shape) + "\n";
  }
  for (size_t id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    text += "b" + std::to_string(id) + " " + std::string(KindName(buffer)) + " " +
            (buffer.value ? ToString(*buffer.value)
                          : std::string(tensor::Name(buffer.element_type())) + " " +
                                tensor::ToString(buffer.shape)) +
            "\n";
  }
  for (size_t k = 0; k < program.steps.size(); ++k) {
    const Step& step = program.steps[k];
    text += std::to_string(k) + " " + std::string(FamilyName(step)) + " over " +
            tensor::ToString(step.domain) + "\n";
    for (const View& view : step.reads) text += "    read " + ViewText(view) + "\n";
    for (const View& view : step.writes) text += "    write " + ViewText(view) + "\n";
    std::visit(BodyText(program, text), step.body);
  }
  for (const Port& port : program.outputs) {
    text += "output " + port.name + " b" + std::to_string(port.buffer) + " " +
            tensor::ToString(port.shape) + "\n";
  }
  return text;
}

}  // namespace onnxifi::program
