// SPDX-License-Identifier: Apache-2.0
//
// KnownDomains: one line per folder.

#include "backends/core/domains/known_domains.h"

#include <vector>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/withdrawn/withdrawn.h"

namespace onnxifi::domains {

std::span<const model::Domain* const> ListKnownDomains() {
  static const auto known = [] {
    std::vector<const model::Domain*> domains;
    for (const auto& of_folder : {microsoft::ListDomains(), withdrawn::ListDomains()}) {
      domains.insert(domains.end(), of_folder.begin(), of_folder.end());
    }
    return domains;
  }();
  return known;
}

const model::Domains& KnownDomains() {
  static const model::Domains known(ListKnownDomains());
  return known;
}

}  // namespace onnxifi::domains
