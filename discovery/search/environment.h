// SPDX-License-Identifier: Apache-2.0
//
// Environment: the variables that libonnxifi obeys. Those of its
// cost tables are read where they are used.

#ifndef ONNXIFI_DISCOVERY_SEARCH_ENVIRONMENT_H_
#define ONNXIFI_DISCOVERY_SEARCH_ENVIRONMENT_H_

#include <optional>
#include <string>
#include <vector>

#include "backends/core/base/log.h"

namespace onnxifi::search {

struct Environment {
  // ONNXIFI_BACKENDS: files and folders that replace the search.
  std::optional<std::string> backends;
  // ONNXIFI_ADD_BACKENDS: files and folders that come in front of it.
  std::optional<std::string> add_backends;
  // ONNXIFI_DISABLE: plugins that are not opened, see name_pattern.h. Obeyed whatever the rights of
  // the process, since it injects nothing.
  std::optional<std::string> disable;
  // ONNXIFI_LOG: debug, info, warning, error or silent.
  base::LogLevel log_level = base::LogLevel::kWarning;
  // Sentences about values that cannot be obeyed.
  std::vector<std::string> complaints;
  // Names of variables that inject code, where they are set but not obeyed, because the process
  // runs with more rights than its caller.
  std::vector<std::string> ignored;
};

Environment ReadEnvironment();

}  // namespace onnxifi::search

#endif  // ONNXIFI_DISCOVERY_SEARCH_ENVIRONMENT_H_
