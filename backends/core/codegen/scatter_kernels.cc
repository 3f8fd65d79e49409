// SPDX-License-Identifier: Apache-2.0
//
// MakeScatterKernels: which way a scatter goes, by its numbers of updates and targets.

#include "backends/core/codegen/scatter_kernels.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "backends/core/codegen/kernel_text.h"

namespace onnxifi::codegen {
namespace {

using program::Index;

// So few updates look at each other sooner than they are sorted.
constexpr int64_t kFew = 1024;
// Claims of so many targets for each update take longer than the updates are sorted.
constexpr int64_t kMaxTargetsPerUpdate = 8;
// Counts and claims have 32 bits, and words 64.
constexpr int64_t kMaxUpdates = (int64_t{1} << 31) - 1;
constexpr int kWordBits = 64;

// Bits of a target's number that words need not be sorted by where so few updates, of targets that
// are spread evenly, agree in the others.
constexpr int kMaxBitsLeft = 6;
constexpr int64_t kMaxUpdatesLeft = 32;

// Shared memory for digits of 8 bits; elsewhere they have 4.
constexpr int64_t kBytesOfByteDigits = int64_t{24} << 10;

int64_t Quotient(int64_t count, int64_t size) { return (count + size - 1) / size; }

// Whether coordinates, numbers of targets and addresses fit 32 bits.
bool FitsNarrow(const LoopNest& loops, std::span<const int64_t> target, int64_t updates,
                int64_t targets) {
  constexpr int64_t kNarrow = int64_t{1} << 30;
  return updates <= kNarrow && targets < kNarrow &&
         std::all_of(loops.reads.begin(), loops.reads.end(),
                     [&](const auto& view) { return IsNarrow(view, loops.extents); }) &&
         IsNarrow(loops.writes[0], target);
}

void AddSort(KernelSequence& sequence, LoopNest& loops, int64_t updates, int key_bits,
             const DigitCounts& counts) {
  const int64_t blocks = Quotient(updates, counts.columns * kColumnWords);
  loops.given[kWordBlocks] = blocks;
  loops.given[kDigitCount] = counts.digits;
  const int digit_bits = std::bit_width(static_cast<unsigned>(counts.digits - 1));
  int passes = (key_bits + digit_bits - 1) / digit_bits;
  const int fewer_bits = (passes - 1) * digit_bits;
  if (passes > 1 && key_bits - fewer_bits <= kMaxBitsLeft &&
      updates >> fewer_bits <= kMaxUpdatesLeft) {
    --passes;
  }
  loops.given[kSortedBits] = (int64_t{1} << std::min(key_bits, passes * digit_bits)) - 1;
  bool is_swapped = false;
  for (int pass = 0; pass < passes; ++pass) {
    const int bit = pass * digit_bits;
    loops.given[kDigitAt] = loops.given[kUpdateBits] + bit;
    const int of_updates[] = {kCountUpdates, kAddCounts, kPlaceUpdates};
    const int of_words[] = {kCountDigits, kAddCounts, kPlaceWords};
    for (const int kernel : bit == 0 ? of_updates : of_words) {
      sequence.launches.push_back({.kernel = kernel, .swaps_scratch = is_swapped, .loops = loops});
    }
    is_swapped = !is_swapped;
  }
  const int64_t bytes = updates * static_cast<int64_t>(sizeof(uint64_t));
  sequence.scratch_bytes[0] = bytes;
  sequence.scratch_bytes[1] = bytes;
  sequence.scratch_bytes[2] = (blocks + 1) * counts.digits * static_cast<int64_t>(sizeof(uint32_t));
}

}  // namespace

DigitCounts DigitCountsFor(const Capabilities& capabilities) {
  return {.digits = capabilities.row_shared_bytes >= kBytesOfByteDigits ? 256 : 16};
}

KernelSequence MakeScatterKernels(const Index& index, LoopNest loops,
                                  const Capabilities& capabilities) {
  KernelSequence sequence;
  tensor::Extents target;
  for (const program::Dim& dim : index.target) {
    target.push_back(tensor::ValueOf(dim, loops.dims));
  }
  const int64_t updates = tensor::ElementCount(loops.extents);
  const int64_t targets = tensor::ElementCount(target);
  // Updates of no target have the number behind the last one.
  const int key_bits = std::bit_width(static_cast<uint64_t>(targets));
  const int update_bits = std::bit_width(static_cast<uint64_t>(updates));
  if (capabilities.run_length > 1 || updates <= 1 || targets == 0 || updates > kMaxUpdates ||
      key_bits + update_bits > kWordBits) {
    sequence.launches.push_back({.kernel = kScatterInOrder, .loops = std::move(loops)});
    return sequence;
  }
  loops.form.is_narrow = FitsNarrow(loops, target, updates, targets);
  loops.given.assign(kScatterNumbers, 0);
  loops.given[kUpdateCount] = updates;
  loops.given[kTargetCount] = targets;
  loops.given[kUpdateBits] = update_bits;
  loops.given[kClaimRuns] = Quotient(targets, kClaimsPerItem);
  const auto add = [&](int kernel) {
    sequence.launches.push_back({.kernel = kernel, .loops = loops});
  };
  const bool has_claims = targets / kMaxTargetsPerUpdate <= updates;
  if (index.combine == Index::Combine::kNone && has_claims) {
    add(kClearClaims);
    add(kClaimTargets);
    add(kScatterClaimed);
    sequence.scratch_bytes[3] =
        loops.given[kClaimRuns] * kClaimsPerItem * static_cast<int64_t>(sizeof(uint32_t));
  } else if (updates <= kFew) {
    add(kWriteWords);
    add(kScatterFew);
    sequence.scratch_bytes[0] = updates * static_cast<int64_t>(sizeof(uint64_t));
  } else {
    AddSort(sequence, loops, updates, key_bits, DigitCountsFor(capabilities));
    const bool is_swapped = !sequence.launches.back().swaps_scratch;
    // One item may have to go through all words of a range.
    const int64_t range = std::min(updates, capabilities.most_rounds / 2);
    for (int64_t begin = 0; begin < updates; begin += range) {
      loops.given[kRangeBegin] = begin;
      loops.given[kRangeEnd] = std::min(begin + range, updates);
      loops.given[kRangeCount] = loops.given[kRangeEnd] - begin;
      sequence.launches.push_back(
          {.kernel = kScatterSorted, .swaps_scratch = is_swapped, .loops = loops});
    }
  }
  return sequence;
}

}  // namespace onnxifi::codegen
