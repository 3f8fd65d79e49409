// SPDX-License-Identifier: Apache-2.0
//
// Memory: while a model is loaded, weights as the model has them are given back once they are laid
// out; the kernels that lay them out are done before much of that has gathered.

#include "backends/vulkan/memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace onnxifi::vulkan {

using base::Result;

Result<std::unique_ptr<device::Allocation>> Memory::Allocate(int64_t size_bytes) {
  if (heap_.waiting_bytes() > kMaxWaitingBytes) ONNXIFI_RETURN_IF_ERROR(loading_.Finish());
  Result<std::unique_ptr<device::Allocation>> made = heap_.Allocate(Purpose::kTensor, size_bytes);
  if (made.ok() || heap_.waiting_bytes() == 0) return made;
  // What waits may be what is missing.
  ONNXIFI_RETURN_IF_ERROR(loading_.Finish());
  return heap_.Allocate(Purpose::kTensor, size_bytes);
}

Result<std::unique_ptr<device::Allocation>> Memory::Hold(const tensor::Tensor& constant) {
  const int64_t size_bytes = constant.size_bytes();
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Allocation> held, Allocate(size_bytes));
  if (size_bytes == 0) return held;
  ONNXIFI_ASSIGN_OR_RETURN(const Heap::Location place, heap_.Find(held->data()));
  if (place.mapped != nullptr) {
    std::memcpy(place.mapped, constant.data(), static_cast<size_t>(size_bytes));
    return held;
  }
  ONNXIFI_RETURN_IF_ERROR(loading_.Upload(constant.data(), held->data(), size_bytes));
  return held;
}

}  // namespace onnxifi::vulkan
