// SPDX-License-Identifier: Apache-2.0
//
// Pool: runs many cases in batches in child processes, several at once. A batch that breaks down is
// repeated in parts until the case to blame is known, and the run goes on without it.

#ifndef ONNXIFI_CONFORMANCE_PROCESS_POOL_H_
#define ONNXIFI_CONFORMANCE_PROCESS_POOL_H_

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "conformance/process/child.h"

namespace onnxifi::process {

struct PoolOptions {
  // Program and arguments of a worker, which calls ServeCases.
  std::vector<std::string> command;
  int jobs = 1;
  int batch_size = 32;
  std::chrono::milliseconds time_limit{60'000};
};

struct CaseEnding {
  Ending ending = Ending::kFinished;
  // What the worker reported; empty when the case broke down.
  std::string report;
  // Otherwise: why it broke down, as a sentence, and what its process printed last.
  std::string sentence;
  std::string printed;
  double seconds = 0;
};

// Runs all cases and returns their endings in the same order. `on_finished` is called once per
// finished case, from any thread, one call at a time. NO_SYSTEM_RESOURCES when processes cannot be
// started.
//
// Blame: the case during which the process broke down is repeated alone. If it breaks down again,
// it is to blame; if not, the shortest end of the batch that still breaks down is found by halving,
// and its first case is to blame.
base::Result<std::vector<CaseEnding>> RunCases(const PoolOptions& options,
                                               std::span<const std::string> ids,
                                               const std::function<void()>& on_finished);

}  // namespace onnxifi::process

#endif  // ONNXIFI_CONFORMANCE_PROCESS_POOL_H_
