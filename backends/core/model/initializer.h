// SPDX-License-Identifier: Apache-2.0
//
// Initializer: the constants that a graph starts with, from the model or, as weights, from the
// caller, each checked against what the model declares of it.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_INITIALIZER_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_INITIALIZER_H_

#include <onnx/onnx_pb.h>

#include <span>
#include <string_view>
#include <unordered_map>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/model/import_options.h"
#include "backends/core/model/tensor_proto.h"

namespace onnxifi::model {

// The caller's weights by name; borrowed.
class WeightTable {
 public:
  // INVALID_NAME: a weight given twice.
  base::Status Add(std::span<const Weight> weights);
  // Null: none of that name.
  const Weight* Find(std::string_view name) const;

 private:
  std::unordered_map<std::string_view, const Weight*> weights_;
};

// The weight as a constant. INVALID_SHAPE, UNSUPPORTED_DATATYPE, INVALID_MEMORY_LOCATION,
// NO_SYSTEM_MEMORY.
base::Result<graph::Value> ReadWeight(const Weight& weight);

// The initializer as a constant, still without name; without `lifts_values` one that is large or
// has no data in the model is a weight without values. Errors: TensorReader's.
base::Result<graph::Value> ReadInitializer(const onnx::TensorProto& proto, bool lifts_values,
                                           TensorReader& tensors);
base::Result<graph::Value> ReadInitializer(const onnx::SparseTensorProto& proto, bool lifts_values,
                                           TensorReader& tensors);

// A weight or initializer against the declaration of the graph input or initializer of its name.
// Its element type wins over the declared one: published callers declare a Reshape's shape FLOAT
// and give INT64. MISMATCHING_DATATYPE, MISMATCHING_SHAPE, INVALID_SHAPE.
base::Status CheckDeclaredShape(const graph::Value& value, const graph::Type& declared,
                                bool is_from_descriptor);

// The type of a tensor of which everything is known.
graph::Type TensorType(tensor::ElementType element, const tensor::Extents& extents);

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_INITIALIZER_H_
