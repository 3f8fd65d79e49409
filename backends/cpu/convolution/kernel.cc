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
    : epilogue_(convolution.epilogue), source_(step.reads[0]), result_(step.writes[0]) {
  if (epilogue_.bias >= 0) bias_ = step.reads[static_cast<size_t>(epilogue_.bias)];
  if (epilogue_.addend >= 0) addend_ = step.reads[static_cast<size_t>(epilogue_.addend)];
}

Images BoundImages::At(device::Addresses addresses) const {
  Images images{};
  images.source = Address(addresses, source_);
  images.source_strides = PixelStridesOf(source_);
  images.result = Address(addresses, result_);
  images.result_strides = PixelStridesOf(result_);
  if (epilogue_.addend >= 0) {
    images.addend = Address(addresses, addend_);
    images.addend_strides = PixelStridesOf(addend_);
  }
  return images;
}

gemm::Epilogue BoundImages::EpilogueAt(device::Addresses addresses) const {
  gemm::Epilogue epilogue;
  if (epilogue_.bias >= 0) epilogue.bias = Address(addresses, bias_);
  epilogue.activation = epilogue_.activation;
  epilogue.low = epilogue_.low;
  epilogue.high = epilogue_.high;
  return epilogue;
}

}  // namespace onnxifi::convolution
