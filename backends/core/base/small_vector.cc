// SPDX-License-Identifier: Apache-2.0
//
// SmallVector: its memory on the heap.

#include "backends/core/base/small_vector.h"

#include <new>

namespace onnxifi::base {

void SmallVectorStorage::Grow(size_t count, size_t element_bytes, void* own) {
  const size_t capacity = std::max(count, 2 * size_t{capacity_});
  if (capacity > UINT32_MAX) throw std::bad_alloc();
  void* grown = ::operator new(capacity* element_bytes);
  std::memcpy(grown, elements_, size_ * element_bytes);
  if (elements_ != own) Free();
  elements_ = grown;
  capacity_ = static_cast<uint32_t>(capacity);
}

void SmallVectorStorage::Free() { ::operator delete(elements_); }

}  // namespace onnxifi::base
