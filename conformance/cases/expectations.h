// SPDX-License-Identifier: Apache-2.0
//
// Expectations: a device's list of cases that are not supported for good, and of cases that fail
// for now, each with its reason. An entry that no longer holds fails the run, so the lists only
// ever say what is true.

#ifndef ONNXIFI_CONFORMANCE_CASES_EXPECTATIONS_H_
#define ONNXIFI_CONFORMANCE_CASES_EXPECTATIONS_H_

#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "conformance/report/case_result.h"

namespace onnxifi::cases {

struct Expectation {
  // Matches the whole of a case's name.
  std::string pattern;
  std::regex expression;
  std::string reason;
};

struct Expectations {
  std::vector<Expectation> unsupported;
  std::vector<Expectation> failing;
};

// Reads the entries for one suite from a file of the form {"unsupported": [{"suite": NAME, "case":
// RE, "reason": TEXT}, ...], "failing": [...]}. INVALID_NAME when it cannot be read, INVALID_MODEL
// when it has another form, an entry without a reason included.
base::Result<Expectations> ReadExpectations(const std::filesystem::path& path,
                                            std::string_view suite);

// Marks failures that are listed as failing; turns results that contradict an entry into unexpected
// passes; appends a failed result for each entry that matches no case, unless the run is only a
// part (`is_partial`).
void ApplyExpectations(const Expectations& expectations, bool is_partial,
                       std::vector<report::CaseResult>& results);

}  // namespace onnxifi::cases

#endif  // ONNXIFI_CONFORMANCE_CASES_EXPECTATIONS_H_
