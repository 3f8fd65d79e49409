// SPDX-License-Identifier: Apache-2.0
//
// PackedWeights: constant weights in a kernel's own layout, packed once for all who have them.

#ifndef ONNXIFI_BACKENDS_CPU_RUNTIME_PACKED_WEIGHTS_H_
#define ONNXIFI_BACKENDS_CPU_RUNTIME_PACKED_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"

namespace onnxifi::runtime {

// Shared by a kernel's bindings and by runs that outlive one.
using PackedWeights = std::shared_ptr<device::Allocation>;
inline const float* Floats(const PackedWeights& weights) {
  return reinterpret_cast<const float*>(weights->data());
}

// Packs weights once per layout, as long as anybody has them. Belongs to one kernel. Threads: any.
class WeightStore {
 public:
  // Null where nothing is packed so.
  PackedWeights Peek(int layout);
  // The weights under `layout`, which the kernel numbers; `pack` fills `floats` floats where nobody
  // has them. NO_SYSTEM_MEMORY, or what `pack` says.
  base::Result<PackedWeights> Find(int layout, device::Memory& memory, int64_t floats,
                                   const std::function<base::Status(float*)>& pack);

 private:
  std::mutex mutex_;
  std::map<int, std::weak_ptr<device::Allocation>> packed_;
};

// The weights that operand `read`, a constant of floats, is packed to under `layout` of `store`:
// where nobody has them, `pack` gets the operand's first element, where it may be read as a float,
// and fills `floats` floats. NO_SYSTEM_MEMORY.
base::Result<PackedWeights> FindPacked(
    const device::BoundStep& step, size_t read, device::Addresses constants, device::Memory& memory,
    WeightStore& store, int layout, int64_t floats,
    const std::function<void(const float* weights, float* packed)>& pack);

}  // namespace onnxifi::runtime

#endif  // ONNXIFI_BACKENDS_CPU_RUNTIME_PACKED_WEIGHTS_H_
