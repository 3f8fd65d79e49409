// SPDX-License-Identifier: Apache-2.0
//
// FlexAttention (ai.onnx.preview), which ONNX defines as a function of graphs that the node owns:
// what is computed before, between and after them.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_FLEX_ATTENTION_H_
#define ONNXIFI_BACKENDS_CORE_OPS_FLEX_ATTENTION_H_

#include <memory>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/program/program.h"

namespace onnxifi::ops {

struct FlexAttention {
  // Of the numbers of heads, where they are symbols.
  std::vector<program::Requirement> requirements;
  graph::Graph scores;   // Q, K -> scores
  graph::Graph softmax;  // scores -> probabilities
  graph::Graph product;  // probabilities, V -> Y
  // One input and one output each, or null: applied to the scores, to the probabilities.
  std::shared_ptr<const graph::Graph> score_mod;
  std::shared_ptr<const graph::Graph> prob_mod;
};

// INVALID_MODEL, MISMATCHING_DATATYPE, UNSUPPORTED_...: inputs or attributes that do not fit.
base::Result<FlexAttention> ExpandFlexAttention(const graph::Node& node, const program::Operand& q,
                                                const program::Operand& k,
                                                const program::Operand& v);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_FLEX_ATTENTION_H_
