// SPDX-License-Identifier: Apache-2.0
//
// ScaleShift as a function: the nodes that it stands for, written for the node at hand. Passes and
// kernels see a multiplication and an addition.

#include "domain/domain.h"

namespace example {

using onnxifi::base::Status;

Status DefineScaleShift(onnxifi::model::Definition& d) {
  // What the declaration cannot say.
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 2));
  const auto factor = d.Scalar(d.Float("factor"), d.Type(0));
  const auto scaled = d.Mul(d.In(0), factor);
  d.Return(0, d.Has(1) ? d.Add(scaled, d.In(1)) : scaled);
  return onnxifi::base::Ok();
}

}  // namespace example
