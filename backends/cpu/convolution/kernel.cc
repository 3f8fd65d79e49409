// SPDX-License-Identifier: Apache-2.0
//
// BoundImages.

#include "backends/cpu/convolution/kernel.h"

namespace onnxifi::convolution {
namespace {

// Distances of a view over [N, C, y, x], or [N, C, x].
PixelStrides StridesOf(const device::BoundView& view) {
  const bool has_rows = view.strides.size() > 3;
  return {view.strides[0], view.strides[1], has_rows ? view.strides[2] : 0, view.strides.back()};
}

}  // namespace

BoundImages::BoundImages(const device::BoundStep& step, const Convolution& convolution)
    : epilogue_(convolution.epilogue, step), source_(step.reads[0]), result_(step.writes[0]) {}

PixelStrides BoundImages::source_strides() const { return StridesOf(source_); }

Images BoundImages::At(device::Addresses addresses) const {
  Images images{};
  images.source = gemm::FloatsAt(addresses, source_);
  images.source_strides = StridesOf(source_);
  images.result = gemm::FloatsAt(addresses, result_);
  images.result_strides = StridesOf(result_);
  if (epilogue_.addend()) {
    images.addend = gemm::FloatsAt(addresses, *epilogue_.addend());
    images.addend_strides = StridesOf(*epilogue_.addend());
  }
  return images;
}

}  // namespace onnxifi::convolution
