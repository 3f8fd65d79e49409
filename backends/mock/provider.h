// SPDX-License-Identifier: Apache-2.0
//
// The mock's provider: the kit's own over the reference, with claims and initialisation as the
// settings say.

#ifndef ONNXIFI_BACKENDS_MOCK_PROVIDER_H_
#define ONNXIFI_BACKENDS_MOCK_PROVIDER_H_

#include <memory>
#include <string>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"
#include "backends/mock/settings.h"

namespace onnxifi::mock {

// `plugin_name` is its name in keys. Settings that cannot be used make listing the devices fail.
std::unique_ptr<abi::Provider> MakeProvider(std::string plugin_name,
                                            base::Result<Settings> settings);

}  // namespace onnxifi::mock

#endif  // ONNXIFI_BACKENDS_MOCK_PROVIDER_H_
