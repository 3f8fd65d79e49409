// SPDX-License-Identifier: Apache-2.0
//
// OperatorSource: asks core/model for the body of a function operator, and the vendor's lists for
// entries.

#include "backends/core/plugin/operator_source.h"

#include "backends/core/domains/known_domains.h"
#include "backends/core/model/function_expander.h"

namespace onnxifi::plugin {
namespace {

std::vector<const model::Domain*> Join(std::span<const VendorDomain> vendors) {
  const auto known = domains::ListKnownDomains();
  std::vector<const model::Domain*> joined(known.begin(), known.end());
  for (const VendorDomain& vendor : vendors) joined.push_back(vendor.domain);
  return joined;
}

}  // namespace

OperatorSource::OperatorSource(std::span<const VendorDomain> vendors)
    : vendors_(vendors), domains_(Join(vendors)) {}

base::Result<std::unique_ptr<graph::Graph>> OperatorSource::Expand(
    const graph::Node& node, const std::vector<graph::Type>& input_types) const {
  ONNXIFI_ASSIGN_OR_RETURN(graph::Graph body, model::ExpandFunction(node, input_types, domains_));
  return std::make_unique<graph::Graph>(std::move(body));
}

const ops::Operator* OperatorSource::FindEntry(std::string_view domain,
                                               std::string_view op_type) const {
  for (const VendorDomain& vendor : vendors_) {
    if (vendor.domain->name != domain) continue;
    for (const ops::Operator& entry : vendor.entries) {
      if (entry.op_type == op_type) return &entry;
    }
  }
  return nullptr;
}

}  // namespace onnxifi::plugin
