// SPDX-License-Identifier: Apache-2.0
//
// Memory plan: lifetimes from the order of steps, in-place where a Map's access allows it, offsets
// by first fit.

#include "backends/core/plan/memory_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace onnxifi::plan {
namespace {

using program::Buffer;
using program::BufferId;
using program::Map;
using program::Program;
using program::Step;
using program::View;

constexpr int64_t kAlignment = 64;

// The reads of a Map that it loads only at the domain's own coordinates.
bool LoadsOnlyInPlace(const Program& program, const Map& map, size_t read) {
  for (program::ExprId id : Reachable(program.exprs, map.roots)) {
    const program::ExprNode& node = program.exprs[id];
    if (node.op == program::ExprOp::kLoad && node.payload == read && !node.operands.empty()) {
      return false;
    }
  }
  return true;
}

bool SameAddresses(const View& a, const View& b) {
  return a.guards.empty() && b.guards.empty() && a.offset == b.offset && a.strides == b.strides &&
         tensor::BitWidth(a.type) == tensor::BitWidth(b.type) && !tensor::IsPacked(a.type);
}

}  // namespace

std::vector<BufferLifetime> FindLifetimes(const Program& program) {
  std::map<BufferId, BufferLifetime> found;
  auto is_managed = [&](BufferId id) {
    if (id == program::kNoBuffer || program.buffers[id].kind != Buffer::Kind::kTemporary)
      return false;
    return std::none_of(program.outputs.begin(), program.outputs.end(),
                        [id](const program::Port& port) { return port.buffer == id; });
  };
  std::map<BufferId, int> writers;
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    const Step& step = program.steps[s];
    for (const View& write : step.writes) {
      if (!is_managed(write.buffer)) continue;
      found.try_emplace(write.buffer, BufferLifetime{write.buffer, s, s}).first->second.last_use =
          s;
      ++writers[write.buffer];
    }
    for (const View& read : step.reads) {
      auto lifetime = found.find(read.buffer);
      if (lifetime != found.end()) lifetime->second.last_use = s;
    }
  }

  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    const Step& step = program.steps[s];
    const Map* map = step.As<Map>();
    if (map == nullptr || step.writes.size() != 1) continue;
    const View& write = step.writes[0];
    auto target = found.find(write.buffer);
    if (target == found.end() || target->second.first_write != s || writers[write.buffer] != 1)
      continue;
    for (size_t r = 0; r < step.reads.size(); ++r) {
      const View& read = step.reads[r];
      auto source = found.find(read.buffer);
      if (source == found.end() || source->second.last_use != s) continue;
      if (source->second.first_write == s) continue;
      bool is_only_read =
          std::count_if(step.reads.begin(), step.reads.end(),
                        [&](const View& other) { return other.buffer == read.buffer; }) == 1;
      const Buffer& from = program.buffers[read.buffer];
      const Buffer& to = program.buffers[write.buffer];
      if (!is_only_read || !SameAddresses(read, write) || !LoadsOnlyInPlace(program, *map, r))
        continue;
      if (tensor::Product(from.shape) != tensor::Product(to.shape)) continue;
      BufferId owner =
          source->second.shares == program::kNoBuffer ? read.buffer : source->second.shares;
      target->second.shares = owner;
      found.at(owner).last_use = std::max(found.at(owner).last_use, target->second.last_use);
      break;
    }
  }

  std::vector<BufferLifetime> lifetimes;
  for (const auto& [id, lifetime] : found) lifetimes.push_back(lifetime);
  std::stable_sort(lifetimes.begin(), lifetimes.end(),
                   [](const BufferLifetime& a, const BufferLifetime& b) {
                     return a.first_write < b.first_write;
                   });
  return lifetimes;
}

ArenaLayout LayOutArena(std::span<const BufferLifetime> lifetimes,
                        std::span<const int64_t> sizes_bytes) {
  constexpr int64_t kLimit = std::numeric_limits<int64_t>::max();
  ArenaLayout layout;
  layout.offsets.assign(lifetimes.size(), 0);
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sizes_bytes[a] > sizes_bytes[b]; });
  struct Placed {
    int64_t begin;
    int64_t end;
    const BufferLifetime* lifetime;
  };
  std::vector<Placed> placed;  // sorted by begin
  std::map<BufferId, int64_t> owner_offset;
  for (size_t k : order) {
    const BufferLifetime& lifetime = lifetimes[k];
    if (lifetime.shares != program::kNoBuffer) continue;
    if (sizes_bytes[k] > kLimit - kAlignment) {
      layout.size_bytes = kLimit;
      return layout;
    }
    int64_t size = (sizes_bytes[k] + kAlignment - 1) / kAlignment * kAlignment;
    int64_t offset = 0;
    for (const Placed& other : placed) {
      bool overlaps_in_time = other.lifetime->first_write <= lifetime.last_use &&
                              lifetime.first_write <= other.lifetime->last_use;
      if (!overlaps_in_time) continue;
      if (other.begin - offset >= size) break;
      offset = std::max(offset, other.end);
    }
    if (offset > kLimit - size) {
      layout.size_bytes = kLimit;
      return layout;
    }
    layout.offsets[k] = offset;
    owner_offset[lifetime.buffer] = offset;
    Placed entry{offset, offset + size, &lifetime};
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), entry,
                         [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
        entry);
    layout.size_bytes = std::max(layout.size_bytes, offset + size);
  }
  for (size_t k = 0; k < lifetimes.size(); ++k) {
    if (lifetimes[k].shares != program::kNoBuffer) {
      layout.offsets[k] = owner_offset[lifetimes[k].shares];
    }
  }
  return layout;
}

}  // namespace onnxifi::plan
