// SPDX-License-Identifier: Apache-2.0
//
// The results as one self-contained HTML page: a row per operator (or group), a cell per case,
// reasons on hover.

#ifndef ONNXIFI_CONFORMANCE_REPORT_HTML_H_
#define ONNXIFI_CONFORMANCE_REPORT_HTML_H_

#include <span>
#include <string>

#include "conformance/report/case_result.h"

namespace onnxifi::report {

// `heading` says which suite ran on which device.
std::string MakeHtml(std::string_view heading, std::span<const CaseResult> results);

}  // namespace onnxifi::report

#endif  // ONNXIFI_CONFORMANCE_REPORT_HTML_H_
