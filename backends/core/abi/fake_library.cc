// SPDX-License-Identifier: Apache-2.0
//
// MakeProvider of the test program of core/abi: two fake devices.

#include <memory>

#include "backends/core/abi/fake_provider.h"
#include "backends/core/abi/provider.h"

namespace onnxifi::abi {

std::unique_ptr<Provider> MakeProvider() { return MakeFakeProvider({{"fake:0"}, {"fake:1"}}); }

}  // namespace onnxifi::abi
