// SPDX-License-Identifier: Apache-2.0
//
// Log: where the project's messages to a person go. Levels are the interface's (larger number =
// fewer messages).

#ifndef ONNXIFI_BACKENDS_CORE_BASE_LOG_H_
#define ONNXIFI_BACKENDS_CORE_BASE_LOG_H_

#include <string_view>

namespace onnxifi::base {

enum class LogLevel : int { kDebug = 1, kInfo = 2, kWarning = 3, kError = 4, kSilent = 5 };

// Writes to stderr what is at or above its level. Values by copy: each backend handle has its own
// level. Threads: may be called from any thread; a message is written in one piece.
class Log {
 public:
  explicit Log(LogLevel level = LogLevel::kWarning) : level_(level) {}
  LogLevel level() const { return level_; }
  bool Enabled(LogLevel level) const { return level >= level_; }
  // `category` names the part that speaks, e.g. "loader" or "cpu".
  void Write(LogLevel level, std::string_view category, std::string_view message) const;

 private:
  LogLevel level_;
};

}  // namespace onnxifi::base

#endif  // ONNXIFI_BACKENDS_CORE_BASE_LOG_H_
