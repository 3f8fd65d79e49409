// SPDX-License-Identifier: Apache-2.0
//
// SuiteRun: the parent's side of a run: which cases there are, their results from the child
// processes, the reports.

#ifndef ONNXIFI_CONFORMANCE_SUITE_RUN_H_
#define ONNXIFI_CONFORMANCE_SUITE_RUN_H_

#include "backends/core/base/result.h"
#include "conformance/options.h"

namespace onnxifi::conformance {

// Runs the suite that the options name. Returns how many cases failed; an error when the run could
// not take place.
base::Result<int> RunSuite(Options options);

}  // namespace onnxifi::conformance

#endif  // ONNXIFI_CONFORMANCE_SUITE_RUN_H_
