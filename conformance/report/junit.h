// SPDX-License-Identifier: Apache-2.0
//
// The results as a JUnit file, which continuous-integration systems read.

#ifndef ONNXIFI_CONFORMANCE_REPORT_JUNIT_H_
#define ONNXIFI_CONFORMANCE_REPORT_JUNIT_H_

#include <span>
#include <string>

#include "conformance/report/case_result.h"

namespace onnxifi::report {

// `suite` names the test suite, e.g. "operators on cpu". Cases that are not supported and
// variants that do not apply are skipped ones.
std::string MakeJunit(std::string_view suite, std::span<const CaseResult> results);

// `text` with the five characters that XML and HTML reserve written as entities, and without
// control characters that XML does not allow.
std::string EscapeMarkup(std::string_view text);

}  // namespace onnxifi::report

#endif  // ONNXIFI_CONFORMANCE_REPORT_JUNIT_H_
