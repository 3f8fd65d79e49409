// SPDX-License-Identifier: Apache-2.0
//
// NamesReadBy: a walk that knows what each subgraph around it defines itself.

#include "backends/core/model/node_reads.h"

#include <unordered_set>
#include <utility>

namespace onnxifi::model {
namespace {

class Reads {
 public:
  void Add(const onnx::NodeProto& node) {
    for (const std::string& input : node.input()) Read(input);
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) Add(attribute.g());
      for (const onnx::GraphProto& graph : attribute.graphs()) Add(graph);
    }
  }

  std::vector<std::string> TakeNames() { return std::move(names_); }

 private:
  void Add(const onnx::GraphProto& graph) {
    scopes_.emplace_back();
    for (const onnx::ValueInfoProto& input : graph.input()) scopes_.back().insert(input.name());
    for (const onnx::TensorProto& tensor : graph.initializer()) {
      scopes_.back().insert(tensor.name());
    }
    for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer()) {
      scopes_.back().insert(tensor.values().name());
    }
    // All of them first: nodes need not be sorted.
    for (const onnx::NodeProto& node : graph.node()) {
      scopes_.back().insert(node.output().begin(), node.output().end());
    }
    for (const onnx::NodeProto& node : graph.node()) Add(node);
    for (const onnx::ValueInfoProto& output : graph.output()) Read(output.name());
    scopes_.pop_back();
  }
  void Read(const std::string& name) {
    if (name.empty()) return;
    for (const auto& scope : scopes_) {
      if (scope.contains(name)) return;
    }
    if (seen_.insert(name).second) names_.push_back(name);
  }

  std::vector<std::unordered_set<std::string>> scopes_;
  std::unordered_set<std::string> seen_;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<std::string> NamesReadBy(const onnx::NodeProto& node) {
  Reads reads;
  reads.Add(node);
  return reads.TakeNames();
}

}  // namespace onnxifi::model
