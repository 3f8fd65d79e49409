// SPDX-License-Identifier: Apache-2.0
//
// Recipe: convolutions by kernels of this folder, as the CPU device lists them.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_RECIPE_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_RECIPE_H_

#include <memory>
#include <string_view>

#include "backends/core/device/device.h"
#include "backends/cpu/convolution/facts.h"
#include "backends/cpu/runtime/recipe_result.h"
#include "backends/cpu/runtime/runtime.h"

namespace onnxifi::convolution {

class Recipe final : public device::Recipe {
 public:
  using Build = std::unique_ptr<device::Kernel> (*)(const Convolution& convolution,
                                                    runtime::Runtime& runtime);

  Recipe(std::string_view implementation, const Convolution& convolution, Build build)
      : implementation_(implementation), convolution_(convolution), build_(build) {}

  std::string_view implementation() const override { return implementation_; }
  bool TakesAnyAddress(int read) const override { return read == 1; }
  std::unique_ptr<device::Kernel> BuildKernel(runtime::Runtime& runtime) const {
    return build_(convolution_, runtime);
  }

 private:
  const std::string_view implementation_;
  const Convolution convolution_;
  const Build build_;
};

// 3 x 3 with strides and dilations of 1, with any groups, where the work saved pays for the
// transforms. Rounds differently from a sum of products: within 8 times its error.
runtime::RecipeResult SelectWinograd(const Described& described);
// 1 x 1 without padding, with any strides and few groups.
runtime::RecipeResult SelectPointwise(const Described& described);
// A kernel per channel, with any strides, dilations and padding, of small images.
runtime::RecipeResult SelectDepthwise(const Described& described);
// Any kernel, strides, dilations and padding, and few groups, where there are gaps or little to do.
runtime::RecipeResult SelectDirect(const Described& described);
// Of an image whose channels lie apart, as callers give it: up to four planes of rows.
runtime::RecipeResult SelectPlanar(const Described& described);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_RECIPE_H_
