// SPDX-License-Identifier: Apache-2.0
//
// LiftedData: the raw data of a tensor of the skeleton are its number among the lifted ones.

#include "onnxifi/split/lifted_data.h"

#include <cstdint>
#include <cstring>

namespace onnxifi::split {

std::span<const std::byte> LiftedData::BodyOf(const onnx::TensorProto& tensor) const {
  uint32_t index = 0;
  std::memcpy(&index, tensor.raw_data().data(), sizeof(index));
  return tensors_[index].body;
}

void LiftedData::Restore(onnx::TensorProto& tensor) const {
  const std::span<const std::byte> body = BodyOf(tensor);
  tensor.ParseFromArray(body.data(), static_cast<int>(body.size()));
}

void LiftedData::Restore(onnx::SparseTensorProto& tensor) const {
  Restore(*tensor.mutable_values());
  Restore(*tensor.mutable_indices());
}

void LiftedData::Restore(onnx::NodeProto& node) const {
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_t()) Restore(*attribute.mutable_t());
    if (attribute.has_sparse_tensor()) Restore(*attribute.mutable_sparse_tensor());
    if (attribute.has_g()) Restore(*attribute.mutable_g());
    for (onnx::TensorProto& tensor : *attribute.mutable_tensors()) Restore(tensor);
    for (onnx::SparseTensorProto& tensor : *attribute.mutable_sparse_tensors()) Restore(tensor);
    for (onnx::GraphProto& graph : *attribute.mutable_graphs()) Restore(graph);
  }
}

void LiftedData::Restore(onnx::GraphProto& graph) const {
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) Restore(tensor);
  for (onnx::SparseTensorProto& tensor : *graph.mutable_sparse_initializer()) Restore(tensor);
  for (onnx::NodeProto& node : *graph.mutable_node()) Restore(node);
}

}  // namespace onnxifi::split
