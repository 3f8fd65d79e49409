// SPDX-License-Identifier: Apache-2.0
//
// Plain text, one fact per line.

#include "conformance/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace onnxifi::report {
namespace {

// The first line of a sentence with its context.
std::string_view FirstLine(std::string_view text) { return text.substr(0, text.find('\n')); }

void AppendFailures(std::span<const CaseResult> results, std::string& text) {
  for (const CaseResult& result : results) {
    if (!result.has_failed()) continue;
    fmt::format_to(std::back_inserter(text), "{:<6} {}/{}: {}\n", NameOf(result.verdict),
                   result.group, result.name, result.sentence);
    if (!result.printed.empty()) {
      fmt::format_to(
          std::back_inserter(text), "       its process printed last: {}\n",
          result.printed.substr(result.printed.size() > 600 ? result.printed.size() - 600 : 0));
    }
  }
}

void AppendReasons(std::span<const CaseResult> results, std::string& text) {
  constexpr size_t kMostLines = 60;
  const std::vector<ReasonCount> reasons = CountReasons(results);
  if (reasons.empty()) return;
  text += "\nNot supported, by reason:\n";
  for (size_t index = 0; index < std::min(kMostLines, reasons.size()); ++index) {
    fmt::format_to(std::back_inserter(text), "{:>6}  {}: {}\n", reasons[index].count,
                   reasons[index].status, FirstLine(reasons[index].sentence));
  }
  if (reasons.size() > kMostLines) {
    fmt::format_to(std::back_inserter(text), "        and {} more reasons\n",
                   reasons.size() - kMostLines);
  }
}

void AppendRatios(std::span<const CaseResult> results, std::string& text) {
  text += "\nWorst difference as a share of the tolerance:\n";
  for (const CaseResult& result : results) {
    if (result.worst_ratio < 0) continue;
    fmt::format_to(std::back_inserter(text), "{:<32} {:>8.4f}  {:>7.2f} s  {}\n", result.name,
                   result.worst_ratio, result.seconds, result.note);
  }
}

}  // namespace

std::string Counts::Text() const {
  return fmt::format("{} passed, {} failed, {} not supported", passed, failed, not_supported);
}

Counts CountAll(std::span<const CaseResult> results, bool is_expanded) {
  Counts counts;
  for (const CaseResult& result : results) {
    if (result.is_expanded != is_expanded) continue;
    if (result.verdict == Verdict::kPass) {
      ++counts.passed;
    } else if (result.verdict == Verdict::kNotSupported) {
      ++counts.not_supported;
    } else {
      ++counts.failed;
    }
  }
  return counts;
}

std::vector<ReasonCount> CountReasons(std::span<const CaseResult> results) {
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const CaseResult& result : results) {
    if (result.verdict != Verdict::kNotSupported) continue;
    ++counts[{result.status, std::string(FirstLine(result.sentence))}];
  }
  std::vector<ReasonCount> reasons;
  for (const auto& [reason, count] : counts) {
    reasons.push_back({.status = reason.first, .sentence = reason.second, .count = count});
  }
  std::ranges::stable_sort(reasons, std::greater<>(), &ReasonCount::count);
  return reasons;
}

std::string MakeSummary(std::span<const CaseResult> results, bool with_ratios) {
  std::string text;
  AppendFailures(results, text);
  AppendReasons(results, text);
  if (with_ratios) AppendRatios(results, text);
  const bool has_twins = std::ranges::any_of(results, &CaseResult::is_expanded);
  text += "\n";
  if (has_twins) {
    text += "Expanded twins: " + CountAll(results, /*is_expanded=*/true).Text() + "\n";
  }
  text += CountAll(results, /*is_expanded=*/false).Text() + "\n";
  return text;
}

}  // namespace onnxifi::report
