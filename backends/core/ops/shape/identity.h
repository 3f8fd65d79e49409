// SPDX-License-Identifier: Apache-2.0
//
// Identity: how operators that hand their input on are lowered.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_SHAPE_IDENTITY_H_
#define ONNXIFI_BACKENDS_CORE_OPS_SHAPE_IDENTITY_H_

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// Output 0 is input 0, a tensor's view or a sequence.
Status LowerIdentity(Lowering& lowering);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_SHAPE_IDENTITY_H_
