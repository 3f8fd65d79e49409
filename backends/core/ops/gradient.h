// SPDX-License-Identifier: Apache-2.0
//
// Gradient (ai.onnx.preview.training): differentiates the part of the node's own graph that lies
// between the values that its attributes name.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_GRADIENT_H_
#define ONNXIFI_BACKENDS_CORE_OPS_GRADIENT_H_

#include <functional>
#include <memory>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/program/view.h"

namespace onnxifi::ops {

// The tensor that a value of the node's graph became; null where it is none, or not lowered yet.
using FindTensor = std::function<const program::Operand*(graph::ValueId)>;

// A graph of the node's inputs (xs, then zs) and outputs, which captures what else it reads. It
// computes y anew from the inputs, since they need not be the named tensors, and then the
// derivatives of y's sum. INVALID_MODEL where names or inputs do not fit; UNSUPPORTED_OPERATOR
// where an operator between has no derivative here; UNSUPPORTED_SHAPE for products with vectors.
base::Result<std::unique_ptr<graph::Graph>> ExpandGradient(const graph::Graph& graph,
                                                           const graph::Node& node,
                                                           const FindTensor& find);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_GRADIENT_H_
