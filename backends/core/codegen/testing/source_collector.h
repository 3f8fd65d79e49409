// SPDX-License-Identifier: Apache-2.0
//
// CollectSources: for tests: what random steps of every family ask a compiler for, in any language,
// without a device.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_SOURCE_COLLECTOR_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_SOURCE_COLLECTOR_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/codegen/dialect.h"
#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/tuning.h"
#include "backends/core/reference/random_step.h"

namespace onnxifi::codegen {

// At least `count` distinct sources for a device with float64 and these limits: those of random
// steps with the seeds from 1 on, each family in turn. Equal arguments give equal sources.
// `product_library` is as in KernelDriver, and `units` as in Capabilities.
std::vector<std::string> CollectSources(
    const Dialect& dialect, std::string_view product_library, const DeviceLimits& limits,
    size_t count, const MatrixUnits& units = {},
    std::span<const reference::Family> families = reference::kFamilies);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_SOURCE_COLLECTOR_H_
