// SPDX-License-Identifier: Apache-2.0
//
// LeftOut: kernels that no step of the process gets, so that what they are worth can be measured.

#ifndef ONNXIFI_BACKENDS_CPU_RUNTIME_LEFT_OUT_H_
#define ONNXIFI_BACKENDS_CPU_RUNTIME_LEFT_OUT_H_

#include <string>
#include <string_view>
#include <vector>

namespace onnxifi::runtime {

// From now on those of these names. Before the first step is asked about.
void LeaveOut(std::vector<std::string> names);
bool IsLeftOut(std::string_view name);

}  // namespace onnxifi::runtime

#endif  // ONNXIFI_BACKENDS_CPU_RUNTIME_LEFT_OUT_H_
