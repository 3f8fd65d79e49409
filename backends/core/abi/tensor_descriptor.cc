// SPDX-License-Identifier: Apache-2.0
//
// TensorDescriptor: which bytes of the host's memory a tensor has.

#include "backends/core/abi/tensor_descriptor.h"

#include <algorithm>
#include <functional>
#include <iterator>

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

HostRanges::HostRanges(std::span<const TensorDescriptor> tensors) {
  for (const TensorDescriptor& tensor : tensors) {
    const std::span<const std::byte> bytes = HostBytesOf(tensor);
    if (!bytes.empty()) ranges_.push_back({bytes.data(), bytes.data() + bytes.size()});
  }
  std::ranges::sort(ranges_, std::less<>(), &Range::begin);
  for (size_t k = 1; k < ranges_.size(); ++k) {
    ranges_[k].last_end = std::max(ranges_[k].last_end, ranges_[k - 1].last_end, std::less<>());
  }
}

bool HostRanges::Overlap(const TensorDescriptor& tensor) const {
  const std::span<const std::byte> bytes = HostBytesOf(tensor);
  if (bytes.empty()) return false;
  const auto behind =
      std::ranges::lower_bound(ranges_, bytes.data() + bytes.size(), std::less<>(), &Range::begin);
  return behind != ranges_.begin() && std::less<>()(bytes.data(), std::prev(behind)->last_end);
}

}  // namespace onnxifi::abi
