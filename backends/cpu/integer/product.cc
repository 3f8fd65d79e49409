// SPDX-License-Identifier: Apache-2.0
//
// Product: which steps are products of bytes, and their kernel, which keeps constant weights
// packed.

#include "backends/cpu/integer/product.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/reference/scratch.h"
#include "backends/cpu/engine/geometry.h"
#include "backends/cpu/engine/runtime.h"
#include "backends/cpu/integer/bound_product.h"
#include "backends/cpu/integer/depthwise.h"
#include "backends/cpu/integer/folded_rounding.h"
#include "backends/cpu/integer/grouped.h"
#include "backends/cpu/integer/number_epilogue.h"
#include "backends/cpu/integer/requantization.h"

namespace onnxifi::integer {
namespace {

using base::Code;
using base::Status;
using program::Contract;

constexpr int64_t kMinWeightBytes = 64;

// The axis of the domain along which the columns lie, of which CheckAxes lets one have more than
// one element; -1 where none has.
int ColumnAxis(const device::BoundStep& step) {
  const Contract& contract = *step.step->As<Contract>();
  if (contract.form != Contract::Form::kMatMul) return 1;
  for (int axis = contract.batch_axes + contract.m_axes;
       axis < static_cast<int>(step.domain.size()); ++axis) {
    if (step.domain[static_cast<size_t>(axis)] != 1) return axis;
  }
  return -1;
}

// What no sum is above in magnitude.
double LargestSum(const device::BoundStep& step) {
  double largest = 255.0 * 255.0;
  for (const program::Dim& extent : step.step->As<Contract>()->inner) {
    largest *= static_cast<double>(step.Number(extent));
  }
  return largest;
}

class ProductKernel final : public device::Kernel {
 public:
  ProductKernel(const ByteFactors& factors, bool is_b_constant, const runtime::Runtimes& runtimes)
      : factors_(factors), is_b_constant_(is_b_constant), runtimes_(runtimes) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    std::unique_ptr<device::BoundKernel> bound;
    ONNXIFI_RETURN_IF_ERROR(reference::Guarded([&]() -> Status {
      runtime::PackedWeights packed;
      const ByteFactors factors = WithoutZeros(step, constants);
      if (is_b_constant_) {
        ONNXIFI_ASSIGN_OR_RETURN(packed, Pack(step, factors, constants));
      }
      const engine::LoopSet loops = runtimes_.engine.settings().loops;
      const int axis = ColumnAxis(step);
      ProductPlan plan{factors, CompileNumberEpilogue(step, constants, loops),
                       FindRequantization(step, constants, axis, LargestSum(step))};
      if (plan.requantization) {
        FoldBehindRounding(axis < 0 ? 1 : step.domain[static_cast<size_t>(axis)],
                           *plan.requantization);
      }
      bound = BindProduct(std::move(plan), step, std::move(packed), runtimes_);
      return base::Ok();
    }));
    return bound;
  }

 private:
  // Constant zero points of B that are all 0 are none.
  ByteFactors WithoutZeros(const device::BoundStep& step, device::Addresses constants) const {
    ByteFactors factors = factors_;
    const int read = factors.b.zero_point_read;
    if (read < 0) return factors;
    const device::BoundView& view = step.reads[static_cast<size_t>(read)];
    const std::byte* const buffer = constants[static_cast<size_t>(view.buffer)];
    if (buffer == nullptr || view.buffer_bytes < 0) return factors;
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    if (std::all_of(buffer, buffer + view.buffer_bytes, is_zero)) factors.b.zero_point_read = -1;
    return factors;
  }

  base::Result<runtime::PackedWeights> Pack(const device::BoundStep& step,
                                            const ByteFactors& factors,
                                            device::Addresses constants) {
    const ProductGeometry geometry = MakeGeometry(step, factors);
    constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
    const int64_t bytes = WeightBytes(geometry);
    // Into how many pieces windows are cut, and whether they are walked, is a question of the
    // extents.
    const int layout = geometry.depthwise ? 0 : static_cast<int>(geometry.columns.pieces);
    return store_.Find(layout, runtimes_.own.memory(), std::max(kMinWeightBytes, bytes) / kFloat,
                       [&](float* to) {
                         PackWeights(geometry, factors, BytesAt(constants, step.reads[1]),
                                     reinterpret_cast<std::byte*>(to), runtimes_.own.pool());
                         return base::Ok();
                       });
  }

