// SPDX-License-Identifier: Apache-2.0
//
// Dependences: which earlier nodes of a graph the next one follows, told from the memory that each
// uses. Nodes that need nothing of each other follow none of each other: branches run side by side.

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_DEPENDENCES_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_DEPENDENCES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "backends/core/device/memory_use.h"

namespace onnxifi::device {

class Dependences {
 public:
  // A read of more pieces of memory than this is taken for a write: whoever uses them later follows
  // it. So a graph of n nodes takes O(n log n) and the number of its edges.
  static constexpr size_t kMaxPieces = 64;

  // The next node, with all it uses: the numbers of those that it follows, ascending. What these
  // follow themselves is left out where one of them names it among its last few.
  std::vector<size_t> Add(std::span<const MemoryUse> uses);

  // Pieces, readers and edges that were looked at so far, for tests.
  int64_t look_count() const { return look_count_; }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  // A node that read a piece since it was written, and the one before it. Pieces that were one
  // share what was read before they were cut.
  struct Reader {
    size_t node;
    size_t before;            // in readers_
    size_t followed = kNone;  // by which node last
  };
  // Memory from its key on, up to `end`.
  struct Piece {
    uint64_t end;
    size_t writer = kNone;
    size_t readers = kNone;  // the last one, in readers_
  };
  using Pieces = std::map<uint64_t, Piece>;

  // The first piece that ends behind `address`; one that contains it is cut there.
  Pieces::iterator CutAt(uint64_t address);
  // Adds whom a node with this use follows. True if it counts as written.
  bool Follow(const MemoryUse& use, std::vector<size_t>& earlier);
  void NoteRead(const MemoryUse& use, size_t node);
  void NoteWrite(const MemoryUse& use, size_t node);
  // `earlier` without what others of it follow.
  std::vector<size_t> Pruned(const std::vector<size_t>& earlier);

  Pieces pieces_;  // disjoint
  std::vector<Reader> readers_;
  std::vector<std::vector<size_t>> followed_;  // by node
  std::vector<size_t> named_for_;              // by node: for which one it was last named
  int64_t look_count_ = 0;
};

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_DEPENDENCES_H_
