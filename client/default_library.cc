// SPDX-License-Identifier: Apache-2.0
//
// The search starts at the program's own file, so that neither the current folder nor the
// environment matters.

#include "client/default_library.h"

#include <fmt/format.h>

#include <array>

namespace onnxifi::client {

base::Result<std::filesystem::path> FindDefaultLibrary() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return base::Status(
        base::Code::kInvalidName,
        fmt::format("The running program's folder is unknown: {}.", error.message()));
  }
  const std::filesystem::path folder = program.parent_path();
  const std::array<std::filesystem::path, 3> candidates = {
      folder, folder / ".." / "lib", folder / ".." / ONNXIFI_INSTALLED_LIBRARY_FOLDER};
  for (const std::filesystem::path& candidate : candidates) {
    const std::filesystem::path library = candidate / "libonnxifi.so.1";
    if (std::filesystem::exists(library, error)) return library.lexically_normal();
  }
  return base::Status(
      base::Code::kInvalidName,
      fmt::format("There is no libonnxifi.so.1 in '{}', nor in ../lib or ../{} from there.",
                  folder.string(), ONNXIFI_INSTALLED_LIBRARY_FOLDER));
}

}  // namespace onnxifi::client
