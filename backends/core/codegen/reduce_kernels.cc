// SPDX-License-Identifier: Apache-2.0
//
// MakeReduceKernels: how many groups share a reduction.

#include "backends/core/codegen/reduce_kernels.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

namespace onnxifi::codegen {
namespace {

using program::Reduce;

// A shorter reduction is one group's.
constexpr int64_t kMinSharedElements = int64_t{64} << 10;
// Groups enough for any device; more reductions than that are not shared.
constexpr int64_t kGroups = 1024;
// A part of fewer elements is not worth its state; and a multiple of any group's items.
constexpr int64_t kMinPartLength = 4096;
constexpr int64_t kPartUnit = 1024;

int64_t ElementsOf(const LoopNest& loops) {
  const auto extents = std::span(loops.extents);
  return tensor::ElementCount(extents.subspan(static_cast<size_t>(loops.form.outer_rank)));
}

int64_t Quotient(int64_t count, int64_t size) { return (count + size - 1) / size; }

}  // namespace

KernelSequence MakeReduceKernels(const Reduce& reduce, LoopNest loops) {
  KernelSequence sequence;
  const int64_t elements = ElementsOf(loops);
  const auto extents = std::span<const int64_t>(loops.extents);
  const int64_t reductions =
      tensor::ElementCount(extents.first(static_cast<size_t>(loops.form.outer_rank)));
  // A state of 128 bits fits no word of working memory.
  const bool has_words =
      std::all_of(reduce.reduction.states.begin(), reduce.reduction.states.end(),
                  [](const auto& state) { return tensor::BitWidth(state.type) <= 64; });
  if (!loops.form.is_grouped || !has_words || elements <= kMinSharedElements || reductions == 0 ||
      reductions > kGroups / 2) {
    sequence.launches.push_back({.kernel = kReduceWhole, .loops = std::move(loops)});
    return sequence;
  }
  const int64_t most_parts = std::min(kGroups / reductions, elements / kMinPartLength);
  const int64_t length = Quotient(Quotient(elements, most_parts), kPartUnit) * kPartUnit;
  const int64_t parts = Quotient(elements, length);
  loops.given = {reductions * parts, parts, length};
  sequence.launches.push_back({.kernel = kReduceParts, .loops = loops});
  sequence.launches.push_back({.kernel = kMergeParts, .loops = std::move(loops)});
  sequence.scratch_bytes[0] = reductions * parts *
                              static_cast<int64_t>(reduce.reduction.states.size()) *
                              static_cast<int64_t>(sizeof(uint64_t));
  return sequence;
}

int RowCapacity(const LoopNest& loops) {
  const int64_t elements = ElementsOf(loops);
  if (!loops.form.is_grouped) return 0;
  // Few sizes, so that there are few kernels; a small one leaves room for more groups.
  for (const int capacity : {kMaxShortRow, 4096}) {
    if (elements <= capacity) return capacity;
  }
  return 0;
}

}  // namespace onnxifi::codegen
