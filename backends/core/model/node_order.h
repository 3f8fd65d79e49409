// SPDX-License-Identifier: Apache-2.0
//
// OrderNodes: a topological order of the nodes of one graph or function body. ONNX demands that
// nodes come sorted; some writers, such as float16 converters, append nodes without sorting them.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_NODE_ORDER_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_NODE_ORDER_H_

#include <onnx/onnx_pb.h>

#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::model {

// Positions of `nodes`, each behind those of the nodes that make what it reads, its subgraphs
// included. Empty where the nodes are in order already. A node moves only where it stands behind a
// reader of its results, and then to right before the first of them. Names that no node makes are
// left to the reader. INVALID_MODEL with the names on a cycle. Time: linear in nodes and names.
base::Result<std::vector<int>> OrderNodes(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_NODE_ORDER_H_
