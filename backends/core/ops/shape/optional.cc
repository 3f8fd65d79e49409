// SPDX-License-Identifier: Apache-2.0
//
// Optional, OptionalHasElement, OptionalGetElement. What is known to be there while lowering (since
// opset 18 a tensor or a sequence counts as an optional that has it, and an omitted input as one
// that is empty) is the element itself; the rest is asked when the program runs.

#include "backends/core/ops/host_step.h"
#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/identity.h"

namespace onnxifi::ops {
namespace {

using program::ValueType;

// The value type of an attribute, of an optional's element; nothing for one that says too little.
std::optional<ValueType> ElementOf(const graph::Type& type) {
  switch (type.kind) {
    case graph::Type::Kind::kTensor:
      return ValueType::Tensor(type.element, type.extents ? static_cast<int>(type.extents->size())
                                                          : ValueType::kAnyRank);
    case graph::Type::Kind::kSequence:
      if (std::optional<ValueType> inner = type.inner ? ElementOf(*type.inner) : std::nullopt) {
        return ValueType::Sequence(*inner);
      }
      return std::nullopt;
    case graph::Type::Kind::kOptional:
      return type.inner ? ElementOf(*type.inner) : std::nullopt;
    default:
      return std::nullopt;
  }
}

Status LowerOptional(Lowering& lowering) {
  std::optional<ValueType> type;
  if (lowering.HasAny(0)) {
    type = lowering.InType(0);
  } else if (const auto* declared = lowering.node().FindAttribute<graph::Type>("type")) {
    type = ElementOf(*declared);
  }
  if (!type) {
    return lowering.InvalidModel(
        "Neither an element nor the type of one, as tensor or sequence, is given.");
  }
  HostStep step(lowering, program::PassValue());
  ONNXIFI_RETURN_IF_ERROR(step.ReadInput(0));
  lowering.SetNonTensorValue(0, step.WriteNonTensorValue(type->Optional()));
  step.Emit();
  return base::Ok();
}

Status LowerOptionalHasElement(Lowering& lowering) {
  const NonTensorValue* whole = lowering.InNonTensorValue(0);
  if (whole == nullptr || !whole->type.may_be_missing) {
    const uint8_t has_element = lowering.HasAny(0) ? 1 : 0;
    lowering.Set(0, lowering.ConstantTensor(tensor::Tensor::FromValues<uint8_t>(
                        ElementType::kBool, {}, std::span(&has_element, 1))));
    return base::Ok();
  }
  HostStep step(lowering, program::TestPresence());
  step.Read(*whole);
  lowering.Set(0, step.WriteTensor(ElementType::kBool, {}));
  step.Emit();
  return base::Ok();
}

Status LowerOptionalGetElement(Lowering& lowering) {
  const NonTensorValue* whole = lowering.InNonTensorValue(0);
  if (whole == nullptr || !whole->type.may_be_missing) return LowerIdentity(lowering);
  HostStep step(lowering, program::PassValue());
  step.Read(*whole);
  ONNXIFI_RETURN_IF_ERROR(step.WriteOutput(0, whole->type.Present()));
  step.Emit();
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Optional", 28, LowerOptional, "", InputKinds::kValues},
    {"OptionalGetElement", 28, LowerOptionalGetElement, "", InputKinds::kValues},
    {"OptionalHasElement", 28, LowerOptionalHasElement, "", InputKinds::kValues},
};

}  // namespace

std::span<const Operator> OptionalOperators() { return kOperators; }

}  // namespace onnxifi::ops
