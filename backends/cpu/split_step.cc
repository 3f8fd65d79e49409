// SPDX-License-Identifier: Apache-2.0
//
// SplitEpilogue, SplitPadding: make two steps of one, in a program of their own that has one buffer
// more.

#include "backends/cpu/split_step.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/program/operand_extents.h"
#include "backends/cpu/engine/recipe.h"

namespace onnxifi::cpu {
namespace {

using base::Code;
using base::Status;
using program::Contract;
using program::Dim;
using program::ExprId;
using program::ExprOp;
using program::Step;
using program::View;
using program::Window;
using runtime::RecipeResult;

// What both kernels are made for. Reads are numbered as those of the whole step.
struct Split {
  program::Program program;  // without constants and steps
  Step first, second;
  program::BufferId between = program::kNoBuffer;
  program::Shape shape;  // of what is between them
  // By read of the step: whether the first part reads it, and whether the second does.
  std::vector<bool> is_read_by_first, is_read_by_second;

  Split(const device::Facts& facts, tensor::ElementType type, program::Shape between_shape)
      : shape(std::move(between_shape)) {
    program.exprs = facts.program.exprs;
    program.buffers = facts.program.buffers;
    static_cast<tensor::Permissions&>(program) = facts.program;
    for (Step* step : {&first, &second}) {
      step->domain = facts.step.domain;
      step->reads = facts.step.reads;
      step->node = facts.step.node;
    }
    program::Buffer buffer;
    buffer.type = type;
    buffer.shape = shape;
    between = program.AddBuffer(buffer);
  }

  tensor::ElementType type() const { return program.buffers[static_cast<size_t>(between)].type; }
  // All of it, with channels innermost where `like` has them there.
  View ViewLike(const View& like) const {
    constexpr size_t kChannel = 1;
    const bool is_innermost = shape.size() > kChannel + 1 && like.strides[kChannel] == Dim(1);
    View view;
    view.buffer = between;
    view.type = type();
    view.offset = Dim(0);
    view.strides.assign(shape.size(), Dim(1));
    Dim next = is_innermost ? shape[kChannel] : Dim(1);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (is_innermost && axis == kChannel) continue;
      view.strides[axis] = next;
      if (axis > 0) next = next * shape[axis];
    }
    return view;
  }
};

// Strides are numbers, since no extents but the first enter them.
Status CheckExtents(const program::Shape& shape) {
  for (size_t axis = 1; axis < shape.size(); ++axis) {
    if (shape[axis].is_constant()) continue;
    return Status(Code::kUnsupportedShape, "Extent " + std::to_string(axis) +
                                               " of what would be between two kernels is known "
                                               "only once the inputs are.");
  }
  return base::Ok();
}

class BoundSplit final : public device::BoundKernel {
 public:
  BoundSplit(std::shared_ptr<const Split> split, std::unique_ptr<device::BoundKernel> first,
             std::unique_ptr<device::BoundKernel> second, int64_t size_bytes,
             runtime::Runtime& runtime)
      : split_(std::move(split)),
        first_(std::move(first)),
        second_(std::move(second)),
        size_bytes_(size_bytes),
        runtime_(runtime) {}

  bool ReadsAtRun(int read) const override {
    const auto at = static_cast<size_t>(read);
    return (split_->is_read_by_first[at] && first_->ReadsAtRun(read)) ||
           (split_->is_read_by_second[at] && second_->ReadsAtRun(read));
  }

  Status Run(device::Addresses addresses) const override {
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(size_bytes_));
    std::vector<std::byte*> own(addresses.begin(), addresses.end());
    own.resize(split_->program.buffers.size(), nullptr);
    own[static_cast<size_t>(split_->between)] = lease.data();
    ONNXIFI_RETURN_IF_ERROR(first_->Run(own));
    return second_->Run(own);
  }

  std::string Detail() const override { return first_->Detail() + "; " + second_->Detail(); }

 private:
  const std::shared_ptr<const Split> split_;
  const std::unique_ptr<device::BoundKernel> first_, second_;
  const int64_t size_bytes_;
  runtime::Runtime& runtime_;
};

class SplitKernel final : public device::Kernel {
 public:
  SplitKernel(std::shared_ptr<const Split> split, std::unique_ptr<device::Kernel> first,
              std::unique_ptr<device::Kernel> second, runtime::Runtime& runtime)
      : split_(std::move(split)),
        first_(std::move(first)),
        second_(std::move(second)),
        runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    std::vector<std::byte*> own(constants.begin(), constants.end());
    own.resize(split_->program.buffers.size(), nullptr);
    const auto bind = [&](device::Kernel& kernel, const Step& part) {
      return kernel.Bind(device::Bind(split_->program, part, step.dims), own);
    };
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::BoundKernel> first,
                             bind(*first_, split_->first));
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::BoundKernel> second,
                             bind(*second_, split_->second));
    int64_t size_bytes = tensor::BitWidth(split_->type()) / 8;
    for (const Dim& extent : split_->shape) size_bytes *= step.Number(extent);
    return std::unique_ptr<device::BoundKernel>(std::make_unique<BoundSplit>(
        split_, std::move(first), std::move(second), size_bytes, runtime_));
  }

 private:
  const std::shared_ptr<const Split> split_;
  const std::unique_ptr<device::Kernel> first_, second_;
  runtime::Runtime& runtime_;
};

