// SPDX-License-Identifier: Apache-2.0
//
// Sequences. One whose length is known while lowering is a list of operands: putting tensors in and
// taking them out moves nothing. Where data tell a position or the length, or the sequence is one
// of a run, host functions work on it.

#include <algorithm>
#include <utility>

#include "backends/core/ops/host_step.h"
#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"
#include "backends/core/ops/shape/concat.h"

namespace onnxifi::ops {
namespace {

using program::ValueType;

// Of a longer sequence a program would have too many views for one node.
constexpr int64_t kMaxTensors = 4096;

Status CheckIsSequence(Lowering& lowering) {
  if (!lowering.HasAny(0)) return lowering.InvalidModel("Input 0 is missing.");
  const ValueType type = lowering.InType(0);
  if (type.is_sequence()) return base::Ok();
  return Status(Code::kMismatchingDatatype,
                lowering.node().op_type + ": Input 0 is a " + ToString(type) + ", not a sequence.");
}

// Input `input` as a number, where it is known.
Result<std::optional<int64_t>> KnownNumber(Lowering& lowering, int input) {
  if (!lowering.Has(input) || !tensor::IsInteger(lowering.In(input).type())) {
    return Status(Code::kMismatchingDatatype, lowering.node().op_type + ": Input " +
                                                  std::to_string(input) +
                                                  " is no integer; a position is one.");
  }
  const std::optional<Dims> numbers = lowering.Integers(input);
  if (!numbers || numbers->size() != 1 || !numbers->front().is_constant()) {
    return std::optional<int64_t>();
  }
  return std::optional<int64_t>(numbers->front().constant());
}

// A position in [-count, end), made non-negative; negative ones count back from `count`.
Result<int64_t> Position(Lowering& lowering, int64_t position, int64_t count, int64_t end) {
  if (position < -count || position >= end) {
    return lowering.InvalidModel("Position " + std::to_string(position) + " is outside [" +
                                 std::to_string(-count) + ", " + std::to_string(end - 1) + "].");
  }
  return position < 0 ? position + count : position;
}

Status CheckSameType(Lowering& lowering, ElementType a, ElementType b) {
  if (a == b || a == ElementType::kUndefined) return base::Ok();
  return Status(Code::kMismatchingDatatype, lowering.node().op_type + ": A sequence of " +
                                                std::string(Name(a)) + " cannot hold a tensor of " +
                                                std::string(Name(b)) + ".");
}

// The node as a function of all its inputs, whose one output has this type.
Status LowerToHost(Lowering& lowering, program::HostFunction function, const ValueType& type) {
  HostStep step(lowering, std::move(function));
  for (int k = 0; k < lowering.input_count(); ++k) ONNXIFI_RETURN_IF_ERROR(step.ReadInput(k));
  ONNXIFI_RETURN_IF_ERROR(step.WriteOutput(0, type));
  step.Emit();
  return base::Ok();
}

Status LowerSequenceEmpty(Lowering& lowering) {
  // 0, which no model has, stands for a type that the first element decides.
  const int64_t type = lowering.Int("dtype", static_cast<int64_t>(ElementType::kFloat32));
  const auto element = tensor::ElementTypeFromOnnx(type);
  if (!element && type != 0) {
    return lowering.InvalidModel("Attribute dtype is " + std::to_string(type) +
                                 ", which is no element type.");
  }
  lowering.SetSequence(0, {{}, element.value_or(ElementType::kUndefined)});
  return base::Ok();
}

Status LowerSequenceConstruct(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(std::max(1, lowering.input_count())));
  Sequence sequence{{}, lowering.In(0).type()};
  for (int k = 0; k < lowering.input_count(); ++k) {
    ONNXIFI_RETURN_IF_ERROR(CheckSameType(lowering, sequence.element, lowering.In(k).type()));
    sequence.tensors.push_back(lowering.In(k));
  }
  lowering.SetSequence(0, std::move(sequence));
  return base::Ok();
}

Status LowerSequenceInsert(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckIsSequence(lowering));
  if (!lowering.HasAny(1))
    return lowering.InvalidModel("Input 1 is missing; a tensor is required.");
  std::optional<int64_t> known;
  if (lowering.HasAny(2)) {
    ONNXIFI_ASSIGN_OR_RETURN(known, KnownNumber(lowering, 2));
  }
  const Sequence* given = lowering.InSequence(0);
  if (given != nullptr && lowering.Has(1)) {
    ONNXIFI_RETURN_IF_ERROR(CheckSameType(lowering, given->element, lowering.In(1).type()));
  }
  if (given == nullptr || !lowering.Has(1) || (lowering.HasAny(2) && !known)) {
    ONNXIFI_ASSIGN_OR_RETURN(
        const ValueType type,
        program::Join(lowering.InType(0).Present(), ValueType::Sequence(lowering.InType(1)),
                      "SequenceInsert: An element of the sequence"));
    return LowerToHost(lowering, program::InsertElement{type}, type);
  }
  Sequence sequence = *given;
  sequence.element = lowering.In(1).type();
  const auto count = static_cast<int64_t>(sequence.tensors.size());
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t position,
                           Position(lowering, known.value_or(count), count, count + 1));
  sequence.tensors.insert(sequence.tensors.begin() + position, lowering.In(1));
  lowering.SetSequence(0, std::move(sequence));
  return base::Ok();
}

