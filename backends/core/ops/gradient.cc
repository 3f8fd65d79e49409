// SPDX-License-Identifier: Apache-2.0
//
// Reverse mode: the nodes between are copied in order, and their derivatives follow in reverse
// order, each added to what is known of its inputs'.

#include "backends/core/ops/gradient.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/ops/captures.h"
#include "backends/core/ops/graph_builder.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::ops {
namespace {

using base::Code;
using base::Result;
using base::Status;
using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using graph::ValueIds;
using program::Operand;
using tensor::ElementType;
using Names = std::vector<std::string>;

Status Invalid(std::string sentence) {
  return Status(Code::kInvalidModel, "Gradient: " + std::move(sentence));
}

class Differentiation {
 public:
  Differentiation(const Graph& graph, const Node& node, const FindTensor& find)
      : graph_(graph), node_(node), find_(find), captures_(made_), builder_(made_, node) {}

  Result<std::unique_ptr<Graph>> Run() {
    ONNXIFI_RETURN_IF_ERROR(ReadNames());
    FindNodesBetween();
    for (const Node* between : between_) {
      ONNXIFI_RETURN_IF_ERROR(CheckNode(*between));
      Copy(*between);
    }
    ONNXIFI_ASSIGN_OR_RETURN(const Operand* y, TensorOf(y_));
    if (!tensor::IsFloat(y->type())) {
      return Status(Code::kUnsupportedDatatype,
                    "Gradient: The differentiated value is no tensor of floating-point numbers.");
    }
    type_ = y->type();
    derivatives_[y_] = Filled(Forward(y_), 1);
    for (auto between = between_.rbegin(); between != between_.rend(); ++between) {
      const auto known = derivatives_.find((*between)->outputs[0]);
      if (known == derivatives_.end()) continue;
      ONNXIFI_RETURN_IF_ERROR(Differentiate(**between, known->second));
    }
    for (size_t k = 0; k < node_.outputs.size(); ++k) {
      const auto known = derivatives_.find(inputs_[k]);
      made_.outputs.push_back(known != derivatives_.end() ? Apply("Identity", 16, {known->second})
                                                          : Filled(Forward(inputs_[k]), 0));
    }
    return std::make_unique<Graph>(std::move(made_));
  }

 private:
  Result<ValueId> Find(const std::string& name) const {
    for (size_t id = 0; id < graph_.values.size(); ++id) {
      if (graph_.values[id].name == name) return static_cast<ValueId>(id);
    }
    return Invalid("Value '" + name + "', which an attribute names, is not in its graph.");
  }

  Result<const Operand*> TensorOf(ValueId id) const {
    const Operand* operand = find_(id);
    if (operand != nullptr) return operand;
    return Invalid("Value '" + graph_.values[static_cast<size_t>(id)].name +
                   "' is no tensor that is computed before the node.");
  }

  // The named values become the made graph's inputs.
  Status ReadNames() {
    const Names* xs = node_.FindAttribute<Names>("xs");
    const Names* zs = node_.FindAttribute<Names>("zs");
    const std::string* y = node_.FindAttribute<std::string>("y");
    if (xs == nullptr || y == nullptr) return Invalid("An attribute xs or y is missing.");
    Names names = *xs;
    if (zs != nullptr) names.insert(names.end(), zs->begin(), zs->end());
    if (names.size() != node_.inputs.size() || xs->size() < node_.outputs.size()) {
      return Invalid("It has " + std::to_string(node_.inputs.size()) + " inputs and " +
                     std::to_string(node_.outputs.size()) + " outputs for " +
                     std::to_string(names.size()) + " named values, " + std::to_string(xs->size()) +
                     " of them in xs.");
    }
    for (size_t k = 0; k < names.size(); ++k) {
      ONNXIFI_ASSIGN_OR_RETURN(const ValueId id, Find(names[k]));
      ONNXIFI_RETURN_IF_ERROR(TensorOf(id).status());
      if (node_.inputs[k] == kNoValue) return Invalid("An input is missing.");
      if (forward_.contains(id)) return Invalid("Value '" + names[k] + "' is named twice.");
      inputs_.push_back(id);
      made_.inputs.push_back(AddNamed(made_, names[k]));
      forward_.emplace(id, made_.inputs.back());
    }
    ONNXIFI_ASSIGN_OR_RETURN(y_, Find(*y));
    return base::Ok();
  }

