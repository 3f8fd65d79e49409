// SPDX-License-Identifier: Apache-2.0
//
// CacheFolder: a variable of our own, else a folder in the one where programs of a user cache. In
// secure execution variables are a stranger's, who must not name the code that is loaded.

#include "backends/core/base/cache_folder.h"

#include <cstdlib>

namespace onnxifi::base {
namespace {

namespace fs = std::filesystem;

// Empty for a variable that is not set, or set to nothing.
fs::path Variable(const char* name) {
  const char* value = secure_getenv(name);
  return value == nullptr ? "" : value;
}

fs::path UserFolder(const char* name) {
  if (const fs::path shared = Variable("XDG_CACHE_HOME"); !shared.empty()) return shared / name;
  if (const fs::path home = Variable("HOME"); !home.empty()) return home / ".cache" / name;
  return {};
}

}  // namespace

fs::path CacheFolder() {
  if (const char* own = secure_getenv("ONNXIFI_CACHE_DIR")) return own;
  return UserFolder("onnxifi");
}

fs::path ToolCacheFolder() {
  if (fs::path own = Variable("ONNXIFI_CACHE_HOME"); !own.empty()) return own;
  return UserFolder("onnxifi-build");
}

}  // namespace onnxifi::base
