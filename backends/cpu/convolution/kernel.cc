// SPDX-License-Identifier: Apache-2.0
//
// WeightStore, BoundImages.

#include "backends/cpu/convolution/kernel.h"

#include <utility>

namespace onnxifi::convolution {

base::Result<PackedWeights> WeightStore::Find(int layout, device::Memory& memory, int64_t floats,
                                              const std::function<void(float*)>& pack) {
  const std::lock_guard lock(mutex_);
  PackedWeights& weights = packed_[layout];
  if (weights == nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(PackedWeights fresh,
                             memory.Allocate(floats * static_cast<int64_t>(sizeof(float))));
    pack(reinterpret_cast<float*>(fresh->data()));
    weights = std::move(fresh);
  }
  return weights;
}

BoundImages::BoundImages(const device::BoundStep& step, const Convolution& convolution)
    : epilogue_(convolution.epilogue, step), source_(step.reads[0]), result_(step.writes[0]) {}

Images BoundImages::At(device::Addresses addresses) const {
  Images images{};
  images.source = gemm::FloatsAt(addresses, source_);
  images.source_strides = PixelStridesOf(source_);
  images.result = gemm::FloatsAt(addresses, result_);
  images.result_strides = PixelStridesOf(result_);
  if (epilogue_.addend()) {
    images.addend = gemm::FloatsAt(addresses, *epilogue_.addend());
    images.addend_strides = PixelStridesOf(*epilogue_.addend());
  }
  return images;
}

}  // namespace onnxifi::convolution
