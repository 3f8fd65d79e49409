// SPDX-License-Identifier: Apache-2.0
//
// All queries of the interface, in its order.

#include "apps/onnxifi_info/device_report.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace onnxifi::info {
namespace {

struct NamedQuery {
  onnxBackendInfo query;
  std::string_view name;
};

constexpr std::array<NamedQuery, 9> kTextQueries = {{
    {ONNXIFI_BACKEND_NAME, "name"},
    {ONNXIFI_BACKEND_VENDOR, "vendor"},
    {ONNXIFI_BACKEND_VERSION, "version"},
    {ONNXIFI_BACKEND_EXTENSIONS, "extensions"},
    {ONNXIFI_BACKEND_DEVICE, "device"},
    {ONNXIFI_BACKEND_ONNX_IR_VERSION, "ir_versions"},
    {ONNXIFI_BACKEND_OPSET_VERSION, "opsets"},
    {ONNXIFI_SDK_BACKEND_DEVICE_UUID, "device_uuid"},
    {ONNXIFI_SDK_BACKEND_DEVICE_LUID, "device_luid"},
}};

// The OpenCL IDs are pointers of this process and left out.
constexpr std::array<NamedQuery, 20> kNumberQueries = {{
    {ONNXIFI_BACKEND_ONNXIFI_VERSION, "onnxifi_version"},
    {ONNXIFI_BACKEND_DEVICE_TYPE, "device_type"},
    {ONNXIFI_BACKEND_CAPABILITIES, "capabilities"},
    {ONNXIFI_BACKEND_INIT_PROPERTIES, "init_properties"},
    {ONNXIFI_BACKEND_MEMORY_TYPES, "memory_types"},
    {ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES, "graph_init_properties"},
    {ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES, "synchronization_types"},
    {ONNXIFI_BACKEND_MEMORY_SIZE, "memory_size"},
    {ONNXIFI_BACKEND_MAX_GRAPH_SIZE, "max_graph_size"},
    {ONNXIFI_BACKEND_MAX_GRAPH_COUNT, "max_graph_count"},
    {ONNXIFI_BACKEND_MACS_FP32, "macs_fp32"},
    {ONNXIFI_BACKEND_MACS_FP16, "macs_fp16"},
    {ONNXIFI_BACKEND_MEMORY_BANDWIDTH, "memory_bandwidth"},
    {ONNXIFI_BACKEND_CPU_MEMORY_READ_BANDWIDTH, "cpu_memory_read_bandwidth"},
    {ONNXIFI_BACKEND_CPU_MEMORY_WRITE_BANDWIDTH, "cpu_memory_write_bandwidth"},
    {ONNXIFI_BACKEND_PCI_BUS_ID, "pci_bus_id"},
    {ONNXIFI_BACKEND_PCI_DEVICE_ID, "pci_device_id"},
    {ONNXIFI_BACKEND_PCI_DOMAIN_ID, "pci_domain_id"},
    {ONNXIFI_BACKEND_DIRECTX_ID, "directx_id"},
    {ONNXIFI_BACKEND_CUDA_INDEX, "cuda_index"},
}};

std::string TextOf(const Device& device, onnxBackendInfo query) {
  Result<std::string> text = device.TextInfo(query);
  return text ? *std::move(text) : std::string();
}

uint64_t NumberOf(const Device& device, onnxBackendInfo query) {
  const Result<uint64_t> number = device.NumberInfo(query);
  return number ? *number : 0;
}

// What the device answers; nothing if it does not.
template <typename T>
std::optional<T> Find(const std::vector<std::pair<std::string, T>>& answers,
                      std::string_view name) {
  const auto found =
      std::ranges::find(answers, name, [](const auto& answer) { return answer.first; });
  if (found == answers.end()) return std::nullopt;
  return found->second;
}

// What the device answers; nothing if that is zeros only.
std::optional<std::string> FindIdentity(const DeviceReport& device, std::string_view name) {
  std::optional<std::string> identity = Find(device.texts, name);
  if (identity && identity->find_first_not_of('0') == std::string::npos) identity.reset();
  return identity;
}

// By the first of UUID and LUID that both tell, else by PCI address.
bool IsSamePhysical(const DeviceReport& a, const DeviceReport& b) {
  for (const std::string_view name : {"device_uuid", "device_luid"}) {
    const auto identity_a = FindIdentity(a, name);
    const auto identity_b = FindIdentity(b, name);
    if (identity_a && identity_b) return *identity_a == *identity_b;
  }
  const auto has_equal = [&](std::string_view name) {
    const auto number = Find(a.numbers, name);
    return number && number == Find(b.numbers, name);
  };
  return has_equal("pci_bus_id") && has_equal("pci_device_id") &&
         Find(a.numbers, "pci_domain_id").value_or(0) ==
             Find(b.numbers, "pci_domain_id").value_or(0);
}

DeviceReport ReportOf(const Device& device, size_t index, const EnterStage& enter) {
  DeviceReport report;
  Result<std::string> key = device.Key();
  // A plain ONNXIFI 1.0 library does not name its devices.
  report.key = key ? *std::move(key) : "device:" + std::to_string(index);
  enter("device " + report.key + " is asked what it is");
  report.plugin = report.key.substr(0, report.key.find(':'));
  report.type = DeviceTypeName(NumberOf(device, ONNXIFI_BACKEND_DEVICE_TYPE));
  report.memory_bytes = NumberOf(device, ONNXIFI_BACKEND_MEMORY_SIZE);
  report.opsets = TextOf(device, ONNXIFI_BACKEND_OPSET_VERSION);
  report.device = TextOf(device, ONNXIFI_BACKEND_DEVICE);
  for (const NamedQuery& query : kTextQueries) {
    if (Result<std::string> text = device.TextInfo(query.query)) {
      report.texts.emplace_back(query.name, *std::move(text));
    }
  }
  for (const NamedQuery& query : kNumberQueries) {
    if (const Result<uint64_t> number = device.NumberInfo(query.query)) {
      report.numbers.emplace_back(query.name, *number);
    }
  }
  report.limits = SplitLimits(TextOf(device, ONNXIFI_SDK_BACKEND_DEVICE_LIMITS));
  enter("device " + report.key + " is initialised");
  const Result<Backend> backend = device.InitBackend();
  report.is_usable = backend.ok();
  if (!backend) report.reason = backend.error().Text();
  return report;
}

}  // namespace

