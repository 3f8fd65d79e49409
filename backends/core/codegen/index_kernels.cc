// SPDX-License-Identifier: Apache-2.0
//
// MakeIndexKernels: how long runs and blocks are.

#include "backends/core/codegen/index_kernels.h"

#include <algorithm>
#include <utility>

namespace onnxifi::codegen {
namespace {

using program::Index;

// How many runs become one: each element looks for its place in all others.
constexpr int64_t kFanIn = 16;

// Blocks are so long that each may add up the counts of all before it.
constexpr int64_t kMaxBlocks = 1024;
constexpr int64_t kMinBlock = 256;

// Boxes of a row that is one item's.
constexpr int64_t kMaxBoxesOfItem = 64;

KernelSequence MakeTopK(LoopNest loops) {
  KernelSequence sequence;
  const int64_t extent = loops.extents.back();
  const int64_t bytes = tensor::ElementCount(loops.extents) * static_cast<int64_t>(sizeof(int64_t));
  loops.given = {0, 0};
  sequence.launches.push_back({.kernel = kSortRuns, .loops = loops});
  bool is_swapped = false;
  int64_t run = kRun;
  for (; run * kFanIn < extent; run *= kFanIn) {
    loops.given = {run, run * kFanIn};
    sequence.launches.push_back(
        {.kernel = kMergeRuns, .swaps_scratch = is_swapped, .loops = loops});
    is_swapped = !is_swapped;
  }
  loops.given = {run, run * kFanIn};
  const bool has_merges = sequence.launches.size() > 1;
  sequence.launches.push_back(
      {.kernel = kTakeLargest, .swaps_scratch = is_swapped, .loops = std::move(loops)});
  sequence.scratch_bytes = {bytes, has_merges ? bytes : 0};
  return sequence;
}

KernelSequence MakeSuppress(LoopNest loops) {
  KernelSequence sequence;
  const int64_t boxes = loops.extents.back();
  const int64_t all = tensor::ElementCount(loops.extents);
  // Of no boxes there are no rows.
  const int64_t rows = boxes == 0 ? 0 : all / boxes;
  loops.given = {rows, 0, 0, all};
  sequence.launches.push_back({.kernel = kBeginBoxes, .loops = loops});
  for (int64_t begin = 0; begin < boxes; begin += kBoxBlock) {
    const int64_t end = std::min<int64_t>(begin + kBoxBlock, boxes);
    loops.given = {rows, begin, end, rows * (boxes - end)};
    sequence.launches.push_back({.kernel = kKeepOfBlock, .loops = loops});
    if (end < boxes) sequence.launches.push_back({.kernel = kSuppressBehind, .loops = loops});
  }
  sequence.scratch_bytes = {all * static_cast<int64_t>(sizeof(uint32_t)),
                            rows * static_cast<int64_t>(sizeof(int64_t))};
  return sequence;
}

KernelSequence MakeNonZero(LoopNest loops, const Capabilities& capabilities) {
  KernelSequence sequence;
  const int64_t elements = tensor::ElementCount(loops.extents);
  int64_t length = std::max(kMinBlock, (elements + kMaxBlocks - 1) / kMaxBlocks);
  if (capabilities.run_length == 1) {
    const int64_t tile = int64_t{capabilities.row_group_size} * kItemElements;
    length = (length + tile - 1) / tile * tile;
    constexpr int64_t kNarrow = int64_t{1} << 30;
    const int64_t written[] = {loops.form.rank, elements};
    loops.form.is_narrow = elements <= kNarrow && IsNarrow(loops.reads[0], loops.extents) &&
                           IsNarrow(loops.writes[0], written);
  }
  const int64_t blocks = (elements + length - 1) / length;
  loops.given = {blocks, length, elements};
  sequence.launches.push_back({.kernel = kCountBlocks, .loops = loops});
  sequence.launches.push_back({.kernel = kUseCounts, .loops = std::move(loops)});
  sequence.scratch_bytes = {blocks * static_cast<int64_t>(sizeof(int64_t)), 0};
  return sequence;
}

}  // namespace

KernelSequence MakeIndexKernels(const Index& index, LoopNest loops,
                                const Capabilities& capabilities) {
  switch (index.kind) {
    case Index::Kind::kTopK:
      return MakeTopK(std::move(loops));
    case Index::Kind::kNonZero:
    case Index::Kind::kCountNonZero:
      return MakeNonZero(std::move(loops), capabilities);
    case Index::Kind::kSuppress:
      // Few boxes are over before groups have met.
      if (capabilities.run_length == 1 && loops.extents.back() > kMaxBoxesOfItem) {
        return MakeSuppress(std::move(loops));
      }
      break;
    case Index::Kind::kScatter:
      break;
  }
  KernelSequence sequence;
  sequence.launches.push_back({.loops = std::move(loops)});
  return sequence;
}

}  // namespace onnxifi::codegen
