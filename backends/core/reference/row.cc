// SPDX-License-Identifier: Apache-2.0
//
// Row: several reductions over the same row, each reading the results of those before, then every
// element of the row once more.

#include <algorithm>
#include <utility>

#include "backends/core/reference/compiled_step.h"
#include "backends/core/reference/reduction.h"

namespace onnxifi::reference {
namespace {

struct RowExpressions {
  struct Pass {
    CompiledReduction reduction;
    Expression results;
    std::vector<tensor::ElementType> types;  // of the results
  };
  std::vector<Pass> passes;
  Expression roots;
  Expression row_roots;  // those that no element of the row enters; no column for the others
  std::vector<bool> is_per_row;
  int axes;
};

struct BoundPass {
  BoundReduction reduction;
  const RowExpressions::Pass* pass;
  std::vector<int64_t> result_dims;
};

// What one thread needs for one pass.
struct PassFrame {
  ReductionFrame reduction;
  Frame results;
  Columns columns;  // the results, readable as kRow

  PassFrame(const BoundPass& bound, std::span<const device::BoundView> reads,
            device::Addresses addresses)
      : reduction(bound.reduction, reads, addresses),
        results(bound.pass->results, bound.result_dims, reads, addresses),
        columns(bound.pass->types) {
    results.Attach(program::ExprOp::kState, reduction.state());
  }
};

class BoundRow final : public device::BoundKernel {
 public:
  BoundRow(std::shared_ptr<const CompiledStep> owner, const RowExpressions& expressions,
           const device::BoundStep& step, device::Parallel& parallel)
      : owner_(std::move(owner)),
        roots_(expressions.roots),
        root_dims_(roots_.BindDims(step.dims)),
        row_roots_(expressions.row_roots),
        row_root_dims_(row_roots_.BindDims(step.dims)),
        domain_(step.domain),
        outer_rank_(static_cast<int>(domain_.size()) - expressions.axes),
        reads_(step.reads),
        writes_(step.writes),
        row_count_(tensor::ElementCount(std::span(domain_).first(outer_rank_))),
        row_length_(tensor::ElementCount(std::span(domain_).subspan(outer_rank_))),
        grain_(Grain(step, row_count_, row_length_)),
        parallel_(parallel) {
    for (const RowExpressions::Pass& pass : expressions.passes) {
      passes_.push_back(
          {BoundReduction(pass.reduction, step.dims), &pass, pass.results.BindDims(step.dims)});
    }
    for (size_t k = 0; k < writes_.size(); ++k) {
      const std::vector<int64_t>& strides = writes_[k].strides;
      const bool is_fixed = std::all_of(strides.begin() + outer_rank_, strides.end(),
                                        [](int64_t stride) { return stride == 0; });
      is_written_per_row_.push_back(is_fixed && expressions.is_per_row[k]);
    }
  }

  base::Status Run(device::Addresses addresses) const override {
    const bool in_parts = RowUsesPartialSums(row_count_, row_length_);
    return ForRange(parallel_, row_count_, grain_, [&](int64_t begin, int64_t end) {
      std::vector<std::unique_ptr<PassFrame>> passes;
      std::vector<std::vector<std::byte*>> rows;
      for (const BoundPass& pass : passes_) {
        passes.push_back(std::make_unique<PassFrame>(pass, reads_, addresses));
        const std::span<std::byte* const> columns = passes.back()->columns.all();
        rows.emplace_back(columns.begin(), columns.end());
      }
      for (const std::unique_ptr<PassFrame>& pass : passes) {
        pass->reduction.AttachRows(rows);
        pass->results.AttachRows(rows);
      }
      Frame roots(roots_, root_dims_, reads_, addresses);
      roots.AttachRows(rows);
      Frame row_roots(row_roots_, row_root_dims_, reads_, addresses);
      row_roots.AttachRows(rows);
      const int64_t stride = in_parts ? 1 : kBlock;
      for (int64_t position = begin; position < end; position += stride) {
        if (in_parts) {
          RunParts(passes, roots, position, addresses);
          StorePerRow(row_roots, position, 1, addresses);
        } else {
          const int64_t lanes = std::min(stride, end - position);
          RunLanes(passes, roots, position, lanes, addresses);
          StorePerRow(row_roots, position, lanes, addresses);
        }
      }
    });
  }

 private:
  using Passes = std::vector<std::unique_ptr<PassFrame>>;

  // Lanes are elements of one row.
  void RunParts(const Passes& passes, Frame& roots, int64_t row,
                device::Addresses addresses) const {
    Sweep sweep(domain_);
    const int64_t parts = std::min(kBlock, row_length_);
    for (size_t s = 0; s < passes.size(); ++s) {
      PassFrame& pass = *passes[s];
      sweep.Move(row * row_length_, 1);
      pass.reduction.BeginParts(sweep, std::max<int64_t>(1, parts));
      for (int64_t element = 0; element < row_length_; element += kBlock) {
        sweep.Move(row * row_length_ + element, std::min(kBlock, row_length_ - element));
        pass.reduction.Update(sweep);
      }
      pass.reduction.MergeParts(parts);
      sweep.Move(row * row_length_, 1);
      pass.results.Run(sweep);
      for (int k = 0; k < passes_[s].pass->results.root_count(); ++k) {
        pass.columns.Repeat(k, pass.results.root(k), kBlock);
      }
    }
    for (int64_t element = 0; element < row_length_; element += kBlock) {
      sweep.Move(row * row_length_ + element, std::min(kBlock, row_length_ - element));
      Store(roots, sweep, /*per_row=*/false, addresses);
    }
  }

