// SPDX-License-Identifier: Apache-2.0
//
// Environment: the environment variables that the CPU plugin obeys. Read here and nowhere else.

#ifndef ONNXIFI_BACKENDS_CPU_THREADS_ENVIRONMENT_H_
#define ONNXIFI_BACKENDS_CPU_THREADS_ENVIRONMENT_H_

#include <optional>

#include "backends/core/base/log.h"

namespace onnxifi::threads {

struct Environment {
  // ONNXIFI_NUM_THREADS: from 1 to kMaxThreads. Anything else is ignored with a warning.
  std::optional<int> thread_count;
  // ONNXIFI_LOG: debug, info, warning, error or silent.
  base::LogLevel log_level = base::LogLevel::kWarning;
};

inline constexpr int kMaxThreads = 1024;

Environment ReadEnvironment();

// A whole number from 1 to kMaxThreads.
std::optional<int> ParseThreadCount(const char* text);

}  // namespace onnxifi::threads

#endif  // ONNXIFI_BACKENDS_CPU_THREADS_ENVIRONMENT_H_
