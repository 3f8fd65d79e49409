// SPDX-License-Identifier: Apache-2.0
//
// KnownDomains: one line per folder.

#include "backends/core/domains/known_domains.h"

#include "backends/core/domains/microsoft/microsoft.h"

namespace onnxifi::domains {

std::span<const model::Domain* const> ListKnownDomains() { return microsoft::ListDomains(); }

const model::Domains& KnownDomains() {
  static const model::Domains known(ListKnownDomains());
  return known;
}

}  // namespace onnxifi::domains
