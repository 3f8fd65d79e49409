// SPDX-License-Identifier: Apache-2.0
//
// Reports are lines: "begin" before a case, "end <text>" after it.

#include "conformance/process/worker.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <iostream>
#include <string_view>

namespace onnxifi::process {
namespace {

// A report that cannot be delivered has no reader; the worker then ends at the next line of input.
void Report(std::string_view line) {
  std::string text(line);
  text.push_back('\n');
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = write(kReportDescriptor, rest.data(), rest.size());
    if (written <= 0) return;
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void ServeCases(const std::function<std::string(const std::string& id)>& run) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string id;
  while (std::getline(std::cin, id)) {
    Report("begin");
    Report("end " + run(id));
  }
}

}  // namespace onnxifi::process
