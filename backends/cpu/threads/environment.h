// SPDX-License-Identifier: Apache-2.0
//
// Environment: the environment variables that the CPU plugin obeys. Read here and nowhere else.

#ifndef ONNXIFI_BACKENDS_CPU_THREADS_ENVIRONMENT_H_
#define ONNXIFI_BACKENDS_CPU_THREADS_ENVIRONMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/log.h"

namespace onnxifi::threads {

// Sets of vector instructions, each with those before it.
enum class Isa : uint8_t { kSse4, kAvx2, kAvx512 };

struct Environment {
  // ONNXIFI_NUM_THREADS: from 1 to kMaxThreads. Anything else is ignored, and the fault a sentence
  // about it, for whoever uses the number to tell.
  std::optional<int> thread_count;
  std::string thread_count_fault;
  // ONNXIFI_CPU_ISA: sse4, avx2 or avx512: no kernel uses more than that. Likewise.
  std::optional<Isa> isa;
  std::string isa_fault;
  // ONNXIFI_CPU_WITHOUT: names of kernels that no step gets, separated by commas.
  std::vector<std::string> left_out;
  // ONNXIFI_LOG: debug, info, warning, error or silent.
  base::LogLevel log_level = base::LogLevel::kWarning;
};

inline constexpr int kMaxThreads = 1024;

Environment ReadEnvironment();

// A whole number from 1 to kMaxThreads.
std::optional<int> ParseThreadCount(const char* text);
std::optional<Isa> ParseIsa(std::string_view text);
// Names between commas, without the spaces around them; no empty ones.
std::vector<std::string> ParseNames(std::string_view text);

}  // namespace onnxifi::threads

#endif  // ONNXIFI_BACKENDS_CPU_THREADS_ENVIRONMENT_H_
