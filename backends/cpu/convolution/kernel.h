// SPDX-License-Identifier: Apache-2.0
//
// Kernel: what the convolutions of this folder have in common: from what is known of a step to a
// recipe, to a kernel that packs the weights once, to a bound step with the tensors of its runs.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_KERNEL_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_KERNEL_H_

#include <memory>
#include <string_view>
#include <utility>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/convolution/facts.h"
#include "backends/cpu/convolution/image.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/convolution/weights.h"
#include "backends/cpu/gemm/step_epilogue.h"
#include "backends/cpu/runtime/packed_weights.h"
#include "backends/cpu/runtime/runtime.h"

namespace onnxifi::convolution {

// The tensors of a bound step.
class BoundImages {
 public:
  BoundImages(const device::BoundStep& step, const Convolution& convolution);

  Images At(device::Addresses addresses) const;
  PixelStrides source_strides() const;
  gemm::Epilogue EpilogueAt(device::Addresses addresses) const { return epilogue_.At(addresses); }

 private:
  const gemm::BoundEpilogue epilogue_;
  const device::BoundView source_, result_;
};

// How weights are packed:
//   using Layout, an enumeration: in which ways;
//   static Layout Choose(const Convolution&, int64_t batch);
//   static int64_t Size(const Convolution&, Layout), in floats;
//   static void Pack(const Convolution&, Layout, const Weights&, device::Parallel&, float* packed).
// The weights of a step so, packed the first time.
template <typename Packing>
base::Result<runtime::PackedWeights> FindWeights(
    const device::BoundStep& step, const Convolution& convolution, typename Packing::Layout layout,
    device::Addresses constants, runtime::Runtime& runtime, runtime::WeightStore& store) {
  const tensor::Extents& strides = step.reads[1].strides;
  const int64_t row_stride = strides.size() > 3 ? strides[2] : 0;
  return runtime::FindPacked(
      step, 1, constants, runtime.memory(), store, static_cast<int>(layout),
      Packing::Size(convolution, layout), [&](const float* data, float* packed) {
        const Weights weights = {data, strides[0], strides[1], row_stride, strides.back()};
        Packing::Pack(convolution, layout, weights, runtime.pool(), packed);
      });
}

// The kernel whose weights are packed by `Packing`, and whose bound steps are of class `Bound`, a
// device::BoundKernel made of (const BoundStep&, const Convolution&, Layout,
// runtime::PackedWeights, runtime::Runtime&).
template <typename Bound, typename Packing>
class Kernel final : public device::Kernel {
 public:
  Kernel(const Convolution& convolution, runtime::Runtime& runtime)
      : convolution_(convolution), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    const typename Packing::Layout layout = Packing::Choose(convolution_, step.domain[0]);
    ONNXIFI_ASSIGN_OR_RETURN(
        runtime::PackedWeights packed,
        FindWeights<Packing>(step, convolution_, layout, constants, runtime_, store_));
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<Bound>(step, convolution_, layout, std::move(packed), runtime_));
  }

 private:
  const Convolution convolution_;
  runtime::Runtime& runtime_;
  runtime::WeightStore store_;
};

// The recipe for such a kernel.
template <typename Bound, typename Packing>
runtime::RecipeResult MakeRecipe(std::string_view implementation, const Convolution& convolution) {
  return MakePackingRecipe<Kernel<Bound, Packing>>(implementation, convolution);
}

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_KERNEL_H_
