// SPDX-License-Identifier: Apache-2.0
//
// NamePattern: the entries of ONNXIFI_DISABLE. An entry with a '/' is about a file's path, any
// other about a plugin's name; '*' stands for any text and '?' for one character, and case is
// ignored.

#ifndef ONNXIFI_DISCOVERY_SEARCH_NAME_PATTERN_H_
#define ONNXIFI_DISCOVERY_SEARCH_NAME_PATTERN_H_

#include <filesystem>
#include <string>
#include <string_view>

namespace onnxifi::search {

bool MatchesPattern(std::string_view pattern, std::string_view text);

// Whether an entry of `list`, whose entries are separated by ':', is about the plugin.
bool IsListed(std::string_view list, const std::filesystem::path& path,
              std::string_view plugin_name);

// An entry for this file. What an entry cannot say literally becomes a '?'.
std::string MakePattern(const std::filesystem::path& path);

}  // namespace onnxifi::search

#endif  // ONNXIFI_DISCOVERY_SEARCH_NAME_PATTERN_H_
