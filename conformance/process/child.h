// SPDX-License-Identifier: Apache-2.0
//
// Child: one worker process with a batch of cases, from its start to its end.

#ifndef ONNXIFI_CONFORMANCE_PROCESS_CHILD_H_
#define ONNXIFI_CONFORMANCE_PROCESS_CHILD_H_

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::process {

enum class Ending : uint8_t { kFinished, kCrashed, kHung };

struct FinishedCase {
  // What the worker reported.
  std::string report;
  double seconds = 0;
};

// How a process came to an end before its time.
struct Breakdown {
  Ending ending = Ending::kCrashed;
  // "was killed by signal 11 (Segmentation fault)".
  std::string cause;
  // The last lines of what the process printed.
  std::string printed;
};

struct BatchOutcome {
  // Of the first cases of the batch, in order.
  std::vector<FinishedCase> finished;
  // What happened in the case after those; when all have finished, at the exit of the process.
  std::optional<Breakdown> breakdown;
};

// Starts `command`, gives it the cases of the batch and waits for its end. A case that takes longer
// than `time_limit`, without the time in which it could have run but others had the processors, is
// ended with its process. `on_finished` is called after each case.
// NO_SYSTEM_RESOURCES when no process can be started. Threads: may be called from several threads
// at once.
base::Result<BatchOutcome> RunBatch(std::span<const std::string> command,
                                    std::span<const std::string> ids,
                                    std::chrono::milliseconds time_limit,
                                    const std::function<void()>& on_finished);

}  // namespace onnxifi::process

#endif  // ONNXIFI_CONFORMANCE_PROCESS_CHILD_H_
