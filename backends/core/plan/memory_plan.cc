// SPDX-License-Identifier: Apache-2.0
//
// Memory plan: lifetimes from the order of steps, in-place where a Map's access allows it, offsets
// by first fit among those alive together.

#include "backends/core/plan/memory_plan.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>

#include "backends/core/program/buffer_uses.h"

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

bool AreAliveTogether(const BufferLifetime& a, const BufferLifetime& b) {
  return a.first_write <= b.last_use && b.first_write <= a.last_use;
}

// The memory of a buffer that has been placed.
struct ArenaSlot {
  int64_t begin;
  int64_t end;
  const BufferLifetime* lifetime;

  bool operator<(const ArenaSlot& other) const { return begin < other.begin; }
};

// The places given so far. Lifetimes are sorted by first write under a tree of the last uses of
// those that have a place, so that only what is alive at a time is visited; where that is much, all
// places in order are walked instead, which is faster than sorting what was found.
class ArenaSlots {
 public:
  explicit ArenaSlots(std::span<const BufferLifetime> lifetimes)
      : lifetimes_(lifetimes), order_(lifetimes.size()), position_(lifetimes.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return lifetimes[a].first_write < lifetimes[b].first_write;
    });
    for (size_t k = 0; k < order_.size(); ++k) position_[order_[k]] = k;
    leaves_ = std::bit_ceil(std::max<size_t>(order_.size(), 1));
    last_use_.assign(2 * leaves_, kNoPlace);
    by_position_.resize(order_.size());
  }

  void Add(size_t buffer, int64_t begin, int64_t end) {
    const ArenaSlot place{begin, end, &lifetimes_[buffer]};
    by_position_[position_[buffer]] = place;
    all_.push_back(place);
    for (size_t node = leaves_ + position_[buffer]; node > 0; node /= 2) {
      last_use_[node] = std::max(last_use_[node], place.lifetime->last_use);
    }
  }

  // Those of buffers that are alive at some time of `lifetime`, in order. Until the next call.
  std::span<const ArenaSlot> During(const BufferLifetime& lifetime) {
    const auto starts_later = [&](int last_use, size_t buffer) {
      return last_use < lifetimes_[buffer].first_write;
    };
    const auto end =
        std::upper_bound(order_.begin(), order_.end(), lifetime.last_use, starts_later);
    found_.clear();
    const bool are_few = Visit(1, 0, leaves_, static_cast<size_t>(end - order_.begin()),
                               lifetime.first_write, /*limit=*/16 + all_.size() / 8);
    if (are_few) {
      std::sort(found_.begin(), found_.end());
      return found_;
    }
    const auto middle = all_.begin() + static_cast<std::ptrdiff_t>(sorted_count_);
    std::sort(middle, all_.end());
    std::inplace_merge(all_.begin(), middle, all_.end());
    sorted_count_ = all_.size();
    found_.clear();
    for (const ArenaSlot& place : all_) {
      if (AreAliveTogether(*place.lifetime, lifetime)) found_.push_back(place);
    }
    return found_;
  }

 private:
  static constexpr int kNoPlace = -1;  // before every step

  // Finds, of the positions [begin, begin + count) below `node`, those before `end` that are used
  // at `first_write` or later. False where there are more than `limit` in all.
  bool Visit(size_t node, size_t begin, size_t count, size_t end, int first_write, size_t limit) {
    if (begin >= end || last_use_[node] < first_write) return true;
    if (count == 1) {
      found_.push_back(by_position_[begin]);
      return found_.size() <= limit;
    }
    return Visit(2 * node, begin, count / 2, end, first_write, limit) &&
           Visit(2 * node + 1, begin + count / 2, count / 2, end, first_write, limit);
  }

  std::span<const BufferLifetime> lifetimes_;
  std::vector<size_t> order_;     // by first write
  std::vector<size_t> position_;  // in `order_`
  std::vector<ArenaSlot> by_position_;
  size_t leaves_;
  std::vector<int> last_use_;   // the latest below each node of the tree
  std::vector<ArenaSlot> all_;  // the first of them in order
  size_t sorted_count_ = 0;
  std::vector<ArenaSlot> found_;
};

}  // namespace

std::vector<BufferLifetime> FindLifetimes(const Program& program) {
  const program::BufferUses uses(program);
  std::map<BufferId, BufferLifetime> found;
  auto is_managed = [&](BufferId id) {
    return id != program::kNoBuffer && program.buffers[id].kind == Buffer::Kind::kTemporary &&
           !uses.IsOutput(id);
  };
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    const Step& step = program.steps[s];
    for (const View& write : step.writes) {
      if (!is_managed(write.buffer)) continue;
      found.try_emplace(write.buffer, BufferLifetime{write.buffer, s, s}).first->second.last_use =
          s;
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
    if (target == found.end() || uses.OnlyWriter(write.buffer) != s) continue;
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
  ArenaSlots places(lifetimes);
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
    for (const ArenaSlot& place : places.During(lifetime)) {
      if (place.begin - offset >= size) break;
      offset = std::max(offset, place.end);
    }
    if (offset > kLimit - size) {
      layout.size_bytes = kLimit;
      return layout;
    }
    layout.offsets[k] = offset;
    owner_offset[lifetime.buffer] = offset;
    places.Add(k, offset, offset + size);
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
