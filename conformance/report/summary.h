// SPDX-License-Identifier: Apache-2.0
//
// The closing words of a run on the terminal: what failed and why, why cases were refused, how many
// of which.

#ifndef ONNXIFI_CONFORMANCE_REPORT_SUMMARY_H_
#define ONNXIFI_CONFORMANCE_REPORT_SUMMARY_H_

#include <span>
#include <string>
#include <vector>

#include "conformance/report/case_result.h"

namespace onnxifi::report {

struct Counts {
  int passed = 0;
  // Crashes, hangs, expected failures, unexpected passes and unlisted refusals included.
  int failed = 0;
  int not_supported = 0;
  // Variants alone.
  int not_applicable = 0;

  void Add(Verdict verdict);
  // "3 passed, 0 failed, 1 not supported"
  std::string Text() const;
};

// Cases as they are; variants are counted apart.
Counts CountAll(std::span<const CaseResult> results, bool is_expanded);

// A reason and how many cases have it, most frequent first.
struct ReasonCount {
  std::string status;
  std::string sentence;
  int count = 0;
};

std::vector<ReasonCount> CountReasons(std::span<const CaseResult> results,
                                      Verdict verdict = Verdict::kNotSupported);

// Failures with their sentences, what to do about unlisted refusals, the histogram of reasons, the
// worst ratio of each model (`with_ratios`), passes per element type and step family where cases
// have them, a line for each variant and one for the expanded twins if there are any, and as the
// last line the counts of all other cases.
std::string MakeSummary(std::span<const CaseResult> results, bool with_ratios);

}  // namespace onnxifi::report

#endif  // ONNXIFI_CONFORMANCE_REPORT_SUMMARY_H_
