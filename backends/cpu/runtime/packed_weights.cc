// SPDX-License-Identifier: Apache-2.0
//
// WeightStore.

#include "backends/cpu/runtime/packed_weights.h"

#include <utility>

namespace onnxifi::runtime {

PackedWeights WeightStore::Peek(int layout) {
  const std::lock_guard lock(mutex_);
  const auto found = packed_.find(layout);
  return found == packed_.end() ? nullptr : found->second.lock();
}

base::Result<PackedWeights> WeightStore::Find(int layout, device::Memory& memory, int64_t floats,
                                              const std::function<base::Status(float*)>& pack) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<device::Allocation>& known = packed_[layout];
  if (PackedWeights weights = known.lock()) return weights;
  ONNXIFI_ASSIGN_OR_RETURN(PackedWeights weights,
                           memory.Allocate(floats * static_cast<int64_t>(sizeof(float))));
  ONNXIFI_RETURN_IF_ERROR(pack(reinterpret_cast<float*>(weights->data())));
  known = weights;
  return weights;
}

}  // namespace onnxifi::runtime
