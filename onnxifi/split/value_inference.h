// SPDX-License-Identifier: Apache-2.0
//
// InferValues: what the ONNX library finds out of the values of a model: types, shapes, and numbers
// that decide shapes.

#ifndef ONNXIFI_ONNXIFI_SPLIT_VALUE_INFERENCE_H_
#define ONNXIFI_ONNXIFI_SPLIT_VALUE_INFERENCE_H_

#include <onnx/onnx_pb.h>

#include <string>
#include <unordered_map>

#include "backends/core/base/result.h"

namespace onnxifi::split {

struct InferredValues {
  // As inferred or declared, by name.
  std::unordered_map<std::string, onnx::TypeProto> types;
  // Of the integers whose elements are the same in every run.
  std::unordered_map<std::string, onnx::TensorProto> contents;
};

// Writes the types that it finds into `model` too. INVALID_MODEL where they contradict each other
// or an operator's rules.
base::Result<InferredValues> InferValues(onnx::ModelProto& model);

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_VALUE_INFERENCE_H_
