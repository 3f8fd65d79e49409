// SPDX-License-Identifier: Apache-2.0
//
// OperatorSource: the operators that a plugin knows beside the entries of core/ops: those that ONNX
// or a domain defines as functions, and those of its vendor.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_OPERATOR_SOURCE_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_OPERATOR_SOURCE_H_

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backends/core/model/domains.h"
#include "backends/core/ops/lower_graph.h"
#include "backends/core/ops/operator.h"

namespace onnxifi::plugin {

// A domain of operators that the plugin's vendor adds. Operators with a definition need no entry.
// libonnxifi does not know the domain, and infers no shapes of what its nodes make.
struct VendorDomain {
  const model::Domain* domain = nullptr;
  // Of operators that the plugin lowers itself; each names the domain.
  std::span<const ops::Operator> entries;
};

// Threads: any.
class OperatorSource final : public ops::FunctionSource {
 public:
  // Those of the domains that the kit knows, and of the vendor's, which outlive this object.
  explicit OperatorSource(std::span<const VendorDomain> vendors = {});

  // For whoever imports a model.
  const model::Domains& domains() const { return domains_; }

  base::Result<std::unique_ptr<graph::Graph>> Expand(
      const graph::Node& node, const std::vector<graph::Type>& input_types) const override;
  const ops::Operator* FindEntry(std::string_view domain, std::string_view op_type) const override;

 private:
  const std::span<const VendorDomain> vendors_;
  const model::Domains domains_;
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_OPERATOR_SOURCE_H_
