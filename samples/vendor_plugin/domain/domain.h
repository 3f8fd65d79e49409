// SPDX-License-Identifier: Apache-2.0
//
// The domain com.example: operators that ONNX does not have, one file each.

#ifndef ONNXIFI_SAMPLES_VENDOR_PLUGIN_DOMAIN_DOMAIN_H_
#define ONNXIFI_SAMPLES_VENDOR_PLUGIN_DOMAIN_DOMAIN_H_

#include <span>

#include "backends/core/base/status.h"
#include "backends/core/model/definition.h"
#include "backends/core/ops/lowering.h"
#include "backends/core/plugin/operator_source.h"

namespace example {

// What Hardware::domains gives; lives as long as the library.
std::span<const onnxifi::plugin::VendorDomain> Domains();

// Y = X * factor + shift: defined by nodes of ONNX's operators.
onnxifi::base::Status DefineScaleShift(onnxifi::model::Definition& definition);
// Y = max(X, 0)^2: lowered to a step of the plugin's own making.
onnxifi::base::Status LowerSquaredRelu(onnxifi::ops::Lowering& lowering);

}  // namespace example

#endif  // ONNXIFI_SAMPLES_VENDOR_PLUGIN_DOMAIN_DOMAIN_H_
