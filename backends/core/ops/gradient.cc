// SPDX-License-Identifier: Apache-2.0
//
// Reverse mode: the nodes between are copied in order, and their derivatives follow in reverse
// order, each added to what is known of its inputs'.

#include "backends/core/ops/gradient.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/ops/captures.h"
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
      : graph_(graph), node_(node), find_(find), captures_(made_) {}

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
    // Broadcast by attributes went with version 6 of arithmetic.
    static const std::map<std::string, int, std::less<>> kFirstVersions = {
        {"Add", 7},    {"Cos", 7},     {"Div", 7},  {"Exp", 1},  {"Identity", 1}, {"Log", 1},
        {"MatMul", 1}, {"Mul", 7},     {"Neg", 1},  {"Relu", 1}, {"Sin", 7},      {"Sqrt", 1},
        {"Sub", 7},    {"Sigmoid", 1}, {"Tanh", 1}, {"Sum", 8}};
    const auto found = kFirstVersions.find(node.op_type);
    if (!node.domain.empty() || found == kFirstVersions.end() ||
        node.since_version < found->second) {
      return Status(Code::kUnsupportedOperator,
                    "Gradient: The derivative of " + node.op_type + " of version " +
                        std::to_string(node.since_version) + " is not supported.");
    }
    for (ValueId id : node.inputs) {
      if (id == kNoValue) return Invalid("An input of a node between is missing.");
      ONNXIFI_RETURN_IF_ERROR(TensorOf(id).status());
    }
    return TensorOf(node.outputs[0]).status();
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
    for (ValueId& id : copy.inputs) id = Forward(id);
    for (ValueId& id : copy.outputs) {
      const ValueId made = AddNamed(made_, graph_.values[static_cast<size_t>(id)].name);
      forward_.emplace(id, made);
      id = made;
    }
    made_.nodes.push_back(std::move(copy));
  }

  ValueId Apply(std::string op_type, int version, ValueIds inputs) {
    const ValueId result = AddNamed(made_, op_type + std::to_string(made_.nodes.size()));
    made_.nodes.push_back(
        MakeNode(node_, std::move(op_type), version, std::move(inputs), {result}));
    return result;
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
    made_.nodes.back().attributes.emplace("value", std::move(value));
    return filled;
  }

  ValueId SumOver(ValueId value, std::vector<int64_t> axes, bool keeps_axes) {
    const ValueId sum = Apply("ReduceSum", 11, {value});
    made_.nodes.back().attributes.emplace("axes", std::move(axes));
    made_.nodes.back().attributes.emplace("keepdims", int64_t{keeps_axes ? 1 : 0});
    return sum;
  }

  ValueId Transposed(ValueId value, int rank) {
    std::vector<int64_t> order;
    for (int axis = 0; axis < rank; ++axis) order.push_back(axis);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    const ValueId turned = Apply("Transpose", 13, {value});
    made_.nodes.back().attributes.emplace("perm", std::move(order));
    return turned;
  }

  // Adds `derivative`, of the shape of `output` but for its last `but` axes, to what is known of
  // `input`'s; over axes along which the input was broadcast it is summed up.
  Status Contribute(ValueId input, ValueId output, ValueId derivative, int but = 0) {
    const tensor::Shape& from = find_(input)->shape;
    const tensor::Shape& to = find_(output)->shape;
    const size_t more = to.size() - from.size();
    std::vector<int64_t> stretched;
    for (size_t axis = 0; axis + static_cast<size_t>(but) < from.size(); ++axis) {
      const tensor::Dim& own = from[axis];
      if (own == to[more + axis]) continue;
      if (!own.is_constant() || own.constant() != 1) {
        return Status(Code::kUnsupportedShape, "Gradient: It is open whether extent " +
                                                   own.ToString() + " is broadcast to " +
                                                   to[more + axis].ToString() + ".");
      }
      stretched.push_back(static_cast<int64_t>(more + axis));
    }
    if (!stretched.empty()) derivative = SumOver(derivative, stretched, /*keeps_axes=*/true);
    if (more > 0) {
      std::vector<int64_t> leading;
      for (size_t axis = 0; axis < more; ++axis) leading.push_back(static_cast<int64_t>(axis));
      derivative = SumOver(derivative, leading, /*keeps_axes=*/false);
    }
    const auto [known, is_new] = derivatives_.try_emplace(input, derivative);
    if (!is_new) known->second = Add(known->second, derivative);
    return base::Ok();
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
    ONNXIFI_RETURN_IF_ERROR(Contribute(a, node.outputs[0], of_a, /*but=*/2));
    const ValueId of_b = Apply("MatMul", 13, {Transposed(Forward(a), ranks[0]), g});
    return Contribute(b, node.outputs[0], of_b, /*but=*/2);
  }

  Status Differentiate(const Node& node, ValueId g) {
    const std::string& op = node.op_type;
    const ValueId output = node.outputs[0];
    const ValueId y = Forward(output);
    const ValueId x = Forward(node.inputs[0]);
    if (op == "MatMul") return DifferentiateMatMul(node, g);
    if (op == "Sum") {
      for (ValueId input : node.inputs) ONNXIFI_RETURN_IF_ERROR(Contribute(input, output, g));
      return base::Ok();
    }
    if (node.inputs.size() == 2) {
      const ValueId b = Forward(node.inputs[1]);
      const bool is_sum = op == "Add" || op == "Sub";
      const ValueId of_a = is_sum ? g : op == "Mul" ? Mul(g, b) : Div(g, b);
      ONNXIFI_RETURN_IF_ERROR(Contribute(node.inputs[0], output, of_a));
      const ValueId of_b = op == "Add"   ? g
                           : op == "Sub" ? Negated(g)
                           : op == "Mul" ? Mul(g, x)
                                         : Negated(Div(Mul(g, y), b));
      return Contribute(node.inputs[1], output, of_b);
    }
    return Contribute(node.inputs[0], output, Slope(op, g, x, y));
  }

  // The derivative of a function of one element, times `g`.
  ValueId Slope(const std::string& op, ValueId g, ValueId x, ValueId y) {
    if (op == "Neg") return Negated(g);
    if (op == "Exp") return Mul(g, y);
    if (op == "Log") return Div(g, x);
    if (op == "Sqrt") return Div(g, Add(y, y));
    if (op == "Sin") return Mul(g, Apply("Cos", 22, {x}));
    if (op == "Cos") return Negated(Mul(g, Apply("Sin", 22, {x})));
    if (op == "Tanh") return Sub(g, Mul(g, Mul(y, y)));
    if (op == "Sigmoid") return Mul(g, Sub(y, Mul(y, y)));
    if (op == "Relu") {
      const ValueId zero = Filled(x, 0);
      return Apply("Where", 16, {Apply("Greater", 13, {x, zero}), g, zero});
    }
    return g;  // Identity
  }

  const Graph& graph_;
  const Node& node_;
  const FindTensor& find_;
  Graph made_;
  Captures captures_;
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
