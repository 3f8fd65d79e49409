// SPDX-License-Identifier: Apache-2.0
//
// OwnAttributes: attributes that this project gives to nodes of ONNX's operators, where it defines
// other operators by them. ONNX leaves names that begin with two underscores to implementations;
// the importer keeps these.

#ifndef ONNXIFI_BACKENDS_CORE_GRAPH_OWN_ATTRIBUTES_H_
#define ONNXIFI_BACKENDS_CORE_GRAPH_OWN_ATTRIBUTES_H_

namespace onnxifi::graph {

// MatMul: 1 permits to round A to bytes in blocks (Contract::may_round_to_bytes).
inline constexpr char kMayRoundToBytes[] = "__may_round_to_bytes";

}  // namespace onnxifi::graph

#endif  // ONNXIFI_BACKENDS_CORE_GRAPH_OWN_ATTRIBUTES_H_
