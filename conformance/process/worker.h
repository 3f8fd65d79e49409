// SPDX-License-Identifier: Apache-2.0
//
// The child's half of the process pool: reads the names of cases, runs them in order and reports
// each.

#ifndef ONNXIFI_CONFORMANCE_PROCESS_WORKER_H_
#define ONNXIFI_CONFORMANCE_PROCESS_WORKER_H_

#include <functional>
#include <string>

namespace onnxifi::process {

// The descriptor on which a worker reports; its standard output is captured for diagnosis only,
// since a library under test may print what it likes.
inline constexpr int kReportDescriptor = 3;

// Runs the case that each line of standard input names until the input ends; `run` returns one line
// of text that the parent gets back. Ends with its parent.
void ServeCases(const std::function<std::string(const std::string& id)>& run);

}  // namespace onnxifi::process

#endif  // ONNXIFI_CONFORMANCE_PROCESS_WORKER_H_