  // Those that depend on an input and that y depends on, in order.
  void FindNodesBetween() {
    const auto is_input = [&](ValueId id) { return forward_.contains(id); };
    std::vector<char> depends(graph_.values.size(), 0);
    for (ValueId id : inputs_) depends[static_cast<size_t>(id)] = 1;
    std::vector<const Node*> dependents;
    for (const Node& node : graph_.nodes) {
      if (&node == &node_) break;
      const bool is_dependent = std::ranges::any_of(node.inputs, [&](ValueId id) {
        return id != kNoValue && depends[static_cast<size_t>(id)] != 0;
      });
      if (!is_dependent) continue;
      bool has_own_output = false;
      for (ValueId id : node.outputs) {
        if (id == kNoValue || is_input(id)) continue;
        depends[static_cast<size_t>(id)] = 1;
        has_own_output = true;
      }
      if (has_own_output) dependents.push_back(&node);
    }
    std::vector<char> is_needed(graph_.values.size(), 0);
    is_needed[static_cast<size_t>(y_)] = 1;
    for (auto node = dependents.rbegin(); node != dependents.rend(); ++node) {
      const bool leads_to_y = std::ranges::any_of((*node)->outputs, [&](ValueId id) {
        return id != kNoValue && !is_input(id) && is_needed[static_cast<size_t>(id)] != 0;
      });
      if (!leads_to_y) continue;
      between_.insert(between_.begin(), *node);
      for (ValueId id : (*node)->inputs) {
        if (id != kNoValue) is_needed[static_cast<size_t>(id)] = 1;
      }
    }
  }

  Status CheckNode(const Node& node) const {
    // The first version that is differentiated. Broadcast by attributes went with version 6 of
    // arithmetic; softmaxes of matrices and a mask as output went with version 12.
    static const std::map<std::string, int, std::less<>> kFirstVersions = {
        {"Abs", 1},       {"Add", 7},         {"Cos", 7},        {"Div", 7},       {"Erf", 9},
        {"Exp", 1},       {"Flatten", 1},     {"Gemm", 7},       {"Identity", 1},  {"LeakyRelu", 1},
        {"Log", 1},       {"LogSoftmax", 13}, {"MatMul", 1},     {"Mul", 7},       {"Neg", 1},
        {"Pow", 7},       {"Reciprocal", 1},  {"ReduceMean", 1}, {"ReduceSum", 1}, {"Relu", 1},
        {"Reshape", 1},   {"Sigmoid", 1},     {"Sin", 7},        {"Softmax", 13},  {"Softplus", 1},
        {"Sqrt", 1},      {"Squeeze", 1},     {"Sub", 7},        {"Sum", 8},       {"Tanh", 1},
        {"Transpose", 1}, {"Unsqueeze", 1}};
    const auto found = kFirstVersions.find(node.op_type);
    if (!node.domain.empty() || found == kFirstVersions.end() ||
        node.since_version < found->second) {
      return Status(Code::kUnsupportedOperator,
                    "Gradient: The derivative of " + node.op_type + " of version " +
                        std::to_string(node.since_version) + " is not supported.");
    }
    for (ValueId id : node.inputs) {
      if (id != kNoValue) ONNXIFI_RETURN_IF_ERROR(TensorOf(id).status());
    }
    if (node.inputs.empty() || node.inputs[0] == kNoValue || node.outputs[0] == kNoValue) {
      return Invalid("The first input or output of " + node.op_type + " is missing.");
    }
    ONNXIFI_ASSIGN_OR_RETURN(const Operand* output, TensorOf(node.outputs[0]));
    if (tensor::IsFloat(output->type())) return base::Ok();
    return Status(Code::kUnsupportedDatatype,
                  "Gradient: The result of " + node.op_type + " between is of " +
                      std::string(Name(output->type())) + ", which has no derivative.");
  }

