// SPDX-License-Identifier: Apache-2.0
//
// Enumeration, device names and information queries.

#include "client/device_list.h"

#include <fmt/format.h>

namespace onnxifi::client {
namespace {

// "libonnxifi-cpu.so" -> "cpu"; "vendor.so" -> "vendor".
std::string NameOfFile(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  name = name.substr(0, name.find(".so"));
  constexpr std::string_view kPrefix = "libonnxifi-";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

std::string KeyOf(const Library& library, onnxBackendID id, size_t index) {
  const Extensions extensions = library.FindExtensions(id);
  if (extensions.get_backend_key != nullptr) {
    size_t size_bytes = 0;
    if (extensions.get_backend_key(id, nullptr, &size_bytes) == ONNXIFI_STATUS_FALLBACK &&
        size_bytes > 1) {
      std::string key(size_bytes, '\0');
      if (extensions.get_backend_key(id, key.data(), &size_bytes) == ONNXIFI_STATUS_SUCCESS) {
        key.resize(size_bytes - 1);
        return key;
      }
    }
  }
  return fmt::format("{}:{}", NameOfFile(library.path()), index);
}

}  // namespace

base::Result<std::vector<Device>> ListDevices(const Library& library) {
  size_t count = 0;
  std::vector<onnxBackendID> ids;
  onnxStatus status = library.onnxGetBackendIDs(nullptr, &count);
  // A device may appear between the two calls; the second then asks for a third.
  for (int attempt = 0; attempt < 3 && status == ONNXIFI_STATUS_FALLBACK; ++attempt) {
    ids.assign(count, nullptr);
    if (count == 0) return std::vector<Device>();
    status = library.onnxGetBackendIDs(ids.data(), &count);
  }
  if (status != ONNXIFI_STATUS_SUCCESS) {
    return base::Status(
        base::Code::kBackendUnavailable,
        fmt::format("Listing the devices of '{}' answers {}. {}", library.path().string(),
                    StatusName(status), library.LastError()));
  }
  ids.resize(count);
  std::vector<Device> devices;
  for (size_t index = 0; index < ids.size(); ++index) {
    devices.push_back({.id = ids[index], .key = KeyOf(library, ids[index], index)});
  }
  return devices;
}

base::Result<Device> ChooseDevice(std::span<const Device> devices, std::string_view name) {
  std::string known;
  for (const Device& device : devices) {
    if (name.empty() || device.key == name || device.plugin() == name) return device;
    known += (known.empty() ? "" : ", ") + device.key;
  }
  if (devices.empty()) {
    return base::Status(base::Code::kInvalidName,
                        "The library lists no device; onnxifi_info says why.");
  }
  return base::Status(base::Code::kInvalidName,
                      fmt::format("Device '{}' is none of {}.", name, known));
}

std::optional<std::string> QueryText(const Library& library, onnxBackendID id,
                                     onnxBackendInfo query) {
  size_t size_bytes = 0;
  if (library.onnxGetBackendInfo(id, query, nullptr, &size_bytes) != ONNXIFI_STATUS_FALLBACK) {
    return std::nullopt;
  }
  std::string text(size_bytes, '\0');
  const onnxStatus status = library.onnxGetBackendInfo(id, query, text.data(), &size_bytes);
  if (size_bytes == 0) return std::string();
  if (status != ONNXIFI_STATUS_SUCCESS) return std::nullopt;
  // Some libraries count the NUL and some do not.
  text.resize(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));
  return text;
}

std::optional<uint64_t> QueryNumber(const Library& library, onnxBackendID id,
                                    onnxBackendInfo query) {
  uint64_t value = 0;
  size_t size_bytes = sizeof(value);
  if (library.onnxGetBackendInfo(id, query, &value, &size_bytes) != ONNXIFI_STATUS_SUCCESS ||
      size_bytes != sizeof(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace onnxifi::client
