// SPDX-License-Identifier: Apache-2.0
//
// KernelCache: first in the process, then in files, then the compiler.

#include "backends/core/codegen/kernel_cache.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace onnxifi::codegen {

using base::Result;

Result<std::shared_ptr<DriverKernel>> KernelCache::Get(const std::string& source) {
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    slot = &slots_[source];
  }
  const std::lock_guard lock(slot->mutex);
  if (slot->kernel == nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(slot->kernel, Make(source));
    ++kernel_count_;
  }
  return slot->kernel;
}

Result<std::unique_ptr<DriverKernel>> KernelCache::Make(const std::string& source) {
  const std::string key = std::string(driver_.binary_key()) + source;
  base::Status refused = base::Ok();
  if (const std::optional<std::vector<std::byte>> binary = files_.Find(key)) {
    Result<std::unique_ptr<DriverKernel>> loaded = driver_.Load(*binary);
    if (loaded.ok()) return loaded;
    refused = std::move(loaded).status();
  }
  // A driver may refuse what it once made; then it makes it anew. The file stays until there is
  // another: the driver may lack memory alone, and the compiler may not be there.
  Result<std::unique_ptr<DriverKernel>> compiled = driver_.Compile(source);
  if (!compiled.ok()) {
    if (refused.ok()) return compiled;
    return std::move(refused).Context(
        "while loading a kernel that was kept, and compiling it anew: " +
        std::string(compiled.status().sentence()));
  }
  ++compiled_count_;
  const std::vector<std::byte> binary = driver_.BinaryOf(**compiled);
  if (!binary.empty()) {
    files_.Store(key, binary);
  } else if (!refused.ok()) {
    files_.Remove(key);
  }
  return compiled;
}

}  // namespace onnxifi::codegen
