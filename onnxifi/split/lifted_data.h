// SPDX-License-Identifier: Apache-2.0
//
// LiftedData: the tensor data of a model that the wire scanner left in the caller's bytes, and the
// way back into messages.

#ifndef ONNXIFI_ONNXIFI_SPLIT_LIFTED_DATA_H_
#define ONNXIFI_ONNXIFI_SPLIT_LIFTED_DATA_H_

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "backends/core/model/wire_scanner.h"

namespace onnxifi::split {

// Of the messages parsed from the skeleton that came with `tensors`. Borrows the scanned bytes.
class LiftedData {
 public:
  LiftedData() = default;
  explicit LiftedData(std::vector<model::LiftedTensor> tensors) : tensors_(std::move(tensors)) {}

  // The whole TensorProto in the scanned bytes.
  std::span<const std::byte> BodyOf(const onnx::TensorProto& tensor) const;

  // Put back the data of the tensor, or of all within. Each message once.
  void Restore(onnx::TensorProto& tensor) const;
  void Restore(onnx::SparseTensorProto& tensor) const;
  void Restore(onnx::NodeProto& node) const;
  void Restore(onnx::GraphProto& graph) const;

 private:
  std::vector<model::LiftedTensor> tensors_;
};

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_LIFTED_DATA_H_
