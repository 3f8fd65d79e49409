// SPDX-License-Identifier: Apache-2.0
//
// MakeReduceKernels: a reduction so long that groups share it, as two kernels: states of its parts,
// and what they are together. For generate.cc, which asks for them, and reduction.cc, which writes
// the kernels, alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_REDUCE_KERNELS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_REDUCE_KERNELS_H_

#include "backends/core/codegen/kernel_sequence.h"
#include "backends/core/program/step.h"

namespace onnxifi::codegen {

// A reduction as one kernel, or the two of a shared one. Working memory holds the states, part by
// part, each in 64 bits.
enum ReduceKernel : int { kReduceWhole, kReduceParts, kMergeParts };

// Of LoopNest::given: groups of kReduceParts, parts of a reduction, elements of a part.
enum ReduceNumber : int { kPartGroups, kPartCount, kPartLength };

// The kernels of a Reduce step with these loops, on a device whose items are the lanes. Which parts
// there are depends on extents alone.
KernelSequence MakeReduceKernels(const program::Reduce& reduce, LoopNest loops);

// A longer row, if it can be kept, is one of a larger group (Capabilities::row_group_size).
inline constexpr int kMaxShortRow = 1024;

// LoopForm::row_capacity of a Row step with these loops, on such a device.
int RowCapacity(const LoopNest& loops);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_REDUCE_KERNELS_H_
