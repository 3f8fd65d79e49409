// SPDX-License-Identifier: Apache-2.0
//
// Dependences: memory in pieces, each with its last writer and those who read it since. A write
// makes one piece of what it covers; a use cuts two pieces at most.

#include "backends/core/device/dependences.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace onnxifi::device {

Dependences::Pieces::iterator Dependences::CutAt(uint64_t address) {
  const auto behind = pieces_.upper_bound(address);
  if (behind == pieces_.begin()) return behind;
  const auto piece = std::prev(behind);
  if (piece->second.end <= address) return behind;
  if (piece->first == address) return piece;
  const Piece rest = piece->second;
  piece->second.end = address;
  return pieces_.emplace_hint(behind, address, rest);
}

bool Dependences::Follow(const MemoryUse& use, std::vector<size_t>& earlier) {
  CutAt(use.end);
  const auto first = CutAt(use.begin);
  size_t count = 0;
  for (auto at = first; at != pieces_.end() && at->first < use.end; ++at) {
    ++count;
    if (at->second.writer != kNone) earlier.push_back(at->second.writer);
  }
  look_count_ += static_cast<int64_t>(count);
  if (!use.is_written && count <= kMaxPieces) return false;
  const size_t node = followed_.size();
  for (auto at = first; at != pieces_.end() && at->first < use.end; ++at) {
    // Behind a reader that was met before are only such.
    for (size_t k = at->second.readers; k != kNone && readers_[k].followed != node;
         k = readers_[k].before) {
      readers_[k].followed = node;
      earlier.push_back(readers_[k].node);
      ++look_count_;
    }
  }
  return true;
}

void Dependences::NoteRead(const MemoryUse& use, size_t node) {
  const auto read_since = [&](size_t before) {
    if (before != kNone && readers_[before].node == node) return before;
    // Of the piece next to it, which was read by the same nodes.
    if (!readers_.empty() && readers_.back().node == node && readers_.back().before == before) {
      return readers_.size() - 1;
    }
    readers_.push_back({node, before});
    return readers_.size() - 1;
  };
  CutAt(use.end);
  auto at = CutAt(use.begin);
  for (uint64_t begin = use.begin; begin < use.end; ++look_count_) {
    if (at == pieces_.end() || at->first > begin) {
      // Of what nobody has used.
      const uint64_t end = at == pieces_.end() ? use.end : std::min(use.end, at->first);
      at = pieces_.emplace_hint(at, begin, Piece{end});
    }
    at->second.readers = read_since(at->second.readers);
    begin = at->second.end;
    ++at;
  }
}

void Dependences::NoteWrite(const MemoryUse& use, size_t node) {
  if (use.begin >= use.end) return;
  const auto end = CutAt(use.end);
  const auto behind = pieces_.erase(CutAt(use.begin), end);
  pieces_.emplace_hint(behind, use.begin, Piece{use.end, node});
}

std::vector<size_t> Dependences::Pruned(const std::vector<size_t>& earlier) {
  const size_t node = followed_.size();
  for (const size_t follower : earlier) {
    const std::vector<size_t>& names = followed_[follower];
    const size_t first = names.size() - std::min(names.size(), kMaxPieces);
    for (size_t k = first; k < names.size(); ++k) named_for_[names[k]] = node;
    look_count_ += static_cast<int64_t>(names.size() - first);
  }
  std::vector<size_t> needed;
  std::ranges::copy_if(earlier, std::back_inserter(needed),
                       [&](size_t before) { return named_for_[before] != node; });
  return needed;
}

std::vector<size_t> Dependences::Add(std::span<const MemoryUse> uses) {
  std::vector<size_t> earlier;
  std::vector<MemoryUse> noted(uses.begin(), uses.end());
  for (MemoryUse& use : noted) use.is_written = Follow(use, earlier);
  std::ranges::sort(earlier);
  earlier.erase(std::ranges::unique(earlier).begin(), earlier.end());
  std::vector<size_t> needed = Pruned(earlier);
  const size_t node = followed_.size();
  for (const MemoryUse& use : noted) {
    if (!use.is_written) NoteRead(use, node);
  }
  for (const MemoryUse& use : noted) {
    if (use.is_written) NoteWrite(use, node);
  }
  followed_.push_back(needed);
  named_for_.push_back(kNone);
  return needed;
}

}  // namespace onnxifi::device
