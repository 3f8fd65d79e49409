// SPDX-License-Identifier: Apache-2.0
//
// InferValues: what the ONNX library finds out of the values of a model: types, shapes, and numbers
// that decide shapes.

#ifndef ONNXIFI_ONNXIFI_SPLIT_VALUE_INFERENCE_H_
#define ONNXIFI_ONNXIFI_SPLIT_VALUE_INFERENCE_H_

#include <onnx/onnx_pb.h>

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "backends/core/base/result.h"

namespace onnxifi::split {

struct InferredValues {
  // As inferred or declared, by name.
  std::unordered_map<std::string, onnx::TypeProto> types;
  // Of the integers whose elements are the same in every run.
  std::unordered_map<std::string, onnx::TensorProto> contents;
  // What an If of the main graph gives whose branches do not agree on a rank, as far as it is
  // known, and what is made of it as long as nothing else tells a rank. Exporters declare such
  // values as either branch has them. And what its condition is made of, where that is extents: a
  // device that is to choose a branch has to see them.
  std::unordered_set<std::string> open_ranks;
};

// Writes the types that it finds into `model` too. INVALID_MODEL where they contradict each other
// or an operator's rules.
base::Result<InferredValues> InferValues(onnx::ModelProto& model);

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_VALUE_INFERENCE_H_
