// SPDX-License-Identifier: Apache-2.0
//
// Operand: plain or not, and its elements block by block.

#include "backends/cpu/onednn/operand.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "backends/core/program/operand_extents.h"
#include "backends/core/reference/scratch.h"

namespace onnxifi::onednn {
namespace {

using base::Code;
using base::Status;
using program::Contract;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;

ExprId PrologueOf(const Contract& contract, int operand) {
  return operand == 0 ? contract.a_prologue : contract.b_prologue;
}

bool IsConstant(const program::Program& program, const program::View& view) {
  return program.buffers[static_cast<size_t>(view.buffer)].kind == program::Buffer::Kind::kConstant;
}

}  // namespace

bool HasDescriptor(const device::BoundStep& step, int operand) {
  const Extents& strides = step.reads[static_cast<size_t>(operand)].strides;
  Extents extents = program::OperandExtents(*step.step, operand, step.dims);
  const Contract* contract = step.step->As<Contract>();
  if (contract != nullptr && contract->form == Contract::Form::kMatMul) {
    for (size_t axis = 0; axis < static_cast<size_t>(contract->batch_axes); ++axis) {
      if (strides[axis] == 0) extents[axis] = 1;
    }
  }
  return Strided(extents, strides).has_value();
}

base::Result<Prologue> Prologue::Compile(const program::Program& program, const program::Step& step,
                                         int operand) {
  Prologue prologue;
  // A Window has no prologue of its own; its input is cast.
  program::ExprPool cast_pool;
  const Contract* contract = step.As<Contract>();
  const program::ExprPool& pool = contract != nullptr ? program.exprs : cast_pool;
  const ExprId root =
      contract != nullptr
          ? PrologueOf(*contract, operand)
          : program::Cast(program::Load(cast_pool, step.reads[0].type, 0), ElementType::kFloat32)
                .id();
  prologue.is_constant_ = true;
  const ExprId roots[] = {root};
  for (const ExprId id : Reachable(pool, roots)) {
    const ExprNode& node = pool[id];
    prologue.is_constant_ &= node.op != ExprOp::kDim && node.op != ExprOp::kRandom;
    if (node.op != ExprOp::kLoad) continue;
    prologue.is_constant_ &= IsConstant(program, step.reads[static_cast<size_t>(node.payload)]);
  }
  ONNXIFI_ASSIGN_OR_RETURN(reference::Expression expression,
                           reference::Expression::Compile(pool, {root}));
  prologue.expression_ = std::make_shared<const reference::Expression>(std::move(expression));
  return prologue;
}

BoundPrologue::BoundPrologue(const Prologue& prologue, const device::BoundStep& step, int operand)
    : expression_(prologue.expression()),
      dims_(expression_->BindDims(step.dims)),
      reads_(step.reads),
      extents_(program::OperandExtents(*step.step, operand, step.dims)) {}

Status BoundPrologue::Run(device::Addresses addresses, std::byte* target,
                          device::Parallel& parallel) const {
  constexpr int64_t kElementsPerRange = 8192;
  constexpr auto kElementBytes = static_cast<int64_t>(sizeof(float));
  return reference::ForRange(
      parallel, tensor::ElementCount(extents_), kElementsPerRange, [&](int64_t begin, int64_t end) {
        reference::Frame frame(*expression_, dims_, reads_, addresses);
        reference::Sweep sweep(extents_);
        for (int64_t position = begin; position < end; position += reference::kBlock) {
          sweep.Move(position, std::min(reference::kBlock, end - position));
          frame.Run(sweep);
          std::memcpy(target + position * kElementBytes, frame.root(0),
                      static_cast<size_t>(sweep.lanes() * kElementBytes));
        }
      });
}

}  // namespace onnxifi::onednn
