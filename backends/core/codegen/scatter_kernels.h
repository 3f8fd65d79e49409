// SPDX-License-Identifier: Apache-2.0
//
// MakeScatterKernels: a scatter as kernels of an item per update, whatever updates meet in one
// target. For generate.cc, which asks for them, and scatter.cc, which writes the kernels, alone.
//
// Updates that only replace claim their target: the last one that claims it writes. Others claim it
// to find out whether each is the only one of its target, which then takes it as it comes. Else
// they become 64-bit words, the number of the target above that of the update. Few of them look at
// all words; many sort them by target, four bits a time, and the first of each target applies the
// words that follow. So targets see their updates in ascending order.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_SCATTER_KERNELS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_SCATTER_KERNELS_H_

#include <cstdint>

#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/kernel_sequence.h"
#include "backends/core/program/step.h"

namespace onnxifi::codegen {

// Working memory 0 and 1 hold words, 2 holds the counts of digits; 3 holds whether any two updates
// have the same target, and behind that the targets' claims.
enum ScatterKernel : int {
  kScatterInOrder,  // one item for all
  kClearClaims,
  kClaimTargets,
  kScatterClaimed,
  kFindDuplicates,
  kScatterUnique,     // does nothing where there are duplicates
  kExpectDuplicates,  // one item
  kWriteWords,
  kScatterFew,
  kCountDigits,  // a group per block of words; it and those behind it need duplicates
  kAddCounts,    // one group for all
  kPlaceWords,   // a group per block of words
  kScatterSorted,
};

// Of LoopNest::given.
enum ScatterNumber : int {
  kUpdateCount,
  kTargetCount,
  kClaimWords,  // claims and what is before them
  kUpdateBits,  // of a word, below the number of the target
  kDigitAt,     // the digit's place in a word
  kWordBlocks,
  kWordsPerItem,
  kOne,
  kRangeBegin,  // the sorted words [begin, end) that kScatterSorted takes, and how many they are
  kRangeEnd,
  kRangeCount,
  kScatterNumbers,
};

// Values of a digit.
inline constexpr int kDigits = 16;

// The kernels of a scatter with these loops. Where items compute runs, one of them takes all
// updates in order.
KernelSequence MakeScatterKernels(const program::Index& index, LoopNest loops,
                                  const Capabilities& capabilities);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_SCATTER_KERNELS_H_