  // The value of the made graph that stands for one of the node's graph.
  ValueId Forward(ValueId id) {
    const auto found = forward_.find(id);
    if (found != forward_.end()) return found->second;
    return captures_.Of(id, graph_.values[static_cast<size_t>(id)].name);
  }

  void Copy(const Node& node) {
    Node copy = node;
    copy.index = node_.index;
    for (ValueId& id : copy.inputs) {
      if (id != kNoValue) id = Forward(id);
    }
    for (ValueId& id : copy.outputs) {
      if (id == kNoValue) continue;
      const ValueId made = AddNamed(made_, graph_.values[static_cast<size_t>(id)].name);
      forward_.emplace(id, made);
      id = made;
    }
    made_.nodes.push_back(std::move(copy));
  }

  ValueId Apply(std::string op_type, int version, ValueIds inputs) {
    return builder_.Apply(std::move(op_type), version, std::move(inputs));
  }
  void SetAttribute(std::string name, graph::Attribute value) {
    made_.nodes.back().attributes.insert_or_assign(std::move(name), std::move(value));
  }
  ValueId Add(ValueId a, ValueId b) { return Apply("Add", 14, {a, b}); }
  ValueId Sub(ValueId a, ValueId b) { return Apply("Sub", 14, {a, b}); }
  ValueId Mul(ValueId a, ValueId b) { return Apply("Mul", 14, {a, b}); }
  ValueId Div(ValueId a, ValueId b) { return Apply("Div", 14, {a, b}); }
  ValueId Negated(ValueId a) { return Apply("Neg", 13, {a}); }

  // A number in each element of a tensor like `like`.
  ValueId Filled(ValueId like, double number) {
    tensor::Tensor value = *tensor::Tensor::Allocate(type_, {1});
    tensor::StoreScalar(
        type_, value.mutable_data(), 0,
        tensor::CastScalar(ElementType::kFloat64, type_, tensor::Scalar{.f = number}));
    const ValueId filled = Apply("ConstantOfShape", 9, {Apply("Shape", 1, {like})});
    SetAttribute("value", std::move(value));
    return filled;
  }

  ValueId SumOver(ValueId value, std::vector<int64_t> axes, bool keeps_axes) {
    const ValueId sum = Apply("ReduceSum", 11, {value});
    SetAttribute("axes", std::move(axes));
    SetAttribute("keepdims", int64_t{keeps_axes ? 1 : 0});
    return sum;
  }

  ValueId Transposed(ValueId value, int rank) {
    std::vector<int64_t> order;
    for (int axis = 0; axis < rank; ++axis) order.push_back(axis);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    const ValueId turned = Apply("Transpose", 13, {value});
    SetAttribute("perm", std::move(order));
    return turned;
  }

  // Adds `derivative`, of the shape of `output` but for its last `but` axes, to what is known of
  // `input`'s; over axes along which the input was broadcast it is summed up.
  void Contribute(ValueId input, ValueId output, ValueId derivative, int but = 0) {
    const tensor::Shape& from = find_(input)->shape;
    const tensor::Shape& to = find_(output)->shape;
    const size_t more = to.size() - from.size();
    std::vector<int64_t> stretched, open;
    for (size_t axis = 0; axis + static_cast<size_t>(but) < from.size(); ++axis) {
      const tensor::Dim& own = from[axis];
      if (own == to[more + axis]) continue;
      std::vector<int64_t>& axes = own.is_constant() && own.constant() == 1 ? stretched : open;
      axes.push_back(static_cast<int64_t>(more + axis));
    }
    if (!stretched.empty()) derivative = SumOver(derivative, stretched, /*keeps_axes=*/true);
    for (const int64_t axis : open) {
      derivative =
          SummedWhereStretched(derivative, axis, Forward(input), axis - static_cast<int64_t>(more));
    }
    if (more > 0) {
      std::vector<int64_t> leading;
      for (size_t axis = 0; axis < more; ++axis) leading.push_back(static_cast<int64_t>(axis));
      derivative = SumOver(derivative, leading, /*keeps_axes=*/false);
    }
    if (!open.empty()) derivative = ShapedLike(derivative, Forward(input));
    AddTo(input, derivative);
  }

