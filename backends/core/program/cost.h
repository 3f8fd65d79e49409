// SPDX-License-Identifier: Apache-2.0
//
// Cost: how much a step has to compute and to move, by its definition alone: what a profile holds
// the time of any implementation against.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_COST_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_COST_H_

#include <cstdint>
#include <span>

#include "backends/core/program/program.h"

namespace onnxifi::program {

// flops: operations on floats; a multiply-add is two, every other node of an expression one, casts
// none, padding of a convolution counts as if it were data.
// bytes: each element that a view can reach, once, and never more than its buffer has. What a
// computed index selects counts as one element per evaluation.
// Control and Cut, whose work is execution's, have no cost. Sums saturate.
struct StepCost {
  int64_t flops = 0;
  int64_t read_bytes = 0;
  int64_t written_bytes = 0;

  bool operator==(const StepCost&) const = default;
};

// `dims` gives the number of every Dim of the program, as in device::BoundStep.
StepCost CostOf(const Program& program, const Step& step, std::span<const int64_t> dims);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_COST_H_
