// SPDX-License-Identifier: Apache-2.0
//
// The interface's table of functions and statuses: which cells exist, which the suite has reached,
// and why the others are out of its reach.

#ifndef ONNXIFI_CONFORMANCE_SUITES_INTERFACE_STATUS_TABLE_H_
#define ONNXIFI_CONFORMANCE_SUITES_INTERFACE_STATUS_TABLE_H_

#include <string>
#include <vector>

#include "client/call_log.h"
#include "conformance/report/case_result.h"

namespace onnxifi::suites {

// Whether the interface lists the status for the function, or this project decided that it may be
// given (R18).
bool IsDocumented(const client::StatusCell& cell);

// Why no test of a working device can bring the cell about; empty if one must.
std::string_view ReasonForUnreached(const client::StatusCell& cell);

// Compares the cells that the results have seen with the table. Appends a failed result for each
// answer that the table does not have and, unless the run is only a part, for each cell that must
// be reached and is not. Returns the table as text, with the reasons below it.
std::string CheckStatusTable(bool is_partial, std::vector<report::CaseResult>& results);

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_INTERFACE_STATUS_TABLE_H_
