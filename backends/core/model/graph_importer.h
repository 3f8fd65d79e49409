// SPDX-License-Identifier: Apache-2.0
//
// GraphImporter: a parsed model -> a Graph. Names become value ids, subgraphs graphs with captures,
// calls of model-local functions the nodes of their bodies; each node is checked against its
// schema.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_GRAPH_IMPORTER_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_GRAPH_IMPORTER_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/model/import.h"
#include "backends/core/model/opset_table.h"
#include "backends/core/model/schema.h"
#include "backends/core/model/tensor_proto.h"

namespace onnxifi::model {

// Subgraphs and function calls inside one another.
inline constexpr int kDeepestScope = 128;
// Nodes, names and attributes that inlining model-local functions may add: each function may call
// others many times.
inline constexpr int64_t kMostInlined = int64_t{1} << 18;
inline constexpr int64_t kMostInlinedBytes = int64_t{256} << 20;

// Made for one import; borrows all it is made from. Errors: import.h.
class GraphImporter {
 public:
  GraphImporter(const onnx::ModelProto& model, TensorReader& tensors, const ImportOptions& options)
      : model_(model), tensors_(tensors), options_(options) {}

  base::Result<graph::Graph> Run(const OpsetTable& opsets);

 private:
  using Attributes = std::map<std::string, graph::Attribute, std::less<>>;

  // A call of a model-local function while its body is imported.
  struct Call {
    const onnx::FunctionProto* function;
    const Call* caller;  // null: called from the model's own graph
    const graph::Graph* graph;
    int node_index;
    Attributes attributes;
  };

  struct Entry {
    graph::ValueId id = graph::kNoValue;
    bool is_defined = false;  // else only its type is declared
    bool is_input = false;
    bool is_output = false;
    bool is_read = false;
  };

  // The names of one graph or function body. Function bodies see no names around them.
  struct Scope {
    graph::Graph* graph;
    Scope* outer;  // of the enclosing graph; null in the model's own graph and in function bodies
    const OpsetTable* opsets;
    const Call* call;
    std::string prefix;  // of node names: the path of calls
    int depth;
    std::unordered_map<std::string_view, Entry> names;
  };

  base::Status IndexFunctions();
  base::Status IndexWeights();
  base::Status ImportGraph(const onnx::GraphProto& proto, Scope& scope);

  base::Status ImportInitializers(const onnx::GraphProto& proto, Scope& scope);
  base::Result<graph::Value> ReadInitializer(const onnx::TensorProto& proto);
  base::Result<graph::Value> ReadInitializer(const onnx::SparseTensorProto& proto);
  base::Result<graph::Value> ReadWeight(const Weight& weight);
  base::Status ImportInputs(const onnx::GraphProto& proto, Scope& scope);
  base::Status DeclareTypes(
      const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& declared, Scope& scope);
  base::Status ImportOutputs(const onnx::GraphProto& proto, Scope& scope);
  // Weights whose names only nodes mention.
  base::Status DefineNodeWeights(Scope& scope);
  base::Status CheckWeightsRead(const Scope& scope) const;

  base::Status ImportNode(const onnx::NodeProto& proto, int position, Scope& scope);
  base::Status ImportOperator(const onnx::NodeProto& proto, graph::Node& node, Scope& scope);
  base::Status ImportCall(const onnx::NodeProto& proto, const onnx::FunctionProto& function,
                          const graph::Node& node, Scope& scope);
  base::Status BindCallOutput(const std::string& inner_name, const std::string& outer_name,
                              const graph::Node& node, Scope& body, Scope& scope);
  base::Result<std::vector<graph::ValueId>> ResolveInputs(const onnx::NodeProto& proto,
                                                          Scope& scope);
  // Adds the attribute under its name; one that refers to an absent attribute of the call stays
  // absent.
  base::Status ImportAttribute(const onnx::AttributeProto& proto, const Schema* schema,
                               Scope& scope, Attributes& attributes);
  base::Result<graph::Attribute> ReadAttribute(const onnx::AttributeProto& proto,
                                               onnx::AttributeProto::AttributeType type,
                                               Scope& scope);
  base::Result<std::shared_ptr<const graph::Graph>> ImportSubgraph(const onnx::GraphProto& proto,
                                                                   Scope& scope);

  const onnx::FunctionProto* FindFunction(const onnx::NodeProto& proto,
                                          std::string_view domain) const;
  const Weight* FindWeight(std::string_view name) const;
  // The value of that name here or in an enclosing graph, which is captured; kNoValue for an
  // omitted input of a function.
  std::optional<graph::ValueId> Resolve(std::string_view name, Scope& scope);
  base::Result<graph::ValueId> Define(std::string_view name, graph::Value value, Scope& scope);
  // Counts what a function adds against the limits above; free outside functions.
  base::Status Spend(int64_t count, int64_t size_bytes, const Scope& scope);

  const onnx::ModelProto& model_;
  TensorReader& tensors_;
  const ImportOptions& options_;
  std::unordered_map<std::string, const onnx::FunctionProto*> functions_;
  std::unordered_map<std::string_view, const Weight*> weights_;
  int64_t inlined_ = 0;
  int64_t inlined_bytes_ = 0;
};

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_GRAPH_IMPORTER_H_
