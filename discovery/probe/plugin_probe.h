// SPDX-License-Identifier: Apache-2.0
//
// PluginProbe: tries each plugin in a process of its own before a tool lets libonnxifi open it. A
// plugin that crashes, exits or hangs there is disabled in the tool's own process, with the reason.

#ifndef ONNXIFI_DISCOVERY_PROBE_PLUGIN_PROBE_H_
#define ONNXIFI_DISCOVERY_PROBE_PLUGIN_PROBE_H_

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onnxifi::probe {

// Far above what the start of a driver takes.
inline constexpr std::chrono::milliseconds kTimeLimit{10'000};

// A plugin that does not stand the trial.
struct Finding {
  std::filesystem::path path;
  // Full sentence.
  std::string sentence;
};

// Says what is done next, e.g. "it lists its devices".
using EnterStage = std::function<void(std::string_view stage)>;
// What the tool is about to do, on the libonnxifi that it opens itself. Runs in a child process,
// where the library finds one plugin; what it prints is not shown.
using Trial = std::function<void(const EnterStage& enter)>;

// What most tools do: opens the library and asks every device for its name.
Trial ListDevices(std::filesystem::path library);

// Tries the plugins that the libonnxifi at `library` would find, all at once; each may take
// `time_limit`. Plugins without a fault are no findings, nor are those that are quarantined by
// libonnxifi itself; a library that is one of them has none. Call it before any library is opened,
// in a process of one thread.
std::vector<Finding> ProbePlugins(const std::filesystem::path& library, const Trial& trial,
                                  std::chrono::milliseconds time_limit = kTimeLimit);

// Tries a library that need not be a libonnxifi, without any plugin.
std::optional<Finding> ProbeLibrary(const std::filesystem::path& library, const Trial& trial,
                                    std::chrono::milliseconds time_limit = kTimeLimit);

// Adds the findings to ONNXIFI_DISABLE in the environment of this process and of its children.
void Disable(const std::vector<Finding>& findings);

}  // namespace onnxifi::probe

#endif  // ONNXIFI_DISCOVERY_PROBE_PLUGIN_PROBE_H_
