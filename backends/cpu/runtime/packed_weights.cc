// SPDX-License-Identifier: Apache-2.0
//
// WeightStore and FindPacked.

#include "backends/cpu/runtime/packed_weights.h"

#include <utility>

#include "backends/cpu/runtime/aligned_constant.h"

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

base::Result<PackedWeights> FindPacked(
    const device::BoundStep& step, size_t read, device::Addresses constants, device::Memory& memory,
    WeightStore& store, int layout, int64_t floats,
    const std::function<void(const float* weights, float* packed)>& pack) {
  return store.Find(layout, memory, floats, [&](float* packed) -> base::Status {
    const device::BoundView& view = step.reads[read];
    ONNXIFI_ASSIGN_OR_RETURN(
        const AlignedConstant aligned,
        AlignedConstant::Create(memory, constants[view.buffer], ConstantBytes(step, view.buffer)));
    pack(reinterpret_cast<const float*>(aligned.data()) + view.offset, packed);
    return base::Ok();
  });
}

}  // namespace onnxifi::runtime
