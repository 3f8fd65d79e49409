// SPDX-License-Identifier: Apache-2.0
//
// Recipe: convolutions by kernels of this folder, as the CPU device lists them.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_RECIPE_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_RECIPE_H_

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "backends/core/device/device.h"
#include "backends/cpu/convolution/facts.h"
#include "backends/cpu/runtime/recipe.h"
#include "backends/cpu/runtime/runtime.h"

namespace onnxifi::convolution {

// Ways of gathered convolutions, as runtime::LeaveOut names them.
inline constexpr std::string_view kSlabs = "gathered slabs";
inline constexpr std::string_view kPlanes = "gathered planes";
inline constexpr std::string_view kTaps = "gathered taps";

class Recipe : public runtime::Recipe {
 public:
  // `implementation` outlives it.
  explicit Recipe(std::string_view implementation) : implementation_(implementation) {}

  std::string_view implementation() const override { return implementation_; }
  base::Result<std::unique_ptr<device::Kernel>> Build(
      const runtime::Runtimes& runtimes) const override {
    return BuildKernel(runtimes.own);
  }
  virtual std::unique_ptr<device::Kernel> BuildKernel(runtime::Runtime& runtime) const = 0;

 private:
  const std::string_view implementation_;
};

// One whose kernel is of class `Kernel`, made of (const What&, runtime::Runtime&), and packs the
// weights, the second operand, wherever they lie.
template <typename Kernel, typename What>
class PackingRecipe final : public Recipe {
 public:
  PackingRecipe(std::string_view implementation, const What& what)
      : Recipe(implementation), what_(what) {}

  bool TakesAnyAddress(int read) const override { return read == 1; }
  std::unique_ptr<device::Kernel> BuildKernel(runtime::Runtime& runtime) const override {
    return std::make_unique<Kernel>(what_, runtime);
  }

 private:
  const What what_;
};

template <typename Kernel, typename What>
runtime::RecipeResult MakePackingRecipe(std::string_view implementation, const What& what) {
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<PackingRecipe<Kernel, What>>(implementation, what));
}

// 3 x 3 with strides and dilations of 1, with any groups, where the work saved pays for the
// transforms. Rounds differently from a sum of products: within 8 times its error.
runtime::RecipeResult SelectWinograd(const ConvolutionQuery& described);
// The same of k x 3 x 3 along three axes, with any strides and dilations along the first.
runtime::RecipeResult SelectWinogradFrames(const device::Facts& facts);
// A convolution along three axes whose kernel reaches along one or two, by what `select` gives for
// the same convolution along two axes (MergeAxes of step_axes.h).
runtime::RecipeResult WithMergedAxes(
    const device::Facts& facts,
    const std::function<runtime::RecipeResult(const device::Facts&)>& select);
// 1 x 1 without padding, with any strides and few groups.
runtime::RecipeResult SelectPointwise(const ConvolutionQuery& described);
// A kernel per channel, with any strides, dilations and padding; of large images those whose rows
// are fast (depthwise_row.h).
runtime::RecipeResult SelectDepthwise(const ConvolutionQuery& described);
// A depthwise convolution with the one of 1 x 1 before or behind it, or both, where the images
// between do not stay in the caches.
device::FusedSelection SelectFused(std::span<const base::Result<ConvolutionQuery>> chain);
// Any kernel, strides, dilations and padding, and few groups, where there are gaps or little to do.
runtime::RecipeResult SelectDirect(const ConvolutionQuery& described);
// Of an image whose channels lie apart, as callers give it: up to four planes of rows.
runtime::RecipeResult SelectPlanar(const ConvolutionQuery& described);
// Along one to three axes, with any strides, dilations, padding and extents: windows are gathered.
// The step is a convolution. Groups of few outputs leave most of a vector empty, and are refused
// unless nothing but plain loops is left.
runtime::RecipeResult SelectGathered(const device::Facts& facts, bool takes_few_outputs = false);
// Whether SelectGathered is the way for a convolution of tensors that lie in planes, as callers
// have them, instead of turning these before and after a primitive: where the depth is small, or
// windows do not overlap.
bool IsCheapToGather(const program::Step& step);
// The same with fewer outputs than a vector has lanes, where channels lie side by side.
runtime::RecipeResult SelectFewOutputs(const device::Facts& facts);
// Few channels to few outputs along one or two axes, in any memory, with any strides, dilations and
// padding and few groups. The step is a convolution.
runtime::RecipeResult SelectFewChannels(const device::Facts& facts);
// A transposed convolution without gaps in its kernel, with any strides and padding. The step is
// one.
runtime::RecipeResult SelectTransposed(const device::Facts& facts);
// The strides that its kernel goes by, from the extents of the input and of the kernel along each
// axis; 0 where they are known late. Along axes with a single pixel of input the stride changes
// nothing: it is as long as the kernel there, so that each window is that pixel. Where the results
// would have too many remainders then, all strides are the step's own.
tensor::Extents TransposedStrides(const tensor::Extents& in, const tensor::Extents& kernel,
                                  const tensor::Extents& strides);
// The same to fewer outputs than a vector has lanes, with gaps along all axes but the last, in any
// memory.
runtime::RecipeResult SelectFewTransposed(const device::Facts& facts);

// Of float64, along one to three axes, transposed or not, whatever the strides; a tensor may be
// added to the sums. The step is a convolution of either kind.
runtime::RecipeResult SelectDouble(const device::Facts& facts);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_RECIPE_H_
