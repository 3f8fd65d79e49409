// SPDX-License-Identifier: Apache-2.0
//
// MakeEpilogue: what follows the accumulator of a Contract or Window.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_EPILOGUE_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_EPILOGUE_H_

#include <vector>

#include "backends/core/reference/random_step/step_maker.h"

namespace onnxifi::reference {

// Down to the roots and writes. Small slopes only, so that the tolerance holds.
void MakeEpilogue(StepMaker& make, tensor::ElementType accumulator, const tensor::Extents& domain,
                  bool may_write_two, program::ExprIds& roots);

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_EPILOGUE_H_