Status LowerSequenceErase(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckIsSequence(lowering));
  std::optional<int64_t> known = -1;
  if (lowering.HasAny(1)) {
    ONNXIFI_ASSIGN_OR_RETURN(known, KnownNumber(lowering, 1));
  }
  const Sequence* given = lowering.InSequence(0);
  if (given == nullptr || !known) {
    return LowerToHost(lowering, program::EraseElement(), lowering.InType(0).Present());
  }
  Sequence sequence = *given;
  const auto count = static_cast<int64_t>(sequence.tensors.size());
  if (count == 0) return lowering.InvalidModel("The sequence is empty.");
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t position, Position(lowering, *known, count, count));
  sequence.tensors.erase(sequence.tensors.begin() + position);
  lowering.SetSequence(0, std::move(sequence));
  return base::Ok();
}

Status LowerSequenceAt(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckIsSequence(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const std::optional<int64_t> known, KnownNumber(lowering, 1));
  const Sequence* given = lowering.InSequence(0);
  if (given == nullptr || !known) {
    return LowerToHost(lowering, program::TakeElement(), lowering.InType(0).inner[0]);
  }
  const auto count = static_cast<int64_t>(given->tensors.size());
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t position, Position(lowering, *known, count, count));
  lowering.Set(0, given->tensors[static_cast<size_t>(position)]);
  return base::Ok();
}

Status LowerSequenceLength(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckIsSequence(lowering));
  const Sequence* given = lowering.InSequence(0);
  if (given == nullptr) {
    return LowerToHost(lowering, program::CountElements(),
                       ValueType::Tensor(ElementType::kInt64, /*rank=*/0));
  }
  const auto count = static_cast<int64_t>(given->tensors.size());
  lowering.Set(0, lowering.ConstantTensor(tensor::Tensor::FromValues<int64_t>(
                      ElementType::kInt64, {}, std::span(&count, 1))));
  return base::Ok();
}

Status LowerConcatFromSequence(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckIsSequence(lowering));
  if (!lowering.HasAttribute("axis")) return lowering.InvalidModel("Attribute axis is missing.");
  const bool is_new_axis = lowering.Int("new_axis", 0) != 0;
  const Sequence* given = lowering.InSequence(0);
  if (given == nullptr) {
    ValueType type = lowering.InType(0).inner[0];
    if (!type.is_tensor()) {
      return Status(Code::kMismatchingDatatype,
                    "ConcatFromSequence: An element is a " + ToString(type) + ", not a tensor.");
    }
    const int64_t axis = lowering.Int("axis", 0);
    if (type.rank >= 0) {
      if (is_new_axis) ++type.rank;
      ONNXIFI_ASSIGN_OR_RETURN(const int joined, lowering.Axis(axis, type.rank));
      if (!type.extents.empty()) {
        if (is_new_axis) type.extents.insert(type.extents.begin() + joined, 0);
        type.extents[joined] = ValueType::kAnyExtent;
      }
    }
    return LowerToHost(lowering, program::JoinElements{axis, is_new_axis}, type);
  }
  std::vector<Operand> tensors = given->tensors;
  if (tensors.empty()) return lowering.InvalidModel("The sequence is empty.");
  ONNXIFI_ASSIGN_OR_RETURN(
      const int axis,
      lowering.Axis(lowering.Int("axis", 0), tensors[0].rank() + (is_new_axis ? 1 : 0)));
  if (is_new_axis) {
    for (Operand& tensor : tensors) {
      if (axis > tensor.rank()) {
        return Status(Code::kMismatchingShape,
                      "ConcatFromSequence: The tensors have different numbers of axes.");
      }
      tensor = program::InsertAxis(tensor, axis);
    }
  }
  ONNXIFI_ASSIGN_OR_RETURN(Operand result, Concatenate(lowering, tensors, axis));
  lowering.Set(0, std::move(result));
  return base::Ok();
}

