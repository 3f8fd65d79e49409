// SPDX-License-Identifier: Apache-2.0
//
// MakeScanKernels: which rows are a group's, and into how many blocks a row is cut.

#include "backends/core/codegen/scan_kernels.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "backends/core/program/expr.h"

namespace onnxifi::codegen {
namespace {

// A shorter row is over before a group has met.
constexpr int64_t kMinElements = 64;
// Rows that leave items of a group without elements are one item's each where there are so many.
constexpr int64_t kMinWholeRound = 256;
constexpr int64_t kManyRows = 4096;
// Groups enough for any device; more rows than half of that are not shared.
constexpr int64_t kGroups = 1024;
// A shorter block is not worth its state; and blocks are whole rounds of a group.
constexpr int64_t kMinBlock = 1024;
constexpr int64_t kBlockUnit = 256;
// An item that goes on for longer keeps a device, or ends where a driver bounds loops.
constexpr int64_t kMaxInOrder = 32768;

int64_t Quotient(int64_t count, int64_t size) { return (count + size - 1) / size; }

}  // namespace

KernelSequence MakeScanKernels(const program::Scan& scan, LoopNest loops) {
  KernelSequence sequence;
  const auto& states = scan.reduction.states;
  const bool can_merge = std::all_of(states.begin(), states.end(), [](const auto& state) {
    return state.merge != program::kNoExpr;
  });
  const auto outer = static_cast<size_t>(loops.form.outer_rank);
  const auto extents = std::span<const int64_t>(loops.extents);
  const int64_t elements = tensor::ElementCount(extents.subspan(outer));
  const int64_t rows = tensor::ElementCount(extents.first(outer));
  const int64_t least = rows < kManyRows ? kMinElements : kMinWholeRound;
  // A state of 128 bits fits no word of working memory.
  const bool has_words = std::all_of(states.begin(), states.end(), [](const auto& state) {
    return tensor::BitWidth(state.type) <= 64;
  });
  const int64_t state_bytes =
      static_cast<int64_t>(states.size()) * static_cast<int64_t>(sizeof(uint64_t));
  if (!can_merge && has_words && elements > kMaxInOrder) {
    for (int64_t begin = 0; begin < elements; begin += kMaxInOrder) {
      loops.given = {begin, std::min(begin + kMaxInOrder, elements)};
      sequence.launches.push_back({.kernel = kScanRange, .loops = loops});
    }
    sequence.scratch_bytes[0] = rows * state_bytes;
    return sequence;
  }
  if (!can_merge || elements < least) {
    sequence.launches.push_back({.kernel = kScanInOrder, .loops = std::move(loops)});
    return sequence;
  }
  loops.form.is_grouped = true;
  if (!has_words || elements < 2 * kMinBlock || rows == 0 || rows > kGroups / 2) {
    sequence.launches.push_back({.kernel = kScanRows, .loops = std::move(loops)});
    return sequence;
  }
  const int64_t most_blocks = std::min(kGroups / rows, elements / kMinBlock);
  const int64_t length = Quotient(Quotient(elements, most_blocks), kBlockUnit) * kBlockUnit;
  const int64_t blocks = Quotient(elements, length);
  loops.given = {rows * blocks, blocks, length};
  sequence.launches.push_back({.kernel = kReduceBlocks, .loops = loops});
  sequence.launches.push_back({.kernel = kScanBlocks, .loops = std::move(loops)});
  sequence.scratch_bytes[0] = rows * blocks * state_bytes;
  return sequence;
}

}  // namespace onnxifi::codegen
