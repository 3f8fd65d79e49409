// SPDX-License-Identifier: Apache-2.0
//
// For tests of callers: a model whose run reads a number from the device on its way.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_TESTING_NONZERO_MODEL_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_TESTING_NONZERO_MODEL_H_

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <string>
#include <vector>

namespace onnxifi::plugin {

// y = NonZero(x), float32 [7].
inline std::vector<std::byte> NonZeroModel() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("nonzero");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("NonZero");
  node.add_input("x");
  node.add_output("y");
  onnx::ValueInfoProto& x = *graph.add_input();
  x.set_name("x");
  x.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  x.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(7);
  onnx::ValueInfoProto& y = *graph.add_output();
  y.set_name("y");
  y.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::INT64);
  const std::string text = model.SerializeAsString();
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_TESTING_NONZERO_MODEL_H_
