// SPDX-License-Identifier: Apache-2.0
//
// Plain text, one fact per line.

#include "conformance/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

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

void AppendAdvice(std::span<const CaseResult> results, std::string& text) {
  const auto unlisted =
      std::ranges::count(results, Verdict::kUnlistedRefusal, &CaseResult::verdict);
  if (unlisted == 0) return;
  fmt::format_to(
      std::back_inserter(text),
      "\nRefusals that are not listed as unsupported: {}. --write-expectations FILE lists "
      "them, --expectations FILE uses the list.\n",
      unlisted);
}

void AppendReasons(std::span<const CaseResult> results, Verdict verdict, std::string_view heading,
                   std::string& text) {
  constexpr size_t kMaxLines = 60;
  const std::vector<ReasonCount> reasons = CountReasons(results, verdict);
  if (reasons.empty()) return;
  fmt::format_to(std::back_inserter(text), "\n{}, by reason:\n", heading);
  for (size_t index = 0; index < std::min(kMaxLines, reasons.size()); ++index) {
    fmt::format_to(std::back_inserter(text), "{:>6}  {}{}{}\n", reasons[index].count,
                   reasons[index].status, reasons[index].status.empty() ? "" : ": ",
                   FirstLine(reasons[index].sentence));
  }
  if (reasons.size() > kMaxLines) {
    fmt::format_to(std::back_inserter(text), "        and {} more reasons\n",
                   reasons.size() - kMaxLines);
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

// "float 12, int64 3", most frequent first.
std::string NamesWithCounts(const std::map<std::string, int>& counts) {
  std::vector<std::pair<std::string, int>> ordered(counts.begin(), counts.end());
  std::ranges::stable_sort(ordered, std::greater<>(), &std::pair<std::string, int>::second);
  std::string text;
  for (const auto& [name, count] : ordered) {
    fmt::format_to(std::back_inserter(text), "{}{} {}", text.empty() ? "" : ", ", name, count);
  }
  return text;
}

// What passed, twins and variants left out: per element type, per step family, and how much of it
// on the host.
void AppendBreakdown(std::span<const CaseResult> results, std::string& text) {
  std::map<std::string, int> types, families, host_operators;
  int passed = 0, told = 0, on_host = 0;
  for (const CaseResult& result : results) {
    if (result.verdict != Verdict::kPass || result.is_expanded || !result.variant.empty()) continue;
    ++passed;
    for (const std::string& type : result.element_types) ++types[type];
    if (!result.step_families) continue;
    ++told;
    for (const std::string& family : *result.step_families) ++families[family];
    if (result.step_families->empty()) ++families["none"];
    if (std::ranges::find(*result.step_families, "Host") == result.step_families->end()) continue;
    ++on_host;
    for (const std::string& name : result.operators) ++host_operators[name];
  }
  if (types.empty()) return;
  text += "\nPasses per element type: " + NamesWithCounts(types) + "\n";
  if (told == 0) {
    text += "Passes per step family: the library does not tell (onnxGetGraphCounters).\n";
    return;
  }
  text += "Passes per step family: " + NamesWithCounts(families) + "\n";
  if (told < passed) {
    fmt::format_to(std::back_inserter(text), "  of {} passes whose families the library tells\n",
                   told);
  }
  fmt::format_to(std::back_inserter(text), "Passes with steps on Host: {} of {} ({:.1f} %)\n",
                 on_host, told, 100.0 * on_host / told);
  if (on_host != 0)
    text += "  operators of their graphs: " + NamesWithCounts(host_operators) + "\n";
}

// A line per variant, in the order in which they come.
void AppendVariants(std::span<const CaseResult> results, std::string& text) {
  std::vector<std::pair<std::string, Counts>> variants;
  for (const CaseResult& result : results) {
    if (result.variant.empty()) continue;
    auto found =
        std::ranges::find(variants, result.variant, &std::pair<std::string, Counts>::first);
    if (found == variants.end()) found = variants.insert(found, {result.variant, Counts()});
    found->second.Add(result.verdict);
  }
  for (const auto& [variant, counts] : variants) {
    fmt::format_to(std::back_inserter(text), "Variant {}: {}, {} do not apply\n", variant,
                   counts.Text(), counts.not_applicable);
  }
}

}  // namespace

std::string Counts::Text() const {
  return fmt::format("{} passed, {} failed, {} not supported", passed, failed, not_supported);
}

void Counts::Add(Verdict verdict) {
  ++(verdict == Verdict::kPass            ? passed
     : verdict == Verdict::kNotSupported  ? not_supported
     : verdict == Verdict::kNotApplicable ? not_applicable
                                          : failed);
}

Counts CountAll(std::span<const CaseResult> results, bool is_expanded) {
  Counts counts;
  for (const CaseResult& result : results) {
    if (result.is_expanded == is_expanded && result.variant.empty()) counts.Add(result.verdict);
  }
  return counts;
}

std::vector<ReasonCount> CountReasons(std::span<const CaseResult> results, Verdict verdict) {
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const CaseResult& result : results) {
    if (result.verdict != verdict) continue;
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
  AppendAdvice(results, text);
  AppendReasons(results, Verdict::kNotSupported, "Not supported", text);
  AppendReasons(results, Verdict::kNotApplicable, "Variants that do not apply", text);
  if (with_ratios) AppendRatios(results, text);
  AppendBreakdown(results, text);
  const bool has_twins = std::ranges::any_of(results, &CaseResult::is_expanded);
  text += "\n";
  AppendVariants(results, text);
  if (has_twins) {
    text += "Expanded twins: " + CountAll(results, /*is_expanded=*/true).Text() + "\n";
  }
  text += CountAll(results, /*is_expanded=*/false).Text() + "\n";
  return text;
}

}  // namespace onnxifi::report