class SplitRecipe final : public runtime::Recipe {
 public:
  SplitRecipe(std::string_view implementation, std::shared_ptr<const Split> split,
              std::unique_ptr<const device::Recipe> first,
              std::unique_ptr<const device::Recipe> second)
      : implementation_(implementation),
        split_(std::move(split)),
        first_(std::move(first)),
        second_(std::move(second)) {}

  std::string_view implementation() const override { return implementation_; }
  bool TakesAnyAddress(int read) const override {
    const auto at = static_cast<size_t>(read);
    return (!split_->is_read_by_first[at] || first_->TakesAnyAddress(read)) &&
           (!split_->is_read_by_second[at] || second_->TakesAnyAddress(read));
  }
  base::Result<std::unique_ptr<device::Kernel>> Build(
      const runtime::Runtimes& runtimes) const override {
    const auto build = [&](const device::Recipe& recipe) {
      return dynamic_cast<const runtime::Recipe&>(recipe).Build(runtimes);
    };
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> first, build(*first_));
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> second, build(*second_));
    return std::unique_ptr<device::Kernel>(
        std::make_unique<SplitKernel>(split_, std::move(first), std::move(second), runtimes.own));
  }

 private:
  const std::string_view implementation_;
  const std::shared_ptr<const Split> split_;
  const std::unique_ptr<const device::Recipe> first_, second_;
};

RecipeResult MakeRecipe(std::string_view implementation, std::shared_ptr<const Split> split,
                        const SelectPart& select_first, const SelectPart& select_second) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<const device::Recipe> first,
                           select_first({split->program, split->first}));
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<const device::Recipe> second,
                           select_second({split->program, split->second}));
  return std::unique_ptr<const device::Recipe>(std::make_unique<SplitRecipe>(
      implementation, std::move(split), std::move(first), std::move(second)));
}

}  // namespace

RecipeResult SplitEpilogue(const device::Facts& facts, std::string_view implementation,
                           const SelectPart& select_sums) {
  const Step& step = facts.step;
  const auto* contract = step.As<Contract>();
  if (contract == nullptr || contract->roots.size() != 1 || step.writes.size() != 1) {
    return Status(Code::kUnsupportedAttribute, "The step has not one sum with one result.");
  }
  if (facts.program.exprs[contract->roots[0]].op == ExprOp::kAccumulator) {
    return Status(Code::kUnsupportedAttribute, "The sums have no epilogue.");
  }
  ONNXIFI_RETURN_IF_ERROR(CheckExtents(step.domain));
  auto split = std::make_shared<Split>(facts, contract->accumulator, step.domain);
  program::ExprPool& exprs = split->program.exprs;
  const View sums = split->ViewLike(step.writes[0]);
  Contract alone = *contract;
  alone.roots = {program::Accumulator(exprs, contract->accumulator).id()};
  split->first.body = std::move(alone);
  split->first.writes = {sums};

  const ExprId sum =
      program::Load(exprs, contract->accumulator, static_cast<int>(step.reads.size())).id();
  std::unordered_map<ExprId, ExprId> done;
  const ExprId root = program::Rewrite(
      exprs, contract->roots[0],
      [&](ExprId id) { return exprs[id].op == ExprOp::kAccumulator ? sum : program::kNoExpr; },
      done);
  split->second.body = program::Map{.roots = {root}};
  split->second.reads.push_back(sums);
  split->second.writes = step.writes;
  // Two operands; what is behind them is the epilogue's.
  for (size_t read = 0; read < step.reads.size(); ++read) {
    split->is_read_by_first.push_back(read < 2);
    split->is_read_by_second.push_back(read >= 2);
  }
  return MakeRecipe(implementation, std::move(split), select_sums, engine::Select);
}

RecipeResult SplitPadding(const device::Facts& facts, std::string_view implementation,
                          const SelectPart& select_window) {
  const Step& step = facts.step;
  const auto* window = step.As<Window>();
  if (window == nullptr || step.reads[0].guards.empty()) {
    return Status(Code::kUnsupportedAttribute, "The step is no window over a padded view.");
  }
  const View& source = step.reads[0];
  program::Shape shape = program::OperandShape(step, 0);
  ONNXIFI_RETURN_IF_ERROR(CheckExtents(shape));
  auto split = std::make_shared<Split>(facts, source.type, std::move(shape));
  const View padded = split->ViewLike(source);
  split->first.domain = split->shape;
  split->first.reads.resize(1);
  split->first.body =
      program::Map{.roots = {program::Load(split->program.exprs, source.type, 0).id()}};
  split->first.writes = {padded};
  split->second.body = *window;
  split->second.reads[0] = padded;
  split->second.writes = step.writes;
  for (size_t read = 0; read < step.reads.size(); ++read) {
    split->is_read_by_first.push_back(read == 0);
    split->is_read_by_second.push_back(read > 0);
  }
  return MakeRecipe(implementation, std::move(split), engine::Select, select_window);
}

}  // namespace onnxifi::cpu
