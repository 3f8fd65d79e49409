// SPDX-License-Identifier: Apache-2.0
//
// AxisList: selects by comparison, so that axes known now leave plain numbers and others leave
// Select expressions.

#include "backends/core/ops/shape/axis_list.h"

#include <algorithm>
#include <numeric>

namespace onnxifi::ops {

Result<AxisList> AxisList::Make(Lowering& lowering, Dims axes, int rank) {
  AxisList list;
  for (const Dim& axis : axes) {
    ONNXIFI_RETURN_IF_ERROR(
        lowering.Require(Less(Dim(-rank - 1), axis) * Less(axis, rank), Code::kInvalidModel,
                         "Axis " + axis.ToString() + " is outside [" + std::to_string(-rank) +
                             ", " + std::to_string(rank - 1) + "].",
                         {axis}));
    Dim position = axis + Select(Less(axis, 0), Dim(rank), Dim(0));
    for (const Dim& earlier : list.axes_) {
      ONNXIFI_RETURN_IF_ERROR(lowering.Require(1 - Equal(position, earlier), Code::kInvalidModel,
                                               "Axis " + axis.ToString() + " is given twice.",
                                               {axis}));
    }
    list.axes_.push_back(position);
  }
  return list;
}

Result<AxisList> AxisList::FromInput(Lowering& lowering, int input, int rank, int default_count,
                                     std::optional<int64_t> count) {
  Dims axes(default_count);
  for (int axis = 0; axis < default_count; ++axis) axes[axis] = axis;
  if (lowering.Has(input)) {
    ONNXIFI_ASSIGN_OR_RETURN(axes, lowering.IntegersOrRuntime(input, count));
  }
  return Make(lowering, std::move(axes), rank);
}

Result<AxisList> AxisList::FromAttribute(Lowering& lowering, std::string_view name, int rank,
                                         int default_count) {
  std::vector<int64_t> axes(default_count);
  std::iota(axes.begin(), axes.end(), 0);
  if (const std::vector<int64_t>* given = lowering.Ints(name)) axes = *given;
  return Make(lowering, ToDims(axes), rank);
}

bool AxisList::is_known() const {
  return std::all_of(axes_.begin(), axes_.end(),
                     [](const Dim& axis) { return axis.is_constant(); });
}

std::vector<int> AxisList::Known() const {
  std::vector<int> known;
  for (const Dim& axis : axes_) known.push_back(static_cast<int>(axis.constant()));
  return known;
}

Dim AxisList::Contains(int axis) const { return ValueAt(axis, Dims(axes_.size(), Dim(1)), 0); }

Dim AxisList::ValueAt(int axis, const Dims& values, Dim otherwise) const {
  Dim value = otherwise;
  for (size_t k = 0; k < axes_.size(); ++k) {
    value = Select(Equal(axes_[k], axis), values[k], value);
  }
  return value;
}

Result<Dims> WholeNumbers(Lowering& lowering, int input) {
  const Operand& operand = lowering.In(input);
  if (!tensor::IsFloat(operand.type())) {
    const program::Buffer& buffer = lowering.program().buffers[operand.view.buffer];
    if (buffer.kind != program::Buffer::Kind::kConstant || operand.rank() != 1 ||
        !operand.shape[0].is_constant() ||
        operand.shape[0].constant() <= program::SymbolicValues::kMaxElements) {
      return lowering.IntegersOrRuntime(input);
    }
    const tensor::Tensor* constant = lowering.Constant(input);
    // Support checks have no numbers of it. One symbol for all keeps their sums short.
    if (constant == nullptr && program::IsDense(operand)) {
      const Operand first = program::Slice(operand, 0, 0, 1, 1);
      return Dims(static_cast<size_t>(operand.shape[0].constant()),
                  lowering.ReadAtRunTime(first, 1).front());
    }
    if (constant == nullptr) return lowering.IntegersOrRuntime(input);
    Dims numbers;
    for (int64_t k = 0; k < constant->element_count(); ++k)
      numbers.emplace_back(constant->AsInt(k));
    return numbers;
  }
  if (const tensor::Tensor* constant = lowering.SmallConstant(input)) {
    Dims numbers;
    for (int64_t k = 0; k < constant->element_count(); ++k) {
      const tensor::Scalar value = LoadScalar(operand.type(), constant->data(), k);
      numbers.emplace_back(CastScalar(operand.type(), ElementType::kInt64, value).i);
    }
    return numbers;
  }
  const Dim count = Product(operand.shape);
  if (!count.is_constant() || count.constant() > program::SymbolicValues::kMaxElements) {
    return lowering.UnsupportedShape("Input " + std::to_string(input) + " of shape " +
                                     tensor::ToString(operand.shape) +
                                     " gives numbers and must have at most " +
                                     std::to_string(program::SymbolicValues::kMaxElements) + ".");
  }
  const Operand whole = lowering.CastTo(operand, ElementType::kInt64);
  return lowering.ReadAtRunTime(lowering.Reshaped(whole, {count}),
                                static_cast<int>(count.constant()));
}

Result<Dim> AsExtent(Lowering& lowering, Dim number) {
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(Less(-1, number), Code::kInvalidModel,
                                           "Extent " + number.ToString() + " is negative.",
                                           {number}));
  return Max(number, 0);
}

Dims ToDims(const std::vector<int64_t>& numbers) { return Dims(numbers.begin(), numbers.end()); }

}  // namespace onnxifi::ops
