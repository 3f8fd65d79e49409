// SPDX-License-Identifier: Apache-2.0
//
// MakeProvider of libonnxifi: what turns the exported functions of core/abi into the dispatcher.
// Compiled into the shared library itself, which is what the archives below it refer to.

#include <memory>

#include "backends/core/abi/provider.h"
#include "onnxifi/dispatch/dispatch_provider.h"

namespace onnxifi::abi {

std::unique_ptr<Provider> MakeProvider() { return std::make_unique<dispatch::DispatchProvider>(); }

}  // namespace onnxifi::abi
