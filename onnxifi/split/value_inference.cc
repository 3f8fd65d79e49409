// SPDX-License-Identifier: Apache-2.0
//
// InferValues: the ONNX library's inference, again as long as what it found lets a loop be
// completed that it leaves open.

#include "onnxifi/split/value_inference.h"

#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "backends/core/domains/known_domains.h"

namespace onnxifi::split {

using base::Code;
using base::Result;
using base::Status;

namespace {

// An initializer with the numbers that data propagation found; nothing where one is no number or
// the type is none of the two that shapes have.
std::optional<onnx::TensorProto> FixedTensor(const std::string& name,
                                             const onnx::TensorShapeProto& numbers,
                                             const onnx::TypeProto& type) {
  const onnx::TypeProto::Tensor& declared = type.tensor_type();
  const bool is_int64 = declared.elem_type() == onnx::TensorProto::INT64;
  if (!is_int64 && declared.elem_type() != onnx::TensorProto::INT32) return std::nullopt;
  if (!declared.has_shape() || declared.shape().dim_size() > 1) return std::nullopt;
  const bool is_scalar = declared.shape().dim_size() == 0;
  if (is_scalar && numbers.dim_size() != 1) return std::nullopt;
  if (!is_scalar && declared.shape().dim(0).dim_value() != numbers.dim_size()) return std::nullopt;
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(declared.elem_type());
  if (!is_scalar) tensor.add_dims(numbers.dim_size());
  for (const onnx::TensorShapeProto::Dimension& number : numbers.dim()) {
    if (!number.has_dim_value()) return std::nullopt;
    if (is_int64) {
      tensor.add_int64_data(number.dim_value());
    } else {
      tensor.add_int32_data(static_cast<int32_t>(number.dim_value()));
    }
  }
  return tensor;
}

// Types of values by name, wherever a graph says them.
std::unordered_map<std::string, onnx::TypeProto*> TypesOf(onnx::GraphProto& graph) {
  std::unordered_map<std::string, onnx::TypeProto*> types;
  for (auto* declared :
       {graph.mutable_input(), graph.mutable_value_info(), graph.mutable_output()}) {
    for (onnx::ValueInfoProto& value : *declared) {
      if (value.has_type()) types[value.name()] = value.mutable_type();
    }
  }
  return types;
}

// ONNX's schemas and those of the domains that the kit knows; the library's own registry makes all
// of ONNX's and has no others.
class Schemas final : public onnx::ISchemaRegistry {
 public:
  // NOLINTNEXTLINE(google-default-arguments): as the library declares it.
  const onnx::OpSchema* GetSchema(const std::string& operator_type, int opset,
                                  const std::string& domain = "") const override {
    return domains::KnownDomains().FindSchema(operator_type, domain, opset);
  }
};

bool HasShape(const onnx::TypeProto& type) {
  return type.has_tensor_type() && type.tensor_type().has_shape();
}

// ONNX says nothing of the shape of what a Loop carries, because each iteration may change it.
// Where what goes in and what the body gives have the same number of axes, so has what comes out;
// extents that are the same number stay. Answers whether anything was found.
bool CompleteLoops(onnx::GraphProto& graph) {
  std::unordered_map<std::string, onnx::TypeProto*> types = TypesOf(graph);
  bool has_found = false;
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() != "Loop" || !node.domain().empty()) continue;
    const auto body = std::find_if(node.attribute().begin(), node.attribute().end(),
                                   [](const auto& attribute) { return attribute.has_g(); });
    if (body == node.attribute().end()) continue;
    // Before what is carried come the number of iterations and the condition, of the body the
    // latter.
    constexpr int kFirstInput = 2;
    constexpr int kFirstResult = 1;
    for (int carried = 0;
         carried < node.output_size() && carried + kFirstInput < node.input_size() &&
         carried + kFirstResult < body->g().output_size();
         ++carried) {
      const auto output = types.find(node.output(carried));
      const auto input = types.find(node.input(carried + kFirstInput));
      const onnx::TypeProto& result = body->g().output(carried + kFirstResult).type();
      if (output == types.end() || input == types.end() || !output->second->has_tensor_type() ||
          HasShape(*output->second) || !HasShape(*input->second) || !HasShape(result)) {
        continue;
      }
      const onnx::TensorShapeProto& before = input->second->tensor_type().shape();
      const onnx::TensorShapeProto& after = result.tensor_type().shape();
      if (before.dim_size() != after.dim_size()) continue;
      onnx::TensorShapeProto& shape = *output->second->mutable_tensor_type()->mutable_shape();
      for (int axis = 0; axis < before.dim_size(); ++axis) {
        onnx::TensorShapeProto::Dimension& dim = *shape.add_dim();
        if (before.dim(axis).has_dim_value() && after.dim(axis).has_dim_value() &&
            before.dim(axis).dim_value() == after.dim(axis).dim_value()) {
          dim.set_dim_value(before.dim(axis).dim_value());
        }
      }
      has_found = true;
    }
  }
  return has_found;
}

// Whether there is an If whose branches, which have the types that inference found, give different
// ranks.
bool HasOpenRank(const onnx::GraphProto& graph) {
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() != "If" || !node.domain().empty()) continue;
    for (int output = 0; output < node.output_size(); ++output) {
      std::unordered_set<int> ranks;  // -1: not known
      for (const onnx::AttributeProto& branch : node.attribute()) {
        const bool has_shape =
            output < branch.g().output_size() && HasShape(branch.g().output(output).type());
        ranks.insert(has_shape ? branch.g().output(output).type().tensor_type().shape().dim_size()
                               : -1);
      }
      if (ranks.size() > 1 || ranks.contains(-1)) return true;
    }
  }
  return false;
}

