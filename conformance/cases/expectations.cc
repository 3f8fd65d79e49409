// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing the two lists, and holding results against them.

#include "conformance/cases/expectations.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/onnx_file/tensor_file.h"
#include "conformance/cases/variant.h"

namespace onnxifi::cases {
namespace {

// Ordered, so that a file that is written again keeps the order of its entries' members.
using json = nlohmann::ordered_json;
using report::CaseResult;
using report::Verdict;

base::Status Malformed(std::string sentence) {
  return base::Status(base::Code::kInvalidModel, std::move(sentence));
}

base::Result<json> ReadObject(const std::filesystem::path& path) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<std::byte> content, onnx_file::ReadFile(path));
  const auto* text = reinterpret_cast<const char*>(content.data());
  json object = json::parse(text, text + content.size(), nullptr, /*allow_exceptions=*/false);
  if (object.is_object()) return object;
  return Malformed(fmt::format("File '{}' is no JSON object.", path.string()));
}

std::string TextOf(const json& entry, const char* member) {
  return entry.is_object() && entry.contains(member) && entry[member].is_string()
             ? entry[member].get<std::string>()
             : std::string();
}

bool IsComplete(const json& entry) {
  if (TextOf(entry, "suite").empty() || TextOf(entry, "reason").empty()) return false;
  const auto cases = entry.find("cases");
  return cases != entry.end() && cases->is_array() && !cases->empty() &&
         std::ranges::all_of(*cases, [](const json& pattern) { return pattern.is_string(); });
}

base::Result<std::vector<Expectation>> ReadList(const json& file, const char* name,
                                                std::string_view suite) {
  std::vector<Expectation> list;
  const auto member = file.find(name);
  if (member == file.end()) return list;
  if (!member->is_array()) return Malformed(fmt::format("Member '{}' is no list.", name));
  for (size_t position = 0; position < member->size(); ++position) {
    const json& entry = (*member)[position];
    if (!IsComplete(entry)) {
      return Malformed(fmt::format(
          "Entry {} of list '{}' lacks a suite, a reason or a list of cases.", position, name));
    }
    if (TextOf(entry, "suite") != suite) continue;
    for (const json& pattern : entry["cases"]) {
      Expectation& expectation = list.emplace_back();
      expectation.pattern = pattern.get<std::string>();
      expectation.reason = TextOf(entry, "reason");
      try {  // The standard library knows no other way to check an expression.
        expectation.expression = std::regex(expectation.pattern);
      } catch (const std::regex_error&) {
        return Malformed(
            fmt::format("'{}' in list '{}' is no regular expression.", expectation.pattern, name));
      }
    }
  }
  return list;
}

bool Matches(const Expectation& expectation, const CaseResult& result) {
  return SplitVariant(expectation.pattern).variant == SplitVariant(result.name).variant &&
         std::regex_match(result.name, expectation.expression);
}

// The first entry that matches the result; nullptr if none does.
const Expectation* FindMatch(const std::vector<Expectation>& list, const CaseResult& result) {
  const auto found = std::ranges::find_if(
      list, [&](const Expectation& expectation) { return Matches(expectation, result); });
  return found == list.end() ? nullptr : &*found;
}

void CheckAgainst(const Expectations& expectations, CaseResult& result) {
  if (result.verdict == Verdict::kNotApplicable) return;
  const Expectation* const unsupported = FindMatch(expectations.unsupported, result);
  const Expectation* const failing = FindMatch(expectations.failing, result);
  if (result.verdict == Verdict::kPass && unsupported != nullptr) {
    result.verdict = Verdict::kUnexpectedPass;
    result.sentence =
        fmt::format("The case passes but is listed as unsupported: {}", unsupported->reason);
  } else if (!result.has_failed() && failing != nullptr) {
    result.verdict = Verdict::kUnexpectedPass;
    result.sentence =
        fmt::format("The case does not fail but is listed as failing: {}", failing->reason);
  } else if (result.verdict == Verdict::kNotSupported && unsupported == nullptr) {
    result.verdict = Verdict::kUnlistedRefusal;
    result.sentence = fmt::format("The refusal {} is not listed as unsupported: {}", result.status,
                                  result.sentence);
  } else if (result.has_failed() && failing != nullptr) {
    result.verdict = Verdict::kExpectedFailure;
  }
}

bool HasVariant(const std::vector<CaseResult>& results, Variant variant) {
  return variant == Variant::kPlain || std::ranges::any_of(results, [&](const CaseResult& result) {
           return SplitVariant(result.name).variant == variant;
         });
}

