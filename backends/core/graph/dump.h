// SPDX-License-Identifier: Apache-2.0
//
// Dump: a graph as text for a person, or as DOT for a picture. The pass runner calls it after each
// pass on demand.

#ifndef ONNXIFI_BACKENDS_CORE_GRAPH_DUMP_H_
#define ONNXIFI_BACKENDS_CORE_GRAPH_DUMP_H_

#include <string>

#include "backends/core/graph/graph.h"

namespace onnxifi::graph {

// "float[2, N, ?]", "sequence(int64[])", "unknown".
std::string ToString(const Type& type);

// One line per input, constant, node and output; subgraphs indented below their node.
std::string DumpText(const Graph& graph);
// A DOT digraph: nodes as boxes, inputs and outputs as ellipses, edges labelled with name and type;
// subgraphs as clusters.
std::string DumpDot(const Graph& graph);

}  // namespace onnxifi::graph

#endif  // ONNXIFI_BACKENDS_CORE_GRAPH_DUMP_H_
