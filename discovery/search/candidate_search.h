// SPDX-License-Identifier: Apache-2.0
//
// CandidateSearch: which files may be plugins, in the order in which they are tried. Looks at names
// only; nothing is opened here.

#ifndef ONNXIFI_DISCOVERY_SEARCH_CANDIDATE_SEARCH_H_
#define ONNXIFI_DISCOVERY_SEARCH_CANDIDATE_SEARCH_H_

#include <filesystem>
#include <string>
#include <vector>

#include "backends/core/base/status.h"
#include "discovery/search/environment.h"

namespace onnxifi::search {

struct Candidate {
  // Resolved and absolute, so that the file found is the file opened; as given if it does not
  // resolve.
  std::filesystem::path path;
  // The variable that names it, or "beside libonnxifi".
  std::string rule;
  // Why the path cannot be a plugin; ok for one that is worth opening.
  base::Status status;
};

// ONNXIFI_ADD_BACKENDS, then ONNXIFI_BACKENDS or else the plugins in `own_folder`. An entry of the
// variables that is a folder stands for the plugins in it, sorted by name. Never looks into the
// current folder by itself: empty entries mean nothing.
std::vector<Candidate> FindCandidates(const Environment& environment,
                                      const std::filesystem::path& own_folder);

// "cpu" for libonnxifi-cpu.so; the name without its ending for any other file.
std::string PluginName(const std::filesystem::path& path);

}  // namespace onnxifi::search

#endif  // ONNXIFI_DISCOVERY_SEARCH_CANDIDATE_SEARCH_H_
