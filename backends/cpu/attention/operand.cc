// SPDX-License-Identifier: Apache-2.0
//
// Operands of attention: what is computed has the order of what it is computed of.

#include "backends/cpu/attention/operand.h"

#include <algorithm>
#include <cstring>

namespace onnxifi::attention {
namespace {

using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;

constexpr int64_t kLine = 64;

int64_t BlockBytes(int64_t floats) {
  const int64_t bytes = floats * static_cast<int64_t>(sizeof(float));
  return (bytes + kLine - 1) / kLine * kLine;
}

// What widens a row of an operand of 16-bit floats that is nothing but widened.
engine::Loop FindWidening(const program::ExprPool& pool, const ExprNode& root, int read,
                          const program::View& view) {
  if (root.op != ExprOp::kCast || root.type != ElementType::kFloat32 || !view.guards.empty()) {
    return nullptr;
  }
  const ExprNode& load = pool[root.operands[0]];
  const bool is_load = load.op == ExprOp::kLoad && load.operands.empty() &&
                       load.payload == static_cast<uint64_t>(read) && load.type == view.type;
  const bool is_half = view.type == ElementType::kBfloat16 || view.type == ElementType::kFloat16;
  return is_load && is_half ? engine::FindCastLoop(view.type, ElementType::kFloat32) : nullptr;
}

}  // namespace

OperandCode OperandCode::Compile(const device::Facts& facts, int read, program::ExprId prologue,
                                 engine::LoopSet loops) {
  const program::ExprPool& pool = facts.program.exprs;
  const ExprNode& root = pool[prologue];
  const program::View& view = facts.step.reads[static_cast<size_t>(read)];
  OperandCode operand;
  operand.read = read;
  operand.is_plain = root.op == ExprOp::kLoad && root.operands.empty() &&
                     root.payload == static_cast<uint64_t>(read) &&
                     view.type == ElementType::kFloat32 && view.guards.empty();
  for (const program::ExprId id : program::Reachable(pool, {&prologue, 1})) {
    const ExprNode& node = pool[id];
    if (node.op == ExprOp::kLoad) operand.reads.push_back(static_cast<int>(node.payload));
    operand.has_coordinates = operand.has_coordinates || node.op == ExprOp::kIndex ||
                              (node.op == ExprOp::kLoad && !node.operands.empty());
  }
  operand.widen = FindWidening(pool, root, read, view);
  operand.is_bfloat16 = operand.widen != nullptr && view.type == ElementType::kBfloat16;
  if (!operand.is_plain) operand.code = engine::Code::Compile(pool, {&prologue, 1}, loops);
  return operand;
}

bool OperandCode::IsRepeatedAlong(const device::BoundStep& step, size_t axis) const {
  if (has_coordinates) return false;
  return std::all_of(reads.begin(), reads.end(), [&](int number) {
    const device::BoundView& view = step.reads[static_cast<size_t>(number)];
    return view.strides[axis] == 0 &&
           std::all_of(view.guards.begin(), view.guards.end(),
                       [&](const auto& guard) { return guard.coefficients[axis] == 0; });
  });
}

BoundOperand::BoundOperand(const OperandCode& code, const device::BoundStep& step,
                           std::span<const int64_t> extents, int64_t rows, int64_t columns)
    : view_(step.reads[static_cast<size_t>(code.read)]) {
  if (code.is_plain || tensor::ElementCount(extents) == 0) return;
  const size_t row_axis = view_.strides.size() - 2;
  if (code.widen != nullptr && (view_.strides[row_axis] == 1 || view_.strides[row_axis + 1] == 1)) {
    widen_ = code.widen;
    block_bytes_ = BlockBytes(rows * columns);
    return;
  }
  expression_.emplace(code.code, step, extents, rows, columns,
                      BoxExpression::LiesInColumns(code.code, step));
}

int64_t BoundOperand::scratch_bytes() const {
  return expression_ ? expression_->scratch_bytes() + BlockBytes(expression_->lanes())
                     : block_bytes_;
}

OperandReader::OperandReader(const BoundOperand& operand, device::Addresses addresses,
                             std::byte* scratch)
    : operand_(operand) {
  if (const BoxExpression* expression = operand.expression()) {
    block_ = reinterpret_cast<float*>(scratch);
    frame_.emplace(expression->MakeFrame(addresses, scratch + BlockBytes(expression->lanes())));
  } else {
    data_ = addresses[operand.view().buffer];
    block_ = reinterpret_cast<float*>(scratch);
  }
}

FloatBlock OperandReader::Read(const BoxPlace& place, int64_t rows, int64_t columns) {
  if (!frame_) {
    const device::BoundView& view = operand_.view();
    const size_t row_axis = view.strides.size() - 2;
    int64_t offset = view.offset + place.row * view.strides[row_axis] +
                     place.column * view.strides[row_axis + 1];
    for (size_t axis = 0; axis < row_axis; ++axis) offset += place.batch[axis] * view.strides[axis];
    if (operand_.widen() != nullptr) {
      return Widened(data_ + tensor::SizeBytes(view.type, 1) * offset, rows, columns);
    }
    return {reinterpret_cast<const float*>(data_) + offset, view.strides[row_axis],
            view.strides[row_axis + 1]};
  }
  const BoxExpression& expression = *operand_.expression();
  auto* const target = reinterpret_cast<std::byte*>(block_);
  frame_->Run(expression.BoxAt(place, rows, columns), &target);
  const auto* const found = reinterpret_cast<const float*>(frame_->root(0));
  return expression.swaps() ? FloatBlock{found, 1, rows} : FloatBlock{found, columns, 1};
}

// Line by line, as neighbours lie.
FloatBlock OperandReader::Widened(const std::byte* from, int64_t rows, int64_t columns) const {
  const device::BoundView& view = operand_.view();
  const size_t row_axis = view.strides.size() - 2;
  const bool is_in_rows = view.strides[row_axis + 1] == 1;
  const int64_t lines = is_in_rows ? rows : columns;
  const int64_t count = is_in_rows ? columns : rows;
  const int64_t step = tensor::SizeBytes(view.type, 1) *
                       (is_in_rows ? view.strides[row_axis] : view.strides[row_axis + 1]);
  float* to = block_;
  for (int64_t line = 0; line < lines; ++line, from += step, to += count) {
    operand_.widen()({.result = reinterpret_cast<std::byte*>(to),
                      .inputs = {from},
                      .lanes = count,
                      .payload = 0,
                      .type = ElementType::kFloat32,
                      .from_type = view.type});
  }
  return is_in_rows ? FloatBlock{block_, count, 1} : FloatBlock{block_, 1, count};
}

}  // namespace onnxifi::attention
