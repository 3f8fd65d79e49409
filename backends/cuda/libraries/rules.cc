// SPDX-License-Identifier: Apache-2.0
//
// LibraryRules: the table of measured devices, and rules read.

#include "backends/cuda/libraries/rules.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Status;

// Products that cuBLASLt did at least 1.1 times as fast as our kernels (docs/measurements: of ours
// the last figures count).
constexpr std::string_view kMeasured =
    "NVIDIA H100 80GB HBM3, cublaslt, float32, 256, 0, 256, 0, 256, 0\n"
    "NVIDIA H100 80GB HBM3, cublaslt, float16, 128, 0, 256, 0, 512, 0\n"
    "NVIDIA H100 80GB HBM3, cublaslt, bfloat16, 128, 0, 256, 0, 512, 0\n";

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
  if (TakeUntil(fields, ',') != "cublaslt") return false;
  rule.type = TakeUntil(fields, ',');
  if (std::ranges::find(kTypes, rule.type) == std::end(kTypes)) return false;
  for (int64_t ProductExtents::*const extent :
       {&ProductExtents::rows, &ProductExtents::columns, &ProductExtents::depth}) {
    if (!ReadNumber(TakeUntil(fields, ','), rule.least.*extent) ||
        !ReadNumber(TakeUntil(fields, ','), rule.most.*extent)) {
      return false;
    }
  }
  return fields.empty();
}

}  // namespace

bool LibraryRules::TakesSome(std::string_view type) const {
  if (use != Use::kByRule) return use == Use::kAlways;
  return std::ranges::any_of(products, [&](const Rule& rule) { return rule.type == type; });
}

bool LibraryRules::Takes(std::string_view type, const ProductExtents& extents) const {
  if (use != Use::kByRule) return use == Use::kAlways;
  return std::ranges::any_of(products, [&](const Rule& rule) {
    const auto fits = [&](int64_t ProductExtents::*extent) {
      return extents.*extent >= rule.least.*extent &&
             (rule.most.*extent == 0 || extents.*extent <= rule.most.*extent);
    };
    return rule.type == type && fits(&ProductExtents::rows) && fits(&ProductExtents::columns) &&
           fits(&ProductExtents::depth);
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
  if (told == "always") found.use = LibraryRules::Use::kAlways;
  if (told == "never") found.use = LibraryRules::Use::kNever;
  std::ifstream stream(file);
  const std::string lines{std::istreambuf_iterator<char>(stream), {}};
  for (const std::string_view table : {std::string_view(lines), kMeasured}) {
    auto rules = ParseLibraryRules(table, device);
    if (!rules.ok()) continue;
    std::ranges::move(*rules, std::back_inserter(found.products));
  }
  return found;
}

}  // namespace onnxifi::cuda
