// SPDX-License-Identifier: Apache-2.0
//
// Sequences whose length is known while lowering: lists of operands. Putting tensors in and taking
// them out moves nothing; only ConcatFromSequence emits steps. A position or length that data tell
// is refused.

#include <algorithm>
#include <utility>

#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/concat.h"

namespace onnxifi::ops {
namespace {

// A program with more views than this for one node would say that something is wrong.
constexpr int64_t kMostTensors = 4096;

Result<const Sequence*> InputSequence(Lowering& lowering) {
  const Sequence* tensors = lowering.InSequence(0);
  if (tensors != nullptr) return tensors;
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  return Status(Code::kMismatchingDatatype,
                lowering.node().op_type + ": Input 0 is a tensor, not a sequence.");
}

// Input `input` as a position in [-count, end), made non-negative; negative ones count back from
// `count`.
Result<int64_t> Position(Lowering& lowering, int input, int64_t count, int64_t end) {
  const std::optional<std::vector<Dim>> numbers = lowering.Integers(input);
  if (!numbers || numbers->size() != 1 || !numbers->front().is_constant()) {
    return lowering.UnsupportedShape("Input " + std::to_string(input) +
                                     " is a position that is not known before the graph runs.");
  }
  const int64_t position = numbers->front().constant();
  if (position < -count || position >= end) {
    return lowering.InvalidModel("Position " + std::to_string(position) + " is outside [" +
                                 std::to_string(-count) + ", " + std::to_string(end - 1) + "].");
  }
  return position < 0 ? position + count : position;
}

Status CheckSameType(Lowering& lowering, const Operand& a, const Operand& b) {
  if (a.type() == b.type()) return base::Ok();
  return Status(Code::kMismatchingDatatype,
                lowering.node().op_type + ": A sequence of " + std::string(Name(a.type())) +
                    " cannot hold a tensor of " + std::string(Name(b.type())) + ".");
}

Status LowerSequenceEmpty(Lowering& lowering) {
  lowering.SetSequence(0, {});
  return base::Ok();
}

Status LowerSequenceConstruct(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(std::max(1, lowering.input_count())));
  Sequence tensors;
  for (int k = 0; k < lowering.input_count(); ++k) {
    ONNXIFI_RETURN_IF_ERROR(CheckSameType(lowering, lowering.In(0), lowering.In(k)));
    tensors.push_back(lowering.In(k));
  }
  lowering.SetSequence(0, std::move(tensors));
  return base::Ok();
}

Status LowerSequenceInsert(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Sequence* given, InputSequence(lowering));
  if (!lowering.Has(1)) return lowering.InvalidModel("Input 1 is missing; a tensor is required.");
  Sequence tensors = *given;
  const auto count = static_cast<int64_t>(tensors.size());
  if (count > 0) ONNXIFI_RETURN_IF_ERROR(CheckSameType(lowering, tensors[0], lowering.In(1)));
  int64_t position = count;
  if (lowering.Has(2)) {
    ONNXIFI_ASSIGN_OR_RETURN(position, Position(lowering, 2, count, count + 1));
  }
  tensors.insert(tensors.begin() + position, lowering.In(1));
  lowering.SetSequence(0, std::move(tensors));
  return base::Ok();
}

Status LowerSequenceErase(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Sequence* given, InputSequence(lowering));
  Sequence tensors = *given;
  const auto count = static_cast<int64_t>(tensors.size());
  if (count == 0) return lowering.InvalidModel("The sequence is empty.");
  int64_t position = count - 1;
  if (lowering.Has(1)) {
    ONNXIFI_ASSIGN_OR_RETURN(position, Position(lowering, 1, count, count));
  }
  tensors.erase(tensors.begin() + position);
  lowering.SetSequence(0, std::move(tensors));
  return base::Ok();
}

Status LowerSequenceAt(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Sequence* tensors, InputSequence(lowering));
  const auto count = static_cast<int64_t>(tensors->size());
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t position, Position(lowering, 1, count, count));
  lowering.Set(0, (*tensors)[static_cast<size_t>(position)]);
  return base::Ok();
}