  // Lanes are rows.
  void RunLanes(const Passes& passes, Frame& roots, int64_t row, int64_t lanes,
                device::Addresses addresses) const {
    Sweep sweep(domain_, 0, outer_rank_);
    for (size_t s = 0; s < passes.size(); ++s) {
      PassFrame& pass = *passes[s];
      sweep.Move(row, lanes);
      sweep.Fix(outer_rank_, sweep.rank(), 0);
      pass.reduction.Begin(sweep);
      for (int64_t element = 0; element < row_length_; ++element) {
        sweep.Fix(outer_rank_, sweep.rank(), element);
        pass.reduction.Update(sweep);
      }
      pass.results.Run(sweep);
      for (int k = 0; k < passes_[s].pass->results.root_count(); ++k) {
        pass.columns.Set(k, pass.results.root(k), lanes);
      }
    }
    for (int64_t element = 0; element < row_length_; ++element) {
      sweep.Fix(outer_rank_, sweep.rank(), element);
      Store(roots, sweep, /*per_row=*/false, addresses);
    }
  }

  void StorePerRow(Frame& row_roots, int64_t row, int64_t lanes,
                   device::Addresses addresses) const {
    Sweep sweep(domain_, 0, outer_rank_);
    sweep.Move(row, lanes);
    Store(row_roots, sweep, /*per_row=*/true, addresses);
  }

  void Store(Frame& roots, const Sweep& sweep, bool per_row, device::Addresses addresses) const {
    if (std::find(is_written_per_row_.begin(), is_written_per_row_.end(), per_row) ==
        is_written_per_row_.end()) {
      return;
    }
    roots.Run(sweep);
    for (size_t k = 0; k < writes_.size(); ++k) {
      if (is_written_per_row_[k] != per_row) continue;
      StoreColumn(writes_[k], addresses[writes_[k].buffer], sweep, roots.root(static_cast<int>(k)));
    }
  }

  std::shared_ptr<const CompiledStep> owner_;  // of the expressions
  std::vector<BoundPass> passes_;
  const Expression& roots_;
  std::vector<int64_t> root_dims_;
  const Expression& row_roots_;
  std::vector<int64_t> row_root_dims_;
  std::vector<bool> is_written_per_row_;  // per write
  tensor::Extents domain_;
  int outer_rank_;
  std::vector<device::BoundView> reads_;
  std::vector<device::BoundView> writes_;
  int64_t row_count_;
  int64_t row_length_;
  int64_t grain_;
  device::Parallel& parallel_;
};

class RowStep final : public CompiledStep {
 public:
  explicit RowStep(RowExpressions expressions) : expressions_(std::move(expressions)) {}

  std::unique_ptr<device::BoundKernel> Bind(const device::BoundStep& step,
                                            device::Parallel& parallel) const override {
    return std::make_unique<BoundRow>(shared_from_this(), expressions_, step, parallel);
  }

 private:
  RowExpressions expressions_;
};

}  // namespace

CompileResult CompileRow(const program::Program& program, const program::Step& step) {
  const program::Row& row = *step.As<program::Row>();
  const program::ExprPool& pool = program.exprs;
  const auto outer_rank = static_cast<uint64_t>(step.domain.size()) - row.axes;
  program::ExprIds row_roots;
  std::vector<bool> is_per_row;
  for (program::ExprId root : row.roots) {
    bool is_fixed = true;
    const program::ExprId only[] = {root};
    for (program::ExprId id : program::Reachable(pool, only)) {
      const program::ExprNode& node = pool[id];
      if (node.op == program::ExprOp::kLoad) is_fixed = false;
      if (node.op == program::ExprOp::kIndex && node.payload >= outer_rank) is_fixed = false;
    }
    row_roots.push_back(is_fixed ? root : program::kNoExpr);
    is_per_row.push_back(is_fixed);
  }
  ONNXIFI_ASSIGN_OR_RETURN(Expression roots, Expression::Compile(pool, row.roots));
  ONNXIFI_ASSIGN_OR_RETURN(Expression compiled_row_roots,
                           Expression::Compile(pool, std::move(row_roots)));
  RowExpressions expressions{
      {}, std::move(roots), std::move(compiled_row_roots), std::move(is_per_row), row.axes};
  for (const program::Row::Pass& pass : row.passes) {
    ONNXIFI_ASSIGN_OR_RETURN(CompiledReduction reduction,
                             CompiledReduction::Compile(pool, pass.reduction));
    ONNXIFI_ASSIGN_OR_RETURN(Expression results, Expression::Compile(pool, pass.results));
    std::vector<tensor::ElementType> types;
    for (program::ExprId result : pass.results) types.push_back(pool[result].type);
    expressions.passes.push_back({std::move(reduction), std::move(results), std::move(types)});
  }
  return std::shared_ptr<const CompiledStep>(std::make_shared<RowStep>(std::move(expressions)));
}

}  // namespace onnxifi::reference
