// SPDX-License-Identifier: Apache-2.0
//
// RunTimes: what the times of several runs say as one number.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_RUN_TIMES_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_RUN_TIMES_H_

#include <vector>

namespace onnxifi::run {

// 0 where there are no values.
double MedianOf(std::vector<double> values);

// The median of what each run took as a multiple of the other's in the same turn.
double RatioOf(const std::vector<double>& run_ms, const std::vector<double>& other_ms);

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_RUN_TIMES_H_