  // `derivative` along an axis of which only a run tells whether it is axis `own_axis` of `x` or
  // was broadcast from an extent of 1: the sum over it, cut to one element, where that is so.
  ValueId SummedWhereStretched(ValueId derivative, int64_t axis, ValueId x, int64_t own_axis) {
    const ValueId extent = Apply("Shape", 15, {x});
    SetAttribute("start", own_axis);
    SetAttribute("end", own_axis + 1);
    const ValueId is_one = Apply("Equal", 13, {extent, Integer(1)});
    const ValueId sum = SumOver(derivative, {axis}, /*keeps_axes=*/true);
    const ValueId either = Apply("Where", 16, {is_one, sum, derivative});
    return Apply("Slice", 13, {either, Integer(0), extent, Integer(axis)});
  }

  // int64 [1]
  ValueId Integer(int64_t number) { return builder_.AddIntegers({number}); }

  // Adds `derivative`, of the shape of `input`, to what is known of it.
  void AddTo(ValueId input, ValueId derivative) {
    const auto [known, is_new] = derivatives_.try_emplace(input, derivative);
    if (!is_new) known->second = Add(known->second, derivative);
  }

  ValueId ShapedLike(ValueId value, ValueId like) {
    const ValueId shaped = Apply("Reshape", 14, {value, Apply("Shape", 1, {like})});
    SetAttribute("allowzero", int64_t{1});
    return shaped;
  }
  // `g` for every element of `x` that the reduction `node` took into one of its result.
  ValueId Spread(const Node& node, ValueId g, ValueId x) {
    ValueIds inputs = node.inputs;
    for (ValueId& id : inputs) {
      if (id != kNoValue) id = Forward(id);
    }
    // Of the reduction that keeps all axes the shape alone is read.
    const ValueId kept = Apply(node.op_type, node.since_version, std::move(inputs));
    made_.nodes.back().attributes = node.attributes;
    SetAttribute("keepdims", int64_t{1});
    return Apply("Expand", 13, {ShapedLike(g, kept), Apply("Shape", 1, {x})});
  }
  // The sum along the axis of a softmax.
  ValueId SumOfRow(const Node& node, ValueId value) {
    return SumOver(value, {IntOf(node, "axis", -1)}, /*keeps_axes=*/true);
  }

  static int64_t IntOf(const Node& node, std::string_view name, int64_t fallback) {
    const int64_t* value = node.FindAttribute<int64_t>(name);
    return value != nullptr ? *value : fallback;
  }
  static float FloatOf(const Node& node, std::string_view name, float fallback) {
    const float* value = node.FindAttribute<float>(name);
    return value != nullptr ? *value : fallback;
  }

  Status DifferentiateMatMul(const Node& node, ValueId g) {
    const ValueId a = node.inputs[0];
    const ValueId b = node.inputs[1];
    const int ranks[] = {find_(a)->rank(), find_(b)->rank()};
    if (ranks[0] < 2 || ranks[1] < 2) {
      return Status(Code::kUnsupportedShape,
                    "Gradient: The derivative of MatMul with a vector is not supported.");
    }
    const ValueId of_a = Apply("MatMul", 13, {g, Transposed(Forward(b), ranks[1])});
    Contribute(a, node.outputs[0], of_a, /*but=*/2);
    const ValueId of_b = Apply("MatMul", 13, {Transposed(Forward(a), ranks[0]), g});
    Contribute(b, node.outputs[0], of_b, /*but=*/2);
    return base::Ok();
  }

