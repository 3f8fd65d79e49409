// SPDX-License-Identifier: Apache-2.0
//
// The makers of random steps, one per family, each in a file of its own.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_FAMILY_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_FAMILY_H_

#include "backends/core/reference/random_step/step_maker.h"

namespace onnxifi::reference {

// Each fills in the domain and the body of the step, its reads and writes, and the tolerance.
void MakeMap(StepMaker& make);
void MakeReduce(StepMaker& make);
void MakeRow(StepMaker& make);
void MakeScan(StepMaker& make);
void MakeContract(StepMaker& make);
void MakeWindow(StepMaker& make);
void MakeAttention(StepMaker& make);
void MakeIndex(StepMaker& make);
void MakeRecurrent(StepMaker& make);

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_FAMILY_H_
