// SPDX-License-Identifier: Apache-2.0
//
// SeedModels: one function per model.

#include "backends/core/model/testing/seed_models.h"

namespace onnxifi::model::testing {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;
using onnx::TensorProto;

ModelProto MakeModel(int64_t opset, int64_t ir_version) {
  ModelProto model;
  model.set_ir_version(ir_version);
  model.add_opset_import()->set_version(opset);
  model.mutable_graph()->set_name("main");
  return model;
}

NodeProto& AddNode(GraphProto& graph, const std::string& op_type,
                   std::initializer_list<const char*> inputs,
                   std::initializer_list<const char*> outputs) {
  NodeProto& node = *graph.add_node();
  node.set_op_type(op_type);
  for (const char* input : inputs) node.add_input(input);
  for (const char* output : outputs) node.add_output(output);
  return node;
}

onnx::ValueInfoProto& AddFloat(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& list,
                               const std::string& name, std::initializer_list<int64_t> extents) {
  onnx::ValueInfoProto& value = *list.Add();
  value.set_name(name);
  auto* type = value.mutable_type()->mutable_tensor_type();
  type->set_elem_type(TensorProto::FLOAT);
  type->mutable_shape();
  for (const int64_t extent : extents) type->mutable_shape()->add_dim()->set_dim_value(extent);
  return value;
}

TensorProto& AddFloatInitializer(GraphProto& graph, const std::string& name,
                                 std::initializer_list<int64_t> extents) {
  TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(TensorProto::FLOAT);
  int64_t count = 1;
  for (const int64_t extent : extents) {
    tensor.add_dims(extent);
    count *= extent;
  }
  for (int64_t index = 0; index < count; ++index) {
    tensor.add_float_data(static_cast<float>(index));
  }
  return tensor;
}

AttributeProto& AddAttribute(NodeProto& node, const std::string& name,
                             AttributeProto::AttributeType type) {
  AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

namespace {

ModelProto MakeConvolution() {
  ModelProto model = MakeModel();
  model.set_producer_name("seed");
  GraphProto& graph = *model.mutable_graph();
  AddFloat(*graph.mutable_input(), "x", {1, 2, 5, 5});
  AddFloatInitializer(graph, "w", {4, 2, 3, 3});
  NodeProto& conv = AddNode(graph, "Conv", {"x", "w"}, {"y"});
  conv.set_name("conv1");
  conv.set_doc_string("documentation that import drops");
  AttributeProto& pads = AddAttribute(conv, "pads", AttributeProto::INTS);
  for (int side = 0; side < 4; ++side) pads.add_ints(1);
  AddNode(graph, "Relu", {"y"}, {"z"});
  AddFloat(*graph.mutable_output(), "z", {1, 4, 5, 5});
  AddFloat(*graph.mutable_value_info(), "y", {1, 4, 5, 5});
  return model;
}

// Weights among the inputs, IR version 3, operator set 7, no name of the graph.
ModelProto MakeOldStyle() {
  ModelProto model = MakeModel(/*opset=*/7, /*ir_version=*/3);
  GraphProto& graph = *model.mutable_graph();
  graph.clear_name();
  AddFloat(*graph.mutable_input(), "x", {2, 3});
  AddFloat(*graph.mutable_input(), "w", {3, 4});
  AddFloatInitializer(graph, "w", {3, 4});
  AddNode(graph, "MatMul", {"x", "w"}, {"y"});
  AddFloat(*graph.mutable_output(), "y", {2, 4});
  return model;
}

ModelProto MakeControlFlow() {
  ModelProto model = MakeModel();
  GraphProto& graph = *model.mutable_graph();
  onnx::ValueInfoProto& condition = AddFloat(*graph.mutable_input(), "condition", {});
  condition.mutable_type()->mutable_tensor_type()->set_elem_type(TensorProto::BOOL);
  AddFloat(*graph.mutable_input(), "x", {3});
  NodeProto& branch = AddNode(graph, "If", {"condition"}, {"y"});
  GraphProto& then_graph = *AddAttribute(branch, "then_branch", AttributeProto::GRAPH).mutable_g();
  then_graph.set_name("then");
  AddNode(then_graph, "Neg", {"x"}, {"negative"});
  AddFloat(*then_graph.mutable_output(), "negative", {3});
  GraphProto& else_graph = *AddAttribute(branch, "else_branch", AttributeProto::GRAPH).mutable_g();
  else_graph.set_name("else");
  NodeProto& inner = AddNode(else_graph, "If", {"condition"}, {"deep"});
  for (const char* name : {"then_branch", "else_branch"}) {
    GraphProto& body = *AddAttribute(inner, name, AttributeProto::GRAPH).mutable_g();
    body.set_name(name);
    AddFloatInitializer(body, "one", {1});
    AddNode(body, "Add", {"x", "one"}, {"sum"});
    AddFloat(*body.mutable_output(), "sum", {3});
  }
  AddFloat(*else_graph.mutable_output(), "deep", {3});
  AddFloat(*graph.mutable_output(), "y", {3});
  return model;
}

ModelProto MakeFunctions() {
  ModelProto model = MakeModel();
  onnx::OperatorSetIdProto& own = *model.add_opset_import();
  own.set_domain("local");
  own.set_version(1);
  onnx::FunctionProto& scale = *model.add_functions();
  scale.set_name("Scale");
  scale.set_domain("local");
  scale.add_opset_import()->set_version(17);
  scale.add_input("value");
  scale.add_output("result");
  scale.add_attribute("factor");
  NodeProto& constant = *scale.add_node();
  constant.set_op_type("Constant");
  constant.add_output("factor_value");
  AttributeProto& reference = AddAttribute(constant, "value_float", AttributeProto::FLOAT);
  reference.set_ref_attr_name("factor");
  NodeProto& product = *scale.add_node();
  product.set_op_type("Mul");
  product.add_input("value");
  product.add_input("factor_value");
  product.add_output("result");

  onnx::FunctionProto& twice = *model.add_functions();
  twice.set_name("Twice");
  twice.set_domain("local");
  twice.add_opset_import()->set_version(17);
  *twice.add_opset_import() = own;
  twice.add_input("value");
  twice.add_output("result");
  NodeProto& call = *twice.add_node();
  call.set_op_type("Scale");
  call.set_domain("local");
  call.add_input("value");
  call.add_output("result");
  AddAttribute(call, "factor", AttributeProto::FLOAT).set_f(2);

  GraphProto& graph = *model.mutable_graph();
  AddFloat(*graph.mutable_input(), "x", {3});
  NodeProto& first = AddNode(graph, "Twice", {"x"}, {"y"});
  first.set_domain("local");
  first.set_name("first");
  NodeProto& second = AddNode(graph, "Twice", {"y"}, {"z"});
  second.set_domain("local");
  AddFloat(*graph.mutable_output(), "z", {3});
  return model;
}

ModelProto MakeTensors() {
  ModelProto model = MakeModel(/*opset=*/21, /*ir_version=*/10);
  GraphProto& graph = *model.mutable_graph();
  TensorProto& packed = *graph.add_initializer();
  packed.set_name("packed");
  packed.set_data_type(TensorProto::INT4);
  packed.add_dims(3);
  packed.add_int32_data(0x21);
  packed.add_int32_data(0x0f);
  TensorProto& strings = *graph.add_initializer();
  strings.set_name("strings");
  strings.set_data_type(TensorProto::STRING);
  strings.add_dims(2);
  strings.add_string_data("a");
  strings.add_string_data("bc");
  TensorProto& raw = *graph.add_initializer();
  raw.set_name("raw");
  raw.set_data_type(TensorProto::INT64);
  raw.add_dims(1);
  raw.set_raw_data(std::string("\x07\0\0\0\0\0\0\0", 8));
  onnx::SparseTensorProto& sparse = *graph.add_sparse_initializer();
  sparse.mutable_values()->set_name("sparse");
  sparse.mutable_values()->set_data_type(TensorProto::FLOAT);
  sparse.mutable_values()->add_dims(2);
  sparse.mutable_values()->add_float_data(5);
  sparse.mutable_values()->add_float_data(6);
  sparse.mutable_indices()->set_data_type(TensorProto::INT64);
  sparse.mutable_indices()->add_dims(2);
  sparse.mutable_indices()->add_dims(2);
  for (const int64_t index : {0, 1, 2, 0}) sparse.mutable_indices()->add_int64_data(index);
  sparse.add_dims(3);
  sparse.add_dims(2);
  NodeProto& constant = AddNode(graph, "Constant", {}, {"constant"});
  TensorProto& value = *AddAttribute(constant, "value", AttributeProto::TENSOR).mutable_t();
  value.set_data_type(TensorProto::FLOAT16);
  value.add_dims(2);
  value.add_int32_data(0x3c00);
  value.add_int32_data(0xc000);
  for (const char* name : {"packed", "strings", "raw", "sparse", "constant"}) {
    const std::string output = std::string(name) + "_out";
    NodeProto& node = AddNode(graph, "Identity", {name}, {});
    node.add_output(output);
    graph.add_output()->set_name(output);
  }
  return model;
}

ModelProto MakeSequences() {
  ModelProto model = MakeModel();
  GraphProto& graph = *model.mutable_graph();
  onnx::ValueInfoProto& input = *graph.add_input();
  input.set_name("sequence");
  auto* element = input.mutable_type()
                      ->mutable_optional_type()
                      ->mutable_elem_type()
                      ->mutable_sequence_type()
                      ->mutable_elem_type()
                      ->mutable_tensor_type();
  element->set_elem_type(TensorProto::FLOAT);
  element->mutable_shape()->add_dim()->set_dim_param("N");
  element->mutable_shape()->add_dim();
  AddNode(graph, "OptionalGetElement", {"sequence"}, {"inner"});
  AddNode(graph, "SequenceLength", {"inner"}, {"length"});
  graph.add_output()->set_name("length");
  return model;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> MakeSeedModels() {
  return {
      {"convolution", MakeConvolution().SerializeAsString()},
      {"old_style", MakeOldStyle().SerializeAsString()},
      {"control_flow", MakeControlFlow().SerializeAsString()},
      {"functions", MakeFunctions().SerializeAsString()},
      {"tensors", MakeTensors().SerializeAsString()},
      {"sequences", MakeSequences().SerializeAsString()},
  };
}

}  // namespace onnxifi::model::testing
