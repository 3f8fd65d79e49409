// SPDX-License-Identifier: Apache-2.0
//
// A run's report for people and for programs.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_REPORT_TEXT_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_REPORT_TEXT_H_

#include <string>
#include <vector>

#include "apps/onnxifi_run/model_run.h"

namespace onnxifi::run {

// Outputs with their range and five largest values, the time to the first result in parts, the
// time of a run, comparison.
std::string MakeText(const RunReport& report);
std::string MakeJson(const RunReport& report);

// Which device runs which nodes and why not the others; after a run which has them, and why not
// another. `report` is null where the model did not run.
std::string MakeExplanationText(const client::ModelAnswers& answers, const RunReport* report);
// The same of a model that did not run: {"error", "explanation"}.
std::string MakeRefusalJson(const client::ModelAnswers& answers, const std::string& error);

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

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_REPORT_TEXT_H_
