// SPDX-License-Identifier: Apache-2.0
//
// The page: style and content in one string, no script, nothing fetched.

#include "conformance/report/html.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <vector>

#include "conformance/report/junit.h"
#include "conformance/report/summary.h"

namespace onnxifi::report {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>ONNXIFI conformance</title><style>
body{font:14px/1.4 system-ui,sans-serif;margin:2em;color:#222}
table{border-collapse:collapse}td,th{padding:2px 8px;text-align:left;vertical-align:top}
tr:nth-child(even){background:#f6f6f6}td.n{text-align:right}
i{display:inline-block;width:11px;height:11px;margin:1px;border-radius:2px}
.pass{background:#3a3}.fail,.crash,.hang,.xpass,.xfail{background:#c22}.not-supported{background:#bbb}.not-applicable{background:#eee}
pre{white-space:pre-wrap;margin:0}
</style></head><body>
)";

void AppendCell(const CaseResult& result, std::string& page) {
  std::string hover = fmt::format("{}: {}", result.name, NameOf(result.verdict));
  if (!result.status.empty()) hover += " " + result.status;
  if (!result.sentence.empty()) hover += "\n" + result.sentence;
  if (result.worst_ratio >= 0) hover += fmt::format("\nworst ratio {:.3g}", result.worst_ratio);
  fmt::format_to(std::back_inserter(page), "<i class=\"{}\" title=\"{}\"></i>",
                 NameOf(result.verdict), EscapeMarkup(hover));
}

using Rows = std::map<std::string, std::vector<const CaseResult*>>;

// A case belongs to each operator of its main graph; one that has none, to its group. Variants have
// a row each.
Rows MakeRows(std::span<const CaseResult> results) {
  Rows rows;
  for (const CaseResult& result : results) {
    if (!result.variant.empty()) {
      rows["(variant " + result.variant + ")"].push_back(&result);
      continue;
    }
    if (result.operators.empty() || result.is_expanded) {
      rows[result.is_expanded ? "(expanded twins)" : "(" + result.group + ")"].push_back(&result);
      continue;
    }
    for (const std::string& name : result.operators) rows[name].push_back(&result);
  }
  return rows;
}

void AppendTable(const Rows& rows, std::string& page) {
  auto out = std::back_inserter(page);
  page += "<table><tr><th>Operator<th>passed<th>failed<th>not supported<th>cases</tr>\n";
  for (const auto& [name, row] : rows) {
    Counts counts;
    for (const CaseResult* result : row) {
      counts.Add(result->verdict);
    }
    fmt::format_to(out, "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td>",
                   EscapeMarkup(name), counts.passed, counts.failed, counts.not_supported);
    for (const CaseResult* result : row) AppendCell(*result, page);
    page += "</tr>\n";
  }
  page += "</table>\n";
}

void AppendFailures(std::span<const CaseResult> results, std::string& page) {
  auto out = std::back_inserter(page);
  page += "<h2>Failures</h2><table>\n";
  for (const CaseResult& result : results) {
    if (!result.has_failed()) continue;
    fmt::format_to(out, "<tr><td>{}<td>{}<td><pre>{}\n{}</pre></tr>\n", NameOf(result.verdict),
                   EscapeMarkup(result.name), EscapeMarkup(result.sentence),
                   EscapeMarkup(result.printed));
  }
  page += "</table>\n";
}

void AppendReasons(std::span<const CaseResult> results, std::string& page) {
  auto out = std::back_inserter(page);
  page += "<h2>Reasons for not supported</h2><table>\n";
  for (const ReasonCount& reason : CountReasons(results)) {
    fmt::format_to(out, "<tr><td class=\"n\">{}<td>{}<td>{}</tr>\n", reason.count, reason.status,
                   EscapeMarkup(reason.sentence));
  }
  page += "</table>\n";
}

}  // namespace

std::string MakeHtml(std::string_view heading, std::span<const CaseResult> results) {
  std::string page(kHead);
  fmt::format_to(std::back_inserter(page), "<h1>{}</h1><p>{}</p>\n", EscapeMarkup(heading),
                 CountAll(results, /*is_expanded=*/false).Text());
  AppendTable(MakeRows(results), page);
  AppendFailures(results, page);
  AppendReasons(results, page);
  page += "</body></html>\n";
  return page;
}

}  // namespace onnxifi::report
