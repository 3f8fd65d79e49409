// SPDX-License-Identifier: Apache-2.0
//
// Identity: the result is the input's view; no element moves.

#include "backends/core/ops/shape/identity.h"

#include "backends/core/ops/registry.h"

namespace onnxifi::ops {

Status LowerIdentity(Lowering& lowering) {
  if (const Sequence* tensors = lowering.InSequence(0)) {
    lowering.SetSequence(0, *tensors);
    return base::Ok();
  }
  if (const NonTensorValue* whole = lowering.InNonTensorValue(0)) {
    lowering.SetNonTensorValue(0, *whole);
    return base::Ok();
  }
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  lowering.Set(0, lowering.In(0));
  return base::Ok();
}

namespace {

constexpr Operator kOperators[] = {
    {"Identity", 25, LowerIdentity, "", InputKinds::kValues},
};

}  // namespace

std::span<const Operator> IdentityOperators() { return kOperators; }

}  // namespace onnxifi::ops
