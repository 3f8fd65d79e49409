// SPDX-License-Identifier: Apache-2.0
//
// Reading the table of pairs, and holding results against it.

#include "conformance/cases/pair_table.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "client/onnx_file/tensor_file.h"

namespace onnxifi::cases {
namespace {

using nlohmann::json;
using report::CaseResult;
using report::Verdict;

std::string TextOf(const json& row, const char* member) {
  const auto found = row.find(member);
  return found != row.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string NameOf(const Pair& pair) {
  return fmt::format("{} {} {}", pair.domain.empty() ? "ai.onnx" : pair.domain, pair.op_type,
                     pair.version);
}

CaseResult MakeFailure(const Pair& pair, std::string sentence) {
  CaseResult result;
  result.name = NameOf(pair);
  result.group = "pairs";
  result.verdict = Verdict::kFail;
  result.sentence = std::move(sentence);
  return result;
}

}  // namespace

base::Result<std::vector<Pair>> ReadPairs(const std::filesystem::path& folder) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<std::byte> content,
                           onnx_file::ReadFile(folder / "index.json"));
  const auto* text = reinterpret_cast<const char*>(content.data());
  const json index = json::parse(text, text + content.size(), nullptr, /*allow_exceptions=*/false);
  const auto rows = index.is_object() ? index.find("pairs") : index.end();
  if (!index.is_object() || rows == index.end() || !rows->is_array() || rows->empty()) {
    return base::Status(base::Code::kInvalidModel, fmt::format("File '{}' has no list of pairs.",
                                                               (folder / "index.json").string()));
  }
  std::vector<Pair> pairs;
  for (const json& row : *rows) {
    Pair& pair = pairs.emplace_back();
    pair.domain = TextOf(row, "domain");
    pair.op_type = TextOf(row, "operator");
    pair.reason = TextOf(row, "reason");
    const auto version = row.find("version");
    if (version != row.end() && version->is_number_integer()) pair.version = version->get<int>();
    const auto cases = row.find("cases");
    if (cases == row.end() || !cases->is_array()) continue;
    for (const json& name : *cases) {
      if (name.is_string()) pair.cases.push_back(name.get<std::string>());
    }
  }
  return pairs;
}

std::string CheckPairs(const std::vector<Pair>& pairs, std::vector<CaseResult>& results) {
  std::map<std::string, Verdict> verdicts;
  for (const CaseResult& result : results) verdicts.emplace(result.name, result.verdict);
  size_t passed_count = 0;
  size_t reason_count = 0;
  size_t refused_count = 0;
  for (const Pair& pair : pairs) {
    if (pair.cases.empty() && pair.reason.empty()) {
      results.push_back(
          MakeFailure(pair, "It has neither a case nor a reason why none can exist."));
    } else if (!pair.cases.empty() && !pair.reason.empty()) {
      results.push_back(
          MakeFailure(pair, fmt::format("It has case '{}' and a reason why none can exist: {}",
                                        pair.cases.front(), pair.reason)));
    }
    bool is_passed = false;
    bool is_refused = !pair.cases.empty();
    for (const std::string& name : pair.cases) {
      const auto found = verdicts.find(name);
      if (found == verdicts.end()) {
        results.push_back(MakeFailure(pair, fmt::format("Its case '{}' has not run.", name)));
        is_refused = false;
        continue;
      }
      is_passed = is_passed || found->second == Verdict::kPass;
      is_refused = is_refused && found->second == Verdict::kNotSupported;
    }
    passed_count += is_passed ? 1 : 0;
    refused_count += is_refused ? 1 : 0;
    reason_count += pair.cases.empty() && !pair.reason.empty() ? 1 : 0;
  }
  return fmt::format(
      "{} operators of a version: {} with a case that passes, {} with a reason why none can exist, "
      "{} refused\n",
      pairs.size(), passed_count, reason_count, refused_count);
}

}  // namespace onnxifi::cases