  const ByteFactors factors_;
  const bool is_b_constant_;
  const runtime::Runtimes runtimes_;
  runtime::WeightStore store_;
};

std::vector<program::ExprId> AccumulatorsOf(const device::Facts& facts) {
  std::vector<program::ExprId> accumulators;
  const program::ExprPool& pool = facts.program.exprs;
  for (program::ExprId id : program::Reachable(pool, facts.step.As<Contract>()->roots)) {
    if (pool[id].op == program::ExprOp::kAccumulator) accumulators.push_back(id);
  }
  return accumulators;
}

class ProductRecipe final : public runtime::Recipe {
 public:
  ProductRecipe(const device::Facts& facts, const ByteFactors& factors)
      : facts_(facts), factors_(factors) {}

  std::string_view implementation() const override { return "byte product"; }
  bool TakesAnyAddress(int /*read*/) const override { return true; }
  base::Result<std::unique_ptr<device::Kernel>> Build(
      const runtime::Runtimes& runtimes) const override {
    return std::unique_ptr<device::Kernel>(std::make_unique<ProductKernel>(
        factors_, facts_.IsConstant(facts_.step.reads[1]), runtimes));
  }

 private:
  const device::Facts facts_;
  const ByteFactors factors_;
};

// At most one axis of columns has more than one element, and there are no more axes in space than
// windows are walked along.
Status CheckAxes(const program::Step& step) {
  const Contract& contract = *step.As<Contract>();
  if (step.domain.size() > static_cast<size_t>(engine::kMaxAxes)) {
    return Status(Code::kUnsupportedShape, "The step has " + std::to_string(step.domain.size()) +
                                               " axes, more than " +
                                               std::to_string(engine::kMaxAxes) + ".");
  }
  if (contract.form != Contract::Form::kMatMul) {
    if (contract.a_spatial.size() <= kSpatialAxes) return base::Ok();
    return Status(Code::kUnsupportedShape, "The number of spatial axes (" +
                                               std::to_string(contract.a_spatial.size()) +
                                               ") is above " + std::to_string(kSpatialAxes) + ".");
  }
  int axes = 0;
  for (int axis = 0; axis < contract.n_axes; ++axis) {
    const size_t at = static_cast<size_t>(contract.batch_axes + contract.m_axes + axis);
    if (!(step.domain[at] == program::Dim(1))) ++axes;
  }
  if (axes <= 1) return base::Ok();
  return Status(Code::kUnsupportedShape,
                "The columns have " + std::to_string(axes) + " axes, more than one.");
}

}  // namespace

bool WalksInGroups(const device::Facts& facts) {
  const base::Result<ByteFactors> factors = DescribeByteFactors(facts);
  const auto* contract = facts.step.As<Contract>();
  if (!factors.ok() || contract->form != Contract::Form::kConv || contract->a_spatial.empty() ||
      !factors->b.is_signed || !facts.step.domain[1].is_constant()) {
    return false;
  }
  int64_t depth = 1;
  for (const program::Dim& extent : contract->inner) {
    if (!extent.is_constant() || extent.constant() > kMaxTaps) return false;
    depth *= std::min(extent.constant(), kMaxTaps * kMaxTaps / depth);
  }
  if (depth > kMaxTaps * contract->inner[0].constant()) return false;
  // Zero points that are constant are 0 where bytes are signed.
  const int zero_points = factors->b.zero_point_read;
  if (zero_points >= 0 && !facts.IsConstant(facts.step.reads[static_cast<size_t>(zero_points)])) {
    return false;
  }
  const int64_t outputs = facts.step.domain[1].constant();
  WindowAxis x;
  x.kernel = contract->inner.back().constant();
  x.stride = contract->strides.back();
  x.dilation = contract->dilations.back();
  return WalksGroups({contract->inner[0].constant(), outputs / contract->group}, outputs, x);
}

runtime::RecipeResult SelectProduct(const device::Facts& facts) {
  ONNXIFI_ASSIGN_OR_RETURN(const ByteFactors factors, DescribeByteFactors(facts));
  ONNXIFI_RETURN_IF_ERROR(CheckAxes(facts.step));
  ONNXIFI_RETURN_IF_ERROR(engine::CheckExpressions(
      facts.program.exprs, facts.step.As<Contract>()->roots, AccumulatorsOf(facts)));
  return std::unique_ptr<const device::Recipe>(std::make_unique<ProductRecipe>(facts, factors));
}

}  // namespace onnxifi::integer
