// SPDX-License-Identifier: Apache-2.0
//
// GraphImporter: a parsed model -> a Graph. Walks its graphs and nodes; each node is checked
// against its schema, subgraphs become graphs with captures, calls of model-local functions the
// nodes of their bodies.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_GRAPH_IMPORTER_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_GRAPH_IMPORTER_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/model/attribute_proto.h"
#include "backends/core/model/function_call.h"
#include "backends/core/model/import_options.h"
#include "backends/core/model/initializer.h"
#include "backends/core/model/opset_table.h"
#include "backends/core/model/schema.h"
#include "backends/core/model/scope.h"
#include "backends/core/model/tensor_proto.h"

namespace onnxifi::model {

// Made for one import; borrows all it is made from. Errors: import.h.
class GraphImporter {
 public:
  GraphImporter(const onnx::ModelProto& model, TensorReader& tensors, const ImportOptions& options)
      : model_(model), tensors_(tensors), options_(options) {}

  base::Result<graph::Graph> Run(const OpsetTable& opsets);

 private:
  base::Status ImportGraph(const onnx::GraphProto& proto, Scope& scope);
  base::Status ImportInitializers(const onnx::GraphProto& proto, Scope& scope);
  base::Status ImportInputs(const onnx::GraphProto& proto, Scope& scope);
  base::Status DeclareTypes(
      const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& declared, Scope& scope);
  base::Status ImportOutputs(const onnx::GraphProto& proto, Scope& scope);
  // An input that is listed once more. INVALID_MODEL where its type is another.
  static base::Status CheckSameInput(const onnx::GraphProto& proto,
                                     const onnx::ValueInfoProto& input);
  // Weights whose names only nodes mention.
  base::Status DefineNodeWeights(Scope& scope);
  base::Status CheckWeightsRead(const Scope& scope) const;

  // In topological order; a node keeps the number of its position.
  base::Status ImportNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                           Scope& scope);
  base::Status ImportNode(const onnx::NodeProto& proto, int position, Scope& scope);
  base::Status ImportOperator(const onnx::NodeProto& proto, graph::Node& node, Scope& scope);
  // Of the operators of a canonical domain; nothing if it is neither imported nor known.
  std::optional<int64_t> VersionOf(const std::string& domain, const Scope& scope) const;
  base::Status ImportCall(const onnx::NodeProto& proto, const onnx::FunctionProto& function,
                          const graph::Node& node, Scope& scope);
  // Null where there is none.
  const onnx::TensorProto* FindLeftOutConstant(const onnx::NodeProto& proto,
                                               const graph::Node& node) const;
  // Adds the attribute under its name; one that refers to an absent attribute of the call stays
  // absent.
  base::Status ImportAttribute(const onnx::AttributeProto& proto, const Schema* schema,
                               Scope& scope, Attributes& attributes);
  // Notes an attribute that no version of its operator has; once per name.
  void NoteIgnored(const std::string& attribute, const Schema& schema);
  base::Result<std::shared_ptr<const graph::Graph>> ImportSubgraph(const onnx::GraphProto& proto,
                                                                   Scope& scope);

  const onnx::ModelProto& model_;
  TensorReader& tensors_;
  const ImportOptions& options_;
  FunctionTable functions_;
  WeightTable weights_;
  InlineBudget budget_;
  std::unordered_set<std::string> ignored_;  // attributes
  std::vector<std::string> notes_;
};

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_GRAPH_IMPORTER_H_
