// SPDX-License-Identifier: Apache-2.0
//
// RunHostFunction: from the list to its functions.

#include "backends/core/host/run_host_function.h"

#include "backends/core/host/image.h"
#include "backends/core/host/map.h"
#include "backends/core/host/sequence.h"
#include "backends/core/host/text.h"
#include "backends/core/host/tokens.h"

namespace onnxifi::host {

base::Result<std::vector<tensor::ValueRef>> RunHostFunction(
    const program::HostFunction& function, std::span<const tensor::ValueRef> inputs) {
  return std::visit([&](const auto& attributes) { return Run(attributes, inputs); },
                    static_cast<const program::HostFunction::variant&>(function));
}

}  // namespace onnxifi::host
