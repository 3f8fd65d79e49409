// SPDX-License-Identifier: Apache-2.0
//
// CandidateSearch: lists of paths and folders of files called libonnxifi-*.so.

#include "discovery/search/candidate_search.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

namespace onnxifi::search {

using base::Code;
using base::Status;

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "libonnxifi-";
constexpr std::string_view kSuffix = ".so";

bool HasPluginName(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.size() > kPrefix.size() + kSuffix.size() && name.starts_with(kPrefix) &&
         name.ends_with(kSuffix);
}

void AddFile(const fs::path& path, std::string_view rule, std::vector<Candidate>* candidates) {
  std::error_code error;
  fs::path resolved = fs::canonical(path, error);
  Candidate candidate{path, std::string(rule), base::Ok()};
  if (error) {
    candidate.status =
        Status(Code::kBackendUnavailable,
               "The path '" + path.string() + "' cannot be resolved: " + error.message() + ".");
  } else {
    candidate.path = std::move(resolved);
  }
  candidates->push_back(std::move(candidate));
}

void AddFolder(const fs::path& folder, std::string_view rule, std::vector<Candidate>* candidates) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (HasPluginName(entry->path())) files.push_back(entry->path());
  }
  if (error) {
    candidates->push_back(
        {folder, std::string(rule),
         Status(Code::kBackendUnavailable, "The folder '" + folder.string() +
                                               "' cannot be listed: " + error.message() + ".")});
    return;
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) AddFile(file, rule, candidates);
}

void AddList(std::string_view list, std::string_view rule, std::vector<Candidate>* candidates) {
  constexpr char kSeparator = ':';
  while (!list.empty()) {
    const size_t end = std::min(list.find(kSeparator), list.size());
    const fs::path entry(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
    if (entry.empty()) continue;
    std::error_code error;
    if (fs::is_directory(entry, error)) {
      AddFolder(entry, rule, candidates);
    } else {
      AddFile(entry, rule, candidates);
    }
  }
}

}  // namespace

std::vector<Candidate> FindCandidates(const Environment& environment, const fs::path& own_folder) {
  std::vector<Candidate> candidates;
  if (environment.add_backends) {
    AddList(*environment.add_backends, "ONNXIFI_ADD_BACKENDS", &candidates);
  }
  if (environment.backends) {
    AddList(*environment.backends, "ONNXIFI_BACKENDS", &candidates);
  } else {
    AddFolder(own_folder, "beside libonnxifi", &candidates);
  }
  return candidates;
}

std::string PluginName(const fs::path& path) {
  if (!HasPluginName(path)) return path.stem().string();
  const std::string name = path.filename().string();
  return name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
}

}  // namespace onnxifi::search
