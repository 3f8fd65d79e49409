// SPDX-License-Identifier: Apache-2.0
//
// Placement: a bounded walk over the wire form; only what leads to the metadata is looked into.

#include "onnxifi/split/placement.h"

#include <optional>

namespace onnxifi::split {
namespace {

using Bytes = std::span<const std::byte>;

// Field numbers of onnx.proto.
constexpr uint64_t kModelGraph = 7;
constexpr uint64_t kGraphNode = 1;
constexpr uint64_t kNodeMetadata = 9;
constexpr uint64_t kEntryKey = 1;
constexpr uint64_t kEntryValue = 2;

// The fields of a message that have a length; all others are passed over.
class Fields {
 public:
  explicit Fields(Bytes message) : left_(message) {}

  // False at the end, or where the bytes are no message.
  bool Next(uint64_t& number, Bytes& content) {
    while (const std::optional<uint64_t> tag = Varint()) {
      number = *tag >> 3;
      switch (*tag & 7) {
        case 0:
          if (!Varint()) return false;
          break;
        case 1:
          if (!Take(8)) return false;
          break;
        case 2: {
          const std::optional<uint64_t> length = Varint();
          const std::optional<Bytes> taken = length ? Take(*length) : std::nullopt;
          if (taken) content = *taken;
          return taken.has_value();
        }
        case 5:
          if (!Take(4)) return false;
          break;
        default:
          return false;
      }
    }
    return false;
  }

 private:
  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = std::to_integer<uint64_t>(left_.front());
      left_ = left_.subspan(1);
      value |= (byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }
  std::optional<Bytes> Take(uint64_t size_bytes) {
    if (size_bytes > left_.size()) return std::nullopt;
    const Bytes taken = left_.first(static_cast<size_t>(size_bytes));
    left_ = left_.subspan(taken.size());
    return taken;
  }

  Bytes left_;
};

std::string_view Text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Calls `read` with every field of this number.
template <typename Read>
void ForEach(Bytes message, uint64_t wanted, const Read& read) {
  Fields fields(message);
  uint64_t number = 0;
  Bytes content;
  while (fields.Next(number, content)) {
    if (number == wanted) read(content);
  }
}

}  // namespace

std::map<int32_t, std::string> PlacementsOf(std::span<const std::byte> model) {
  std::map<int32_t, std::string> placements;
  int32_t node = 0;
  ForEach(model, kModelGraph, [&](Bytes graph) {
    ForEach(graph, kGraphNode, [&](Bytes content) {
      ForEach(content, kNodeMetadata, [&](Bytes entry) {
        bool is_placement = false;
        ForEach(entry, kEntryKey, [&](Bytes key) { is_placement = Text(key) == kPlacementKey; });
        if (!is_placement) return;
        ForEach(entry, kEntryValue, [&](Bytes value) { placements[node] = Text(value); });
      });
      ++node;
    });
  });
  return placements;
}

}  // namespace onnxifi::split
