// SPDX-License-Identifier: Apache-2.0
//
// StepFamilies: what kinds of steps a graph was lowered to, as onnxGetGraphCounters tells.

#ifndef ONNXIFI_CLIENT_STEP_FAMILIES_H_
#define ONNXIFI_CLIENT_STEP_FAMILIES_H_

#include <onnxifi/sdk.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace onnxifi::client {

// The families that the graph has steps of, each with their number. Nothing when the library does
// not tell, as it need not; `read` may be null.
std::optional<std::vector<std::pair<std::string, uint64_t>>> ReadStepFamilies(
    onnxGetGraphCountersFunction read, onnxGraph graph);

}  // namespace onnxifi::client

#endif  // ONNXIFI_CLIENT_STEP_FAMILIES_H_
