// SPDX-License-Identifier: Apache-2.0
//
// Device: the implementations of each family, fastest first. The first that takes a step has it;
// the reasons of those before are kept for reports.

#include "backends/cpu/device.h"

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/engine/recipe.h"
#include "backends/cpu/matmul/constant_matrix.h"
#include "backends/cpu/matmul/few_rows.h"
#include "backends/cpu/matmul/packed_matrix.h"
#include "backends/cpu/matmul/recipe.h"
#include "backends/cpu/matmul/small_products.h"
#include "backends/cpu/onednn/recipe.h"
#include "backends/cpu/pooling/pooling.h"

namespace onnxifi::cpu {
namespace {

using onednn::EdgePlacement;

struct Implementation {
  std::string_view name;
  runtime::RecipeResult (*select)(const device::Facts&, EdgePlacement, std::string_view);
  EdgePlacement edge_placement;
};

struct OwnConvolution {
  std::string_view name;
  runtime::RecipeResult (*select)(const convolution::ConvolutionQuery&);
};

constexpr OwnConvolution kConvolution[] = {
    {"winograd", convolution::SelectWinograd},   {"pointwise", convolution::SelectPointwise},
    {"depthwise", convolution::SelectDepthwise}, {"direct", convolution::SelectDirect},
    {"planar", convolution::SelectPlanar},
};

constexpr Implementation kContract[] = {
    {"onednn matmul", onednn::SelectMatMul, EdgePlacement::kInPrimitive},
    {"onednn convolution", onednn::SelectConvolution, EdgePlacement::kInPrimitive},
    {"onednn deconvolution", onednn::SelectDeconvolution, EdgePlacement::kInPrimitive},
    {"onednn matmul between loops", onednn::SelectMatMul, EdgePlacement::kInLoops},
    {"onednn convolution between loops", onednn::SelectConvolution, EdgePlacement::kInLoops},
    {"onednn deconvolution between loops", onednn::SelectDeconvolution, EdgePlacement::kInLoops},
};

constexpr Implementation kWindow[] = {
    {"onednn pooling", onednn::SelectPooling, EdgePlacement::kInPrimitive},
    {"onednn normalisation", onednn::SelectLrn, EdgePlacement::kInPrimitive},
    {"onednn pooling between loops", onednn::SelectPooling, EdgePlacement::kInLoops},
    {"onednn normalisation between loops", onednn::SelectLrn, EdgePlacement::kInLoops},
};

std::span<const Implementation> ImplementationsOf(const program::Step& step) {
  if (step.As<program::Contract>() != nullptr) return kContract;
  if (step.As<program::Window>() != nullptr) return kWindow;
  return {};
}

// A matrix of constants: few rows where it lies, more of them with a packed copy. The number of
// rows may be known only once the step is bound.
runtime::RecipeResult SelectConstantMatrix(const device::Facts& facts,
                                           device::Selection& selection) {
  ONNXIFI_ASSIGN_OR_RETURN(const matmul::ConstantMatrix matrix,
                           matmul::DescribeConstantMatrix(facts));
  matmul::Recipe::Methods methods;
  base::Result<matmul::FewRows> few_rows = matmul::DescribeFewRows(facts, matrix);
  if (few_rows.ok()) {
    methods.push_back(matmul::MakeMethod(*few_rows));
  } else {
    selection.rejected.push_back(
        base::Status(few_rows.status()).Context("for matrix times vector"));
  }
  if (!few_rows.ok() || !few_rows->rows) methods.push_back(matmul::MakePackedMatrix(matrix));
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<matmul::Recipe>(std::move(methods)));
}

}  // namespace

base::Result<device::Selection> Selector::Select(const device::Facts& facts) const {
  device::Selection selection;
  // Whether `recipe` is one; if not, its reason is kept.
  const auto takes = [&selection](runtime::RecipeResult recipe, std::string_view name) {
    if (recipe.ok()) {
      selection.recipe = *std::move(recipe);
      return true;
    }
    selection.rejected.push_back(std::move(recipe).status().Context("for " + std::string(name)));
    return false;
  };
  const program::Contract* contract = facts.step.As<program::Contract>();
  if (contract != nullptr && contract->form == program::Contract::Form::kConv) {
    const base::Result<convolution::ConvolutionQuery> described =
        convolution::QueryConvolution(facts);
    for (const OwnConvolution& own : kConvolution) {
      if (takes(described.ok() ? own.select(*described) : described.status(), own.name)) {
        return selection;
      }
    }
  }
  if (contract != nullptr && contract->form == program::Contract::Form::kMatMul) {
    if (takes(SelectConstantMatrix(facts, selection), "rows times packed matrix")) return selection;
  }
  if (facts.step.As<program::Window>() != nullptr) {
    if (takes(pooling::SelectPooling(facts), "pooling")) return selection;
  }
  for (const Implementation& onednn : ImplementationsOf(facts.step)) {
    if (!takes(onednn.select(facts, onednn.edge_placement, onednn.name), onednn.name)) continue;
    // Small products: known once the step is bound.
    if (auto small = matmul::DescribeSmallProducts(facts); small.ok()) {
      selection.recipe = std::make_unique<matmul::Recipe>(
          matmul::Recipe::Methods{*std::move(small)}, std::move(selection.recipe));
    }
    return selection;
  }
  if (engine::HasFamily(facts.step)) {
    if (takes(engine::Select(facts), "the tile engine")) return selection;
  }
  ONNXIFI_ASSIGN_OR_RETURN(device::Selection last, reference_.Select(facts));
  selection.recipe = std::move(last.recipe);
  return selection;
}

device::FusedSelection Selector::SelectFused(device::FusableSteps fusable) const {
  constexpr size_t kMaxSteps = 3;
  std::vector<base::Result<convolution::ConvolutionQuery>> steps;
  for (const device::Facts& facts : fusable.first(std::min(kMaxSteps, fusable.size()))) {
    steps.push_back(convolution::QueryConvolution(facts));
  }
  return convolution::SelectFused(steps);
}

// Every implementation of a convolution reads and writes this order fastest, without a reorder
// before and after it; oneDNN's takes whatever the others do, and more.
bool Selector::PrefersChannelsLast(const device::Facts& facts) const {
  return onednn::SelectConvolution(facts, EdgePlacement::kInPrimitive, "").ok();
}

base::Result<std::unique_ptr<Device>> Device::Create(std::shared_ptr<threads::ThreadPool> pool,
                                                     const base::Log& log) {
  std::unique_ptr<Device> device(new Device(std::move(pool)));
  ONNXIFI_ASSIGN_OR_RETURN(device->onednn_, onednn::Runtime::Create(device->runtime_, log));
  return device;
}

base::Result<std::unique_ptr<device::Kernel>> Device::Build(const device::Recipe& recipe) {
  if (const auto* onednn_recipe = dynamic_cast<const onednn::Recipe*>(&recipe)) {
    return onednn_recipe->Build(*onednn_);
  }
  if (const auto* own_recipe = dynamic_cast<const convolution::Recipe*>(&recipe)) {
    return own_recipe->BuildKernel(runtime_);
  }
  if (const auto* product = dynamic_cast<const matmul::Recipe*>(&recipe)) {
    std::unique_ptr<device::Kernel> otherwise;
    if (product->otherwise() != nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(otherwise, Build(*product->otherwise()));
    }
    return product->BuildKernel(runtime_, std::move(otherwise));
  }
  if (const auto* engine_recipe = dynamic_cast<const engine::Recipe*>(&recipe)) {
    return engine_recipe->BuildKernel(engine_);
  }
  return reference_.Build(recipe);
}

}  // namespace onnxifi::cpu
