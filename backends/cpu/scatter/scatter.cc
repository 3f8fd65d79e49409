// SPDX-License-Identifier: Apache-2.0
//
// SelectScatter: the predicate, and a kernel that chooses between rows and elements at each run,
// when coordinates are known.

#include "backends/cpu/scatter/scatter.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "backends/core/reference/scratch.h"
#include "backends/cpu/scatter/combine.h"
#include "backends/cpu/scatter/elements.h"
#include "backends/cpu/scatter/rows.h"

namespace onnxifi::scatter {
namespace {

using base::Code;
using base::Status;
using device::BoundStep;
using program::Index;

// Picoseconds.
constexpr int64_t kCostOfElement = 2'000;
constexpr int64_t kCostOfRow = 5'000;
constexpr int64_t kCostOfRowElement = 150;

class BoundScatter final : public device::BoundKernel {
 public:
  BoundScatter(const BoundStep& step, engine::Runtime& runtime)
      : combination_(step.step->As<Index>()->combine, step.writes[0].type),
        target_(step.writes[0], TargetExtents(step)),
        runtime_(runtime) {
    count_ = tensor::ElementCount(step.domain);
    if (target_.is_empty() || count_ == 0) return;
    rows_ = RowPlan::Create(step, target_, combination_);
    elements_.emplace(step, /*split_axis=*/-1, target_, combination_);
    int64_t scratch_bytes = elements_->scratch_bytes();
    if (rows_ != nullptr) scratch_bytes = std::max(scratch_bytes, rows_->scratch_bytes());
    split_axis_ = FindSplitAxis(step);
    const bool is_worth_threads = count_ * kCostOfElement > 2 * runtime.settings().worth_a_thread;
    if (split_axis_ && target_.is_distinct && is_worth_threads) {
      step_ = step;
      split_elements_.emplace(step, split_axis_->axis, target_, combination_);
      scratch_bytes = std::max(scratch_bytes, split_elements_->scratch_bytes());
    }
    runtime.scratch().Reserve(scratch_bytes);
  }

  Status Run(device::Addresses addresses) const override {
    if (!elements_) return base::Ok();
    if (rows_ != nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(const std::optional<int64_t> row, FindRow(addresses));
      if (row) return RunRows(addresses, *row);
    }
    const bool is_split = split_elements_ && Ascends(step_, *split_axis_, addresses);
    const ElementPlan& plan = is_split ? *split_elements_ : *elements_;
    const int64_t parts = plan.part_count();
    return runtime_.For(parts, count_ / parts * kCostOfElement,
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          plan.Run(addresses, begin, end, scratch);
                        });
  }

 private:
  static tensor::Extents TargetExtents(const BoundStep& step) {
    tensor::Extents extents;
    for (const program::Dim& dim : step.step->As<Index>()->target) {
      extents.push_back(step.Number(dim));
    }
    return extents;
  }

  base::Result<std::optional<int64_t>> FindRow(device::Addresses addresses) const {
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease scratch, runtime_.scratch().Lend());
    return rows_->FindRow(addresses, scratch.data());
  }

  // Each thread goes through all rows and takes those of its share of the target.
  Status RunRows(device::Addresses addresses, int64_t row) const {
    constexpr int64_t kMaxShares = 256;
    const int64_t span = target_.highest - target_.lowest + 1;
    const int64_t shares = target_.is_distinct ? std::min(kMaxShares, span) : 1;
    auto share_begin = [&](int64_t share) {
      return target_.lowest + span / shares * share + span % shares * share / shares;
    };
    const int64_t length = rows_->row_length();
    const int64_t cost = count_ / length * (kCostOfRow + length * kCostOfRowElement);
    return runtime_.For(shares, cost / shares, [&](int64_t begin, int64_t end, std::byte* scratch) {
      rows_->Run(addresses, row, share_begin(begin), share_begin(end), scratch);
    });
  }

  const Combination combination_;
  const Target target_;
  int64_t count_ = 0;
  std::unique_ptr<const RowPlan> rows_;
  std::optional<ElementPlan> elements_;  // nothing where there is nothing to do
  std::optional<SplitAxis> split_axis_;
  std::optional<ElementPlan> split_elements_;
  BoundStep step_{};  // of split_elements_
  engine::Runtime& runtime_;
};

class Kernel final : public device::Kernel {
 public:
  explicit Kernel(engine::Runtime& runtime) : runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const BoundStep& step,
                                                          device::Addresses) override {
    std::unique_ptr<device::BoundKernel> bound;
    ONNXIFI_RETURN_IF_ERROR(reference::Guarded([&] {
      bound = std::make_unique<BoundScatter>(step, runtime_);
      return base::Ok();
    }));
    return bound;
  }

 private:
  engine::Runtime& runtime_;
};

std::unique_ptr<device::Kernel> Build(const device::Facts& /*facts*/, engine::Runtime& runtime) {
  return std::make_unique<Kernel>(runtime);
}

}  // namespace

runtime::RecipeResult SelectScatter(const device::Facts& facts) {
  const program::Step& step = facts.step;
  const Index* index = step.As<Index>();
  if (index == nullptr || index->kind != Index::Kind::kScatter) {
    return Status(Code::kUnsupportedOperator, "The step scatters nothing.");
  }
  const size_t axes = std::max(step.domain.size(), index->target.size());
  if (axes > engine::kMaxAxes) {
    return Status(Code::kUnsupportedShape, "The step has " + std::to_string(axes) +
                                               " axes; scattering walks up to " +
                                               std::to_string(engine::kMaxAxes) + ".");
  }
  if (const tensor::ElementType type = step.writes[0].type; !HasCombination(index->combine, type)) {
    return Status(Code::kUnsupportedDatatype, "Elements of type " +
                                                  std::string(tensor::Name(type)) +
                                                  " have no lanes of their own to scatter to.");
  }
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<engine::Recipe>("scatter", facts, Build));
}

}  // namespace onnxifi::scatter
