// SPDX-License-Identifier: Apache-2.0
//
// Manifest: JSON with every type checked before it is used.

#include "discovery/manifest/manifest.h"

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

namespace onnxifi::manifest {

using base::Code;
using base::Status;
using nlohmann::json;

namespace {

constexpr int64_t kFormatVersion = 1;
constexpr std::streamsize kMaxBytes = 64 * 1024;

Status WrongType(std::string_view field, std::string_view type) {
  return Status(Code::kInvalidProperty, "Field '" + std::string(field) +
                                            "' of the manifest is no " + std::string(type) + ".");
}

Status ReadText(const json& object, const char* field, std::string* out) {
  const auto found = object.find(field);
  if (found == object.end()) return base::Ok();
  if (!found->is_string()) return WrongType(field, "string");
  *out = found->get<std::string>();
  return base::Ok();
}

}  // namespace

base::Result<Manifest> ParseManifest(std::string_view text) {
  const json object = json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return Status(Code::kInvalidProperty, "The manifest is no JSON object.");
  }
  const auto version = object.find("format_version");
  if (version == object.end() || !version->is_number_integer()) {
    return WrongType("format_version", "integer");
  }
  if (version->get<int64_t>() != kFormatVersion) {
    return Status(Code::kInvalidProperty, "The format version of the manifest (" + version->dump() +
                                              ") differs from the one known (" +
                                              std::to_string(kFormatVersion) + ").");
  }
  Manifest manifest;
  ONNXIFI_RETURN_IF_ERROR(ReadText(object, "name", &manifest.name));
  ONNXIFI_RETURN_IF_ERROR(ReadText(object, "dialect", &manifest.dialect));
  if (const auto priority = object.find("priority"); priority != object.end()) {
    if (!priority->is_number_integer()) return WrongType("priority", "integer");
    // Unsigned numbers above the signed range come out negative from get<int64_t>.
    const bool is_small = !priority->is_number_unsigned() ||
                          priority->get<uint64_t>() <= std::numeric_limits<int32_t>::max();
    const int64_t value = is_small ? priority->get<int64_t>() : 0;
    if (!is_small || value < std::numeric_limits<int32_t>::min() ||
        value > std::numeric_limits<int32_t>::max()) {
      return Status(Code::kInvalidProperty, "The priority of the manifest (" + priority->dump() +
                                                ") does not fit 32 bits.");
    }
    manifest.priority = static_cast<int32_t>(value);
  }
  return manifest;
}

base::Result<std::optional<Manifest>> ReadManifestBeside(const std::filesystem::path& plugin) {
  const std::filesystem::path path = std::filesystem::path(plugin).replace_extension(".json");
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::optional<Manifest>();
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<size_t>(kMaxBytes) + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const std::streamsize size_bytes = file.gcount();
  if (file.bad() || (size_bytes == 0 && !file.eof())) {
    return Status(Code::kBackendUnavailable,
                  "The manifest '" + path.string() + "' cannot be read.");
  }
  if (size_bytes > kMaxBytes) {
    return Status(Code::kBackendUnavailable, "The manifest '" + path.string() +
                                                 "' has more than the largest size of " +
                                                 std::to_string(kMaxBytes) + " bytes.");
  }
  text.resize(static_cast<size_t>(size_bytes));
  auto manifest = ParseManifest(text);
  if (!manifest.ok()) {
    return std::move(manifest).status().Context("while reading '" + path.string() + "'");
  }
  return std::optional<Manifest>(*std::move(manifest));
}

}  // namespace onnxifi::manifest
