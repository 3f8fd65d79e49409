// SPDX-License-Identifier: Apache-2.0
//
// CaseResult: what became of one case, as a worker reports it and as every report prints it.

#ifndef ONNXIFI_CONFORMANCE_REPORT_CASE_RESULT_H_
#define ONNXIFI_CONFORMANCE_REPORT_CASE_RESULT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "client/call_log.h"

namespace onnxifi::report {

enum class Verdict : uint8_t {
  kPass,
  kFail,
  kNotSupported,
  kCrash,
  kHang,
  kExpectedFailure,  // Listed as failing, and fails: counts as failed.
  kUnexpectedPass,   // Listed as failing or unsupported, and passes: the list is stale; counts as
                     // failed.
  kUnlistedRefusal,  // Refused as it may be, but not listed as unsupported: counts as failed.
  kNotApplicable,    // A variant that the case cannot have; the sentence says why.
};

// "pass", "not-supported", "xfail", ...
std::string_view NameOf(Verdict verdict);

struct CaseResult {
  std::string name;
  // "node", "simple", "models", "events", ...
  std::string group;
  // A twin of another case whose operator is replaced by the function that defines it.
  bool is_expanded = false;
  // Of a replay in another form: "symbols", ...; `name` ends in it. Empty for cases as they are.
  std::string variant;
  Verdict verdict = Verdict::kFail;
  // Of not-supported: the status with which the library refuses, e.g. "UNSUPPORTED_OPERATOR".
  std::string status;
  // Why it did not pass; empty for a pass.
  std::string sentence;
  // What the process of a crash or hang printed last.
  std::string printed;
  // Largest difference as a multiple of the tolerance; negative when nothing was compared.
  double worst_ratio = -1;
  double seconds = 0;
  // Operators of the case's main graph.
  std::vector<std::string> operators;
  // Element types of the graph's inputs and outputs, each once: "float", "int64".
  std::vector<std::string> element_types;
  // Families of the steps that the library lowered the graph to, each once: "Map", "Contract";
  // nothing where it does not tell.
  std::optional<std::vector<std::string>> step_families;
  // Which function answered which status so far in the process that ran the case.
  std::vector<client::StatusCell> cells;
  // Anything else worth a line beside the result.
  std::string note;

  bool has_failed() const {
    return verdict != Verdict::kPass && verdict != Verdict::kNotSupported &&
           verdict != Verdict::kNotApplicable;
  }
};

// One line of JSON and back. INVALID_PROTOBUF when the text is no such line.
std::string ToJsonLine(const CaseResult& result);
base::Result<CaseResult> FromJsonLine(const std::string& line);

}  // namespace onnxifi::report

#endif  // ONNXIFI_CONFORMANCE_REPORT_CASE_RESULT_H_
