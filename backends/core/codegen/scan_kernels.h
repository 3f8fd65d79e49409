// SPDX-License-Identifier: Apache-2.0
//
// MakeScanKernels: a running reduction as one kernel, or, along a long axis, as two: states of its
// blocks, and the blocks, each of which begins with what those before it come to. For generate.cc,
// which asks for them, and scan.cc, which writes the kernels, alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_SCAN_KERNELS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_SCAN_KERNELS_H_

#include "backends/core/codegen/kernel_sequence.h"
#include "backends/core/program/step.h"

namespace onnxifi::codegen {

// An item per row, in order; a group per row; or groups that share each row. Working memory holds
// the states of the blocks, as of the parts of a reduction (reduce_kernels.h), whose numbers these
// kernels are given. A long row whose blocks cannot be joined is done in ranges, a start of the
// last kernel for each: working memory holds what state the one before has left.
enum ScanKernel : int { kScanInOrder, kScanRows, kReduceBlocks, kScanBlocks, kScanRange };

// Of LoopNest::given, for ranges.
enum ScanNumber : int { kScanRangeBegin, kScanRangeEnd };

// The kernels of a Scan step with these loops, on a device whose items are the lanes. Which blocks
// there are depends on extents alone.
KernelSequence MakeScanKernels(const program::Scan& scan, LoopNest loops);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_SCAN_KERNELS_H_
