// SPDX-License-Identifier: Apache-2.0
//
// Expectations: a device's list of cases that are not supported for good, and of cases that fail
// for now, each with its reason. A refusal that is not listed fails the run, and so does an entry
// that no longer holds: the lists say what is true, and all of it.

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
  // Matches the whole of a case's name. One that ends in "@" and the name of a variant matches only
  // that variant of cases, others only cases as they are.
  std::string pattern;
  std::regex expression;
  std::string reason;
};

struct Expectations {
  std::vector<Expectation> unsupported;
  std::vector<Expectation> failing;
};

// Reads the entries for one suite from a file of the form {"unsupported": [{"suite": NAME,
// "reason": TEXT, "cases": [RE, ...]}, ...], "failing": [...]}; every expression becomes an
// expectation. INVALID_NAME when the file cannot be read, INVALID_MODEL when it has another form,
// an entry without a reason included.
base::Result<Expectations> ReadExpectations(const std::filesystem::path& path,
                                            std::string_view suite);

// Writes the file that the results of a whole suite, not yet held against any expectations, agree
// with: refusals as unsupported, failures as failing, the library's sentences as reasons. If the
// file exists, its entries for other suites stay, and so do its reasons for cases that belong to
// the same list again. Errors as of ReadExpectations.
base::Status WriteExpectations(const std::filesystem::path& path, std::string_view suite,
                               const std::vector<report::CaseResult>& results);

// Marks failures that are listed as failing; turns refusals that are not listed, and results that
// contradict an entry, into failures; appends a failed result for each entry that matches no case,
// unless the run is only a part (`is_partial`) or had no case of the entry's variant.
void ApplyExpectations(const Expectations& expectations, bool is_partial,
                       std::vector<report::CaseResult>& results);

}  // namespace onnxifi::cases

#endif  // ONNXIFI_CONFORMANCE_CASES_EXPECTATIONS_H_