void AppendStale(const std::vector<Expectation>& list, std::vector<CaseResult>& results) {
  const size_t case_count = results.size();
  for (const Expectation& expectation : list) {
    const bool is_matched =
        std::any_of(results.begin(), results.begin() + static_cast<ptrdiff_t>(case_count),
                    [&](const CaseResult& result) { return Matches(expectation, result); });
    if (is_matched || !HasVariant(results, SplitVariant(expectation.pattern).variant)) continue;
    CaseResult stale;
    stale.name = "expectation " + expectation.pattern;
    stale.group = "expectations";
    stale.verdict = Verdict::kUnexpectedPass;
    stale.sentence = "The entry matches no case: it is stale.";
    results.push_back(std::move(stale));
  }
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// An expression that matches this name alone.
std::string PatternOf(const std::string& name) {
  std::string pattern;
  for (const char character : name) {
    if (std::string_view(R"(\^$.|?*+()[]{})").find(character) != std::string_view::npos) {
      pattern += '\\';
    }
    pattern += character;
  }
  return pattern;
}

// The entries of one list for one suite: cases of one reason are one entry, in the order of the
// first of them.
class EntryList {
 public:
  EntryList(std::string_view suite, const std::vector<Expectation>& known)
      : suite_(suite), known_(known) {}

  void Add(const CaseResult& result, const std::string& new_reason) {
    const Expectation* const known = FindMatch(known_, result);
    const std::string reason = known != nullptr ? known->reason : new_reason;
    auto entry = std::ranges::find_if(
        entries_, [&](const json& other) { return TextOf(other, "reason") == reason; });
    if (entry == entries_.end()) {
      entries_.push_back({{"suite", suite_}, {"reason", reason}, {"cases", json::array()}});
      entry = std::prev(entries_.end());
    }
    (*entry)["cases"].push_back(PatternOf(result.name));
  }

  const std::vector<json>& entries() const { return entries_; }

 private:
  std::string suite_;
  const std::vector<Expectation>& known_;
  std::vector<json> entries_;
};

// Replaces the entries for the suite.
void Replace(json& file, const char* name, std::string_view suite,
             const std::vector<json>& entries) {
  json list = json::array();
  for (const json& entry : file.value(name, json::array())) {
    if (TextOf(entry, "suite") != suite) list.push_back(entry);
  }
  for (const json& entry : entries) list.push_back(entry);
  file[name] = std::move(list);
}

}  // namespace

base::Result<Expectations> ReadExpectations(const std::filesystem::path& path,
                                            std::string_view suite) {
  ONNXIFI_ASSIGN_OR_RETURN(const json file, ReadObject(path));
  Expectations expectations;
  ONNXIFI_ASSIGN_OR_RETURN(expectations.unsupported, ReadList(file, "unsupported", suite));
  ONNXIFI_ASSIGN_OR_RETURN(expectations.failing, ReadList(file, "failing", suite));
  return expectations;
}

base::Status WriteExpectations(const std::filesystem::path& path, std::string_view suite,
                               const std::vector<CaseResult>& results) {
  json file = json::object();
  Expectations known;
  if (std::error_code error; std::filesystem::exists(path, error)) {
    ONNXIFI_ASSIGN_OR_RETURN(file, ReadObject(path));
    ONNXIFI_ASSIGN_OR_RETURN(known, ReadExpectations(path, suite));
  }
  EntryList unsupported(suite, known.unsupported);
  EntryList failing(suite, known.failing);
  for (const CaseResult& result : results) {
    if (result.verdict == Verdict::kNotSupported) {
      unsupported.Add(result, fmt::format("{}: {}", result.status, FirstLine(result.sentence)));
    } else if (result.has_failed()) {
      failing.Add(result,
                  fmt::format("{}: {}", NameOf(result.verdict), FirstLine(result.sentence)));
    }
  }
  Replace(file, "unsupported", suite, unsupported.entries());
  Replace(file, "failing", suite, failing.entries());
  return onnx_file::WriteFile(
      path, file.dump(2, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace) + "\n");
}

void ApplyExpectations(const Expectations& expectations, bool is_partial,
                       std::vector<CaseResult>& results) {
  for (CaseResult& result : results) CheckAgainst(expectations, result);
  if (is_partial) return;
  AppendStale(expectations.unsupported, results);
  AppendStale(expectations.failing, results);
}

}  // namespace onnxifi::cases