  // alpha * A' B' + beta * C, where A' and B' may be A and B transposed.
  void DifferentiateGemm(const Node& node, ValueId g) {
    const float alpha = FloatOf(node, "alpha", 1);
    const bool turns_a = IntOf(node, "transA", 0) != 0;
    const bool turns_b = IntOf(node, "transB", 0) != 0;
    const ValueId a = Forward(node.inputs[0]);
    const ValueId b = Forward(node.inputs[1]);
    const auto product = [&](ValueId left, bool turns_left, ValueId right, bool turns_right) {
      const ValueId made = Apply("Gemm", 13, {left, right});
      SetAttribute("alpha", alpha);
      SetAttribute("transA", int64_t{turns_left ? 1 : 0});
      SetAttribute("transB", int64_t{turns_right ? 1 : 0});
      return made;
    };
    AddTo(node.inputs[0], turns_a ? product(b, turns_b, g, true) : product(g, false, b, !turns_b));
    AddTo(node.inputs[1], turns_b ? product(g, true, a, turns_a) : product(a, !turns_a, g, false));
    if (node.inputs.size() < 3 || node.inputs[2] == kNoValue) return;
    Contribute(node.inputs[2], node.outputs[0], Mul(g, Filled(g, FloatOf(node, "beta", 1))));
  }

  // x to the power of an exponent, which may be of another type.
  void DifferentiatePow(const Node& node, ValueId g) {
    const ValueId output = node.outputs[0];
    const ValueId x = Forward(node.inputs[0]);
    const ValueId exponent = builder_.CastTo(Forward(node.inputs[1]), type_);
    const ValueId slope = Mul(exponent, Apply("Pow", 15, {x, Sub(exponent, Filled(exponent, 1))}));
    // A constant is flat at 0, too.
    const ValueId is_constant = Apply("Equal", 13, {exponent, Filled(exponent, 0)});
    Contribute(node.inputs[0], output,
               Mul(g, Apply("Where", 16, {is_constant, Filled(exponent, 0), slope})));
    if (!tensor::IsFloat(find_(node.inputs[1])->type())) return;
    Contribute(node.inputs[1], output, Mul(g, Mul(Forward(output), Apply("Log", 13, {x}))));
  }

  // Operators that give elements other places; null where `op` is none.
  std::optional<ValueId> Returned(const Node& node, ValueId g, ValueId x) {
    const std::string& op = node.op_type;
    if (op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze") {
      return ShapedLike(g, x);
    }
    if (op == "ReduceSum") return Spread(node, g, x);
    if (op == "ReduceMean") {
      const ValueId counts[] = {Apply("Size", 13, {x}), Apply("Size", 13, {g})};
      return Div(Spread(node, g, x),
                 builder_.CastTo(Apply("Div", 14, {counts[0], counts[1]}), type_));
    }
    if (op == "Transpose") {
      const int rank = find_(node.inputs[0])->rank();
      std::vector<int64_t> back(static_cast<size_t>(rank));
      const auto* order = node.FindAttribute<std::vector<int64_t>>("perm");
      for (int axis = 0; axis < rank; ++axis) {
        const int64_t from =
            order != nullptr ? (*order)[static_cast<size_t>(axis)] : rank - 1 - axis;
        back[static_cast<size_t>(from < 0 ? from + rank : from)] = axis;
      }
      const ValueId turned = Apply("Transpose", 13, {g});
      SetAttribute("perm", std::move(back));
      return turned;
    }
    return std::nullopt;
  }

