// SPDX-License-Identifier: Apache-2.0
//
// FunctionSource and StepCheck: what a lowering asks others: for operators that core/ops has no
// entry for, and whether a device takes the steps that a node became.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_FUNCTION_SOURCE_H_
#define ONNXIFI_BACKENDS_CORE_OPS_FUNCTION_SOURCE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/ops/operator.h"
#include "backends/core/program/program.h"

namespace onnxifi::ops {

// Called after each node with the steps it added (from `first_step` on), which it may replace.
// FALLBACK says that some of them are emulated. Any other status that is not ok ends the lowering
// with it, or, in LowerEachNode, becomes that node's verdict.
using StepCheck = std::function<base::Status(program::Program& program, size_t first_step)>;

// Operators that core/ops has no entry for: bodies of those that ONNX or a domain defines as
// functions, and lowerings that a plugin brings along.
class FunctionSource {
 public:
  virtual ~FunctionSource() = default;
  // The body for this node and these input types (unknown where omitted): a graph whose inputs and
  // outputs are the node's in order, every omitted input left out of the body. UNSUPPORTED_OPERATOR
  // if there is none.
  virtual base::Result<std::unique_ptr<graph::Graph>> Expand(
      const graph::Node& node, const std::vector<graph::Type>& input_types) const = 0;
  // The plugin's entry; null if there is none.
  virtual const Operator* FindEntry(std::string_view domain, std::string_view op_type) const {
    (void)domain, (void)op_type;
    return nullptr;
  }
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_FUNCTION_SOURCE_H_
