// SPDX-License-Identifier: Apache-2.0
//
// Environment on POSIX: getenv, and the kernel's word on whether this is a set-user-ID program.

#include <sys/auxv.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "discovery/search/environment.h"

namespace onnxifi::search {

namespace {

std::optional<base::LogLevel> ReadLogLevel(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, base::LogLevel>, 5> kLevels = {{
      {"debug", base::LogLevel::kDebug},
      {"info", base::LogLevel::kInfo},
      {"warning", base::LogLevel::kWarning},
      {"error", base::LogLevel::kError},
      {"silent", base::LogLevel::kSilent},
  }};
  for (const auto& [name, level] : kLevels) {
    if (text == name) return level;
  }
  return std::nullopt;
}

}  // namespace

Environment ReadEnvironment() {
  Environment environment;
  const bool is_secure = getauxval(AT_SECURE) != 0;
  const auto read_paths = [&](const char* name, std::optional<std::string>* out) {
    const char* value = std::getenv(name);
    if (value == nullptr) return;
    if (is_secure) {
      environment.ignored.emplace_back(name);
    } else {
      *out = value;
    }
  };
  read_paths("ONNXIFI_BACKENDS", &environment.backends);
  read_paths("ONNXIFI_ADD_BACKENDS", &environment.add_backends);
  if (const char* list = std::getenv("ONNXIFI_DISABLE")) environment.disable = list;
  if (const char* text = std::getenv("ONNXIFI_LOG")) {
    if (const auto level = ReadLogLevel(text)) {
      environment.log_level = *level;
    } else {
      environment.complaints.push_back(
          "ONNXIFI_LOG is '" + std::string(text) +
          "'; the levels known are debug, info, warning, error and silent.");
    }
  }
  return environment;
}

}  // namespace onnxifi::search
