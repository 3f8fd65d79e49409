// SPDX-License-Identifier: Apache-2.0
//
// SequenceMaterial: what random sequences of calls are made of: models, statuses, surroundings.

#ifndef ONNXIFI_BACKENDS_VULKAN_TESTING_SEQUENCE_MATERIAL_H_
#define ONNXIFI_BACKENDS_VULKAN_TESTING_SEQUENCE_MATERIAL_H_

#include <onnx/onnx_pb.h>
#include <onnx/onnxifi.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "backends/vulkan/api.h"

namespace onnxifi::vulkan {

inline uint64_t Number(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

inline onnx::ValueInfoProto* Declare(onnx::ValueInfoProto* value, const char* name) {
  value->set_name(name);
  auto& type = *value->mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param("n");
  type.mutable_shape()->add_dim()->set_dim_value(4);
  return value;
}

// y = op(x, w) for x [n, 4].
inline std::string Model(const char* op, const std::vector<int64_t>& weight_shape) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("random");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  node.add_input("x");
  if (!weight_shape.empty()) {
    node.add_input("w");
    onnx::TensorProto& weight = *graph.add_initializer();
    weight.set_name("w");
    weight.set_data_type(onnx::TensorProto::FLOAT);
    int64_t count = 1;
    for (const int64_t extent : weight_shape) {
      weight.add_dims(extent);
      count *= extent;
    }
    for (int64_t k = 0; k < count; ++k) weight.add_float_data(static_cast<float>(k));
  }
  node.add_output("y");
  Declare(graph.add_input(), "x");
  Declare(graph.add_output(), "y");
  return model.SerializeAsString();
}

inline const std::vector<std::string>& Models() {
  static const std::vector<std::string> models = {
      Model("Relu", {}),      Model("Add", {4}),           Model("MatMul", {4, 4}),
      Model("Softmax", {}),   Model("NoSuchOperator", {}), Model("Add", {3, 1, 1, 5}),
      std::string("no model")};
  return models;
}

inline constexpr std::array kStatuses = {ONNXIFI_STATUS_SUCCESS,
                                         ONNXIFI_STATUS_FALLBACK,
                                         ONNXIFI_STATUS_INVALID_ID,
                                         ONNXIFI_STATUS_INVALID_SIZE,
                                         ONNXIFI_STATUS_INVALID_POINTER,
                                         ONNXIFI_STATUS_INVALID_PROTOBUF,
                                         ONNXIFI_STATUS_INVALID_MODEL,
                                         ONNXIFI_STATUS_INVALID_BACKEND,
                                         ONNXIFI_STATUS_INVALID_GRAPH,
                                         ONNXIFI_STATUS_INVALID_EVENT,
                                         ONNXIFI_STATUS_INVALID_STATE,
                                         ONNXIFI_STATUS_INVALID_NAME,
                                         ONNXIFI_STATUS_INVALID_SHAPE,
                                         ONNXIFI_STATUS_INVALID_DATATYPE,
                                         ONNXIFI_STATUS_INVALID_MEMORY_TYPE,
                                         ONNXIFI_STATUS_INVALID_MEMORY_LOCATION,
                                         ONNXIFI_STATUS_INVALID_FENCE_TYPE,
                                         ONNXIFI_STATUS_INVALID_PROPERTY,
                                         ONNXIFI_STATUS_UNSUPPORTED_TAG,
                                         ONNXIFI_STATUS_UNSUPPORTED_VERSION,
                                         ONNXIFI_STATUS_UNSUPPORTED_OPERATOR,
                                         ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE,
                                         ONNXIFI_STATUS_UNSUPPORTED_SHAPE,
                                         ONNXIFI_STATUS_UNSUPPORTED_DATATYPE,
                                         ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE,
                                         ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE,
                                         ONNXIFI_STATUS_UNSUPPORTED_PROPERTY,
                                         ONNXIFI_STATUS_UNIDENTIFIED_NAME,
                                         ONNXIFI_STATUS_MISMATCHING_SHAPE,
                                         ONNXIFI_STATUS_MISMATCHING_DATATYPE,
                                         ONNXIFI_STATUS_NO_SYSTEM_MEMORY,
                                         ONNXIFI_STATUS_NO_DEVICE_MEMORY,
                                         ONNXIFI_STATUS_NO_SYSTEM_RESOURCES,
                                         ONNXIFI_STATUS_NO_DEVICE_RESOURCES,
                                         ONNXIFI_STATUS_BACKEND_UNAVAILABLE,
                                         ONNXIFI_STATUS_INTERNAL_ERROR};

// What all sequences use: an instance for devices of callers, a file as memory of others, and files
// that are none: a pipe's two ends, a folder, and memory of another size.
struct Surroundings {
  // Of tensors that are used in place.
  static constexpr uint64_t kManyRows = uint64_t{1} << 17;
  static constexpr uint64_t kFileBytes = 4096;
  VkInstance instance = VK_NULL_HANDLE;
  int file = -1;
  std::array<int, 4> unfit_files = {-1, -1, -1, -1};
};
inline Surroundings& TheSurroundings() {
  static Surroundings surroundings;
  return surroundings;
}

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_TESTING_SEQUENCE_MATERIAL_H_
