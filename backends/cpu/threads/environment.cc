// SPDX-License-Identifier: Apache-2.0
//
// Environment: getenv, and what the values mean.

#include "backends/cpu/threads/environment.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace onnxifi::threads {
namespace {

base::LogLevel ParseLogLevel(std::string_view text) {
  if (text == "debug") return base::LogLevel::kDebug;
  if (text == "info") return base::LogLevel::kInfo;
  if (text == "error") return base::LogLevel::kError;
  if (text == "silent") return base::LogLevel::kSilent;
  return base::LogLevel::kWarning;
}

}  // namespace

std::optional<int> ParseThreadCount(const char* text) {
  int count = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, count);
  if (error != std::errc() || stop != end || count < 1 || count > kMaxThreads) return std::nullopt;
  return count;
}

std::optional<Isa> ParseIsa(std::string_view text) {
  if (text == "sse4") return Isa::kSse4;
  if (text == "avx2") return Isa::kAvx2;
  if (text == "avx512") return Isa::kAvx512;
  return std::nullopt;
}

std::vector<std::string> ParseNames(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    std::string_view name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    name.remove_prefix(std::min(name.size(), name.find_first_not_of(' ')));
    name = name.substr(0, name.find_last_not_of(' ') + 1);
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

Environment ReadEnvironment() {
  Environment environment;
  if (const char* level = std::getenv("ONNXIFI_LOG")) environment.log_level = ParseLogLevel(level);
  if (const char* count = std::getenv("ONNXIFI_NUM_THREADS"); count != nullptr && *count != '\0') {
    environment.thread_count = ParseThreadCount(count);
    if (!environment.thread_count) {
      environment.thread_count_fault = "ONNXIFI_NUM_THREADS ('" + std::string(count) +
                                       "') is ignored; it is not a number from 1 to " +
                                       std::to_string(kMaxThreads) + ".";
    }
  }
  if (const char* isa = std::getenv("ONNXIFI_CPU_ISA"); isa != nullptr && *isa != '\0') {
    environment.isa = ParseIsa(isa);
    if (!environment.isa) {
      environment.isa_fault = "ONNXIFI_CPU_ISA ('" + std::string(isa) +
                              "') is ignored; it is none of sse4, avx2 and avx512.";
    }
  }
  if (const char* names = std::getenv("ONNXIFI_CPU_WITHOUT")) {
    environment.left_out = ParseNames(names);
  }
  return environment;
}

}  // namespace onnxifi::threads
