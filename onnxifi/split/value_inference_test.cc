// SPDX-License-Identifier: Apache-2.0
//
// Shapes of nodes of domains beside ONNX's: inference goes through their definitions, and stays
// silent where a definition refuses or nobody knows the operator.

#include "onnxifi/split/value_inference.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace onnxifi::split {
namespace {

void AddInput(onnx::GraphProto& graph, const std::string& name, int32_t type,
              std::initializer_list<const char*> extents) {
  onnx::ValueInfoProto& input = *graph.add_input();
  input.set_name(name);
  onnx::TypeProto::Tensor& tensor = *input.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  for (const std::string extent : extents) {
    onnx::TensorShapeProto::Dimension& dim = *tensor.mutable_shape()->add_dim();
    const bool is_number = extent.find_first_not_of("0123456789") == std::string::npos;
    is_number ? dim.set_dim_value(std::stoll(extent)) : dim.set_dim_param(extent);
  }
}

onnx::NodeProto& AddNode(onnx::GraphProto& graph, const std::string& op_type,
                         std::initializer_list<const char*> inputs,
                         std::initializer_list<const char*> outputs) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op_type);
  node.set_domain("com.microsoft");
  for (const char* input : inputs) node.add_input(input);
  for (const char* output : outputs) node.add_output(output);
  return node;
}

void SetInt(onnx::NodeProto& node, const std::string& name, int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

onnx::ModelProto EmptyModel() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(21);
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain("com.microsoft");
  opset.set_version(1);
  return model;
}

// "float [batch, 5, ?]"
std::string Describe(const InferredValues& values, const std::string& name) {
  const auto found = values.types.find(name);
  if (found == values.types.end() || !found->second.has_tensor_type()) return "unknown";
  const onnx::TypeProto::Tensor& tensor = found->second.tensor_type();
  std::string text = onnx::TensorProto::DataType_Name(
      static_cast<onnx::TensorProto::DataType>(tensor.elem_type()));
  if (!tensor.has_shape()) return text;
  text += " [";
  for (int axis = 0; axis < tensor.shape().dim_size(); ++axis) {
    const auto& dim = tensor.shape().dim(axis);
    text += axis == 0 ? "" : ", ";
    text += dim.has_dim_value()   ? std::to_string(dim.dim_value())
            : dim.has_dim_param() ? dim.dim_param()
                                  : "?";
  }
  return text + "]";
}

TEST(ValueInference, GoesThroughDefinitionsOfDomains) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto& graph = *model.mutable_graph();
  AddInput(graph, "x", onnx::TensorProto::FLOAT, {"batch", "5", "16"});
  AddInput(graph, "w", onnx::TensorProto::FLOAT, {"24", "16"});
  SetInt(AddNode(graph, "FusedMatMul", {"x", "w"}, {"product"}), "transB", 1);
  AddInput(graph, "packed", onnx::TensorProto::UINT8, {"10", "2", "8"});
  AddInput(graph, "scales", onnx::TensorProto::FLOAT, {"20"});
  onnx::NodeProto& blocks = AddNode(graph, "MatMulNBits", {"x", "packed", "scales"}, {"few_bits"});
  SetInt(blocks, "K", 16);
  SetInt(blocks, "N", 10);
  SetInt(blocks, "bits", 8);
  SetInt(blocks, "block_size", 8);
  AddInput(graph, "past", onnx::TensorProto::FLOAT, {"batch", "1", "7", "4"});
  AddInput(graph, "lengths", onnx::TensorProto::INT32, {"batch"});
  AddInput(graph, "total", onnx::TensorProto::INT32, {});
  onnx::NodeProto& attention =
      AddNode(graph, "GroupQueryAttention", {"product", "", "", "past", "past", "lengths", "total"},
              {"attended", "key", "value"});
  SetInt(attention, "num_heads", 4);
  SetInt(attention, "kv_num_heads", 1);
  const auto values = InferValues(model);
  ASSERT_TRUE(values.ok()) << values.status().Text();
  EXPECT_EQ(Describe(*values, "product"), "FLOAT [batch, 5, 24]");
  EXPECT_EQ(Describe(*values, "few_bits"), "FLOAT [batch, 5, 10]");
  EXPECT_EQ(Describe(*values, "attended").substr(0, 7), "FLOAT [");
  EXPECT_EQ(Describe(*values, "key").substr(0, 7), "FLOAT [");
}

TEST(ValueInference, StaysSilentOnWhatNobodyDefines) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto& graph = *model.mutable_graph();
  AddInput(graph, "x", onnx::TensorProto::FLOAT, {"2", "3"});
  AddNode(graph, "NoSuchOperator", {"x"}, {"unknown"});
  // Of 3 bits, which the definition refuses.
  AddInput(graph, "packed", onnx::TensorProto::UINT8, {"4", "1", "3"});
  AddInput(graph, "scales", onnx::TensorProto::FLOAT, {"4"});
  onnx::NodeProto& blocks = AddNode(graph, "MatMulNBits", {"x", "packed", "scales"}, {"refused"});
  SetInt(blocks, "K", 3);
  SetInt(blocks, "N", 4);
  SetInt(blocks, "bits", 3);
  SetInt(blocks, "block_size", 8);
  AddNode(graph, "Gelu", {"x"}, {"known"});
  const auto values = InferValues(model);
  ASSERT_TRUE(values.ok()) << values.status().Text();
  EXPECT_EQ(Describe(*values, "unknown"), "unknown");
  EXPECT_EQ(Describe(*values, "refused"), "unknown");
  EXPECT_EQ(Describe(*values, "known"), "FLOAT [2, 3]");
}

// As optimizers leave them behind; of an operator that nobody knows nothing follows.
TEST(ValueInference, ExtentsBetweenNodesAreThoseThatFollow) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto& graph = *model.mutable_graph();
  AddInput(graph, "x", onnx::TensorProto::FLOAT, {"2", "batch"});
  AddNode(graph, "Neg", {"x"}, {"t"}).clear_domain();
  AddNode(graph, "Exp", {"t"}, {"y"}).clear_domain();
  AddNode(graph, "NobodysOperator", {"y"}, {"z"});
  for (const char* name : {"t", "z"}) {
    AddInput(graph, name, onnx::TensorProto::FLOAT, {"5", "7"});
    *graph.add_value_info() = graph.input(graph.input_size() - 1);
    graph.mutable_input()->RemoveLast();
  }
  const base::Result<InferredValues> values = InferValues(model);
  ASSERT_TRUE(values.ok()) << values.status().Text();
  EXPECT_EQ(Describe(*values, "t"), "FLOAT [2, 7]");
  EXPECT_EQ(Describe(*values, "y"), "FLOAT [2, 7]");
  EXPECT_EQ(Describe(*values, "z"), "FLOAT [5, 7]");
}

}  // namespace
}  // namespace onnxifi::split
