// SPDX-License-Identifier: Apache-2.0
//
// Scan: steps of the family Scan on all threads.

#ifndef ONNXIFI_BACKENDS_CPU_SCAN_SCAN_H_
#define ONNXIFI_BACKENDS_CPU_SCAN_SCAN_H_

#include "backends/cpu/engine/recipe.h"

namespace onnxifi::scan {

// Steps of a Form. UNSUPPORTED_* for others.
runtime::RecipeResult SelectScan(const device::Facts& facts);

}  // namespace onnxifi::scan

#endif  // ONNXIFI_BACKENDS_CPU_SCAN_SCAN_H_
