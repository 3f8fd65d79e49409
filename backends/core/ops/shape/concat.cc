// SPDX-License-Identifier: Apache-2.0
//
// Concat, Split: Concat is one Map per input into its part of the result, Split one view per
// output.

#include "backends/core/ops/shape/concat.h"

#include <algorithm>
#include <utility>

#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"

namespace onnxifi::ops {

Result<Operand> Concatenate(Lowering& lowering, const std::vector<Operand>& parts, int axis) {
  const Operand& first = parts[0];
  Shape shape = first.shape;
  for (size_t k = 1; k < parts.size(); ++k) {
    const Operand& part = parts[k];
    if (part.type() != first.type()) {
      return Status(Code::kMismatchingDatatype, lowering.node().op_type + ": Tensor 0 is " +
                                                    std::string(Name(first.type())) +
                                                    " and tensor " + std::to_string(k) + " is " +
                                                    std::string(Name(part.type())) + ".");
    }
    if (part.rank() != first.rank()) {
      return Status(Code::kMismatchingShape, lowering.node().op_type + ": Tensor 0 has " +
                                                 std::to_string(first.rank()) +
                                                 " axes and tensor " + std::to_string(k) + " has " +
                                                 std::to_string(part.rank()) + ".");
    }
    for (int other = 0; other < part.rank(); ++other) {
      if (other == axis) continue;
      ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(shape[other], part.shape[other],
                                                    "Extents of axis " + std::to_string(other)));
      if (part.shape[other].is_constant()) shape[other] = part.shape[other];
    }
    shape[axis] = shape[axis] + part.shape[axis];
  }
  if (parts.size() == 1) return first;

  const Operand result = lowering.Temporary(first.type(), shape);
  Dim start = 0;
  for (const Operand& part : parts) {
    Shape domain = shape;
    domain[axis] = part.shape[axis];
    StepBuilder map(lowering, domain);
    map.WriteMapTo({program::Slice(result, axis, start, 1, domain[axis])},
                   {map.ReadView(part.view)});
    start = start + part.shape[axis];
  }
  return result;
}

Result<Dims> AsPartLengths(Lowering& lowering, Dims numbers, Dim extent) {
  Dim sum = 0;
  for (Dim& length : numbers) {
    ONNXIFI_ASSIGN_OR_RETURN(length, AsExtent(lowering, length));
    sum = sum + length;
  }
  ONNXIFI_RETURN_IF_ERROR(
      lowering.RequireEqual(sum, extent, "The sum of split and the extent of the axis"));
  return numbers;
}

namespace {

Status LowerConcat(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(std::max(1, lowering.input_count())));
  std::vector<Operand> parts;
  for (int k = 0; k < lowering.input_count(); ++k) parts.push_back(lowering.In(k));
  ONNXIFI_ASSIGN_OR_RETURN(const int axis, lowering.Axis(lowering.Int("axis", 1), parts[0].rank()));
  ONNXIFI_ASSIGN_OR_RETURN(Operand result, Concatenate(lowering, parts, axis));
  lowering.Set(0, std::move(result));
  return base::Ok();
}

// How many elements each output takes: `split` given as attribute or input, or equal parts; since
// opset 18 the last parts may be smaller.
Result<Dims> SplitLengths(Lowering& lowering, Dim extent) {
  const int count = lowering.output_count();
  Dims lengths;
  if (lowering.Has(1)) {
    ONNXIFI_ASSIGN_OR_RETURN(lengths, WholeNumbers(lowering, 1));
  } else if (const std::vector<int64_t>* attribute = lowering.Ints("split")) {
    lengths = ToDims(*attribute);
  } else {
    const int64_t parts = lowering.Int("num_outputs", count);
    if (parts != count) {
      return lowering.InvalidModel("num_outputs is " + std::to_string(parts) +
                                   " and the node has " + std::to_string(count) + " outputs.");
    }
    if (lowering.version() < 18) {
      ONNXIFI_RETURN_IF_ERROR(
          lowering.Require(Equal(Mod(extent, parts), 0), Code::kMismatchingShape,
                           "Extent " + extent.ToString() + " is not a multiple of the " +
                               std::to_string(parts) + " outputs.",
                           {extent}));
    }
    const Dim length = lowering.version() < 18 ? FloorDiv(extent, parts) : CeilDiv(extent, parts);
    for (int64_t k = 0; k + 1 < parts; ++k) {
      lengths.push_back(Max(0, Min(length, extent - length * Dim(k))));
    }
    lengths.push_back(Max(0, extent - length * Dim(parts - 1)));
    return lengths;
  }
  if (static_cast<int>(lengths.size()) != count) {
    return lowering.InvalidModel("split has " + std::to_string(lengths.size()) +
                                 " elements and the node " + std::to_string(count) + " outputs.");
  }
  return AsPartLengths(lowering, std::move(lengths), extent);
}

Status LowerSplit(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& input = lowering.In(0);
  ONNXIFI_ASSIGN_OR_RETURN(const int axis, lowering.Axis(lowering.Int("axis", 0), input.rank()));
  ONNXIFI_ASSIGN_OR_RETURN(Dims lengths, SplitLengths(lowering, input.shape[axis]));

  Dim start = 0;
  for (int k = 0; k < lowering.output_count(); ++k) {
    lowering.Set(k, program::Slice(input, axis, start, 1, lengths[k]));
    start = start + lengths[k];
  }
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Concat", 13, LowerConcat, "", InputKinds::kStrings},
    {"Split", 18, LowerSplit, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> ConcatOperators() { return kOperators; }

}  // namespace onnxifi::ops
