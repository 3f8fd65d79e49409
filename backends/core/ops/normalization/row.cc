// SPDX-License-Identifier: Apache-2.0
//
// RowBuilder: permutes the row's axes to the end, on reading and on writing.

#include "backends/core/ops/normalization/row.h"

#include <algorithm>

namespace onnxifi::ops {
namespace {

bool Contains(const std::vector<int>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

std::vector<int> RowAxesLast(int rank, const std::vector<int>& axes) {
  std::vector<int> order;
  for (int axis = 0; axis < rank; ++axis) {
    if (!Contains(axes, axis)) order.push_back(axis);
  }
  for (int axis = 0; axis < rank; ++axis) {
    if (Contains(axes, axis)) order.push_back(axis);
  }
  return order;
}

Shape Reordered(const Shape& shape, const std::vector<int>& order) {
  Shape result;
  for (int axis : order) result.push_back(shape[axis]);
  return result;
}

}  // namespace

RowBuilder::RowBuilder(Lowering& lowering, const Shape& shape, const std::vector<int>& axes)
    : lowering_(lowering),
      shape_(shape),
      axes_(static_cast<int>(axes.size())),
      order_(RowAxesLast(static_cast<int>(shape.size()), axes)),
      step_(lowering, Reordered(shape, order_)),
      count_(tensor::Product(std::span(step_.domain()).last(axes.size()))) {
  row_.axes = axes_;
}

Expr RowBuilder::Position() {
  const int rank = static_cast<int>(shape_.size());
  Expr position = step_.Coordinate(rank - axes_);
  for (int k = rank - axes_ + 1; k < rank; ++k) {
    position = position * step_.Extent(step_.domain()[k]) + step_.Coordinate(k);
  }
  return position;
}

Expr RowBuilder::Read(const Operand& operand, ElementType type) {
  const Operand whole{program::BroadcastTo(operand, shape_), shape_};
  return Cast(step_.ReadView(program::Permute(whole, order_).view), type);
}

Expr RowBuilder::AddPass(program::Reduction reduction, Expr result) {
  const int pass = static_cast<int>(row_.passes.size());
  row_.passes.push_back({std::move(reduction), {result.id()}});
  return RowResult(step_.exprs(), result.type(), pass, 0);
}

RowBuilder::Moments RowBuilder::AddMoments(Expr element) {
  Expr count = Cast(Count(), element.type());
  program::Reduction sum;
  Expr total = AddSum(sum, element);
  Expr mean = AddPass(std::move(sum), total / count);
  Expr distance = element - mean;
  program::Reduction squares;
  Expr squared = AddSum(squares, distance * distance);
  return {mean, AddPass(std::move(squares), squared / count)};
}

Operand RowBuilder::Write(Expr value, ElementType type) {
  Operand out = lowering_.Temporary(type, shape_);
  row_.roots.push_back(Cast(value, type).id());
  writes_.push_back(program::Permute(out, order_).view);
  return out;
}

Operand RowBuilder::WritePerRow(Expr value, ElementType type, bool keepdims) {
  const int kept = static_cast<int>(shape_.size()) - axes_;
  Shape with_ones = shape_;
  for (int k = kept; k < kept + axes_; ++k) with_ones[order_[k]] = Dim(1);
  Operand out = lowering_.Temporary(
      type, keepdims ? with_ones : Shape(step_.domain().begin(), step_.domain().begin() + kept));
  const Operand spread{program::DenseView(out.view.buffer, type, with_ones), with_ones};
  View view = program::Permute(spread, order_).view;
  std::fill(view.strides.begin() + kept, view.strides.end(), Dim(0));
  row_.roots.push_back(Cast(value, type).id());
  writes_.push_back(std::move(view));
  return out;
}

void RowBuilder::Finish() { step_.Finish(std::move(row_), std::move(writes_)); }

}  // namespace onnxifi::ops
