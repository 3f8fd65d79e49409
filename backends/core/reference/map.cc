// SPDX-License-Identifier: Apache-2.0
//
// Map: every coordinate of the domain on its own, in blocks of consecutive ones.

#include <algorithm>
#include <utility>

#include "backends/core/reference/column.h"
#include "backends/core/reference/compiled_step.h"
#include "backends/core/reference/expression.h"
#include "backends/core/reference/scratch.h"

namespace onnxifi::reference {
namespace {

class BoundMap final : public device::BoundKernel {
 public:
  BoundMap(std::shared_ptr<const CompiledStep> owner, const Expression& roots,
           const device::BoundStep& step, device::Parallel& parallel)
      : owner_(std::move(owner)),
        roots_(roots),
        dims_(roots.BindDims(step.dims)),
        domain_(step.domain),
        reads_(step.reads),
        writes_(step.writes),
        count_(tensor::ElementCount(step.domain)),
        grain_(Grain(step, count_, 1)),
        parallel_(parallel) {}

  base::Status Run(device::Addresses addresses) const override {
    return ForRange(parallel_, count_, grain_, [&](int64_t begin, int64_t end) {
      Frame frame(roots_, dims_, reads_, addresses);
      Sweep sweep(domain_);
      for (int64_t position = begin; position < end; position += kBlock) {
        sweep.Move(position, std::min(kBlock, end - position));
        frame.Run(sweep);
        for (size_t k = 0; k < writes_.size(); ++k) {
          StoreColumn(writes_[k], addresses[writes_[k].buffer], sweep,
                      frame.root(static_cast<int>(k)));
        }
      }
    });
  }

 private:
  std::shared_ptr<const CompiledStep> owner_;  // of roots_
  const Expression& roots_;
  std::vector<int64_t> dims_;
  tensor::Extents domain_;
  std::vector<device::BoundView> reads_;
  std::vector<device::BoundView> writes_;
  int64_t count_;
  int64_t grain_;
  device::Parallel& parallel_;
};

class MapStep final : public CompiledStep {
 public:
  explicit MapStep(Expression roots) : roots_(std::move(roots)) {}

  std::unique_ptr<device::BoundKernel> Bind(const device::BoundStep& step,
                                            device::Parallel& parallel) const override {
    return std::make_unique<BoundMap>(shared_from_this(), roots_, step, parallel);
  }

 private:
  Expression roots_;
};

}  // namespace

CompileResult CompileMap(const program::Program& program, const program::Step& step) {
  ONNXIFI_ASSIGN_OR_RETURN(Expression roots,
                           Expression::Compile(program.exprs, step.As<program::Map>()->roots));
  return std::shared_ptr<const CompiledStep>(std::make_shared<MapStep>(std::move(roots)));
}

}  // namespace onnxifi::reference
