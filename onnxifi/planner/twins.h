// SPDX-License-Identifier: Apache-2.0
//
// FindTwins: which devices are one physical device, reached through several plugins.

#ifndef ONNXIFI_ONNXIFI_PLANNER_TWINS_H_
#define ONNXIFI_ONNXIFI_PLANNER_TWINS_H_

#include <span>

#include "onnxifi/partition/twins.h"
#include "onnxifi/plugins/forwarded_backend_id.h"

namespace onnxifi::planner {

// By position in `devices`, each group ascending. The plugin that is for no device's sake, `null`,
// is in none.
partition::Twins FindTwins(std::span<const plugins::ForwardedBackendId* const> devices);

}  // namespace onnxifi::planner

#endif  // ONNXIFI_ONNXIFI_PLANNER_TWINS_H_
