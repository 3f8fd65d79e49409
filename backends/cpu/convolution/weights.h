// SPDX-License-Identifier: Apache-2.0
//
// Weights: constant weights as the model has them, and packed in a kernel's own layout.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_WEIGHTS_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"

namespace onnxifi::convolution {

// W[M, C / group, y, x] with any strides, in floats.
struct Weights {
  const float* data;
  int64_t out_stride, in_stride, row_stride, column_stride;
};

// Shared by a kernel's bindings and by runs that outlive one.
using PackedWeights = std::shared_ptr<device::Allocation>;
inline const float* Floats(const PackedWeights& weights) {
  return reinterpret_cast<const float*>(weights->data());
}

// Packs weights once per layout. Belongs to one kernel. Threads: any.
class WeightStore {
 public:
  // The weights under `layout`; `pack` fills `floats` floats the first time. NO_SYSTEM_MEMORY, or
  // what `pack` says.
  base::Result<PackedWeights> Find(int layout, device::Memory& memory, int64_t floats,
                                   const std::function<base::Status(float*)>& pack);

 private:
  std::mutex mutex_;
  std::map<int, PackedWeights> packed_;
};

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_WEIGHTS_H_
