// SPDX-License-Identifier: Apache-2.0
//
// KeptMemory: whether runs of a graph leave memory behind, by what the process has allocated.

#ifndef ONNXIFI_CONFORMANCE_SUITES_KEPT_MEMORY_H_
#define ONNXIFI_CONFORMANCE_SUITES_KEPT_MEMORY_H_

#include <functional>

#include "backends/core/base/result.h"

namespace onnxifi::suites {

// Repeats `run`, which releases what it is given. INTERNAL_ERROR when what is allocated has grown
// by at least 16 bytes per run in each of three rounds, and in three longer ones after them:
// caches, of malloc's own threads too, grow to a limit, leaks every time. Runs slower than 20 ms
// are not repeated; `is_measured` tells. Memory that is not from malloc is not seen.
base::Status CheckKeptMemory(const std::function<base::Status()>& run, bool& is_measured);

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_KEPT_MEMORY_H_
