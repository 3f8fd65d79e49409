// SPDX-License-Identifier: Apache-2.0
//
// LoadTimes: a short list, searched by name.

#include "backends/core/plugin/load_times.h"

#include <algorithm>

namespace onnxifi::plugin {

void LoadTimes::Add(std::string_view stage, std::chrono::nanoseconds duration) {
  auto found = std::ranges::find(stages_, stage, &LoadStage::name);
  if (found == stages_.end()) found = stages_.insert(found, {std::string(stage), 0, {}});
  ++found->count;
  found->duration += duration;
}

}  // namespace onnxifi::plugin
