// SPDX-License-Identifier: Apache-2.0
//
// The extents of a Recurrent's views, from those of its domain.

#include "backends/core/program/recurrent_extents.h"

namespace onnxifi::program {

Shape RecurrentReadShape(const Step& step, int read) {
  const Recurrent& recurrent = *step.As<Recurrent>();
  const Dim& directions = step.domain[0];
  const Dim& batch = step.domain[2];
  const Dim& hidden = step.domain[3];
  const Dim gates = hidden * Dim(recurrent.gates());
  switch (read) {
    case Recurrent::kProjected:
      return {directions, step.domain[1], batch, gates};
    case Recurrent::kWeights:
      return {directions, gates, hidden};
    case Recurrent::kLengths:
      return {batch};
    case Recurrent::kPeepholes:
      return {directions, hidden * Dim(3)};
    case Recurrent::kHiddenBias:
      return {directions, hidden};
    default:
      return {directions, batch, hidden};
  }
}

Shape RecurrentWriteShape(const Step& step, int write) {
  if (write == Recurrent::kSequence) return step.domain;
  return {step.domain[0], step.domain[2], step.domain[3]};
}

}  // namespace onnxifi::program
