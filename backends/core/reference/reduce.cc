// SPDX-License-Identifier: Apache-2.0
//
// Reduce: one reduction per coordinate of the leading axes, over all coordinates of the others.

#include <algorithm>
#include <utility>

#include "backends/core/reference/compiled_step.h"
#include "backends/core/reference/reduction.h"

namespace onnxifi::reference {
namespace {

struct ReduceExpressions {
  CompiledReduction reduction;
  Expression roots;
  int axes;
};

class BoundReduce final : public device::BoundKernel {
 public:
  BoundReduce(std::shared_ptr<const CompiledStep> owner, const ReduceExpressions& expressions,
              const device::BoundStep& step, device::Parallel& parallel)
      : owner_(std::move(owner)),
        reduction_(expressions.reduction, step.dims),
        roots_(expressions.roots),
        root_dims_(roots_.BindDims(step.dims)),
        domain_(step.domain),
        outer_(domain_.begin(), domain_.end() - expressions.axes),
        reads_(step.reads),
        writes_(step.writes),
        outer_count_(tensor::ElementCount(outer_)),
        count_(tensor::ElementCount(std::span(domain_).subspan(outer_.size()))),
        grain_(Grain(step, outer_count_, count_)),
        parallel_(parallel) {}

  base::Status Run(device::Addresses addresses) const override {
    const bool in_parts = UsesPartialSums(outer_count_, count_);
    return ForRange(parallel_, outer_count_, grain_, [&](int64_t begin, int64_t end) {
      ReductionFrame reduction(reduction_, reads_, addresses);
      Frame roots(roots_, root_dims_, reads_, addresses);
      roots.Attach(program::ExprOp::kState, reduction.state());
      Sweep results(outer_);
      const int64_t stride = in_parts ? 1 : kBlock;
      for (int64_t position = begin; position < end; position += stride) {
        const int64_t lanes = std::min(stride, end - position);
        if (in_parts) {
          ReduceParts(reduction, position);
        } else {
          ReduceLanes(reduction, position, lanes);
        }
        results.Move(position, lanes);
        roots.Run(results);
        for (size_t k = 0; k < writes_.size(); ++k) {
          StoreColumn(writes_[k], addresses[writes_[k].buffer], results,
                      roots.root(static_cast<int>(k)));
        }
      }
    });
  }

 private:
  void ReduceParts(ReductionFrame& reduction, int64_t position) const {
    Sweep sweep(domain_);
    sweep.Move(position * count_, 1);
    const int64_t parts = std::min(kBlock, count_);
    reduction.BeginParts(sweep, std::max<int64_t>(1, parts));
    for (int64_t element = 0; element < count_; element += kBlock) {
      sweep.Move(position * count_ + element, std::min(kBlock, count_ - element));
      reduction.Update(sweep);
    }
    reduction.MergeParts(parts);
  }

  void ReduceLanes(ReductionFrame& reduction, int64_t position, int64_t lanes) const {
    const int outer_rank = static_cast<int>(outer_.size());
    Sweep sweep(domain_, 0, outer_rank);
    sweep.Move(position, lanes);
    reduction.Begin(sweep);
    for (int64_t element = 0; element < count_; ++element) {
      sweep.Fix(outer_rank, sweep.rank(), element);
      reduction.Update(sweep);
    }
  }

  std::shared_ptr<const CompiledStep> owner_;  // of the expressions
  BoundReduction reduction_;
  const Expression& roots_;
  std::vector<int64_t> root_dims_;
  tensor::Extents domain_;
  tensor::Extents outer_;
  std::vector<device::BoundView> reads_;
  std::vector<device::BoundView> writes_;
  int64_t outer_count_;
  int64_t count_;
  int64_t grain_;
  device::Parallel& parallel_;
};

class ReduceStep final : public CompiledStep {
 public:
  explicit ReduceStep(ReduceExpressions expressions) : expressions_(std::move(expressions)) {}

  std::unique_ptr<device::BoundKernel> Bind(const device::BoundStep& step,
                                            device::Parallel& parallel) const override {
    return std::make_unique<BoundReduce>(shared_from_this(), expressions_, step, parallel);
  }

 private:
  ReduceExpressions expressions_;
};

}  // namespace

CompileResult CompileReduce(const program::Program& program, const program::Step& step) {
  const program::Reduce& reduce = *step.As<program::Reduce>();
  ONNXIFI_ASSIGN_OR_RETURN(CompiledReduction reduction,
                           CompiledReduction::Compile(program.exprs, reduce.reduction));
  ONNXIFI_ASSIGN_OR_RETURN(Expression roots, Expression::Compile(program.exprs, reduce.roots));
  return std::shared_ptr<const CompiledStep>(std::make_shared<ReduceStep>(
      ReduceExpressions{std::move(reduction), std::move(roots), reduce.axes}));
}

}  // namespace onnxifi::reference
