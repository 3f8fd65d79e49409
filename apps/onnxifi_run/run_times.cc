// SPDX-License-Identifier: Apache-2.0
//
// RunTimes: medians, of runs and of ratios of runs.

#include "apps/onnxifi_run/run_times.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace onnxifi::run {

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double RatioOf(const std::vector<double>& run_ms, const std::vector<double>& other_ms) {
  std::vector<double> ratios;
  for (size_t turn = 0; turn < std::min(run_ms.size(), other_ms.size()); ++turn) {
    ratios.push_back(run_ms[turn] / other_ms[turn]);
  }
  return MedianOf(std::move(ratios));
}

}  // namespace onnxifi::run
