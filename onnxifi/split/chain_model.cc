// SPDX-License-Identifier: Apache-2.0
//
// ChainModel: of an operator set that every plugin of today reads.

#include "onnxifi/split/chain_model.h"

#include <onnx/onnx_pb.h>

namespace onnxifi::split {

std::string MakeChainModel(std::string_view operator_type, int length, int64_t element_count) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("chain");
  const auto declare = [&](onnx::ValueInfoProto& info, const char* name) {
    info.set_name(name);
    onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_value(element_count);
  };
  declare(*graph.add_input(), "x");
  declare(*graph.add_output(), "y");
  for (int link = 0; link < length; ++link) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(std::string(operator_type));
    node.add_input(link == 0 ? "x" : "t" + std::to_string(link));
    node.add_output(link + 1 == length ? "y" : "t" + std::to_string(link + 1));
  }
  return model.SerializeAsString();
}

}  // namespace onnxifi::split
