// SPDX-License-Identifier: Apache-2.0
//
// A run's report for people and for programs.

#ifndef ONNXIFI_ONNXIFI_RUN_REPORT_TEXT_H_
#define ONNXIFI_ONNXIFI_RUN_REPORT_TEXT_H_

#include <string>
#include <vector>

#include "onnxifi/run/model_run.h"

namespace onnxifi::run {

// Outputs with their range and five largest values, time, comparison.
std::string MakeText(const RunReport& report);
std::string MakeJson(const RunReport& report);

// One line per node: position, operator, whether it runs, and why not.
std::string MakeNodeTable(const Explanation& explanation);

struct OutputSummary {
  double smallest = 0;
  double largest = 0;
  double mean = 0;
  int64_t not_finite_count = 0;
  // Positions of the largest values, largest first, at most five.
  std::vector<int64_t> top;
};

// Of a tensor of numbers; complex ones by their magnitude.
OutputSummary Summarise(const onnx_file::DenseTensor& tensor);

double MedianOf(std::vector<double> values);

}  // namespace onnxifi::run

#endif  // ONNXIFI_ONNXIFI_RUN_REPORT_TEXT_H_
