// SPDX-License-Identifier: Apache-2.0
//
// The JSON form of a result.

#include "conformance/report/case_result.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace onnxifi::report {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 9> kVerdictNames = {"pass",  "fail",     "not-supported",
                                                           "crash", "hang",     "xfail",
                                                           "xpass", "unlisted", "not-applicable"};

}  // namespace

std::string_view NameOf(Verdict verdict) { return kVerdictNames[static_cast<size_t>(verdict)]; }

std::string ToJsonLine(const CaseResult& result) {
  json cells = json::array();
  for (const client::StatusCell& cell : result.cells) {
    cells.push_back({static_cast<int>(cell.function), cell.status});
  }
  const json line = {{"name", result.name},
                     {"group", result.group},
                     {"expanded", result.is_expanded},
                     {"variant", result.variant},
                     {"verdict", NameOf(result.verdict)},
                     {"status", result.status},
                     {"sentence", result.sentence},
                     {"printed", result.printed},
                     {"worst_ratio", result.worst_ratio},
                     {"seconds", result.seconds},
                     {"operators", result.operators},
                     {"element_types", result.element_types},
                     {"step_families", result.step_families ? json(*result.step_families) : json()},
                     {"cells", std::move(cells)},
                     {"note", result.note}};
  // A library's sentence may be no UTF-8; it is printed all the same.
  return line.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

base::Result<CaseResult> FromJsonLine(const std::string& text) {
  const base::Status malformed(
      base::Code::kInvalidProtobuf,
      "The worker's report is not a result: '" + text.substr(0, 200) + "'.");
  const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) return malformed;
  CaseResult result;
  result.name = line.value("name", "");
  result.group = line.value("group", "");
  result.is_expanded = line.value("expanded", false);
  result.variant = line.value("variant", "");
  const std::string verdict = line.value("verdict", "");
  bool is_known = false;
  for (size_t index = 0; index < kVerdictNames.size(); ++index) {
    if (kVerdictNames[index] != verdict) continue;
    result.verdict = static_cast<Verdict>(index);
    is_known = true;
  }
  if (!is_known) return malformed;
  result.status = line.value("status", "");
  result.sentence = line.value("sentence", "");
  result.printed = line.value("printed", "");
  // JSON has no infinity: it is written as null.
  const json& ratio = line.contains("worst_ratio") ? line["worst_ratio"] : json();
  result.worst_ratio = ratio.is_number() ? ratio.get<double>() : HUGE_VAL;
  result.seconds = line.value("seconds", 0.0);
  result.operators = line.value("operators", std::vector<std::string>());
  result.element_types = line.value("element_types", std::vector<std::string>());
  if (line.contains("step_families") && line["step_families"].is_array()) {
    result.step_families = line["step_families"].get<std::vector<std::string>>();
  }
  result.note = line.value("note", "");
  for (const json& cell : line.value("cells", json::array())) {
    const auto function = cell.at(0).get<size_t>();
    if (function >= client::kFunctionCount) return malformed;
    result.cells.push_back({static_cast<client::Function>(function), cell.at(1).get<onnxStatus>()});
  }
  return result;
}

}  // namespace onnxifi::report
