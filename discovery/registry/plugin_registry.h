// SPDX-License-Identifier: Apache-2.0
//
// PluginRegistry: every candidate of the process with what became of it, and the plugins that may
// be used. What fails is set aside with its reason; it never keeps the others from being listed.

#ifndef ONNXIFI_DISCOVERY_REGISTRY_PLUGIN_REGISTRY_H_
#define ONNXIFI_DISCOVERY_REGISTRY_PLUGIN_REGISTRY_H_

#include <onnx/onnxifi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/core/base/log.h"
#include "discovery/library/plugin_library.h"
#include "discovery/search/candidate_search.h"

namespace onnxifi::registry {

// A plugin that loaded and answered. Its library stays open for the rest of the process.
struct Plugin {
  // Unique among the plugins of the registry.
  std::string name;
  int32_t priority = 0;
  library::PluginFunctions functions;
  // Its devices as it listed them.
  std::vector<onnxBackendID> ids;
};

// What became of one candidate; the C++ side of onnxDiscoveryRecord, field by field, as it was when
// discovery ended.
struct Record {
  std::string plugin;
  std::string path;
  std::string rule;
  uint32_t verdict = 0;
  std::string sentence;
  std::string detail;
  int32_t priority = 0;
  uint32_t device_count = 0;
  uint64_t microseconds = 0;
  // Of a plugin that loaded: whether it was quarantined since. Null for any other.
  std::shared_ptr<const library::PluginHealth> health;
};

// Immutable after Discover.
class PluginRegistry {
 public:
  // Searches, opens and enumerates. `own_function` is any function of this libonnxifi: plugins are
  // looked for beside the file in which it lies, and that file is never taken for a plugin.
  static PluginRegistry Discover(const search::Environment& environment, const void* own_function);

  // By priority, then in the order in which they were found.
  const std::vector<Plugin>& plugins() const { return plugins_; }
  // In the order in which they were tried.
  const std::vector<Record>& records() const { return records_; }

 private:
  void Try(const search::Candidate& candidate, const void* own_function,
           const search::Environment& environment);
  void Load(const search::Candidate& candidate, const void* own_function,
            const search::Environment& environment, Record* record);

  std::vector<Plugin> plugins_;
  std::vector<Record> records_;
};

}  // namespace onnxifi::registry

#endif  // ONNXIFI_DISCOVERY_REGISTRY_PLUGIN_REGISTRY_H_
