// SPDX-License-Identifier: Apache-2.0
//
// WeightStore.

#include "backends/cpu/runtime/packed_weights.h"

#include <utility>

namespace onnxifi::runtime {

PackedWeights WeightStore::Peek(int layout) {
  const std::lock_guard lock(mutex_);
  const auto found = packed_.find(layout);
  return found == packed_.end() ? nullptr : found->second;
}

base::Result<PackedWeights> WeightStore::Find(int layout, device::Memory& memory, int64_t floats,
                                              const std::function<base::Status(float*)>& pack) {
  const std::lock_guard lock(mutex_);
  PackedWeights& weights = packed_[layout];
  if (weights == nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(PackedWeights fresh,
                             memory.Allocate(floats * static_cast<int64_t>(sizeof(float))));
    ONNXIFI_RETURN_IF_ERROR(pack(reinterpret_cast<float*>(fresh->data())));
    weights = std::move(fresh);
  }
  return weights;
}

}  // namespace onnxifi::runtime
