// SPDX-License-Identifier: Apache-2.0
//
// The tables of operator entries, one function per operator file; registry.cc joins them.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_REGISTRY_H_
#define ONNXIFI_BACKENDS_CORE_OPS_REGISTRY_H_

#include <span>

#include "backends/core/ops/operator.h"

namespace onnxifi::ops {

std::span<const Operator> ArithmeticOperators();
std::span<const Operator> IfOperators();
std::span<const Operator> LoopOperators();
std::span<const Operator> ScanOperators();

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_REGISTRY_H_
