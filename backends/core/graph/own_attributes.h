// SPDX-License-Identifier: Apache-2.0
//
// OwnAttributes: attributes that definitions of operators give to nodes of ONNX's operators. ONNX
// leaves names that begin with two underscores to implementations. The importer keeps them in
// definitions alone: no file can give a node one.

#ifndef ONNXIFI_BACKENDS_CORE_GRAPH_OWN_ATTRIBUTES_H_
#define ONNXIFI_BACKENDS_CORE_GRAPH_OWN_ATTRIBUTES_H_

namespace onnxifi::graph {

// MatMul: 1 permits to round A to bytes in blocks (Contract::may_round_to_bytes).
inline constexpr char kMayRoundToBytes[] = "__may_round_to_bytes";

}  // namespace onnxifi::graph

#endif  // ONNXIFI_BACKENDS_CORE_GRAPH_OWN_ATTRIBUTES_H_
