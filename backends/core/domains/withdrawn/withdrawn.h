// SPDX-License-Identifier: Apache-2.0
//
// ONNX's own domain, as far as ONNX withdrew it: operators of its first versions that its registry
// has no more.

#ifndef ONNXIFI_BACKENDS_CORE_DOMAINS_WITHDRAWN_WITHDRAWN_H_
#define ONNXIFI_BACKENDS_CORE_DOMAINS_WITHDRAWN_WITHDRAWN_H_

#include <span>

#include "backends/core/model/domain.h"

namespace onnxifi::withdrawn {

std::span<const model::Domain* const> ListDomains();

}  // namespace onnxifi::withdrawn

#endif  // ONNXIFI_BACKENDS_CORE_DOMAINS_WITHDRAWN_WITHDRAWN_H_
