// SPDX-License-Identifier: Apache-2.0
//
// CallerMemory: sizes, and what must not overlap.

#include "backends/core/plugin/caller_memory.h"

#include <onnxifi/sdk.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace onnxifi::plugin {

using abi::TensorDescriptor;
using base::Result;

tensor::Extents ExtentsOf(const TensorDescriptor& descriptor) {
  return {descriptor.shape.begin(), descriptor.shape.end()};
}

Result<DeviceMemory> ImportMemory(std::span<const TensorDescriptor> tensors,
                                  device::Sharing* sharing, device::Sharing::Access access,
                                  const char* role) {
  DeviceMemory memory(tensors.size());
  for (size_t k = 0; k < tensors.size(); ++k) {
    const TensorDescriptor& tensor = tensors[k];
    if (tensor.memory_type == ONNXIFI_MEMORY_TYPE_CPU || tensor.is_kept) continue;
    const auto type = static_cast<tensor::ElementType>(tensor.data_type);
    int64_t size_bytes = tensor::SizeBytes(type, tensor::ElementCount(ExtentsOf(tensor)));
    if (size_bytes == 0) continue;
    // Elements of less than a byte are written by whole words.
    constexpr int64_t kWordBytes = 4;
    if (tensor::BitWidth(type) < 8)
      size_bytes = (size_bytes + kWordBytes - 1) / kWordBytes * kWordBytes;
    Result<std::unique_ptr<device::Allocation>> imported =
        tensor.memory_type == ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD
            ? sharing->ImportOpaqueFd(tensor.buffer, size_bytes)
            : sharing->ImportMemory(tensor.buffer, size_bytes, access);
    if (!imported.ok()) {
      return std::move(imported).status().Context(std::string("for ") + role + " '" + tensor.name +
                                                  "'");
    }
    memory[k] = *std::move(imported);
  }
  return memory;
}

void ImportHostMemory(std::span<const TensorDescriptor> tensors,
                      std::span<const TensorDescriptor> others, device::Sharing& sharing,
                      DeviceMemory& memory) {
  const abi::HostRanges ranges(others);
  for (size_t k = 0; k < tensors.size(); ++k) {
    const std::span<std::byte> bytes = abi::HostBytesOf(tensors[k]);
    // Elements of less than a byte are written by whole words, which may be more than there is.
    const auto type = static_cast<tensor::ElementType>(tensors[k].data_type);
    if (bytes.empty() || tensor::BitWidth(type) < 8) continue;
    if (ranges.Overlap(tensors[k])) continue;
    memory[k] = sharing.ImportHostMemory(bytes.data(), static_cast<int64_t>(bytes.size()));
  }
}

}  // namespace onnxifi::plugin
