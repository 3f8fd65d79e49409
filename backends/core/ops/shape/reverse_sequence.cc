// SPDX-License-Identifier: Apache-2.0
//
// ReverseSequence: the first sequence_lens[b] elements of each sequence b read backwards, the rest
// in place.

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

Status LowerReverseSequence(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& input = lowering.In(0);
  const Operand& lengths = lowering.In(1);
  ONNXIFI_ASSIGN_OR_RETURN(const int batch_axis,
                           lowering.Axis(lowering.Int("batch_axis", 1), input.rank()));
  ONNXIFI_ASSIGN_OR_RETURN(const int time_axis,
                           lowering.Axis(lowering.Int("time_axis", 0), input.rank()));
  if (batch_axis == time_axis) {
    return lowering.InvalidModel("batch_axis and time_axis are both " + std::to_string(time_axis) +
                                 ".");
  }
  if (!tensor::IsInteger(lengths.type())) return lowering.UnsupportedType(1);
  if (lengths.rank() != 1) {
    return lowering.InvalidModel("sequence_lens has " + std::to_string(lengths.rank()) +
                                 " axes instead of one.");
  }
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(lengths.shape[0], input.shape[batch_axis],
                                                "The length of sequence_lens and the batch size"));

  StepBuilder map(lowering, input.shape);
  Operand aligned = lengths;
  for (int axis = batch_axis + 1; axis < input.rank(); ++axis) {
    aligned = program::InsertAxis(aligned, aligned.rank());
  }
  Expr length = Cast(map.Read(aligned), ElementType::kInt64);
  Expr time = map.Coordinate(time_axis);
  std::vector<Expr> at;
  for (int axis = 0; axis < input.rank(); ++axis) at.push_back(map.Coordinate(axis));
  at[time_axis] = Select(time < length, length - map.Extent(1) - time, time);
  lowering.Set(0, map.WriteMap(map.ReadAt(input, at), input.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"ReverseSequence", 28, LowerReverseSequence, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> ReverseSequenceOperators() { return kOperators; }

}  // namespace onnxifi::ops
