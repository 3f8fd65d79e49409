// SPDX-License-Identifier: Apache-2.0
//
// Graphs that an operator's definition puts around the graphs that its node owns.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_CAPTURES_H_
#define ONNXIFI_BACKENDS_CORE_OPS_CAPTURES_H_

#include <map>
#include <string>

#include "backends/core/graph/graph.h"

namespace onnxifi::ops {

// The values of an enclosing graph in one that is inside it, each once.
class Captures {
 public:
  // Of `inside`, which outlives this object.
  explicit Captures(graph::Graph& inside) : inside_(inside) {}

  graph::ValueId Of(graph::ValueId outside, const std::string& name);
  // Makes what `body` captures captures of the graph that is between it and the enclosing one.
  void PassOn(graph::Graph& body);

 private:
  graph::Graph& inside_;
  std::map<graph::ValueId, graph::ValueId> known_;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_CAPTURES_H_
