// SPDX-License-Identifier: Apache-2.0
//
// Pairwise coupling as a loop over rounds, and in each one over classes, of all rows side by side:
// each class in turn gets the share that is best, given the others. A row whose gradients are equal
// keeps its shares. The tolerance and the number of rounds are those of ONNX's reference.

#include "backends/core/ops/ml/pairwise_coupling.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/ops/captures.h"
#include "backends/core/ops/control/bodies.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/reduce/reduction_geometry.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::ops {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using graph::ValueIds;

// A body of a loop, written node by node.
class LoopBody {
 public:
  LoopBody(const Node& node, ElementType type) : node_(node), type_(type) {}

  Graph& graph() { return *graph_; }
  std::shared_ptr<Graph> Take() { return std::move(graph_); }

  ValueId AddInput(std::string name) {
    graph_->inputs.push_back(AddNamed(*graph_, std::move(name)));
    return graph_->inputs.back();
  }
  void AddOutput(ValueId value) { graph_->outputs.push_back(Apply("Identity", 16, {value})); }
  ValueId Apply(std::string op_type, int version, ValueIds inputs) {
    const ValueId result = AddNamed(*graph_, op_type + std::to_string(graph_->nodes.size()));
    graph_->nodes.push_back(
        MakeNode(node_, std::move(op_type), version, std::move(inputs), {result}));
    return result;
  }
  ValueId ApplyAlong(std::string op_type, int version, ValueIds inputs, int64_t axis) {
    const ValueId result = Apply(std::move(op_type), version, std::move(inputs));
    SetAttribute("axis", axis);
    return result;
  }
  // Without the axis, or with an extent of 1 in its place.
  ValueId Reduce(std::string op_type, ValueId value, int64_t axis, bool keeps_axis) {
    const ValueId result = Apply(std::move(op_type), 11, {value});
    SetAttribute("axes", std::vector<int64_t>{axis});
    SetAttribute("keepdims", int64_t{keeps_axis ? 1 : 0});
    return result;
  }
  ValueId CastTo(ValueId value, ElementType type) {
    const ValueId result = Apply("Cast", 13, {value});
    SetAttribute("to", static_cast<int64_t>(type));
    return result;
  }
  ValueId Add(ValueId a, ValueId b) { return Apply("Add", 14, {a, b}); }
  ValueId Sub(ValueId a, ValueId b) { return Apply("Sub", 14, {a, b}); }
  ValueId Mul(ValueId a, ValueId b) { return Apply("Mul", 14, {a, b}); }
  ValueId Div(ValueId a, ValueId b) { return Apply("Div", 14, {a, b}); }

  // Constants: a number of the type of the shares, and int64 numbers.
  ValueId Number(double number) {
    tensor::Tensor tensor = *tensor::Tensor::Allocate(type_, {});
    tensor::StoreScalar(
        type_, tensor.mutable_data(), 0,
        tensor::CastScalar(ElementType::kFloat64, type_, tensor::Scalar{.f = number}));
    return AddConstant(std::move(tensor));
  }
  ValueId Integers(tensor::Extents extents, const std::vector<int64_t>& numbers) {
    return AddConstant(
        tensor::Tensor::FromValues<int64_t>(ElementType::kInt64, std::move(extents), numbers));
  }
  void SetAttribute(std::string name, graph::Attribute value) {
    graph_->nodes.back().attributes.insert_or_assign(std::move(name), std::move(value));
  }

 private:
  ValueId AddConstant(tensor::Tensor tensor) {
    graph::Value value;
    value.name = "constant" + std::to_string(graph_->values.size());
    value.type.kind = graph::Type::Kind::kTensor;
    value.type.element = tensor.type();
    value.type.extents.emplace();
    for (const int64_t extent : tensor.extents()) {
      value.type.extents->push_back(graph::Extent{.number = extent});
    }
    value.constant = std::move(tensor);
    return graph_->AddValue(std::move(value));
  }

  const Node& node_;
  const ElementType type_;
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
};

// (class, condition, shares, gradients, value) -> the last four, after the class got its best
// share. `form` and `is_open`, of the graph around it: the quadratic form, and the rows that are
// not done.
std::shared_ptr<Graph> MakeTurn(const Node& node, ElementType type, int64_t classes, ValueId form,
                                ValueId is_open) {
  LoopBody body(node, type);
  const ValueId turn = body.AddInput("class");
  const ValueId condition = body.AddInput("condition");
  const ValueId shares = body.AddInput("shares");
  const ValueId gradients = body.AddInput("gradients");
  const ValueId value = body.AddInput("value");
  Captures captures(body.graph());
  const ValueId all = captures.Of(form, "form"), open = captures.Of(is_open, "is_open");

  std::vector<int64_t> numbers;
  for (int64_t k = 0; k < classes; ++k) numbers.push_back(k);
  const ValueId place = body.Apply("Reshape", 14, {turn, body.Integers({1}, {1})});
  const ValueId column = body.ApplyAlong("Gather", 13, {all, turn}, 2);
  const ValueId own = body.ApplyAlong("Gather", 13, {column, place}, 1);
  const ValueId gradient = body.ApplyAlong("Gather", 13, {gradients, place}, 1);
  const ValueId best = body.Div(body.Sub(value, gradient), own);
  const ValueId change = body.Apply("Where", 16, {open, best, body.Number(0)});
  const ValueId sum = body.Add(change, body.Number(1));
  const ValueId risen =
      body.Mul(change, body.Add(body.Mul(change, own), body.Mul(gradient, body.Number(2))));
  const ValueId is_turn = body.Apply("Equal", 13, {body.Integers({classes}, numbers), turn});
  body.AddOutput(condition);
  body.AddOutput(body.Div(body.Add(shares, body.Mul(change, body.CastTo(is_turn, type))), sum));
  body.AddOutput(body.Div(body.Add(gradients, body.Mul(change, column)), sum));
  body.AddOutput(body.Div(body.Add(value, risen), body.Mul(sum, sum)));
  return body.Take();
}

