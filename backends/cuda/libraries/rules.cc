// SPDX-License-Identifier: Apache-2.0
//
// LibraryRules: lines read, and which of them counts.

#include "backends/cuda/libraries/rules.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "backends/core/base/log.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Status;

constexpr Library kLibraries[] = {Library::kCublasLt, Library::kCudnn};
constexpr std::string_view kTypes[] = {"float32", "tf32", "float16", "bfloat16", "int8"};

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::string_view TakeUntil(std::string_view& text, char mark) {
  const size_t end = std::min(text.find(mark), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return Trimmed(part);
}

bool ReadNumber(std::string_view field, int64_t& number) {
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  return error == std::errc() && end == field.data() + field.size() && number >= 0;
}

bool ReadRule(std::string_view fields, LibraryRules::Rule& rule) {
  const auto library = std::ranges::find(kLibraries, TakeUntil(fields, ','), Name);
  if (library == std::end(kLibraries)) return false;
  rule.library = *library;
  rule.type = TakeUntil(fields, ',');
  if (std::ranges::find(kTypes, rule.type) == std::end(kTypes)) return false;
  for (int64_t ProductExtents::*const extent :
       {&ProductExtents::rows, &ProductExtents::columns, &ProductExtents::depth}) {
    if (!ReadNumber(TakeUntil(fields, ','), rule.least.*extent) ||
        !ReadNumber(TakeUntil(fields, ','), rule.most.*extent)) {
      return false;
    }
    // It would fit nothing.
    if (rule.most.*extent != 0 && rule.least.*extent > rule.most.*extent) return false;
  }
  return fields.empty();
}

}  // namespace

std::string_view Name(Library library) { return library == Library::kCudnn ? "cudnn" : "cublaslt"; }

bool LibraryRules::TakesSome(Library library, std::string_view type) const {
  if (UseOf(library) != Use::kByRule) return UseOf(library) == Use::kAlways;
  return std::ranges::any_of(
      rules, [&](const Rule& rule) { return rule.library == library && rule.type == type; });
}

bool LibraryRules::Takes(Library library, std::string_view type,
                         const ProductExtents& extents) const {
  if (UseOf(library) != Use::kByRule) return UseOf(library) == Use::kAlways;
  return std::ranges::any_of(rules, [&](const Rule& rule) {
    const auto fits = [&](int64_t ProductExtents::*extent) {
      return extents.*extent >= rule.least.*extent &&
             (rule.most.*extent == 0 || extents.*extent <= rule.most.*extent);
    };
    return rule.library == library && rule.type == type && fits(&ProductExtents::rows) &&
           fits(&ProductExtents::columns) && fits(&ProductExtents::depth);
  });
}

base::Result<std::vector<LibraryRules::Rule>> ParseLibraryRules(std::string_view table,
                                                                std::string_view device) {
  // As in "NVIDIA A100-SXM4-40GB MIG 1g.5gb".
  const std::string_view whole = device.substr(0, device.find(" MIG "));
  std::vector<LibraryRules::Rule> rules;
  while (!table.empty()) {
    const std::string_view line = TakeUntil(table, '\n');
    std::string_view fields = line;
    const std::string_view name = TakeUntil(fields, ',');
    if (name.starts_with('#') || (name != device && name != whole)) continue;
    LibraryRules::Rule rule;
    if (!ReadRule(fields, rule)) {
      return Status(Code::kInvalidProperty,
                    "A table of libraries has a line that says nothing: " + std::string(line));
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

LibraryRules FindLibraryRules(std::string_view device, const std::filesystem::path& file) {
  LibraryRules found;
  const char* const text = std::getenv("ONNXIFI_CUDA_LIBRARIES");
  const std::string_view told = text == nullptr ? "" : text;
  const auto use_of = [&](Library library) {
    if (told == "always" || told == Name(library)) return LibraryRules::Use::kAlways;
    const bool is_other = std::ranges::find(kLibraries, told, Name) != std::end(kLibraries);
    return told == "never" || is_other ? LibraryRules::Use::kNever : LibraryRules::Use::kByRule;
  };
  found.cublaslt = use_of(Library::kCublasLt);
  found.cudnn = use_of(Library::kCudnn);
  std::ifstream stream(file);
  const std::string lines{std::istreambuf_iterator<char>(stream), {}};
  for (const std::string_view table : {std::string_view(lines), kMeasuredRules}) {
    auto rules = ParseLibraryRules(table, device);
    if (!rules.ok()) {
      const bool is_of_file = table.data() == lines.data();
      base::Log().Write(base::LogLevel::kWarning, "cuda",
                        std::string(rules.status().sentence()) + " No rule counts of " +
                            (is_of_file ? file.string() : "the table of measured devices") + ".");
      continue;
    }
    std::ranges::move(*rules, std::back_inserter(found.rules));
  }
  return found;
}

}  // namespace onnxifi::cuda
