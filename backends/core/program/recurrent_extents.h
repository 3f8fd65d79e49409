// SPDX-License-Identifier: Apache-2.0
//
// What the views of a step of the family Recurrent are over.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_RECURRENT_EXTENTS_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_RECURRENT_EXTENTS_H_

#include "backends/core/program/step.h"

namespace onnxifi::program {

// By Recurrent::Read and Recurrent::Write; `step` is a Recurrent. May make new Dims.
Shape RecurrentReadShape(const Step& step, int read);
Shape RecurrentWriteShape(const Step& step, int write);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_RECURRENT_EXTENTS_H_
