// SPDX-License-Identifier: Apache-2.0
//
// RunOperator: lowers a graph of one node and runs it on the reference. What the unit tests of
// operators are written with.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_TESTING_RUN_OPERATOR_H_
#define ONNXIFI_BACKENDS_CORE_OPS_TESTING_RUN_OPERATOR_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/program/program.h"
#include "backends/core/tensor/tensor.h"
#include "backends/core/tensor/value.h"

namespace onnxifi::ops {

struct NodeInput {
  enum class Kind : uint8_t {
    kGiven,     // a graph input with its extents declared
    kSymbolic,  // a graph input whose extents are symbols until it runs
    kConstant,  // an initializer
    kOmitted,
  };
  std::optional<tensor::Tensor> tensor;
  Kind kind = Kind::kGiven;
};

using Rewrite = std::function<void(program::Program& program)>;

struct OneNode {
  std::string op_type;
  int version = 0;  // the operator's since_version
  std::map<std::string, graph::Attribute, std::less<>> attributes = {};
  std::vector<NodeInput> inputs = {};
  std::vector<bool> wanted = {true};  // which outputs the node names
  std::string domain = {};
  // Of the first output, whose extents are not declared; nothing: neither is its rank.
  std::optional<int> declared_rank = std::nullopt;
  // Of the lowered program, before it runs; may be empty.
  Rewrite rewrite = {};
};

// The wanted outputs, in order. Errors of the lowering, of the plan or of the run.
base::Result<std::vector<tensor::Tensor>> RunOperator(const OneNode& node);

// A whole graph likewise; `inputs` in the order of its inputs.
base::Result<std::vector<tensor::Tensor>> RunGraph(const graph::Graph& graph,
                                                   const std::vector<tensor::Tensor>& inputs,
                                                   const Rewrite& rewrite = {});

// The same, lowered for the branches that a run on these inputs takes.
base::Result<std::vector<tensor::Tensor>> RunGraphForBranches(
    const graph::Graph& graph, const std::vector<tensor::Tensor>& inputs);

// The same with values of any kind, and functions' definitions not expanded.
base::Result<std::vector<tensor::Value>> RunGraphOnValues(const graph::Graph& graph,
                                                          const std::vector<tensor::Value>& inputs);

// Tensors of float32 or any other type from numbers, and back.
tensor::Tensor MakeTensor(tensor::ElementType type, tensor::Extents extents,
                          const std::vector<double>& values);
NodeInput Given(tensor::Extents extents, const std::vector<double>& values,
                tensor::ElementType type = tensor::ElementType::kFloat32);
NodeInput Symbolic(tensor::Extents extents, const std::vector<double>& values,
                   tensor::ElementType type = tensor::ElementType::kFloat32);
NodeInput Constant(tensor::Extents extents, const std::vector<double>& values,
                   tensor::ElementType type = tensor::ElementType::kFloat32);
NodeInput Omitted();
std::vector<double> Numbers(const tensor::Tensor& tensor);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_TESTING_RUN_OPERATOR_H_
