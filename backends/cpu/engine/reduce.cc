// SPDX-License-Identifier: Apache-2.0
//
// Reduce: a tile of results at a time; all their elements are reduced, then the roots stored.

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/reference/reduction.h"
#include "backends/core/reference/scratch.h"
#include "backends/cpu/engine/direct_reduction.h"
#include "backends/cpu/engine/extreme_position.h"
#include "backends/cpu/engine/recipe.h"
#include "backends/cpu/engine/reduction.h"
#include "backends/cpu/engine/weighted_rows.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::engine {
namespace {

// Elements whose reduction by itself takes less time than what surrounds it.
constexpr int64_t kShortReduction = 1024;

// Results of a tile, so that threads share those of many elements, which one tile could hold: at
// least a line of the cache, and where there are that many, as many as are read where they lie.
int64_t MaxResultLanes(const device::BoundStep& step, int axes) {
  constexpr int64_t kMinElements = 1 << 16;
  constexpr int64_t kMaxParts = 8;
  constexpr int64_t kMinLanes = 32, kMinOfMany = 128;
  const size_t outer = step.domain.size() - static_cast<size_t>(axes);
  const int64_t results = tensor::ElementCount(std::span(step.domain).first(outer));
  if (tensor::ElementCount(step.domain) < kMinElements) return INT64_MAX;
  return std::max((results + kMaxParts - 1) / kMaxParts,
                  results >= 2 * kMinOfMany ? kMinOfMany : kMinLanes);
}

// Whether results are reduced in parts, and a tile of all elements has enough of them to be so side
// by side.
bool HoldsParts(int64_t results, int64_t elements, int64_t tile_lanes) {
  constexpr int64_t kMinLanes = 16;
  return reference::UsesPartialSums(results, elements) &&
         ReductionGrid::CanHold(elements, tile_lanes) &&
         ReductionGrid::HeldLanes(elements, tile_lanes) >= kMinLanes;
}

struct ReduceCode {
  ReductionCode reduction;
  Code roots;
  int axes;
  std::shared_ptr<const WeightedRows> weighted_rows;  // null where it is no such sum
  std::optional<program::Extreme> extreme_position;   // nothing where it is no such search
  std::optional<DirectReduction> direct;              // nothing where elements are computed
};

class BoundReduce final : public device::BoundKernel {
 public:
  BoundReduce(std::shared_ptr<const ReduceCode> code, const device::BoundStep& step,
              Runtime& runtime)
      : code_(std::move(code)),
        reduction_(code_->reduction, step),
        roots_(code_->roots, step),
        writer_(step.writes, static_cast<int>(step.domain.size())),
        runtime_(runtime) {
    std::vector<LinearForm*> forms;
    reduction_.AppendForms(forms);
    roots_.AppendForms(forms);
    writer_.AppendForms(forms);
    const size_t outer = step.domain.size() - static_cast<size_t>(code_->axes);
    const int64_t elements = tensor::ElementCount(std::span(step.domain).subspan(outer));
    const int64_t results = tensor::ElementCount(std::span(step.domain).first(outer));
    const int64_t tile_lanes = runtime.settings().tile_lanes;
    grid_ = ReductionGrid(step.domain, code_->axes, FindPrimary(reduction_.accesses()), forms,
                          {.tile_lanes = tile_lanes,
                           .allows_rows = reduction_.CanReduceRows(),
                           .short_reduction = kShortReduction,
                           .max_result_lanes = MaxResultLanes(step, code_->axes),
                           .holds_reduction = reduction_.CanReduceColumnsInParts() &&
                                              HoldsParts(results, elements, tile_lanes)});
    if (grid_.has_no_results()) return;
    reduction_.LayOut(grid_);
    roots_.LayOut(grid_.results_grid(), grid_.result_lanes());
    writer_.LayOut(grid_.results_grid(), Writer::kNeverStreamed);
    runtime.scratch().Reserve(reduction_.scratch_bytes() + roots_.scratch_bytes() +
                              writer_.scratch_bytes());
  }

  std::string Detail() const override { return processor::VectorName(); }

  base::Status Run(device::Addresses addresses) const override {
    if (grid_.has_no_results()) return base::Ok();
    const ReductionCode& reduction = code_->reduction;
    const int64_t cost_of_one =
        grid_.elements() * (reduction.elements.cost() + reduction.update.cost() + 10) +
        grid_.parts() * reduction.merge.cost() + code_->roots.cost() + 100;
    return runtime_.For(grid_.result_tile_count(), grid_.result_lanes() * cost_of_one,
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          RunTiles(addresses, begin, end, scratch);
                        });
  }

 private:
  void RunTiles(device::Addresses addresses, int64_t begin, int64_t end, std::byte* scratch) const {
    ReductionFrame reduction(reduction_, grid_, addresses, scratch);
    scratch += reduction_.scratch_bytes();
    Frame roots(roots_, addresses, scratch, grid_.result_lanes());
    scratch += roots_.scratch_bytes();
    roots.Attach(program::ExprOp::kState,
                 [&](uint64_t k) { return reduction.state(static_cast<int>(k)); });
    Box result;
    for (int64_t tile = begin; tile < end; ++tile) {
      grid_.MoveToResult(tile, result);
      reduction.Run(result);
      writer_.Run(roots, result, addresses, scratch);
    }
  }

  const std::shared_ptr<const ReduceCode> code_;  // shared with the kernel
  BoundReduction reduction_;
  BoundCode roots_;
  Writer writer_;
  ReductionGrid grid_;
  Runtime& runtime_;
};

class ReduceKernel final : public device::Kernel {
 public:
  ReduceKernel(std::shared_ptr<const ReduceCode> code, Runtime& runtime)
      : code_(std::move(code)), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses) override {
    std::unique_ptr<device::BoundKernel> bound;
    ONNXIFI_RETURN_IF_ERROR(reference::Guarded([&] {
      if (code_->weighted_rows) bound = BindWeightedRows(code_->weighted_rows, step, runtime_);
      if (bound == nullptr && code_->extreme_position) {
        bound = BindExtremePosition(*code_->extreme_position, step, runtime_);
      }
      if (bound == nullptr && code_->direct) {
        bound = BindDirectReduction(
            *code_->direct, std::shared_ptr<const Code>(code_, &code_->roots), step, runtime_);
      }
      if (bound == nullptr) bound = std::make_unique<BoundReduce>(code_, step, runtime_);
      return base::Ok();
    }));
    return bound;
  }

 private:
  const std::shared_ptr<const ReduceCode> code_;  // shared with what it bound
  Runtime& runtime_;
};

}  // namespace

std::unique_ptr<device::Kernel> BuildReduce(const device::Facts& facts, Runtime& runtime) {
  const program::Reduce& reduce = *facts.step.As<program::Reduce>();
  const program::ExprPool& pool = facts.program.exprs;
  const LoopSet loops = runtime.settings().loops;
  return std::make_unique<ReduceKernel>(
      std::make_shared<const ReduceCode>(
          ReduceCode{ReductionCode::Compile(pool, reduce.reduction, loops),
                     Code::Compile(pool, reduce.roots, loops), reduce.axes,
                     FindWeightedRows(pool, facts.step, loops),
                     FindExtremePosition(pool, facts.step), FindDirectReduction(pool, facts.step)}),
      runtime);
}

}  // namespace onnxifi::engine