  Status Differentiate(const Node& node, ValueId g) {
    const std::string& op = node.op_type;
    const ValueId output = node.outputs[0];
    const ValueId y = Forward(output);
    const ValueId x = Forward(node.inputs[0]);
    if (op == "MatMul") return DifferentiateMatMul(node, g);
    if (op == "Gemm") {
      DifferentiateGemm(node, g);
    } else if (op == "Pow") {
      DifferentiatePow(node, g);
    } else if (const std::optional<ValueId> returned = Returned(node, g, x)) {
      AddTo(node.inputs[0], *returned);
    } else if (op == "Sum") {
      for (ValueId input : node.inputs) Contribute(input, output, g);
    } else if (node.inputs.size() == 2) {
      const ValueId b = Forward(node.inputs[1]);
      const bool is_sum = op == "Add" || op == "Sub";
      const ValueId of_a = is_sum ? g : op == "Mul" ? Mul(g, b) : Div(g, b);
      Contribute(node.inputs[0], output, of_a);
      const ValueId of_b = op == "Add"   ? g
                           : op == "Sub" ? Negated(g)
                           : op == "Mul" ? Mul(g, x)
                                         : Negated(Div(Mul(g, y), b));
      Contribute(node.inputs[1], output, of_b);
    } else {
      Contribute(node.inputs[0], output, Slope(node, g, x, y));
    }
    return base::Ok();
  }

  // The derivative of a function of one element or of a row, times `g`.
  ValueId Slope(const Node& node, ValueId g, ValueId x, ValueId y) {
    const std::string& op = node.op_type;
    if (op == "Neg") return Negated(g);
    if (op == "Exp") return Mul(g, y);
    if (op == "Log") return Div(g, x);
    if (op == "Sqrt") return Div(g, Add(y, y));
    if (op == "Sin") return Mul(g, Apply("Cos", 22, {x}));
    if (op == "Cos") return Negated(Mul(g, Apply("Sin", 22, {x})));
    if (op == "Tanh") return Sub(g, Mul(g, Mul(y, y)));
    if (op == "Sigmoid") return Mul(g, Sub(y, Mul(y, y)));
    if (op == "Relu" || op == "LeakyRelu") {
      const ValueId zero = Filled(x, 0);
      const ValueId below = op == "Relu" ? zero : Mul(g, Filled(x, FloatOf(node, "alpha", 0.01F)));
      return Apply("Where", 16, {Apply("Greater", 13, {x, zero}), g, below});
    }
    if (op == "Abs") return Mul(g, Apply("Sign", 13, {x}));
    if (op == "Reciprocal") return Negated(Mul(g, Mul(y, y)));
    if (op == "Softplus") return Mul(g, Apply("Sigmoid", 13, {x}));
    if (op == "Erf") {
      const ValueId bell = Apply("Exp", 13, {Negated(Mul(x, x))});
      return Mul(g, Mul(bell, Filled(x, 2 / std::sqrt(std::numbers::pi))));
    }
    if (op == "Softmax") return Mul(y, Sub(g, SumOfRow(node, Mul(g, y))));
    if (op == "LogSoftmax") {
      return Sub(g, Mul(Apply("Exp", 13, {y}), SumOfRow(node, g)));
    }
    return g;  // Identity
  }

  const Graph& graph_;
  const Node& node_;
  const FindTensor& find_;
  Graph made_;
  Captures captures_;
  GraphBuilder builder_;
  std::vector<ValueId> inputs_;  // of the node's graph: xs, then zs
  ValueId y_ = kNoValue;         // likewise
  std::vector<const Node*> between_;
  std::map<ValueId, ValueId> forward_;      // from the node's graph to the made one
  std::map<ValueId, ValueId> derivatives_;  // likewise
  ElementType type_ = ElementType::kUndefined;
};

}  // namespace

Result<std::unique_ptr<Graph>> ExpandGradient(const Graph& graph, const Node& node,
                                              const FindTensor& find) {
  return Differentiation(graph, node, find).Run();
}

}  // namespace onnxifi::ops
