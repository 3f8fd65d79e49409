// SPDX-License-Identifier: Apache-2.0
//
// CheckRecurrent: verify.h for a step of the family Recurrent.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_RECURRENT_VERIFIER_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_RECURRENT_VERIFIER_H_

#include "backends/core/base/status.h"
#include "backends/core/program/step.h"

namespace onnxifi::program {

// Of a step that is one. INTERNAL_ERROR with the first fault.
base::Status CheckRecurrent(const Step& step);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_RECURRENT_VERIFIER_H_
