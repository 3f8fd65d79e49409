// SPDX-License-Identifier: Apache-2.0
//
// onnxifi_conformance. Exit status 0: no case failed; 1: some did; 2: the run did not take place.

#include <fmt/format.h>

#include <cstdio>

#include "conformance/options.h"
#include "conformance/process/worker.h"
#include "conformance/suite_run.h"
#include "conformance/worker_task.h"

int main(int argument_count, char** arguments) {
  using namespace onnxifi;  // NOLINT(google-build-using-namespace): the program's own names.
  conformance::Options options;
  if (const std::optional<int> status =
          conformance::ParseOptions(argument_count, arguments, options)) {
    return *status;
  }
  if (options.is_worker) {
    conformance::WorkerTask task(options);
    process::ServeCases(
        [&task](const std::string& id) { return report::ToJsonLine(task.Run(id)); });
    return 0;
  }
  const base::Result<int> failed = conformance::RunSuite(options);
  if (!failed.ok()) {
    fmt::print(stderr, "onnxifi_conformance: {}\n", failed.status().Text());
    return 2;
  }
  return *failed == 0 ? 0 : 1;
}
