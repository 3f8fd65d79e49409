// SPDX-License-Identifier: Apache-2.0
//
// MakeIndexKernels: the Index steps that are several kernels in a row: which, how often, with which
// numbers. For generate.cc, which asks for them, and index.cc, which writes the kernels, alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_INDEX_KERNELS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_INDEX_KERNELS_H_

#include <cstdint>

#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/kernel_sequence.h"
#include "backends/core/program/step.h"

namespace onnxifi::codegen {

// The kernels of top-k. Working memory holds numbers of elements, in the order of each run.
enum TopKKernel : int { kSortRuns, kMergeRuns, kTakeLargest };
// The kernels of NonZero and of its count. Working memory holds a count per block. Where items are
// the lanes a block is a group's, and may be several tiles of kItemElements for each of its items.
enum NonZeroKernel : int { kCountBlocks, kUseCounts };
inline constexpr int kItemElements = 8;

// The kernels of suppression among many boxes, block by block: a group decides on the boxes of a
// block of its row, then those behind it are compared with what was kept of it. Working memory 0
// holds for each box whether it may still be kept, 1 how many are kept of each row.
enum SuppressKernel : int { kSuppressRows, kBeginBoxes, kKeepOfBlock, kSuppressBehind };

// Elements of the runs that are sorted first.
inline constexpr int64_t kRun = 64;
// Boxes of a block.
inline constexpr int kBoxBlock = 256;

// Of LoopNest::given, for top-k.
enum TopKNumber : int { kRunLength, kMergedLength };
// For suppression.
enum SuppressNumber : int { kRows, kBlockBegin, kBlockEnd, kBoxesBehind };
// For NonZero and its count.
enum NonZeroNumber : int { kBlocks, kBlockLength, kElements };

// The kernels of an Index step with these loops.
KernelSequence MakeIndexKernels(const program::Index& index, LoopNest loops,
                                const Capabilities& capabilities);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_INDEX_KERNELS_H_