bool LibraryReport::has_usable_device() const {
  return std::ranges::any_of(
      devices, [](const DeviceReport& device) { return device.is_usable && device.key != "auto"; });
}

std::vector<std::string> LibraryReport::SameDevice(const DeviceReport& device) const {
  std::vector<std::string> keys;
  for (const DeviceReport& other : devices) {
    if (&other != &device && IsSamePhysical(device, other)) keys.push_back(other.key);
  }
  return keys;
}

std::string LibraryReport::FirstReason() const {
  for (const DeviceReport& device : devices) {
    if (!device.is_usable && device.key != "auto") {
      return "Device " + device.key + ": " + device.reason;
    }
  }
  for (const DiscoveryRecord& plugin : plugins) {
    if (plugin.verdict != ONNXIFI_SDK_VERDICT_LOADED || plugin.device_count == 0) {
      return "Plugin '" + plugin.plugin + "': " + plugin.sentence;
    }
  }
  return "There is no plugin where ONNXIFI_BACKENDS points, nor, if it is not set, beside the "
         "library '" +
         path + "'.";
}

Result<LibraryReport> CollectReport(const Library& library, std::string path,
                                    const EnterStage& enter) {
  LibraryReport report;
  report.path = std::move(path);
  const Result<std::vector<Device>> devices = library.Devices();
  if (!devices) return devices.error();
  for (const Device& device : *devices) {
    report.devices.push_back(ReportOf(device, report.devices.size(), enter));
  }
  if (Result<std::vector<DiscoveryRecord>> plugins = library.DiscoveryReport()) {
    report.plugins = *std::move(plugins);
  }
  return report;
}

void TellFinding(std::string_view path, std::string_view sentence, LibraryReport& report) {
  for (DiscoveryRecord& plugin : report.plugins) {
    if (plugin.path != path || plugin.verdict != ONNXIFI_SDK_VERDICT_DISABLED) continue;
    plugin.verdict = ONNXIFI_SDK_VERDICT_QUARANTINED;
    plugin.sentence = sentence;
  }
}

std::string DeviceTypeName(uint64_t type) {
  switch (type) {
    case ONNXIFI_DEVICE_TYPE_NPU:
      return "NPU";
    case ONNXIFI_DEVICE_TYPE_DSP:
      return "DSP";
    case ONNXIFI_DEVICE_TYPE_GPU:
      return "GPU";
    case ONNXIFI_DEVICE_TYPE_CPU:
      return "CPU";
    case ONNXIFI_DEVICE_TYPE_FPGA:
      return "FPGA";
    case ONNXIFI_DEVICE_TYPE_HETEROGENEOUS:
      return "HETEROGENEOUS";
    default:
      return "type " + std::to_string(type);
  }
}

std::vector<std::pair<std::string, std::string>> SplitLimits(std::string_view text) {
  constexpr std::string_view kBetween = "; ";
  std::vector<std::pair<std::string, std::string>> limits;
  while (!text.empty()) {
    const std::string_view fact = text.substr(0, text.find(kBetween));
    text.remove_prefix(std::min(text.size(), fact.size() + kBetween.size()));
    const size_t sign = std::min(fact.find('='), fact.size());
    limits.emplace_back(fact.substr(0, sign), fact.substr(std::min(fact.size(), sign + 1)));
  }
  return limits;
}

std::string VerdictName(uint32_t verdict) {
  static constexpr std::array<std::string_view, 13> kNames = {
      "loaded",           "not found",   "bad manifest", "not loadable",   "missing function",
      "foreign function", "is a loader", "duplicate",    "not enumerable", "wrong interface",
      "ignored",          "quarantined", "disabled"};
  if (verdict < kNames.size()) return std::string(kNames[verdict]);
  return "verdict " + std::to_string(verdict);
}

}  // namespace onnxifi::info
