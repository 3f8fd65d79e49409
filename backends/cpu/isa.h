// SPDX-License-Identifier: Apache-2.0
//
// The instructions that kernels may use, Highway's and oneDNN's alike.

#ifndef ONNXIFI_BACKENDS_CPU_ISA_H_
#define ONNXIFI_BACKENDS_CPU_ISA_H_

#include <string>

#include "backends/cpu/threads/environment.h"

namespace onnxifi::cpu {

// No kernel of the process uses more than `isa` from now on. Before the first kernel is made.
void LimitIsa(threads::Isa isa);

// What kernels use, for reports: Highway's name of the vector code, and oneDNN's of its own.
std::string IsaInUse();

}  // namespace onnxifi::cpu

#endif  // ONNXIFI_BACKENDS_CPU_ISA_H_
