// SPDX-License-Identifier: Apache-2.0
//
// PluginRegistry: one candidate after the other: manifest, opening, enumeration.

#include "discovery/registry/plugin_registry.h"

#include <onnxifi/sdk.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "backends/core/base/status.h"
#include "discovery/library/image.h"
#include "discovery/library/plugin_answer.h"
#include "discovery/manifest/manifest.h"
#include "discovery/search/name_pattern.h"

namespace onnxifi::registry {

namespace {

std::string CodeText(onnxStatus status) {
  return std::string(base::CodeName(static_cast<base::Code>(status)));
}

// The reason that a plugin of this SDK leaves for its last answer; empty for any other plugin.
std::string LastErrorMessage(const library::PluginFunctions& functions) {
  constexpr const char* kFunction = "onnxGetLastErrorMessage";
  onnxExtensionFunctionPointer address = nullptr;
  if (functions.get_extension_function_address == nullptr ||
      functions.get_extension_function_address(nullptr, kFunction, &address) !=
          ONNXIFI_STATUS_SUCCESS ||
      address == nullptr) {
    return std::string();
  }
  const auto get_message = library::Guarded(
      reinterpret_cast<onnxGetLastErrorMessageFunction>(reinterpret_cast<void (*)()>(address)),
      kFunction, functions.health.get());
  return library::ReadText(*functions.health, kFunction, get_message).text;
}

}  // namespace

PluginRegistry PluginRegistry::Discover(const search::Environment& environment,
                                        const void* own_function) {
  PluginRegistry registry;
  for (const std::string& name : environment.ignored) {
    Record record;
    record.rule = name;
    record.verdict = ONNXIFI_SDK_VERDICT_IGNORED;
    record.sentence =
        "Variable " + name + " is ignored, because the process has more rights than its caller.";
    registry.records_.push_back(std::move(record));
  }
  const base::Log log(environment.log_level);
  const auto own_file = library::Image::FileOf(own_function);
  for (const search::Candidate& candidate :
       search::FindCandidates(environment, own_file.parent_path())) {
    registry.Try(candidate, own_function, environment);
  }
  std::stable_sort(registry.plugins_.begin(), registry.plugins_.end(),
                   [](const Plugin& a, const Plugin& b) { return a.priority < b.priority; });
  for (const std::string& complaint : environment.complaints) {
    log.Write(base::LogLevel::kWarning, "loader", complaint);
  }
  for (const Record& record : registry.records_) {
    // Logged when it happened.
    if (record.verdict == ONNXIFI_SDK_VERDICT_QUARANTINED) continue;
    const bool is_expected = record.verdict == ONNXIFI_SDK_VERDICT_LOADED ||
                             record.verdict == ONNXIFI_SDK_VERDICT_DUPLICATE ||
                             record.verdict == ONNXIFI_SDK_VERDICT_DISABLED;
    std::string message = record.path + ": " + record.sentence;
    if (!record.detail.empty()) message += " (" + record.detail + ")";
    log.Write(is_expected ? base::LogLevel::kInfo : base::LogLevel::kWarning, "loader", message);
  }
  return registry;
}

void PluginRegistry::Try(const search::Candidate& candidate, const void* own_function,
                         const search::Environment& environment) {
  Record record;
  record.plugin = search::PluginName(candidate.path);
  record.path = candidate.path.string();
  record.rule = candidate.rule;
  const auto start = std::chrono::steady_clock::now();
  Load(candidate, own_function, environment, &record);
  record.microseconds = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                                  std::chrono::steady_clock::now() - start)
                                                  .count());
  records_.push_back(std::move(record));
}

void PluginRegistry::Load(const search::Candidate& candidate, const void* own_function,
                          const search::Environment& environment, Record* record) {
  const auto refuse = [record](uint32_t verdict, std::string sentence) {
    record->verdict = verdict;
    record->sentence = std::move(sentence);
  };
  if (!candidate.status.ok()) {
    return refuse(ONNXIFI_SDK_VERDICT_NOT_FOUND, candidate.status.Text());
  }
  for (const Record& earlier : records_) {
    if (earlier.path == record->path) {
      return refuse(ONNXIFI_SDK_VERDICT_DUPLICATE,
                    "The file was tried before, found by " + earlier.rule + ".");
    }
  }
  const auto manifest = manifest::ReadManifestBeside(candidate.path);
  if (!manifest.ok()) {
    return refuse(ONNXIFI_SDK_VERDICT_BAD_MANIFEST, manifest.status().Text());
  }
  if (manifest->has_value()) {
    record->priority = (*manifest)->priority;
    if (!(*manifest)->name.empty()) record->plugin = (*manifest)->name;
    if ((*manifest)->dialect != "onnx") {
      return refuse(ONNXIFI_SDK_VERDICT_WRONG_INTERFACE,
                    "The plugin speaks the dialect '" + (*manifest)->dialect +
                        "'; the only one spoken here is 'onnx'.");
    }
  }
  if (search::IsListed(environment.disable.value_or(""), candidate.path, record->plugin)) {
    return refuse(ONNXIFI_SDK_VERDICT_DISABLED, "Variable ONNXIFI_DISABLE names the plugin.");
  }
  for (const Plugin& plugin : plugins_) {
    if (plugin.name == record->plugin) {
      return refuse(ONNXIFI_SDK_VERDICT_DUPLICATE,
                    "A plugin named '" + plugin.name + "' is loaded already.");
    }
  }
  library::OpenVerdict verdict;
  library::PluginLibrary opened = library::PluginLibrary::Open(
      candidate.path, own_function, &verdict,
      std::make_shared<library::PluginHealth>(record->plugin, base::Log(environment.log_level)));
  record->detail = std::move(verdict.detail);
  if (!opened.is_open()) return refuse(verdict.verdict, std::move(verdict.sentence));

  Plugin plugin;
  plugin.name = record->plugin;
  plugin.priority = record->priority;
  plugin.functions = opened.functions();
  library::PluginHealth& health = *plugin.functions.health;
  library::DeviceAnswer answer = library::ReadDevices(plugin.functions);
  // From here on the plugin has run, and may have started threads.
  opened.Keep();
  if (answer.status != ONNXIFI_STATUS_SUCCESS) record->detail = LastErrorMessage(plugin.functions);
  if (health.is_quarantined()) {
    return refuse(ONNXIFI_SDK_VERDICT_QUARANTINED, health.reason());
  }
  if (answer.status != ONNXIFI_STATUS_SUCCESS) {
    return refuse(ONNXIFI_SDK_VERDICT_NOT_ENUMERABLE,
                  "The plugin answers " + CodeText(answer.status) + " when asked for its devices.");
  }
  plugin.ids = std::move(answer.ids);
  record->device_count = static_cast<uint32_t>(plugin.ids.size());
  record->verdict = ONNXIFI_SDK_VERDICT_LOADED;
  record->sentence = "Loaded, devices: " + std::to_string(plugin.ids.size()) + ".";
  if (plugin.ids.empty()) record->detail = LastErrorMessage(plugin.functions);
  record->health = plugin.functions.health;
  plugins_.push_back(std::move(plugin));
}

}  // namespace onnxifi::registry
