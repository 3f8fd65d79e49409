// SPDX-License-Identifier: Apache-2.0
//
// Reading the two lists and holding results against them.

#include "conformance/cases/expectations.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "conformance/onnx_file/tensor_file.h"

namespace onnxifi::cases {
namespace {

using nlohmann::json;
using report::CaseResult;
using report::Verdict;

base::Result<std::vector<Expectation>> ReadList(const json& file, const char* name,
                                                std::string_view suite) {
  std::vector<Expectation> list;
  const auto member = file.find(name);
  if (member == file.end()) return list;
  size_t position = 0;
  for (const json& entry : *member) {
    const auto text_of = [&entry](const char* member) {
      return entry.is_object() && entry.contains(member) && entry[member].is_string()
                 ? entry[member].get<std::string>()
                 : std::string();
    };
    const bool is_complete =
        !text_of("suite").empty() && !text_of("case").empty() && !text_of("reason").empty();
    if (!is_complete) {
      return base::Status(
          base::Code::kInvalidModel,
          fmt::format("Entry {} of list '{}' lacks a suite, a case or a reason.", position, name));
    }
    ++position;
    if (text_of("suite") != suite) continue;
    Expectation expectation;
    expectation.pattern = text_of("case");
    expectation.reason = text_of("reason");
    try {  // The standard library knows no other way to judge an expression.
      expectation.expression = std::regex(expectation.pattern);
    } catch (const std::regex_error&) {
      return base::Status(
          base::Code::kInvalidModel,
          fmt::format("'{}' in list '{}' is no regular expression.", expectation.pattern, name));
    }
    list.push_back(std::move(expectation));
  }
  return list;
}

bool Matches(const Expectation& expectation, const CaseResult& result) {
  return std::regex_match(result.name, expectation.expression);
}

void ReportUnmatched(const Expectation& expectation, std::vector<CaseResult>& stale) {
  CaseResult result;
  result.name = "expectation " + expectation.pattern;
  result.group = "expectations";
  result.verdict = Verdict::kUnexpectedPass;
  result.sentence = "The entry matches no case: it is stale.";
  stale.push_back(std::move(result));
}

}  // namespace

base::Result<Expectations> ReadExpectations(const std::filesystem::path& path,
                                            std::string_view suite) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<std::byte> content, onnx_file::ReadFile(path));
  const auto* text = reinterpret_cast<const char*>(content.data());
  const json file = json::parse(text, text + content.size(), nullptr, /*allow_exceptions=*/false);
  if (!file.is_object()) {
    return base::Status(base::Code::kInvalidModel,
                        fmt::format("File '{}' is no JSON object.", path.string()));
  }
  Expectations expectations;
  ONNXIFI_ASSIGN_OR_RETURN(expectations.unsupported, ReadList(file, "unsupported", suite));
  ONNXIFI_ASSIGN_OR_RETURN(expectations.failing, ReadList(file, "failing", suite));
  return expectations;
}

void ApplyExpectations(const Expectations& expectations, bool is_partial,
                       std::vector<CaseResult>& results) {
  std::vector<CaseResult> stale;
  for (const Expectation& expectation : expectations.unsupported) {
    bool is_matched = false;
    for (CaseResult& result : results) {
      if (!Matches(expectation, result)) continue;
      is_matched = true;
      if (result.verdict == Verdict::kPass) {
        result.verdict = Verdict::kUnexpectedPass;
        result.sentence =
            fmt::format("The case passes but is listed as unsupported: {}", expectation.reason);
      }
    }
    if (!is_matched && !is_partial) ReportUnmatched(expectation, stale);
  }
  for (const Expectation& expectation : expectations.failing) {
    bool is_matched = false;
    for (CaseResult& result : results) {
      if (!Matches(expectation, result)) continue;
      is_matched = true;
      if (result.has_failed()) {
        result.verdict = Verdict::kExpectedFailure;
      } else {
        result.verdict = Verdict::kUnexpectedPass;
        result.sentence =
            fmt::format("The case does not fail but is listed as failing: {}", expectation.reason);
      }
    }
    if (!is_matched && !is_partial) ReportUnmatched(expectation, stale);
  }
  results.insert(results.end(), stale.begin(), stale.end());
}

}  // namespace onnxifi::cases
