// SPDX-License-Identifier: Apache-2.0
//
// The mock plugin: finds its settings beside the file that it was loaded from.

#include <dlfcn.h>

#include <filesystem>

#include "backends/mock/provider.h"

namespace onnxifi::abi {

std::unique_ptr<Provider> MakeProvider() {
  Dl_info image{};
  std::filesystem::path file;
  if (dladdr(reinterpret_cast<const void*>(&MakeProvider), &image) != 0) file = image.dli_fname;
  return mock::MakeProvider(file.stem().string(), mock::ReadSettings(file.string() + ".json"));
}

}  // namespace onnxifi::abi
