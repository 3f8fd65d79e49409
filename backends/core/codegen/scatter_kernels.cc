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

// One group adds up the counts of all blocks.
constexpr int64_t kMaxBlocks = 512;
constexpr int64_t kMinWordsPerItem = 16;
constexpr int kDigitBits = std::bit_width(unsigned{kDigits - 1});

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

void AddSort(KernelSequence& sequence, LoopNest& loops, int64_t updates, int key_bits) {
  const int64_t group_size = Launch().group_size;
  const int64_t per_item = std::max(kMinWordsPerItem, Quotient(updates, kMaxBlocks * group_size));
  const int64_t blocks = Quotient(updates, per_item * group_size);
  loops.given[kWordBlocks] = blocks;
  loops.given[kWordsPerItem] = per_item;
  bool is_swapped = false;
  for (int bit = 0; bit < key_bits; bit += kDigitBits) {
    loops.given[kDigitAt] = loops.given[kUpdateBits] + bit;
    for (const int kernel : {kCountDigits, kAddCounts, kPlaceWords}) {
      sequence.launches.push_back({.kernel = kernel, .swaps_scratch = is_swapped, .loops = loops});
    }
    is_swapped = !is_swapped;
  }
  const int64_t bytes = updates * static_cast<int64_t>(sizeof(uint64_t));
  sequence.scratch_bytes[0] = bytes;
  sequence.scratch_bytes[1] = bytes;
  sequence.scratch_bytes[2] = blocks * kDigits * static_cast<int64_t>(sizeof(uint32_t));
}

}  // namespace

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
  loops.given[kOne] = 1;
  loops.given[kClaimWords] = targets + 1;
  const auto add = [&](int kernel) {
    sequence.launches.push_back({.kernel = kernel, .loops = loops});
  };
  const bool has_claims = targets / kMaxTargetsPerUpdate <= updates;
  const auto add_claims = [&] {
    add(kClearClaims);
    add(kClaimTargets);
    sequence.scratch_bytes[3] = (targets + 1) * static_cast<int64_t>(sizeof(uint32_t));
  };
  if (index.combine == Index::Combine::kNone && has_claims) {
    add_claims();
    add(kScatterClaimed);
  } else if (updates <= kFew) {
    add(kWriteWords);
    add(kScatterFew);
    sequence.scratch_bytes[0] = updates * static_cast<int64_t>(sizeof(uint64_t));
  } else {
    if (has_claims) {
      add_claims();
      add(kFindDuplicates);
      add(kScatterUnique);
    } else {
      add(kExpectDuplicates);
      sequence.scratch_bytes[3] = static_cast<int64_t>(sizeof(uint32_t));
    }
    add(kWriteWords);
    AddSort(sequence, loops, updates, key_bits);
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
