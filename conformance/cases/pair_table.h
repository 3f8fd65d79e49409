// SPDX-License-Identifier: Apache-2.0
//
// The table of the suite `opsets`: every operator of each of its versions, as ONNX's registry has
// them, with its cases or the reason why none can exist. tools/make_opset_cases.py writes it.

#ifndef ONNXIFI_CONFORMANCE_CASES_PAIR_TABLE_H_
#define ONNXIFI_CONFORMANCE_CASES_PAIR_TABLE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "conformance/report/case_result.h"

namespace onnxifi::cases {

// One operator of one version (ONNX's since_version).
struct Pair {
  std::string domain;
  std::string op_type;
  int version = 0;
  std::vector<std::string> cases;  // names
  std::string reason;              // why none can exist; empty where there are cases
};

// Reads the member "pairs" of index.json. INVALID_NAME when there is no file, INVALID_MODEL when it
// has no such list.
base::Result<std::vector<Pair>> ReadPairs(const std::filesystem::path& folder);

// Holds the results of a whole suite, with expectations applied, against the table: appends a
// failed result for each pair without case and reason, for each with both, and for each case that
// has not run. Returns the line that counts the pairs.
std::string CheckPairs(const std::vector<Pair>& pairs, std::vector<report::CaseResult>& results);

}  // namespace onnxifi::cases

#endif  // ONNXIFI_CONFORMANCE_CASES_PAIR_TABLE_H_
