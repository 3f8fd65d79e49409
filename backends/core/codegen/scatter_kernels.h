// SPDX-License-Identifier: Apache-2.0
//
// MakeScatterKernels: a scatter as kernels of an item per update, whatever updates meet in one
// target. For generate.cc, which asks for them, and scatter.cc, which writes the kernels, alone.
//
// Updates that only replace claim their target: the last one that claims it writes. Others become
// 64-bit words, the number of the target above that of the update. Few of them look at all words;
// many are sorted by target, a digit at a time, and the first of each target applies the words that
// follow. So targets see their updates in ascending order. The last few bits of targets are left
// out where few updates agree in the others: the first of a target then finds its words among them.
//
// A digit is sorted by in three kernels: each group counts the digits of its block of words, one
// group per digit adds up the counts of the blocks before each, and each group puts its words in
// their places. Within a block some items, its columns, each go through their own words in order.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_SCATTER_KERNELS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_SCATTER_KERNELS_H_

#include <cstdint>

#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/kernel_sequence.h"
#include "backends/core/program/step.h"

namespace onnxifi::codegen {

// Working memory 0 and 1 hold words, 2 holds the counts of digits, digit by digit and of each digit
// block by block, and behind them those of all blocks; 3 holds the targets' claims.
enum ScatterKernel : int {
  kScatterInOrder,  // one item for all
  kClearClaims,
  kClaimTargets,
  kScatterClaimed,
  kWriteWords,
  kScatterFew,
  kCountUpdates,  // of the first digit, of words that are not written yet
  kPlaceUpdates,
  kCountDigits,
  kAddCounts,
  kPlaceWords,
  kScatterSorted,
};

// Of LoopNest::given.
enum ScatterNumber : int {
  kUpdateCount,
  kTargetCount,
  kClaimRuns,   // of kClaimsPerItem
  kUpdateBits,  // of a word, below the number of the target
  kDigitAt,     // the digit's place in a word
  kWordBlocks,
  kDigitCount,
  kSortedBits,  // a mask of those of a target's number by which words are sorted
  kRangeBegin,  // the sorted words [begin, end) that kScatterSorted takes, and how many they are
  kRangeEnd,
  kRangeCount,
  kScatterNumbers,
};

// An item clears so many claims at a time.
inline constexpr int kClaimsPerItem = 4;

// How a group counts digits: by how many values they have, and the columns of a block, each of
// kColumnWords words.
struct DigitCounts {
  int digits = 16;
  int columns = 32;
};
inline constexpr int kColumnWords = 32;
// For such a device.
DigitCounts DigitCountsFor(const Capabilities& capabilities);

// The kernels of a scatter with these loops. Where items compute runs, one of them takes all
// updates in order.
KernelSequence MakeScatterKernels(const program::Index& index, LoopNest loops,
                                  const Capabilities& capabilities);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_SCATTER_KERNELS_H_
