// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of this folder have in common: weights that are laid out once, and the addresses
// of a run.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_KERNEL_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_KERNEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/convolution/facts.h"
#include "backends/cpu/gemm/step_epilogue.h"

namespace onnxifi::convolution {

// Constant weights in a kernel's own layout, shared by its bindings and by runs that outlive one.
using PackedWeights = std::shared_ptr<device::Allocation>;
inline const float* Floats(const PackedWeights& weights) {
  return reinterpret_cast<const float*>(weights->data());
}

// Packs weights once per layout. Belongs to one kernel. Threads: any.
class WeightStore {
 public:
  // The weights under `layout`; `pack` fills `floats` floats the first time. NO_SYSTEM_MEMORY.
  base::Result<PackedWeights> Find(int layout, device::Memory& memory, int64_t floats,
                                   const std::function<void(float*)>& pack);

 private:
  std::mutex mutex_;
  std::map<int, PackedWeights> packed_;
};

// The tensors of a bound step.
class BoundImages {
 public:
  BoundImages(const device::BoundStep& step, const Convolution& convolution);

  Images At(device::Addresses addresses) const;
  gemm::Epilogue EpilogueAt(device::Addresses addresses) const { return epilogue_.At(addresses); }

 private:
  const gemm::BoundEpilogue epilogue_;
  const device::BoundView source_, result_;
};

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_KERNEL_H_
