// SPDX-License-Identifier: Apache-2.0
//
// Progress: a bar that is rewritten on a terminal, a plain line per tenth elsewhere. Writes to
// standard error.

#ifndef ONNXIFI_CONFORMANCE_REPORT_PROGRESS_H_
#define ONNXIFI_CONFORMANCE_REPORT_PROGRESS_H_

#include <chrono>
#include <string>

namespace onnxifi::report {

// Threads: one at a time.
class Progress {
 public:
  Progress(std::string label, size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Advance();

 private:
  void Show() const;

  std::string label_;
  size_t total_;
  size_t done_ = 0;
  bool is_terminal_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace onnxifi::report

#endif  // ONNXIFI_CONFORMANCE_REPORT_PROGRESS_H_
