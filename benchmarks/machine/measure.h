// SPDX-License-Identifier: Apache-2.0
//
// Measure: finds the limits of this machine in some seconds. Every figure is the best of several
// tries, because other work on the machine can only make it smaller.

#ifndef ONNXIFI_BENCHMARKS_MACHINE_MEASURE_H_
#define ONNXIFI_BENCHMARKS_MACHINE_MEASURE_H_

#include <functional>
#include <string_view>

#include "benchmarks/machine/limits.h"

namespace onnxifi::machine {

// Calls `progress` before each part with what it is.
Limits Measure(const std::function<void(std::string_view part)>& progress);

}  // namespace onnxifi::machine

#endif  // ONNXIFI_BENCHMARKS_MACHINE_MEASURE_H_
