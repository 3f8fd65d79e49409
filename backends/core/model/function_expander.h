// SPDX-License-Identifier: Apache-2.0
//
// FunctionExpander: the definition of an operator as a function, where ONNX gives one, for
// operators that core/ops has no lowering for.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_FUNCTION_EXPANDER_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_FUNCTION_EXPANDER_H_

#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/model/domains.h"

namespace onnxifi::model {

// A graph of the node's function body: its inputs are those of the node that are not omitted, its
// outputs the node's in order (one for each, omitted ones too). One level: nodes of the body may be
// functions themselves. `input_types`: one per node input, unknown where omitted or not known; some
// definitions depend on them. UNSUPPORTED_OPERATOR: no definition, or none for these types, or one
// that takes a graph as attribute. Threads: any.
base::Result<graph::Graph> ExpandFunction(const graph::Node& node,
                                          const std::vector<graph::Type>& input_types,
                                          const Domains& domains = NoDomains());

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_FUNCTION_EXPANDER_H_
