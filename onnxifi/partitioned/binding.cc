// SPDX-License-Identifier: Apache-2.0
//
// Binding: two runs are independent where no range of bytes that one writes is another's.

#include "onnxifi/partitioned/binding.h"

#include <algorithm>
#include <utility>

namespace onnxifi::partitioned {

Binding::Binding(abi::GraphTensors tensors) : abi::Binding(std::move(tensors)) {
  AddRanges(this->tensors().inputs, reads_);
  AddRanges(this->tensors().outputs, writes_);
}

void Binding::AddRanges(std::span<const abi::TensorDescriptor> tensors,
                        std::vector<Range>& ranges) {
  for (const abi::TensorDescriptor& tensor : tensors) {
    // What was given as a value was copied, and what is kept lies in memory of its own.
    if (tensor.is_kept || tensor.value != nullptr) continue;
    const auto size_bytes = SizeBytes(tensor);
    is_opaque_ = is_opaque_ || tensor.memory_type != ONNXIFI_MEMORY_TYPE_CPU || !size_bytes.ok();
    if (!size_bytes.ok() || *size_bytes == 0) continue;
    const auto begin = static_cast<uintptr_t>(tensor.buffer);
    ranges.push_back({begin, begin + *size_bytes});
  }
}

bool Binding::Overlap(const std::vector<Range>& some, const std::vector<Range>& others) {
  return std::ranges::any_of(some, [&](const Range& one) {
    return std::ranges::any_of(
        others, [&](const Range& other) { return one.begin < other.end && other.begin < one.end; });
  });
}

bool Binding::IsIndependentOf(const Binding& other) const {
  return &other != this && !is_opaque_ && !other.is_opaque_ && !Overlap(writes_, other.writes_) &&
         !Overlap(writes_, other.reads_) && !Overlap(reads_, other.writes_);
}

}  // namespace onnxifi::partitioned
