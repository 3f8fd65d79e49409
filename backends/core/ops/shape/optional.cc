// SPDX-License-Identifier: Apache-2.0
//
// OptionalHasElement, OptionalGetElement, of what is known to be there or not while lowering: since
// opset 18 a tensor or a sequence counts as an optional that has it, and an omitted input as one
// that is empty. So the element of one is the input itself.

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/identity.h"

namespace onnxifi::ops {
namespace {

Status LowerOptionalHasElement(Lowering& lowering) {
  const uint8_t has_element = lowering.Has(0) || lowering.InSequence(0) != nullptr ? 1 : 0;
  lowering.Set(0, lowering.ConstantTensor(tensor::Tensor::FromValues<uint8_t>(
                      ElementType::kBool, {}, std::span(&has_element, 1))));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"OptionalGetElement", 28, LowerIdentity, "", /*takes_sequences=*/true},
    {"OptionalHasElement", 28, LowerOptionalHasElement, "", /*takes_sequences=*/true},
};

}  // namespace

std::span<const Operator> OptionalOperators() { return kOperators; }

}  // namespace onnxifi::ops
