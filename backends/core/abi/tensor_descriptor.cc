// SPDX-License-Identifier: Apache-2.0
//
// TensorDescriptor: which bytes of the host's memory a tensor has.

#include "backends/core/abi/tensor_descriptor.h"

#include <algorithm>

#include "backends/core/tensor/element_type.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::abi {

std::span<std::byte> HostBytesOf(const TensorDescriptor& tensor) {
  const bool is_there = tensor.memory_type == ONNXIFI_MEMORY_TYPE_CPU && !tensor.is_kept &&
                        tensor.value == nullptr && tensor.buffer != 0;
  if (!is_there) return {};
  const auto type = static_cast<tensor::ElementType>(tensor.data_type);
  const tensor::Extents extents(tensor.shape.begin(), tensor.shape.end());
  return {static_cast<std::byte*>(tensor.mutable_cpu_data()),
          static_cast<size_t>(tensor::SizeBytes(type, tensor::ElementCount(extents)))};
}

bool OverlapsAny(const TensorDescriptor& tensor, std::span<const TensorDescriptor> others) {
  const std::span<const std::byte> bytes = HostBytesOf(tensor);
  return std::ranges::any_of(others, [&](const TensorDescriptor& other) {
    const std::span<const std::byte> its = HostBytesOf(other);
    return bytes.data() < its.data() + its.size() && its.data() < bytes.data() + bytes.size();
  });
}

}  // namespace onnxifi::abi
