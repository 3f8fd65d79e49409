// SPDX-License-Identifier: Apache-2.0
//
// LoadTimes: a short list, searched by name.

#include "backends/core/plugin/load_times.h"

#include <algorithm>
#include <cstdio>

namespace onnxifi::plugin {

void LoadTimes::Add(std::string_view stage, std::chrono::nanoseconds duration) {
  auto found = std::ranges::find(stages_, stage, &Stage::name);
  if (found == stages_.end()) found = stages_.insert(found, {std::string(stage), 0, {}});
  ++found->count;
  found->duration += duration;
}

std::string LoadTimes::Text() const {
  std::string text;
  for (const Stage& stage : stages_) {
    char number[32];
    std::snprintf(number, sizeof(number), " %.1f ms",
                  std::chrono::duration<double, std::milli>(stage.duration).count());
    text += (text.empty() ? "" : ", ") + stage.name + number;
  }
  return text;
}

}  // namespace onnxifi::plugin
