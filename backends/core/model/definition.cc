// SPDX-License-Identifier: Apache-2.0
//
// Definition: nodes are appended to the function in the order in which they are asked for, which is
// topological.

#include "backends/core/model/definition.h"

#include <onnx/defs/attr_proto_util.h>
#include <onnx/defs/schema.h>

#include <algorithm>

namespace onnxifi::model {

using base::Code;
using base::Result;
using base::Status;
using onnx::AttributeProto;
using tensor::ElementType;

Definition::Definition(const DefinedNode& node, const onnx::OpSchema& schema,
                       onnx::FunctionProto& body)
    : node_(node), schema_(schema), body_(body) {
  for (int input = 0; input < node.input_count(); ++input) body.add_input(In(input));
  for (int output = 0; output < node.output_count(); ++output) {
    body.add_output("o" + std::to_string(output));
  }
  onnx::OperatorSetIdProto& opset = *body.add_opset_import();
  opset.set_version(kOpset);
  returned_.resize(static_cast<size_t>(node.output_count()));
}

ElementType Definition::Type(int input) const {
  const onnx::TypeProto* type = node_.FindType(input);
  if (type == nullptr || !type->has_tensor_type()) return ElementType::kUndefined;
  return tensor::ElementTypeFromOnnx(type->tensor_type().elem_type())
      .value_or(ElementType::kUndefined);
}

std::optional<int> Definition::Rank(int input) const {
  const onnx::TypeProto* type = node_.FindType(input);
  if (type == nullptr || !type->has_tensor_type() || !type->tensor_type().has_shape()) {
    return std::nullopt;
  }
  return type->tensor_type().shape().dim_size();
}

std::optional<int64_t> Definition::Extent(int input, int axis) const {
  const std::optional<int> rank = Rank(input);
  if (!rank) return std::nullopt;
  if (axis < 0) axis += *rank;
  if (axis < 0 || axis >= *rank) return std::nullopt;
  const auto& dim = node_.FindType(input)->tensor_type().shape().dim(axis);
  return dim.has_dim_value() ? std::optional(dim.dim_value()) : std::nullopt;
}

Status Definition::NeedRank(int input, int rank) const {
  const std::optional<int> known = Rank(input);
  if (known == rank) return base::Ok();
  const std::string what = "Input " + std::to_string(input);
  if (!known) return UnsupportedShape(what + " has a number of axes that is not known.");
  return Invalid(what + " has " + std::to_string(*known) + " axes instead of " +
                 std::to_string(rank) + ".");
}

Result<int64_t> Definition::NeedExtent(int input, int axis) const {
  if (const std::optional<int64_t> known = Extent(input, axis)) return *known;
  return UnsupportedShape("The extent of axis " + std::to_string(axis) + " of input " +
                          std::to_string(input) + " is not known before the run.");
}

namespace {

// What the node gives, else the default of the declaration, else null.
const AttributeProto* FindAttribute(const DefinedNode& node, const onnx::OpSchema& schema,
                                    const std::string& name) {
  if (const AttributeProto* given = node.FindAttribute(name)) return given;
  const auto declared = schema.attributes().find(name);
  if (declared == schema.attributes().end()) return nullptr;
  const AttributeProto& fallback = declared->second.default_value;
  return fallback.type() == AttributeProto::UNDEFINED ? nullptr : &fallback;
}

}  // namespace

int64_t Definition::Int(const std::string& name) const {
  const AttributeProto* attribute = FindAttribute(node_, schema_, name);
  return attribute != nullptr ? attribute->i() : 0;
}

float Definition::Float(const std::string& name) const {
  const AttributeProto* attribute = FindAttribute(node_, schema_, name);
  return attribute != nullptr ? attribute->f() : 0.0F;
}

std::string Definition::String(const std::string& name) const {
  const AttributeProto* attribute = FindAttribute(node_, schema_, name);
  return attribute != nullptr ? attribute->s() : std::string();
}

std::vector<int64_t> Definition::Ints(const std::string& name) const {
  const AttributeProto* attribute = FindAttribute(node_, schema_, name);
  if (attribute == nullptr) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<float> Definition::Floats(const std::string& name) const {
  const AttributeProto* attribute = FindAttribute(node_, schema_, name);
  if (attribute == nullptr) return {};
  return {attribute->floats().begin(), attribute->floats().end()};
}

Definition::Attributes Definition::Given(std::initializer_list<const char*> names) const {
  Attributes given;
  for (const char* name : names) {
    const AttributeProto* attribute = node_.FindAttribute(name);
    if (attribute == nullptr) continue;
    const auto declared = schema_.attributes().find(name);
    switch (declared == schema_.attributes().end() ? attribute->type() : declared->second.type) {
      case AttributeProto::INT:
        given.emplace_back(name, attribute->i());
        break;
      case AttributeProto::FLOAT:
        given.emplace_back(name, attribute->f());
        break;
      case AttributeProto::STRING:
        given.emplace_back(name, attribute->s());
        break;
      case AttributeProto::INTS:
        given.emplace_back(name, Ints(name));
        break;
      case AttributeProto::FLOATS:
        given.emplace_back(name, Floats(name));
        break;
      default:
        given.emplace_back(name, std::vector<std::string>(attribute->strings().begin(),
                                                          attribute->strings().end()));
        break;
    }
  }
  return given;
}

Definition::Value Definition::NewName() { return "v" + std::to_string(names_++); }

std::vector<Definition::Value> Definition::ApplyAll(const char* op_type, std::vector<Value> inputs,
                                                    int outputs, Attributes attributes,
                                                    std::string_view domain) {
  onnx::NodeProto& node = *body_.add_node();
  node.set_op_type(op_type);
  node.set_domain(std::string(domain));
  for (Value& input : inputs) node.add_input(std::move(input));
  std::vector<Value> names;
  for (int k = 0; k < outputs; ++k) {
    names.push_back(NewName());
    node.add_output(names.back());
  }
  for (auto& [name, value] : attributes) {
    std::visit(
        [&node, name = name](auto& of_type) {
          *node.add_attribute() = onnx::MakeAttribute(name, std::move(of_type));
        },
        value);
  }
  const auto imports = [&](const onnx::OperatorSetIdProto& known) {
    return known.domain() == domain;
  };
  if (std::ranges::none_of(body_.opset_import(), imports)) {
    onnx::OperatorSetIdProto& opset = *body_.add_opset_import();
    opset.set_domain(std::string(domain));
    opset.set_version(1);
  }
  return names;
}

Definition::Value Definition::Apply(const char* op_type, std::vector<Value> inputs,
                                    Attributes attributes) {
  return ApplyAll(op_type, std::move(inputs), 1, std::move(attributes)).front();
}

Definition::Value Definition::Ints1D(std::vector<int64_t> numbers) {
  return Apply("Constant", {}, {{"value_ints", std::move(numbers)}});
}

Definition::Value Definition::Int0D(int64_t number) {
  return Apply("Constant", {}, {{"value_int", number}});
}

Definition::Value Definition::Scalar(double number, ElementType type) {
  if (type == ElementType::kFloat64) {
    onnx::NodeProto& node = *body_.add_node();
    node.set_op_type("Constant");
    node.add_output(NewName());
    onnx::TensorProto tensor;
    tensor.set_data_type(onnx::TensorProto::DOUBLE);
    tensor.add_double_data(number);
    *node.add_attribute() = onnx::MakeAttribute("value", std::move(tensor));
    return node.output(0);
  }
  if (tensor::IsInteger(type)) return Cast(Int0D(static_cast<int64_t>(number)), type);
  const Value value = Apply("Constant", {}, {{"value_float", static_cast<float>(number)}});
  return type == ElementType::kFloat32 ? value : Cast(value, type);
}

Definition::Value Definition::Scalar1D(double number, ElementType type) {
  return Reshape(Scalar(number, type), {1});
}

Definition::Value Definition::Cast(Value value, ElementType type) {
  return Apply("Cast", {std::move(value)}, {{"to", static_cast<int64_t>(type)}});
}

Definition::Value Definition::Reshape(Value value, std::vector<int64_t> shape) {
  const Value numbers = Ints1D(std::move(shape));
  return ReshapeTo(std::move(value), numbers);
}

Definition::Value Definition::Transpose(Value value, std::vector<int64_t> perm) {
  return Apply("Transpose", {std::move(value)}, {{"perm", std::move(perm)}});
}

Definition::Value Definition::Unsqueeze(Value value, std::vector<int64_t> axes) {
  const Value numbers = Ints1D(std::move(axes));
  return Apply("Unsqueeze", {std::move(value), numbers});
}

Definition::Value Definition::Squeeze(Value value, std::vector<int64_t> axes) {
  const Value numbers = Ints1D(std::move(axes));
  return Apply("Squeeze", {std::move(value), numbers});
}

Definition::Value Definition::Slice(Value value, int64_t axis, Value start, Value end) {
  const Value axes = Ints1D({axis});
  return Apply("Slice", {std::move(value), std::move(start), std::move(end), axes});
}

Definition::Value Definition::Slice(Value value, int64_t axis, int64_t start, int64_t end) {
  const Value first = Ints1D({start}), last = Ints1D({end});
  return Slice(std::move(value), axis, first, last);
}

std::vector<Definition::Value> Definition::Split(Value value, int64_t axis,
                                                 std::vector<int64_t> sizes) {
  const int count = static_cast<int>(sizes.size());
  const Value numbers = Ints1D(std::move(sizes));
  return ApplyAll("Split", {std::move(value), numbers}, count, {{"axis", axis}});
}

Definition::Value Definition::Concat(std::vector<Value> values, int64_t axis) {
  return Apply("Concat", std::move(values), {{"axis", axis}});
}

Definition::Value Definition::ExtentOf(Value value, int64_t axis) {
  Attributes range = {{"start", axis}};
  if (axis != -1) range.emplace_back("end", axis + 1);
  return Apply("Shape", {std::move(value)}, std::move(range));
}

void Definition::Return(int output, Value value) {
  if (output >= node_.output_count()) return;
  returned_[static_cast<size_t>(output)] = true;
  onnx::NodeProto& node = *body_.add_node();
  node.set_op_type("Identity");
  node.add_input(std::move(value));
  node.add_output(body_.output(output));
}

bool Definition::HasReturned(int output) const { return returned_[static_cast<size_t>(output)]; }

Status Definition::Unsupported(std::string sentence) const {
  return {Code::kUnsupportedAttribute, schema_.Name() + ": " + std::move(sentence)};
}

Status Definition::UnsupportedShape(std::string sentence) const {
  return {Code::kUnsupportedShape, schema_.Name() + ": " + std::move(sentence)};
}

Status Definition::Invalid(std::string sentence) const {
  return {Code::kInvalidModel, schema_.Name() + ": " + std::move(sentence)};
}

}  // namespace onnxifi::model
