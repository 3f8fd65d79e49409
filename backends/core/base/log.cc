// SPDX-License-Identifier: Apache-2.0
//
// Log: one fwrite per message, so that lines of several threads do not mix.

#include "backends/core/base/log.h"

#include <cstdio>
#include <string>

namespace onnxifi::base {

void Log::Write(LogLevel level, std::string_view category, std::string_view message) const {
  if (!Enabled(level)) return;
  static constexpr std::string_view kNames[] = {"", "debug", "info", "warning", "error", ""};
  std::string line = "onnxifi ";
  line.append(kNames[static_cast<int>(level)]).append(" [").append(category).append("] ");
  line.append(message).append("\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace onnxifi::base