// (round, condition, shares, form) -> whether a row is not done, the shares after a turn of each
// class, the form.
std::shared_ptr<Graph> MakeRound(const Node& node, ElementType type, int64_t classes) {
  LoopBody body(node, type);
  body.AddInput("round");
  body.AddInput("condition");
  const ValueId shares = body.AddInput("shares");
  const ValueId form = body.AddInput("form");
  const ValueId row = body.Apply("Unsqueeze", 13, {shares, body.Integers({1}, {1})});
  const ValueId gradients = body.Reduce("ReduceSum", body.Mul(form, row), 2, /*keeps_axis=*/false);
  const ValueId value =
      body.Reduce("ReduceSum", body.Mul(shares, gradients), 1, /*keeps_axis=*/true);
  const ValueId off = body.Apply("Abs", 13, {body.Sub(gradients, value)});
  const ValueId largest = body.Reduce("ReduceMax", off, 1, /*keeps_axis=*/true);
  const double tolerance = 0.005 / static_cast<double>(classes);
  const ValueId is_done = body.Apply("Less", 13, {largest, body.Number(tolerance)});
  const ValueId is_open = body.Apply("Not", 1, {is_done});
  const ValueId open_count = body.Apply("ReduceSum", 11, {body.CastTo(is_open, type)});
  body.SetAttribute("keepdims", int64_t{0});

  ValueIds results;
  for (const char* name : {"next_shares", "next_gradients", "next_value"}) {
    results.push_back(AddNamed(body.graph(), name));
  }
  body.graph().nodes.push_back(
      MakeNode(node, "Loop", 16, {body.Integers({}, {classes}), kNoValue, shares, gradients, value},
               results));
  body.SetAttribute("body",
                    std::shared_ptr<const Graph>(MakeTurn(node, type, classes, form, is_open)));
  body.AddOutput(body.Apply("Greater", 13, {open_count, body.Number(0)}));
  body.AddOutput(results[0]);
  body.AddOutput(form);
  return body.Take();
}

// The quadratic form that is minimised, from `wins`: [N, classes, classes].
Operand MakeForm(Lowering& lowering, const Operand& wins) {
  const ReductionGeometry reduced = ReduceAxes(wins, std::vector<int>{2}, /*keepdims=*/false);
  StepBuilder sum(lowering, wins.shape);
  // How probable the others are against the class.
  const Expr loss =
      sum.ReadAtUnchecked(wins, {sum.Coordinate(0), sum.Coordinate(2), sum.Coordinate(1)});
  const Expr others = Select(sum.Coordinate(1) == sum.Coordinate(2), Like(loss, 0), loss);
  program::Reduction reduction;
  const Expr squares = AddSum(reduction, others * others);
  const Operand own =
      WriteReduction(lowering, sum, reduced, std::move(reduction), {{squares, wins.type()}})[0];
  StepBuilder map(lowering, wins.shape);
  const Expr win = map.Read(wins);
  const Expr other =
      map.ReadAtUnchecked(wins, {map.Coordinate(0), map.Coordinate(2), map.Coordinate(1)});
  const Expr diagonal = map.Read(program::InsertAxis(own, 2));
  const Expr form =
      Select(map.Coordinate(1) == map.Coordinate(2), diagonal, Like(win, 0) - other * win);
  return map.WriteMap(form, wins.type());
}

Operand Filled(Lowering& lowering, const Shape& shape, ElementType type, double number) {
  StepBuilder map(lowering, shape);
  return map.WriteMap(Constant(map.exprs(), type, number), type);
}

}  // namespace

Result<Operand> CouplePairs(Lowering& lowering, const Operand& wins, int64_t classes) {
  const ElementType type = wins.type();
  const Shape shape = {wins.shape[0], Dim(classes)};
  const Operand form = MakeForm(lowering, wins);
  const Operand shares = Filled(lowering, shape, type, 1.0 / static_cast<double>(classes));
  const std::shared_ptr<Graph> round = MakeRound(lowering.node(), type, classes);
  const auto of = [](const Operand& operand) {
    return BodyLowering::Input{operand.type(), {operand.shape.begin(), operand.shape.end()}};
  };
  std::vector<BodyLowering::Input> inputs = {
      {ElementType::kInt64, {}}, {ElementType::kBool, {}}, of(shares), of(form)};
  ONNXIFI_ASSIGN_OR_RETURN(BodyLowering::Body body,
                           LowerCarryingBody(lowering, *round, inputs, /*first_input=*/2,
                                             /*first_output=*/1, /*carried=*/2));
  const int64_t rounds = std::max<int64_t>(100, classes);
  const Operand count = lowering.ConstantTensor(
      tensor::Tensor::FromValues<int64_t>(ElementType::kInt64, {}, std::span(&rounds, 1)));
  ControlBuilder builder(lowering, program::Control::Kind::kLoop);
  builder.control().carried = 2;
  builder.AddRead(&count);
  builder.AddRead(nullptr);
  builder.AddRead(&shares);
  builder.AddRead(&form);
  builder.AddBody(std::move(body));
  const Operand result = builder.AddTensor(type, shape);
  builder.AddTensor(type, form.shape);
  builder.Emit();
  return result;
}

}  // namespace onnxifi::ops