Status LowerSequenceLength(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Sequence* tensors, InputSequence(lowering));
  const auto count = static_cast<int64_t>(tensors->size());
  lowering.Set(0, lowering.ConstantTensor(tensor::Tensor::FromValues<int64_t>(
                      ElementType::kInt64, {}, std::span(&count, 1))));
  return base::Ok();
}

Status LowerConcatFromSequence(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Sequence* given, InputSequence(lowering));
  Sequence tensors = *given;
  if (tensors.empty()) return lowering.InvalidModel("The sequence is empty.");
  if (!lowering.HasAttribute("axis")) return lowering.InvalidModel("Attribute axis is missing.");
  const bool is_new_axis = lowering.Int("new_axis", 0) != 0;
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
// where it is left out.
Result<std::vector<Dim>> PartLengths(Lowering& lowering, Dim extent) {
  std::vector<Dim> lengths;
  if (lowering.Has(1) && lowering.In(1).rank() > 0) {
    ONNXIFI_ASSIGN_OR_RETURN(lengths, lowering.IntegersOrRuntime(1));
    return AsPartLengths(lowering, std::move(lengths), extent);
  }
  Dim length = 1;
  if (lowering.Has(1)) {
    const std::optional<std::vector<Dim>> numbers = lowering.Integers(1);
    if (numbers && numbers->size() == 1) length = numbers->front();
    if (!numbers || numbers->size() != 1 || !length.is_constant()) {
      return lowering.UnsupportedShape("Split is not known before the graph runs.");
    }
    if (length.constant() < 1) {
      return lowering.InvalidModel("Split (" + length.ToString() + ") is less than 1.");
    }
  }
  if (!extent.is_constant()) {
    return lowering.UnsupportedShape("How many parts an axis of " + extent.ToString() +
                                     " elements has is not known before the graph runs.");
  }
  const int64_t count =
      extent.constant() / length.constant() + (extent.constant() % length.constant() == 0 ? 0 : 1);
  if (count > kMostTensors) {
    return lowering.UnsupportedShape("A sequence of " + std::to_string(count) +
                                     " tensors exceeds the largest supported (" +
                                     std::to_string(kMostTensors) + ").");
  }
  for (int64_t k = 0; k < count; ++k) {
    lengths.push_back(std::min(length.constant(), extent.constant() - k * length.constant()));
  }
  return lengths;
}

Status LowerSplitToSequence(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& input = lowering.In(0);
  ONNXIFI_ASSIGN_OR_RETURN(const int axis, lowering.Axis(lowering.Int("axis", 0), input.rank()));
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<Dim> lengths,
                           PartLengths(lowering, input.shape[axis]));

  // keepdims counts only where split is left out.
  const bool removes_axis = !lowering.Has(1) && lowering.Int("keepdims", 1) == 0;
  Sequence tensors;
  Dim start = 0;
  for (const Dim& length : lengths) {
    Operand part = program::Slice(input, axis, start, 1, length);
    tensors.push_back(removes_axis ? program::RemoveAxis(part, axis) : std::move(part));
    start = start + length;
  }
  lowering.SetSequence(0, std::move(tensors));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"ConcatFromSequence", 11, LowerConcatFromSequence, "", /*takes_sequences=*/true},
    {"SequenceAt", 11, LowerSequenceAt, "", /*takes_sequences=*/true},
    {"SequenceConstruct", 11, LowerSequenceConstruct},
    {"SequenceEmpty", 11, LowerSequenceEmpty},
    {"SequenceErase", 11, LowerSequenceErase, "", /*takes_sequences=*/true},
    {"SequenceInsert", 11, LowerSequenceInsert, "", /*takes_sequences=*/true},
    {"SequenceLength", 11, LowerSequenceLength, "", /*takes_sequences=*/true},
    {"SplitToSequence", 24, LowerSplitToSequence},
};

}  // namespace

std::span<const Operator> SequenceOperators() { return kOperators; }

}  // namespace onnxifi::ops
