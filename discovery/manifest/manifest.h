// SPDX-License-Identifier: Apache-2.0
//
// Manifest: what a vendor says about a plugin in a JSON file beside it (libonnxifi-x.json beside
// libonnxifi-x.so), so that order and fitness are known before the plugin is opened.

#ifndef ONNXIFI_DISCOVERY_MANIFEST_MANIFEST_H_
#define ONNXIFI_DISCOVERY_MANIFEST_MANIFEST_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "backends/core/base/result.h"

namespace onnxifi::manifest {

struct Manifest {
  // Empty: the file's name decides.
  std::string name;
  // Smaller comes first.
  int32_t priority = 0;
  // "onnx", or a fork with another layout under the same symbols.
  std::string dialect = "onnx";
};

// INVALID_PROPERTY when the text is no JSON object, when `format_version` is not 1, or when a field
// has a value of another type or range. Unknown fields are skipped.
base::Result<Manifest> ParseManifest(std::string_view text);

// The manifest that belongs to a plugin's file; nothing when there is none. BACKEND_UNAVAILABLE
// when it cannot be read or has more than 64 KiB.
base::Result<std::optional<Manifest>> ReadManifestBeside(const std::filesystem::path& plugin);

}  // namespace onnxifi::manifest

#endif  // ONNXIFI_DISCOVERY_MANIFEST_MANIFEST_H_
