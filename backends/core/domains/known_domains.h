// SPDX-License-Identifier: Apache-2.0
//
// KnownDomains: the domains that every library made of the kit knows, in one list.

#ifndef ONNXIFI_BACKENDS_CORE_DOMAINS_KNOWN_DOMAINS_H_
#define ONNXIFI_BACKENDS_CORE_DOMAINS_KNOWN_DOMAINS_H_

#include <span>

#include "backends/core/model/domain.h"
#include "backends/core/model/domains.h"

namespace onnxifi::domains {

std::span<const model::Domain* const> ListKnownDomains();

// Schemas of these, made when they are first asked for.
const model::Domains& KnownDomains();

}  // namespace onnxifi::domains

#endif  // ONNXIFI_BACKENDS_CORE_DOMAINS_KNOWN_DOMAINS_H_