// How many elements each part takes: `split` as their lengths or as the largest of them; one each
// where it is left out. Nothing where only a run can tell how many parts there are.
Result<std::optional<Dims>> PartLengths(Lowering& lowering, Dim extent) {
  using Lengths = std::optional<Dims>;
  Dims lengths;
  if (lowering.Has(1) && lowering.In(1).rank() > 0) {
    if (lowering.In(1).rank() > 1 || !lowering.In(1).shape[0].is_constant()) return Lengths();
    ONNXIFI_ASSIGN_OR_RETURN(lengths, WholeNumbers(lowering, 1));
    ONNXIFI_ASSIGN_OR_RETURN(lengths, AsPartLengths(lowering, std::move(lengths), extent));
    return Lengths(std::move(lengths));
  }
  int64_t length = 1;
  if (lowering.Has(1)) {
    ONNXIFI_ASSIGN_OR_RETURN(const std::optional<int64_t> known, KnownNumber(lowering, 1));
    if (!known) return Lengths();
    length = *known;
    if (length < 1) {
      return lowering.InvalidModel("Split (" + std::to_string(length) + ") is less than 1.");
    }
  }
  if (!extent.is_constant()) return Lengths();
  const int64_t count = extent.constant() / length + (extent.constant() % length == 0 ? 0 : 1);
  if (count > kMaxTensors) return Lengths();
  for (int64_t k = 0; k < count; ++k) {
    lengths.push_back(std::min(length, extent.constant() - k * length));
  }
  return Lengths(std::move(lengths));
}

// The integer that all elements of `operand` are, whatever its extents: one constant, broadcast.
std::optional<int64_t> UniformNumber(const program::Program& program, const Operand& operand) {
  const program::Buffer& buffer = program.buffers[operand.view.buffer];
  if (buffer.kind != program::Buffer::Kind::kConstant || !operand.view.guards.empty() ||
      !tensor::IsInteger(operand.type())) {
    return std::nullopt;
  }
  const tensor::Tensor& constant = program.constants[buffer.index];
  if (constant.element_count() != 1 || constant.data() == nullptr) return std::nullopt;
  return constant.AsInt(0);
}

// What is known of each part where only a run tells how many there are.
ValueType PartOfARun(Lowering& lowering, int axis, bool removes_axis) {
  const Operand& input = lowering.In(0);
  auto part = ValueType::Tensor(input.type(), input.rank());
  for (const Dim& extent : input.shape) {
    part.extents.push_back(extent.is_constant() ? extent.constant() : ValueType::kAnyExtent);
  }
  std::optional<int64_t> length = 1;
  if (lowering.Has(1)) length = UniformNumber(lowering.program(), lowering.In(1));
  // A scalar is the largest length: the last part may be shorter.
  const bool is_exact = length && (*length == 1 || (*length > 1 && lowering.In(1).rank() == 1));
  part.extents[axis] = is_exact ? *length : ValueType::kAnyExtent;
  if (removes_axis) {
    --part.rank;
    part.extents.erase(part.extents.begin() + axis);
  }
  return part;
}

Status LowerSplitToSequence(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& input = lowering.In(0);
  ONNXIFI_ASSIGN_OR_RETURN(const int axis, lowering.Axis(lowering.Int("axis", 0), input.rank()));
  // keepdims counts only where split is left out.
  const bool removes_axis = !lowering.Has(1) && lowering.Int("keepdims", 1) == 0;
  ONNXIFI_ASSIGN_OR_RETURN(const std::optional<Dims> lengths,
                           PartLengths(lowering, input.shape[axis]));
  if (!lengths) {
    return LowerToHost(lowering, program::SplitTensor{axis, removes_axis},
                       ValueType::Sequence(PartOfARun(lowering, axis, removes_axis)));
  }
  Sequence sequence{{}, input.type()};
  Dim start = 0;
  for (const Dim& length : *lengths) {
    Operand part = program::Slice(input, axis, start, 1, length);
    sequence.tensors.push_back(removes_axis ? program::RemoveAxis(part, axis) : std::move(part));
    start = start + length;
  }
  lowering.SetSequence(0, std::move(sequence));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"ConcatFromSequence", 11, LowerConcatFromSequence, "", InputKinds::kValues},
    {"SequenceAt", 11, LowerSequenceAt, "", InputKinds::kValues},
    {"SequenceConstruct", 11, LowerSequenceConstruct, "", InputKinds::kStrings},
    {"SequenceEmpty", 11, LowerSequenceEmpty},
    {"SequenceErase", 11, LowerSequenceErase, "", InputKinds::kValues},
    {"SequenceInsert", 11, LowerSequenceInsert, "", InputKinds::kValues},
    {"SequenceLength", 11, LowerSequenceLength, "", InputKinds::kValues},
    {"SplitToSequence", 24, LowerSplitToSequence, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> SequenceOperators() { return kOperators; }

}  // namespace onnxifi::ops
