// SPDX-License-Identifier: Apache-2.0
//
// The cells of the table that the suite has reached, and why it cannot reach others.

#include "conformance/suites/interface/status_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace onnxifi::suites {
namespace {

using client::Function;
using client::FunctionName;
using client::kFunctionCount;
using client::kStatuses;
using client::StatusCell;

report::CaseResult MakeFailure(const StatusCell& cell, std::string_view what) {
  report::CaseResult result;
  result.group = "status table";
  result.name = fmt::format("{} {}", FunctionName(cell.function), client::StatusName(cell.status));
  result.sentence =
      fmt::format("{} {} {}.", FunctionName(cell.function), what, client::StatusName(cell.status));
  return result;
}

void AppendTable(const std::vector<StatusCell>& seen, std::string& text) {
  auto out = std::back_inserter(text);
  text +=
      "Cells of the interface's status table: x reached, ! reached and not in the table, o not "
      "reached\n";
  static constexpr std::array<std::string_view, 15> kColumns = {
      "IDs",   "RelID", "Info", "Compat", "InitB", "RelB", "InitE", "Sig",
      "State", "Wait",  "RelE", "InitG",  "SetIO", "Run",  "RelG"};
  fmt::format_to(out, "{:<24}", "");
  for (const std::string_view column : kColumns) fmt::format_to(out, "{:>7}", column);
  text += "\n";
  for (const client::NamedStatus& status : kStatuses) {
    fmt::format_to(out, "{:<24}", status.name);
    for (size_t column = 0; column < kColumns.size(); ++column) {
      const StatusCell cell{static_cast<Function>(column), status.status};
      const bool is_reached = std::ranges::find(seen, cell) != seen.end();
      const bool is_listed = IsDocumented(cell);
      fmt::format_to(out, "{:>7}", is_reached ? (is_listed ? "x" : "!") : is_listed ? "o" : "");
    }
    text += "\n";
  }
}

}  // namespace

bool IsDocumented(const StatusCell& cell) {
  return base::MayAnswer(cell.function, static_cast<base::Code>(cell.status));
}

std::string_view ReasonForUnreached(const StatusCell& cell) {
  switch (cell.status) {
    case ONNXIFI_STATUS_NO_SYSTEM_MEMORY:
      return "the process would have to run out of memory in just this call";
    case ONNXIFI_STATUS_NO_DEVICE_MEMORY:
      return "the device would have to run out of memory of its own in just this call";
    case ONNXIFI_STATUS_NO_SYSTEM_RESOURCES:
      return "the operating system would have to refuse a thread or a file in just this call";
    case ONNXIFI_STATUS_NO_DEVICE_RESOURCES:
      return "the device would have to run out of queues or the like in just this call";
    case ONNXIFI_STATUS_BACKEND_UNAVAILABLE:
      return "the device would have to vanish; nobody unplugs it during the suite";
    case ONNXIFI_STATUS_INTERNAL_ERROR:
      return "only a fault of the library itself leads to it";
    case ONNXIFI_STATUS_FALLBACK:
      return cell.function == Function::kGetBackendCompatibility ||
                     cell.function == Function::kInitGraph
                 ? "the device runs the suite's models without emulation (R5)"
                 : "";
    case ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE:
      return cell.function != Function::kGetBackendInfo
                 ? "the device takes every attribute value that the suite tries"
                 : "";
    case ONNXIFI_STATUS_UNSUPPORTED_SHAPE:
      return cell.function == Function::kSetGraphIO
                 ? "the device takes every number for a symbol that a descriptor can hold memory "
                   "for"
                 : "";
    case ONNXIFI_STATUS_INVALID_SIZE:
    case ONNXIFI_STATUS_INVALID_NAME:
    case ONNXIFI_STATUS_UNSUPPORTED_TAG:
      return "";
    case ONNXIFI_STATUS_UNSUPPORTED_DATATYPE:
      return cell.function == Function::kSetGraphIO
                 ? "the device takes every element type of the interface in a descriptor"
                 : "";
    case ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE:
      return cell.function == Function::kSetGraphIO
                 ? "the device takes every memory type of the interface"
                 : "";
    case ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE:
      return "the device takes every fence type of the interface";
    case ONNXIFI_STATUS_INVALID_PROPERTY:
      return cell.function == Function::kInitGraph
                 ? "the library has no graph property whose value could be wrong"
                 : "";
    default:
      return "";
  }
}

std::string CheckStatusTable(bool is_partial, std::vector<report::CaseResult>& results) {
  std::vector<StatusCell> seen;
  for (const report::CaseResult& result : results) {
    for (const StatusCell& cell : result.cells) {
      if (std::ranges::find(seen, cell) == seen.end()) seen.push_back(cell);
    }
  }
  std::string text;
  AppendTable(seen, text);
  for (const StatusCell& cell : seen) {
    if (!IsDocumented(cell)) results.push_back(MakeFailure(cell, "must not answer"));
  }
  if (is_partial) return text;
  auto out = std::back_inserter(text);
  int reached_count = 0;
  int listed_count = 0;
  text += "\nCells not reached:\n";
  for (size_t column = 0; column < kFunctionCount; ++column) {
    for (const client::NamedStatus& status : kStatuses) {
      const StatusCell cell{static_cast<Function>(column), status.status};
      if (!IsDocumented(cell)) continue;
      ++listed_count;
      if (std::ranges::find(seen, cell) != seen.end()) {
        ++reached_count;
        continue;
      }
      const std::string_view reason = ReasonForUnreached(cell);
      fmt::format_to(out, "  {} {}: {}\n", FunctionName(cell.function), status.name,
                     reason.empty() ? "must be reachable" : reason);
      if (reason.empty()) results.push_back(MakeFailure(cell, "never answers"));
    }
  }
  fmt::format_to(out, "{} of {} cells reached\n", reached_count, listed_count);
  return text;
}

}  // namespace onnxifi::suites
