// SPDX-License-Identifier: Apache-2.0
//
// AddDomainImports: the domains of all nodes, then those of them that are known.

#include "onnxifi/split/domain_imports.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "backends/core/domains/known_domains.h"

namespace onnxifi::split {
namespace {

void CollectDomains(const onnx::GraphProto& graph, std::set<std::string>& domains) {
  for (const onnx::NodeProto& node : graph.node()) {
    domains.insert(node.domain());
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) CollectDomains(attribute.g(), domains);
      for (const onnx::GraphProto& subgraph : attribute.graphs()) CollectDomains(subgraph, domains);
    }
  }
}

}  // namespace

void AddDomainImports(onnx::ModelProto& model) {
  std::set<std::string> missing;
  CollectDomains(model.graph(), missing);
  missing.erase("");
  for (const onnx::OperatorSetIdProto& import : model.opset_import()) {
    missing.erase(import.domain());
  }
  for (const std::string& domain : missing) {
    const std::optional<int64_t> newest = domains::KnownDomains().NewestOpset(domain);
    if (!newest) continue;
    onnx::OperatorSetIdProto& added = *model.add_opset_import();
    added.set_domain(domain);
    added.set_version(*newest);
  }
}

}  // namespace onnxifi::split
