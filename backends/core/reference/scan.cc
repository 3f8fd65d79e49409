// SPDX-License-Identifier: Apache-2.0
//
// Scan: one reduction per coordinate of the leading axes, its state written out at every step along
// the last.

#include <algorithm>
#include <utility>

#include "backends/core/reference/compiled_step.h"
#include "backends/core/reference/reduction.h"

namespace onnxifi::reference {
namespace {

struct ScanExpressions {
  CompiledReduction reduction;
  Expression roots;
  bool exclusive;
};

class BoundScan final : public device::BoundKernel {
 public:
  BoundScan(std::shared_ptr<const CompiledStep> owner, const ScanExpressions& expressions,
            const device::BoundStep& step, device::Parallel& parallel)
      : owner_(std::move(owner)),
        reduction_(expressions.reduction, step.dims),
        roots_(expressions.roots),
        root_dims_(roots_.BindDims(step.dims)),
        exclusive_(expressions.exclusive),
        domain_(step.domain),
        reads_(step.reads),
        writes_(step.writes),
        length_(domain_.back()),
        outer_count_(tensor::ElementCount(std::span(domain_).first(domain_.size() - 1))),
        grain_(Grain(step, outer_count_, length_)),
        parallel_(parallel) {}

  base::Status Run(device::Addresses addresses) const override {
    return ForRange(parallel_, outer_count_, grain_, [&](int64_t begin, int64_t end) {
      ReductionFrame reduction(reduction_, reads_, addresses);
      Frame roots(roots_, root_dims_, reads_, addresses);
      roots.Attach(program::ExprOp::kState, reduction.state());
      const int last = static_cast<int>(domain_.size()) - 1;
      Sweep sweep(domain_, 0, last);
      for (int64_t position = begin; position < end; position += kBlock) {
        sweep.Move(position, std::min(kBlock, end - position));
        sweep.Fix(last, last + 1, 0);
        reduction.Begin(sweep);
        for (int64_t element = 0; element < length_; ++element) {
          sweep.Fix(last, last + 1, element);
          if (!exclusive_) reduction.Update(sweep);
          roots.Run(sweep);
          for (size_t k = 0; k < writes_.size(); ++k) {
            StoreColumn(writes_[k], addresses[writes_[k].buffer], sweep,
                        roots.root(static_cast<int>(k)));
          }
          if (exclusive_) reduction.Update(sweep);
        }
      }
    });
  }

 private:
  std::shared_ptr<const CompiledStep> owner_;  // of the expressions
  BoundReduction reduction_;
  const Expression& roots_;
  std::vector<int64_t> root_dims_;
  bool exclusive_;
  tensor::Extents domain_;
  std::vector<device::BoundView> reads_;
  std::vector<device::BoundView> writes_;
  int64_t length_;
  int64_t outer_count_;
  int64_t grain_;
  device::Parallel& parallel_;
};

class ScanStep final : public CompiledStep {
 public:
  explicit ScanStep(ScanExpressions expressions) : expressions_(std::move(expressions)) {}

  std::unique_ptr<device::BoundKernel> Bind(const device::BoundStep& step,
                                            device::Parallel& parallel) const override {
    return std::make_unique<BoundScan>(shared_from_this(), expressions_, step, parallel);
  }

 private:
  ScanExpressions expressions_;
};

}  // namespace

CompileResult CompileScan(const program::Program& program, const program::Step& step) {
  const program::Scan& scan = *step.As<program::Scan>();
  // The plain reference goes along the axis in order.
  program::Reduction reduction = scan.reduction;
  for (program::Reduction::State& state : reduction.states) state.merge = program::kNoExpr;
  ONNXIFI_ASSIGN_OR_RETURN(CompiledReduction compiled,
                           CompiledReduction::Compile(program.exprs, reduction));
  ONNXIFI_ASSIGN_OR_RETURN(Expression roots, Expression::Compile(program.exprs, scan.roots));
  return std::shared_ptr<const CompiledStep>(std::make_shared<ScanStep>(
      ScanExpressions{std::move(compiled), std::move(roots), scan.exclusive}));
}

}  // namespace onnxifi::reference
