// SPDX-License-Identifier: Apache-2.0
//
// index.json and case.json, and where they lie.

#include "conformance/cases/case_list.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "backends/core/base/cache_folder.h"
#include "client/onnx_file/tensor_file.h"

namespace onnxifi::cases {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

base::Status Unusable(const fs::path& path, std::string_view why) {
  return base::Status(base::Code::kInvalidModel, fmt::format("File '{}' {}.", path.string(), why));
}

base::Result<json> ReadJson(const fs::path& path) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<std::byte> content, onnx_file::ReadFile(path));
  const auto* text = reinterpret_cast<const char*>(content.data());
  json value = json::parse(text, text + content.size(), nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) return Unusable(path, "is no JSON object");
  return value;
}

// A member of the right type, or the fallback: case files of later versions may say more or less.
template <typename T>
T Member(const json& object, const char* name, T fallback) {
  const auto member = object.find(name);
  if (member == object.end()) return fallback;
  if constexpr (std::is_same_v<T, std::string>) {
    return member->is_string() ? member->get<std::string>() : fallback;
  } else if constexpr (std::is_same_v<T, bool>) {
    return member->is_boolean() ? member->get<bool>() : fallback;
  } else {
    return member->is_number() ? member->get<T>() : fallback;
  }
}

std::vector<std::string> Strings(const json& object, const char* name) {
  std::vector<std::string> strings;
  const auto member = object.find(name);
  if (member == object.end() || !member->is_array()) return strings;
  for (const json& element : *member) {
    if (element.is_string()) strings.push_back(element.get<std::string>());
  }
  return strings;
}

std::vector<double> Numbers(const json& object, const char* name) {
  std::vector<double> numbers;
  const auto member = object.find(name);
  if (member == object.end() || !member->is_array()) return numbers;
  for (const json& element : *member) {
    if (element.is_number()) numbers.push_back(element.get<double>());
  }
  return numbers;
}

// Nothing when the kind is none of those known, or classes and shares do not agree.
std::optional<Draws> ReadDraws(const json& object) {
  Draws draws;
  const auto kind = Member<std::string>(object, "kind", "");
  if (kind == "normal") {
    draws.kind = Draws::Kind::kNormal;
  } else if (kind == "uniform") {
    draws.kind = Draws::Kind::kUniform;
  } else if (kind == "classes") {
    draws.kind = Draws::Kind::kClasses;
  } else {
    return std::nullopt;
  }
  draws.mean = Member<double>(object, "mean", draws.mean);
  draws.deviation = Member<double>(object, "deviation", draws.deviation);
  draws.low = Member<double>(object, "low", draws.low);
  draws.high = Member<double>(object, "high", draws.high);
  draws.values = Numbers(object, "values");
  draws.shares = Numbers(object, "shares");
  draws.is_seeded = Member<bool>(object, "seeded", false);
  draws.has_rows = Member<bool>(object, "rows", false);
  const bool has_classes = draws.kind == Draws::Kind::kClasses;
  if (draws.values.size() != draws.shares.size() || draws.values.empty() == has_classes) {
    return std::nullopt;
  }
  return draws;
}

}  // namespace

base::Result<std::vector<CaseEntry>> ReadIndex(const fs::path& folder) {
  const fs::path path = folder / "index.json";
  ONNXIFI_ASSIGN_OR_RETURN(const json index, ReadJson(path));
  const auto listed = index.find("cases");
  if (listed == index.end() || !listed->is_array()) return Unusable(path, "has no list of cases");
  std::vector<CaseEntry> entries;
  for (const json& element : *listed) {
    CaseEntry entry;
    entry.name = Member<std::string>(element, "name", "");
    entry.group = Member<std::string>(element, "kind", "");
    entry.is_expanded = Member<bool>(element, "expanded", false);
    entry.path = Member<std::string>(element, "path", "");
    if (entry.name.empty() || entry.path.empty()) {
      return Unusable(path, fmt::format("has a case without name or path after '{}'",
                                        entries.empty() ? "" : entries.back().name));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

base::Result<CaseDescription> ReadDescription(const fs::path& case_folder) {
  ONNXIFI_ASSIGN_OR_RETURN(const json file, ReadJson(case_folder / "case.json"));
  CaseDescription description;
  description.folder = case_folder;
  description.name = Member<std::string>(file, "name", case_folder.filename().string());
  description.data_set_count = Member<int>(file, "data_sets", 0);
  description.input_kinds = Strings(file, "input_kinds");
  description.output_kinds = Strings(file, "output_kinds");
  description.length_count = Member<int>(file, "lengths", 0);
  comparison::Tolerance& tolerance = description.tolerance;
  if (Member<std::string>(file, "tolerance", "") == "rms") {
    tolerance.rms_factor = Member<double>(file, "rms_factor", 1e-4);
  } else {
    tolerance.absolute = Member<double>(file, "atol", tolerance.absolute);
    tolerance.relative = Member<double>(file, "rtol", tolerance.relative);
  }
  if (const auto member = file.find("draws"); member != file.end()) {
    description.draws = member->is_object() ? ReadDraws(*member) : std::nullopt;
    if (!description.draws) {
      return Unusable(case_folder / "case.json", "draws from a distribution that is none");
    }
  }
  if (description.data_set_count < 1) {
    return Unusable(case_folder / "case.json", "lists no data set");
  }
  return description;
}

base::Result<fs::path> FindGeneratedFolder(std::string_view kind) {
  const fs::path parent = base::ToolCacheFolder() / kind;
  std::error_code error;
  fs::path newest;
  fs::file_time_type newest_time;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    std::error_code missing;
    const fs::file_time_type time = fs::last_write_time(entry.path() / "index.json", missing);
    if (missing) continue;
    if (newest.empty() || time > newest_time) {
      newest = entry.path();
      newest_time = time;
    }
  }
  if (newest.empty()) {
    return base::Status(
        base::Code::kInvalidName,
        fmt::format("There are no generated cases in '{}'; {} makes them.", parent.string(),
                    kind == "models"    ? "tools/make_models.py"
                    : kind == "opsets"  ? "tools/make_opset_cases.py"
                    : kind == "domains" ? "tools/make_domain_cases.py"
                                        : "tools/make_onnx_cases.py"));
  }
  return newest;
}

}  // namespace onnxifi::cases
