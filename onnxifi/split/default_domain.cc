// SPDX-License-Identifier: Apache-2.0
//
// WriteDefaultDomain: nodes of subgraphs and functions have domains as those of the main graph do.

#include "onnxifi/split/default_domain.h"

#include "backends/core/model/versions.h"

namespace onnxifi::split {
namespace {

void WriteIn(onnx::GraphProto& graph);

template <typename Message>
void WriteOf(Message& message) {
  if (message.has_domain() && model::CanonicalDomain(message.domain()).empty()) {
    message.clear_domain();
  }
}

void WriteIn(onnx::NodeProto& node) {
  WriteOf(node);
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) WriteIn(*attribute.mutable_g());
    for (onnx::GraphProto& graph : *attribute.mutable_graphs()) WriteIn(graph);
  }
}

void WriteIn(onnx::GraphProto& graph) {
  for (onnx::NodeProto& node : *graph.mutable_node()) WriteIn(node);
}

}  // namespace

void WriteDefaultDomain(onnx::ModelProto& model) {
  for (onnx::OperatorSetIdProto& set : *model.mutable_opset_import()) WriteOf(set);
  WriteIn(*model.mutable_graph());
  for (onnx::FunctionProto& function : *model.mutable_functions()) {
    WriteOf(function);
    for (onnx::OperatorSetIdProto& set : *function.mutable_opset_import()) WriteOf(set);
    for (onnx::NodeProto& node : *function.mutable_node()) WriteIn(node);
  }
}

}  // namespace onnxifi::split
