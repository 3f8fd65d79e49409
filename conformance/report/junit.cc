// SPDX-License-Identifier: Apache-2.0
//
// One testcase element per result.

#include "conformance/report/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace onnxifi::report {

std::string EscapeMarkup(std::string_view text) {
  std::string escaped;
  for (const char character : text) {
    switch (character) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      case '\n':
      case '\t':
        escaped += character;
        break;
      default:
        escaped += static_cast<unsigned char>(character) < 0x20 ? ' ' : character;
    }
  }
  return escaped;
}

std::string MakeJunit(std::string_view suite, std::span<const CaseResult> results) {
  const auto failures = std::ranges::count_if(results, &CaseResult::has_failed);
  const auto is_skipped = [](const CaseResult& result) {
    return result.verdict == Verdict::kNotSupported || result.verdict == Verdict::kNotApplicable;
  };
  const auto skipped = std::ranges::count_if(results, is_skipped);
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  auto out = std::back_inserter(text);
  fmt::format_to(out, "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n",
                 EscapeMarkup(suite), results.size(), failures, skipped);
  for (const CaseResult& result : results) {
    fmt::format_to(out, "  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                   EscapeMarkup(result.group), EscapeMarkup(result.name), result.seconds);
    if (result.verdict == Verdict::kPass) {
      text += "/>\n";
      continue;
    }
    const std::string message = EscapeMarkup(
        result.status.empty() ? result.sentence : result.status + ": " + result.sentence);
    if (is_skipped(result)) {
      fmt::format_to(out, ">\n    <skipped message=\"{}\"/>\n  </testcase>\n", message);
    } else {
      fmt::format_to(out,
                     ">\n    <failure type=\"{}\" message=\"{}\">{}</failure>\n  </testcase>\n",
                     NameOf(result.verdict), message, EscapeMarkup(result.printed));
    }
  }
  text += "</testsuite>\n";
  return text;
}

}  // namespace onnxifi::report
