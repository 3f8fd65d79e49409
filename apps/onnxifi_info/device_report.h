// SPDX-License-Identifier: Apache-2.0
//
// DeviceReport: what onnxifi_info knows of a device, collected through the public interface alone.

#ifndef ONNXIFI_APPS_ONNXIFI_INFO_DEVICE_REPORT_H_
#define ONNXIFI_APPS_ONNXIFI_INFO_DEVICE_REPORT_H_

#include <cstdint>
#include <functional>
#include <onnxifi/onnxifi.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onnxifi::info {

struct DeviceReport {
  // "auto" or "plugin:index", and its part before the colon.
  std::string key;
  std::string plugin;
  // "CPU", "GPU", "HETEROGENEOUS", ...
  std::string type;
  uint64_t memory_bytes = 0;
  std::string opsets;
  // The device's model name.
  std::string device;
  // Whether a backend can be initialised on it; if not, why.
  bool is_usable = false;
  std::string reason;
  // Every query that the device answers, by the name of the query, in the interface's order.
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::pair<std::string, uint64_t>> numbers;
  // What the driver tells of the device's sizes, by name.
  std::vector<std::pair<std::string, std::string>> limits;
};

struct LibraryReport {
  std::string path;
  std::vector<DeviceReport> devices;
  // What became of each candidate plugin; empty for a library that does not tell.
  std::vector<DiscoveryRecord> plugins;

  // Whether any device but auto, which only passes work on, is usable.
  bool has_usable_device() const;
  // Keys of the other IDs of the same physical device.
  std::vector<std::string> SameDevice(const DeviceReport& device) const;
  // Why not, as one sentence: the first reason there is.
  std::string FirstReason() const;
};

// Is told what is asked next, e.g. "device cpu:0 is initialised".
using EnterStage = std::function<void(std::string_view stage)>;

// Asks the library everything. Initialises, and releases, a backend on each device.
Result<LibraryReport> CollectReport(
    const Library& library, std::string path,
    const EnterStage& enter = [](std::string_view /*stage*/) {});

// Makes the record of the plugin at `path`, which was disabled for it, say what a probe found.
void TellFinding(std::string_view path, std::string_view sentence, LibraryReport& report);

// "CPU" for ONNXIFI_DEVICE_TYPE_CPU; "type <number>" for a number that the interface does not have.
std::string DeviceTypeName(uint64_t type);

// The names and values of a text as ONNXIFI_SDK_BACKEND_DEVICE_LIMITS has it.
std::vector<std::pair<std::string, std::string>> SplitLimits(std::string_view text);

// "loaded", "not loadable", ... for ONNXIFI_SDK_VERDICT_*.
std::string VerdictName(uint32_t verdict);

}  // namespace onnxifi::info

#endif  // ONNXIFI_APPS_ONNXIFI_INFO_DEVICE_REPORT_H_
