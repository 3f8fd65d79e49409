// SPDX-License-Identifier: Apache-2.0
//
// One line on the terminal.

#include "conformance/report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace onnxifi::report {

Progress::Progress(std::string label, size_t total)
    : label_(std::move(label)),
      total_(total),
      is_terminal_(isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (is_terminal_ && done_ != 0) fmt::print(stderr, "\n");
}

void Progress::Advance() {
  const size_t tenth_before = 10 * done_ / std::max<size_t>(1, total_);
  done_ = std::min(done_ + 1, total_);
  if (is_terminal_ || 10 * done_ / std::max<size_t>(1, total_) != tenth_before) Show();
}

void Progress::Show() const {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  if (!is_terminal_) {
    fmt::print(stderr, "{}: {} of {}, {:.0f} s\n", label_, done_, total_, elapsed.count());
    return;
  }
  constexpr size_t kWidth = 40;
  const size_t filled = kWidth * done_ / std::max<size_t>(1, total_);
  fmt::print(stderr, "\r{} [{}{}] {}/{} {:.0f} s ", label_, std::string(filled, '#'),
             std::string(kWidth - filled, '.'), done_, total_, elapsed.count());
  std::fflush(stderr);
}

}  // namespace onnxifi::report
