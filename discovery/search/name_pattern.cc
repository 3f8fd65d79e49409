// SPDX-License-Identifier: Apache-2.0
//
// NamePattern: one pass over the text, going back to the last '*' where it does not fit.

#include "discovery/search/name_pattern.h"

#include <algorithm>
#include <cctype>

namespace onnxifi::search {

namespace {

constexpr char kSeparator = ':';

bool IsSameLetter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

}  // namespace

bool MatchesPattern(std::string_view pattern, std::string_view text) {
  size_t in_pattern = 0;
  size_t in_text = 0;
  size_t star = std::string_view::npos;
  size_t after_star = 0;
  while (in_text < text.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      after_star = in_text;
    } else if (in_pattern < pattern.size() &&
               (pattern[in_pattern] == '?' || IsSameLetter(pattern[in_pattern], text[in_text]))) {
      ++in_pattern;
      ++in_text;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      in_text = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == std::string_view::npos;
}

bool IsListed(std::string_view list, const std::filesystem::path& path,
              std::string_view plugin_name) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(kSeparator), list.size());
    const std::string_view entry = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (entry.empty()) continue;
    const bool is_path = entry.find('/') != std::string_view::npos;
    if (is_path ? MatchesPattern(entry, path.native()) : MatchesPattern(entry, plugin_name)) {
      return true;
    }
  }
  return false;
}

std::string MakePattern(const std::filesystem::path& path) {
  std::string pattern = path.native();
  std::ranges::replace(pattern, kSeparator, '?');
  std::ranges::replace(pattern, '*', '?');
  return pattern;
}

}  // namespace onnxifi::search