// The values of which inference tells no rank where it is not declared.
std::unordered_set<std::string> FindUndeclaredRanks(onnx::ModelProto model,
                                                    const Schemas& schemas) {
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.clear_value_info();
  for (onnx::ValueInfoProto& output : *graph.mutable_output()) {
    if (HasShape(output.type())) output.mutable_type()->mutable_tensor_type()->clear_shape();
  }
  onnx::shape_inference::DataValueMap numbers;
  onnx::shape_inference::InferShapes(
      model, &schemas,
      onnx::ShapeInferenceOptions(/*check_type_val=*/false, /*strict_mode_val=*/0,
                                  /*data_prop_val=*/true),
      &numbers);
  const std::unordered_map<std::string, onnx::TypeProto*> types = TypesOf(graph);
  std::unordered_set<std::string> open;
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& output : node.output()) {
      const auto type = types.find(output);
      if (type == types.end() || !HasShape(*type->second)) open.insert(output);
    }
  }
  return open;
}

// The values between Shapes and the value; nothing where it is made of data, too.
std::vector<std::string> FindMadeOfExtents(const onnx::GraphProto& graph,
                                           const std::string& value) {
  std::unordered_map<std::string, const onnx::NodeProto*> makers;
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& output : node.output()) makers.emplace(output, &node);
  }
  std::unordered_set<std::string> constants;
  for (const onnx::TensorProto& tensor : graph.initializer()) constants.insert(tensor.name());
  std::vector<std::string> found = {value};
  std::unordered_set<std::string> seen = {value};
  for (size_t k = 0; k < found.size(); ++k) {
    const auto maker = makers.find(found[k]);
    if (maker == makers.end()) return {};
    const onnx::NodeProto& node = *maker->second;
    if (node.op_type() == "Shape" || node.op_type() == "Size") continue;
    for (const std::string& input : node.input()) {
      if (!input.empty() && !constants.contains(input) && seen.insert(input).second) {
        found.push_back(input);
      }
    }
  }
  return found;
}

// Of the Ifs that give one of the values, the values that their conditions are made of.
void AddConditions(const onnx::GraphProto& graph, std::unordered_set<std::string>& values) {
  for (const onnx::NodeProto& node : graph.node()) {
    const auto is_one = [&](const std::string& output) { return values.contains(output); };
    if (node.op_type() != "If" || !node.domain().empty() || node.input_size() != 1 ||
        std::none_of(node.output().begin(), node.output().end(), is_one)) {
      continue;
    }
    for (std::string& value : FindMadeOfExtents(graph, node.input(0))) {
      values.insert(std::move(value));
    }
  }
}

// Puts the number that follows in the place of a declared one, where they differ.
void Correct(const onnx::TypeProto& follows, onnx::TypeProto& declared) {
  if (!HasShape(follows) || !HasShape(declared)) return;
  const onnx::TensorShapeProto& known = follows.tensor_type().shape();
  onnx::TensorShapeProto& shape = *declared.mutable_tensor_type()->mutable_shape();
  if (known.dim_size() != shape.dim_size()) return;
  for (int axis = 0; axis < known.dim_size(); ++axis) {
    onnx::TensorShapeProto::Dimension& dim = *shape.mutable_dim(axis);
    if (known.dim(axis).has_dim_value() && dim.has_dim_value()) {
      dim.set_dim_value(known.dim(axis).dim_value());
    }
  }
}

// Optimizers leave extents of values whose nodes they have changed. Devices go by what follows, and
// what is cut between them is declared so.
void CorrectExtents(onnx::ModelProto& model, const Schemas& schemas,
                    const onnx::ShapeInferenceOptions& options) {
  onnx::GraphProto& graph = *model.mutable_graph();
  if (graph.value_info().empty()) return;
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> declared;
  declared.Swap(graph.mutable_value_info());
  try {
    onnx::shape_inference::DataValueMap numbers;
    onnx::shape_inference::InferShapes(model, &schemas, options, &numbers);
  } catch (const std::exception&) {
    // Without what is declared nothing follows.
    graph.clear_value_info();
  }
  const std::unordered_map<std::string, onnx::TypeProto*> follows = TypesOf(graph);
  for (onnx::ValueInfoProto& value : declared) {
    const auto type = follows.find(value.name());
    if (type != follows.end()) Correct(*type->second, *value.mutable_type());
  }
  graph.mutable_value_info()->Swap(&declared);
}

}  // namespace

Result<InferredValues> InferValues(onnx::ModelProto& model) {
  onnx::GraphProto& graph = *model.mutable_graph();
  const Schemas schemas;
  onnx::shape_inference::DataValueMap numbers;
  InferredValues found;
  try {
    onnx::ShapeInferenceOptions options(/*check_type_val=*/false, /*strict_mode_val=*/0,
                                        /*data_prop_val=*/true);
    CorrectExtents(model, schemas, options);
    // What is found of one loop may tell more of the next.
    do {
      numbers.clear();
      onnx::shape_inference::InferShapes(model, &schemas, options, &numbers);
    } while (CompleteLoops(graph));
    if (HasOpenRank(graph)) {
      found.open_ranks = FindUndeclaredRanks(model, schemas);
      AddConditions(graph, found.open_ranks);
    }
  } catch (const std::exception& error) {
    return Status(Code::kInvalidModel,
                  std::string("The shapes of the model cannot be inferred: ") + error.what());
  }
  for (const auto& [name, type] : TypesOf(graph)) found.types[name] = *type;
  for (const auto& [name, shape] : numbers) {
    const auto type = found.types.find(name);
    if (type == found.types.end()) continue;
    if (auto tensor = FixedTensor(name, shape, type->second)) {
      found.contents.emplace(name, *std::move(tensor));
    }
  }
  return found;
}

}  // namespace onnxifi::split
