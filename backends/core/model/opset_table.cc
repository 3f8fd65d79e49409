// SPDX-License-Identifier: Apache-2.0
//
// OpsetTable: a model imports one to five domains, so a list is the fastest table.

#include "backends/core/model/opset_table.h"

#include <string>

#include "backends/core/model/domains.h"
#include "backends/core/model/versions.h"

namespace onnxifi::model {

using base::Code;
using base::Status;

base::Result<OpsetTable> OpsetTable::Make(const Imports& imports, int64_t ir_version,
                                          const Domains& domains) {
  OpsetTable table;
  for (const onnx::OperatorSetIdProto& import : imports) {
    const std::string_view domain = CanonicalDomain(import.domain());
    const auto spell = [&] {
      return "The version of operator set '" + std::string(SpelledDomain(domain)) + "' (" +
             std::to_string(import.version()) + ")";
    };
    if (import.version() < 1) {
      return Status(Code::kInvalidModel, spell() + " is below the first (1).");
    }
    const std::optional<int64_t> newest = domains.NewestOpset(domain);
    if (newest && import.version() > *newest) {
      return Status(Code::kUnsupportedVersion,
                    spell() + " exceeds the newest supported (" + std::to_string(*newest) + ").");
    }
    const std::optional<int64_t> earlier = table.Find(domain);
    if (earlier && *earlier != import.version()) {
      return Status(Code::kInvalidModel, spell() + " differs from another import of it (" +
                                             std::to_string(*earlier) + ").");
    }
    if (!earlier) table.versions_.emplace_back(domain, import.version());
  }
  if (table.versions_.empty()) {
    constexpr int64_t kFirstWithImports = 3;
    if (ir_version >= kFirstWithImports) {
      return Status(Code::kInvalidModel, "The model imports no operator set, which IR version " +
                                             std::to_string(ir_version) + " requires.");
    }
    table.versions_.emplace_back("", 1);
  }
  return table;
}

std::optional<int64_t> OpsetTable::Find(std::string_view domain) const {
  for (const auto& [known, version] : versions_) {
    if (known == domain) return version;
  }
  return std::nullopt;
}

}  // namespace onnxifi::model
