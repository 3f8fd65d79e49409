// SPDX-License-Identifier: Apache-2.0
//
// Memory plan: which temporaries share memory. Lifetimes and in-place writes are found once per
// program; offsets are computed per binding, when sizes are numbers.

#ifndef ONNXIFI_BACKENDS_CORE_PLAN_MEMORY_PLAN_H_
#define ONNXIFI_BACKENDS_CORE_PLAN_MEMORY_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "backends/core/program/program.h"

namespace onnxifi::plan {

// Steps are numbered as in the program. A buffer that takes over another's memory (an in-place
// write) has `shares` set, and the owner's lifetime covers both.
struct BufferLifetime {
  program::BufferId buffer;
  int first_write;
  int last_use;
  program::BufferId shares = program::kNoBuffer;
};

// Of every temporary that is no program output and that some step writes, by first write.
// In place: a Map whose read has the very view of its write on a buffer that dies there and that it
// reads in no other way.
std::vector<BufferLifetime> FindLifetimes(const program::Program& program);

// Byte offsets (multiples of 64) for buffers of these sizes such that those alive at the same time
// do not overlap; sharers get their owner's. Largest first, each at the lowest offset that is free
// during its life. Takes n log n where few of n buffers are alive together, n squared where most
// are. Saturates at INT64_MAX.
struct ArenaLayout {
  std::vector<int64_t> offsets;  // as `lifetimes`
  int64_t size_bytes = 0;
};
ArenaLayout LayOutArena(std::span<const BufferLifetime> lifetimes,
                        std::span<const int64_t> sizes_bytes);

}  // namespace onnxifi::plan

#endif  // ONNXIFI_BACKENDS_CORE_PLAN_MEMORY_PLAN_H_
