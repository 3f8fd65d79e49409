// SPDX-License-Identifier: Apache-2.0
//
// Recipe: a step that oneDNN does, as one of the implementations of this folder selected it, and
// the kernel made from it. An implementation is a pure predicate with reasons and a function that
// lays the step out as primitives once extents are known.

#ifndef ONNXIFI_BACKENDS_CPU_ONEDNN_RECIPE_H_
#define ONNXIFI_BACKENDS_CPU_ONEDNN_RECIPE_H_

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/onednn/operand.h"
#include "backends/cpu/onednn/post_ops.h"
#include "backends/cpu/onednn/runtime.h"
#include "backends/cpu/onednn/sequence.h"
#include "backends/cpu/runtime/recipe.h"

namespace onnxifi::onednn {

// Where prologues and epilogue are computed: by the primitive, which reads tensors as they lie and
// appends what it can, or by the reference's loops before and after it.
enum class EdgePlacement : uint8_t { kInPrimitive, kInLoops };

// A bound step, its operands and its result as tensors of float32, or bfloat16 where a product's
// operands are that.
struct Task {
  const device::BoundStep& step;
  std::span<const epilogue::Operation> post_ops;  // empty for kInLoops
  // Over program::OperandExtents: reads of the step, or what loops made of them.
  std::vector<Tensor> operands;
  // Over the domain: the step's write, or dense sums for loops to read.
  Tensor result;
};

// Appends the primitives that compute a task. UNSUPPORTED_* when oneDNN has no good implementation
// for these extents and layouts; a reference implementation of oneDNN is none. May throw
// dnnl::error.
using LayOut = base::Status (*)(const Task& task, SequenceBuilder& builder);

class Recipe final : public runtime::Recipe {
 public:
  // `factor_type` is what operands in memory have, float32 or bfloat16.
  Recipe(std::string_view implementation, const device::Facts& facts, LayOut lay_out,
         EdgePlacement edge_placement, tensor::ElementType factor_type,
         std::vector<epilogue::Operation> post_ops)
      : implementation_(implementation),
        facts_(facts),
        lay_out_(lay_out),
        edge_placement_(edge_placement),
        factor_type_(factor_type),
        post_ops_(std::move(post_ops)) {}

  std::string_view implementation() const override { return implementation_; }
  // Constants among the two operands are packed.
  bool TakesAnyAddress(int read) const override {
    return edge_placement_ == EdgePlacement::kInPrimitive && read <= 1 &&
           (otherwise_ == nullptr || otherwise_->TakesAnyAddress(read));
  }
  // Of the same step: what takes extents for which there is no good primitive, in the place of the
  // reference's loops.
  void SetOtherwise(std::shared_ptr<const device::Recipe> recipe) {
    otherwise_ = std::move(recipe);
  }
  base::Result<std::unique_ptr<device::Kernel>> Build(
      const runtime::Runtimes& runtimes) const override;
  // `runtime` outlives the kernel. `otherwise` may be null.
  base::Result<std::unique_ptr<device::Kernel>> BuildKernel(
      Runtime& runtime, std::unique_ptr<device::Kernel> otherwise = nullptr) const;

 private:
  friend class Kernel;
  std::string_view implementation_;
  device::Facts facts_;
  LayOut lay_out_;
  EdgePlacement edge_placement_;
  tensor::ElementType factor_type_;
  std::vector<epilogue::Operation> post_ops_;
  std::shared_ptr<const device::Recipe> otherwise_;
};

// `recipe`, of this folder, with what to do otherwise.
std::unique_ptr<const device::Recipe> WithOtherwise(
    std::unique_ptr<const device::Recipe> recipe, std::unique_ptr<const device::Recipe> otherwise);

// The implementations. Contract:
runtime::RecipeResult SelectMatMul(const device::Facts& facts, EdgePlacement edge_placement,
                                   std::string_view implementation);
runtime::RecipeResult SelectConvolution(const device::Facts& facts, EdgePlacement edge_placement,
                                        std::string_view implementation);
runtime::RecipeResult SelectDeconvolution(const device::Facts& facts, EdgePlacement edge_placement,
                                          std::string_view implementation);
// Window:
runtime::RecipeResult SelectPooling(const device::Facts& facts, EdgePlacement edge_placement,
                                    std::string_view implementation);
runtime::RecipeResult SelectLrn(const device::Facts& facts, EdgePlacement edge_placement,
                                std::string_view implementation);

// Whether the windows of a convolution are such that oneDNN takes them: over extents that are
// known, within the input but for padding on either side of less than half a kernel.
bool HasUsualWindows(const program::Step& step);

// The second half of every Select: the edges, then the recipe.
runtime::RecipeResult MakeRecipe(std::string_view implementation, const device::Facts& facts,
                                 LayOut lay_out, EdgePlacement edge_placement);

// A primitive descriptor is good when there is one and it is none of oneDNN's own reference loops,
// which can be a thousand times slower than its kernels.
bool IsGood(const dnnl::primitive_desc_base& desc);
// The refusal of a LayOut for which no descriptor is good.
base::Status NoGoodPrimitive(std::string_view primitive);

}  // namespace onnxifi::onednn

#endif  // ONNXIFI_BACKENDS_CPU_ONEDNN_RECIPE_H_
