// SPDX-License-Identifier: Apache-2.0
//
// Text for people and for programs.

#include "apps/onnxifi_info/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

namespace onnxifi::info {
namespace {

using nlohmann::json;

constexpr size_t kColumns = 6;
using Row = std::array<std::string, kColumns>;

void AppendRows(const std::vector<Row>& rows, std::string& text) {
  std::array<size_t, kColumns> widths = {};
  for (const Row& row : rows) {
    for (size_t column = 0; column < kColumns; ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  for (const Row& row : rows) {
    std::string line;
    for (size_t column = 0; column < kColumns; ++column) {
      fmt::format_to(std::back_inserter(line), "{:<{}}  ", row[column], widths[column]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
}

void AppendVerdictOf(const LibraryReport& report, std::string& text) {
  if (report.has_usable_device()) return;
  text += "No usable device. " + report.FirstReason() + "\n\n";
}

bool IsWorthALine(const DiscoveryRecord& plugin) {
  return plugin.verdict != ONNXIFI_SDK_VERDICT_DUPLICATE &&
         (plugin.verdict != ONNXIFI_SDK_VERDICT_LOADED || plugin.device_count == 0);
}

// A plugin without devices may have said why.
const std::string& SentenceOf(const DiscoveryRecord& plugin) {
  const bool has_reason = plugin.verdict == ONNXIFI_SDK_VERDICT_LOADED && !plugin.detail.empty();
  return has_reason ? plugin.detail : plugin.sentence;
}

json ToJson(const LibraryReport& report, const DeviceReport& device) {
  json object = {{"key", device.key},       {"plugin", device.plugin},
                 {"type", device.type},     {"memory_bytes", device.memory_bytes},
                 {"opsets", device.opsets}, {"usable", device.is_usable},
                 {"reason", device.reason}, {"same_device", report.SameDevice(device)}};
  json queries = json::object();
  for (const auto& [name, text] : device.texts) queries[name] = text;
  for (const auto& [name, number] : device.numbers) queries[name] = number;
  object["queries"] = std::move(queries);
  json limits = json::object();
  for (const auto& [name, value] : device.limits) limits[name] = value;
  object["limits"] = std::move(limits);
  return object;
}

json ToJson(const DiscoveryRecord& plugin) {
  return {{"plugin", plugin.plugin},
          {"path", plugin.path},
          {"rule", plugin.rule},
          {"verdict", VerdictName(plugin.verdict)},
          {"sentence", plugin.sentence},
          {"detail", plugin.detail},
          {"priority", plugin.priority},
          {"device_count", plugin.device_count},
          {"microseconds", plugin.microseconds}};
}

}  // namespace

std::string FormatMemory(uint64_t bytes) {
  if (bytes == 0) return "unknown";
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / kGib);
}

std::string MakeTable(const LibraryReport& report) {
  std::string text;
  AppendVerdictOf(report, text);
  std::vector<Row> rows = {{"DEVICE", "TYPE", "MEMORY", "OPSETS", "STATE", "MODEL"}};
  for (const DeviceReport& device : report.devices) {
    rows.push_back({device.key, device.type, FormatMemory(device.memory_bytes), device.opsets,
                    device.is_usable ? "ready" : "unusable: " + device.reason, device.device});
  }
  AppendRows(rows, text);
  // Once per physical device, with all of its IDs.
  for (const DeviceReport& device : report.devices) {
    const std::vector<std::string> others = report.SameDevice(device);
    const bool is_first = std::ranges::none_of(others, [&](const std::string& key) {
      return std::ranges::find(report.devices, key, &DeviceReport::key) <
             std::ranges::find(report.devices, device.key, &DeviceReport::key);
    });
    if (others.empty() || !is_first) continue;
    fmt::format_to(std::back_inserter(text), "One device: {}, {}\n", device.key,
                   fmt::join(others, ", "));
  }
  for (const DiscoveryRecord& plugin : report.plugins) {
    if (!IsWorthALine(plugin)) continue;
    fmt::format_to(
        std::back_inserter(text), "Plugin '{}' is not used ({}): {}\n", plugin.plugin,
        plugin.verdict == ONNXIFI_SDK_VERDICT_LOADED ? "no device" : VerdictName(plugin.verdict),
        SentenceOf(plugin));
  }
  return text;
}

std::string MakeListing(const LibraryReport& report) {
  std::string text;
  AppendVerdictOf(report, text);
  auto out = std::back_inserter(text);
  fmt::format_to(out, "Library {}\n", report.path);
  for (const DeviceReport& device : report.devices) {
    fmt::format_to(out, "\nDevice {} ({})\n", device.key,
                   device.is_usable ? "ready" : "unusable: " + device.reason);
    for (const std::string& key : report.SameDevice(device)) {
      fmt::format_to(out, "  {:<28}{}\n", "same device as", key);
    }
    for (const auto& [name, value] : device.texts) {
      fmt::format_to(out, "  {:<28}{}\n", name, value);
    }
    for (const auto& [name, value] : device.numbers) {
      fmt::format_to(out, "  {:<28}{} ({:#x})\n", name, value, value);
    }
    for (const auto& [name, value] : device.limits) {
      fmt::format_to(out, "  {:<28}{}\n", name, value);
    }
  }
  for (const DiscoveryRecord& plugin : report.plugins) {
    fmt::format_to(out, "\nPlugin {} ({})\n", plugin.plugin, VerdictName(plugin.verdict));
    fmt::format_to(
        out, "  {:<28}{}\n  {:<28}{}\n  {:<28}{}\n  {:<28}{}\n  {:<28}{}\n  {:<28}{} us\n", "path",
        plugin.path, "found by", plugin.rule, "priority", plugin.priority, "devices",
        plugin.device_count, "says", plugin.sentence, "took", plugin.microseconds);
    if (!plugin.detail.empty()) fmt::format_to(out, "  {:<28}{}\n", "linker", plugin.detail);
  }
  return text;
}

std::string MakeJson(const LibraryReport& report) {
  json devices = json::array();
  for (const DeviceReport& device : report.devices) devices.push_back(ToJson(report, device));
  json plugins = json::array();
  for (const DiscoveryRecord& plugin : report.plugins) plugins.push_back(ToJson(plugin));
  const json object = {{"library", report.path},
                       {"usable", report.has_usable_device()},
                       {"reason", report.has_usable_device() ? "" : report.FirstReason()},
                       {"devices", std::move(devices)},
                       {"plugins", std::move(plugins)}};
  return object.dump(2, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace) + "\n";
}

}  // namespace onnxifi::info
