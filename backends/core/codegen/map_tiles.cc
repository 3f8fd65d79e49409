// SPDX-License-Identifier: Apache-2.0
//
// MapTiles: which steps have tiles, and their kernel: every item of a group loads some elements of
// the tile, all meet at a barrier, and every item computes and stores others. Items of a tile that
// reaches beyond the domain load what is inside of it in place of what is not.

#include "backends/core/codegen/map_tiles.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "backends/core/program/expr.h"

namespace onnxifi::codegen {
namespace {

using device::BoundView;
using tensor::ElementType;

// Along shorter axes an item per element finds its neighbours' elements in the cache.
constexpr int64_t kMinExtent = 8;
// Elements of a tile along reads, which for wide ones are so many bytes, and along writes.
constexpr int kMaxSide = 64;
constexpr int kMaxRowBytes = 256;
// All tiles of a group: so that several groups have room.
constexpr int64_t kMaxBytes = int64_t{20} << 10;
constexpr int kBankBytes = 4;
// An item's loop over its elements is unrolled up to so many.
constexpr size_t kMaxOperations = 256;

int BytesOf(ElementType type) { return tensor::BitWidth(type) / 8; }

int64_t StrideOf(const BoundView& view, int axis) {
  const auto at = static_cast<size_t>(axis);
  return at < view.strides.size() ? std::abs(view.strides[at]) : 0;
}

// The axis of more than kMinExtent elements that a view lies along; -1: there is none.
int AxisAlong(const BoundView& view, const LoopNest& loops) {
  for (int axis = loops.form.rank; axis-- > 0;) {
    if (StrideOf(view, axis) == 1 && loops.extents[static_cast<size_t>(axis)] >= kMinExtent) {
      return axis;
    }
  }
  return -1;
}

// Elements between rows of a tile, so that items that go across them meet no bank twice.
int PitchOf(const MapTile& tile, ElementType type) {
  return tile.read_extent + std::max(1, kBankBytes / BytesOf(type));
}

int BytesOf(const MapTile& tile, ElementType type) {
  return PitchOf(tile, type) * tile.write_extent * BytesOf(type);
}

class TileWriter {
 public:
  TileWriter(Writer& writer, const Source& source)
      : writer_(writer),
        source_(source),
        tile_(source.form.tile),
        items_(source.capabilities.row_group_size) {}

  Launch Write() {
    const program::Map& map = *source_.step.As<program::Map>();
    is_inside_ = writer_.Declare("bool", "GROUP < count");
    FindOrigin();
    std::map<int, std::string> tiles;  // by read
    for (size_t read = 0; read < tile_.is_tiled.size(); ++read) {
      if (!tile_.is_tiled[read]) continue;
      const ElementType type = source_.step.reads[read].type;
      const std::string name = writer_.NewName("g");
      tiles[static_cast<int>(read)] = name;
      writer_.Share(
          Text(LaneType(type), " ", name, "[", PitchOf(tile_, type) * tile_.write_extent, "]"));
    }
    Load(tiles);
    writer_.Line("BARRIER;");
    Store(map, tiles);
    return {.given_items = kMapTiles, .has_group_per_item = true, .group_size = items_};
  }

 private:
  const std::string& Along(int axis, const std::string& reads, const std::string& writes) const {
    return axis == tile_.read_axis ? reads : writes;
  }

  // The coordinates of the tile's first element.
  void FindOrigin() {
    std::vector<std::string> extents;
    for (int axis = 0; axis < source_.form.rank; ++axis) {
      if (axis != tile_.read_axis && axis != tile_.write_axis) {
        extents.push_back(Extent(writer_, axis));
      }
    }
    extents.push_back(writer_.UseGiven(kTilesAlongWrites));
    extents.push_back(writer_.UseGiven(kTilesAlongReads));
    const std::string group =
        writer_.Declare("idx", Text(is_inside_, " ? AS(idx, GROUP) : AS(idx, 0)"));
    std::vector<std::string> at = WriteCoordinates(writer_, group, extents);
    first_read_ = writer_.Declare("idx", Text(at.back(), " * ", tile_.read_extent));
    at.pop_back();
    first_write_ = writer_.Declare("idx", Text(at.back(), " * ", tile_.write_extent));
    at.pop_back();
    auto next = at.begin();
    for (int axis = 0; axis < source_.form.rank; ++axis) {
      const bool is_of_tile = axis == tile_.read_axis || axis == tile_.write_axis;
      origin_.push_back(is_of_tile ? Along(axis, first_read_, first_write_) : *next++);
    }
  }

  // Opens the loop over an item's elements of a tile whose neighbours along an axis of `extent` are
  // neighbouring items', and declares their places along that axis and along the other one.
  struct TileElement {
    std::string along, across;
  };
  TileElement OpenElements(int extent, int other_extent, size_t operations) {
    const std::string along = writer_.Declare("int", Text("LANE % ", extent));
    const std::string first = writer_.Declare("int", Text("LANE / ", extent));
    const std::string round = writer_.NewName("l");
    const int at_once = items_ / extent;
    const int rounds = other_extent / at_once;
    const bool is_short = static_cast<size_t>(rounds) * operations <= kMaxOperations;
    writer_.Open(is_short ? "UNROLL " : "", "for (int ", round, " = 0; ", round, " < ", rounds,
                 "; ++", round, ")");
    return {along, writer_.Declare("int", Text(first, " + ", round, " * ", at_once))};
  }

  void Load(const std::map<int, std::string>& tiles) {
    const auto [along, across] = OpenElements(tile_.read_extent, tile_.write_extent, 1);
    std::vector<std::string> at = origin_;
    const auto set = [&](int axis, const std::string& place) {
      const std::string extent = Extent(writer_, axis);
      std::string& coordinate = at[static_cast<size_t>(axis)];
      const std::string wanted =
          writer_.Declare("idx", Text(coordinate, " + AS(idx, ", place, ")"));
      coordinate =
          writer_.Declare("idx", Text(wanted, " < ", extent, " ? ", wanted, " : ", extent, " - 1"));
    };
    set(tile_.read_axis, along);
    set(tile_.write_axis, across);
    for (const auto& [read, name] : tiles) {
      const ElementType type = source_.step.reads[static_cast<size_t>(read)].type;
      writer_.Line(name, "[", across, " * ", PitchOf(tile_, type), " + ", along,
                   "] = ", WriteLoad(writer_, source_.step, read, at), ";");
    }
    writer_.Close();
  }

  void Store(const program::Map& map, const std::map<int, std::string>& tiles) {
    const auto [along, across] =
        OpenElements(tile_.write_extent, tile_.read_extent,
                     program::Reachable(source_.program.exprs, map.roots).size());
    Scope scope;
    scope.coordinates = origin_;
    std::string is_inside = is_inside_;
    const auto set = [&](int axis, const std::string& place) {
      std::string& coordinate = scope.coordinates[static_cast<size_t>(axis)];
      coordinate = writer_.Declare("idx", Text(coordinate, " + AS(idx, ", place, ")"));
      is_inside += Text(" && ", coordinate, " < ", Extent(writer_, axis));
    };
    set(tile_.write_axis, along);
    set(tile_.read_axis, across);
    writer_.Open("if (", is_inside, ")");
    NameIndices(source_, scope);
    for (const auto& [read, name] : tiles) {
      const ElementType type = source_.step.reads[static_cast<size_t>(read)].type;
      scope.loaded[read] = Text(name, "[", along, " * ", PitchOf(tile_, type), " + ", across, "]");
    }
    const std::vector<std::string> values =
        WriteExpressions(writer_, source_.program, source_.step, scope, map.roots);
    for (size_t k = 0; k < values.size(); ++k) {
      WriteStore(writer_, source_.step, static_cast<int>(k), scope.coordinates, values[k]);
    }
    writer_.Close();
    writer_.Close();
  }

  Writer& writer_;
  const Source& source_;
  const MapTile& tile_;
  const int items_;
  std::string is_inside_;                 // the group is one of those that were asked for
  std::string first_read_, first_write_;  // of the tile, along its axes
  std::vector<std::string> origin_;       // by axis of the loops
};

// The smallest power of two that is not below the extent, at most `most`.
int Side(int64_t extent, int most) {
  int side = 1;
  while (side < most && side < extent) side *= 2;
  return side;
}

}  // namespace

void SetMapTile(const LoopFacts& facts, const device::BoundStep& step,
                const Capabilities& capabilities, LoopNest& loops) {
  if (step.step->As<program::Map>() == nullptr || loops.form.rank < 2) return;
  MapTile tile;
  for (const BoundView& view : loops.writes) {
    if (tensor::BitWidth(view.type) % 8 != 0) return;
    if (tile.write_axis < 0) tile.write_axis = AxisAlong(view, loops);
  }
  if (tile.write_axis < 0) return;
  int widest = 1;
  tile.is_tiled.assign(loops.reads.size(), false);
  for (size_t k = 0; k < loops.reads.size(); ++k) {
    const BoundView& view = loops.reads[k];
    const int width = tensor::BitWidth(view.type);
    if (facts.is_indexed[k] || width % 8 != 0 || width > 64) continue;
    if (StrideOf(view, tile.write_axis) <= 1) continue;
    const int axis = AxisAlong(view, loops);
    if (axis < 0 || (tile.read_axis >= 0 && axis != tile.read_axis)) continue;
    tile.read_axis = axis;
    tile.is_tiled[k] = true;
    widest = std::max(widest, BytesOf(view.type));
  }
  if (tile.read_axis < 0) return;
  const auto extent = [&](int axis) { return loops.extents[static_cast<size_t>(axis)]; };
  const int items = capabilities.row_group_size;
  const int most_reads = std::min(kMaxSide, kMaxRowBytes / widest);
  const int most_elements = most_reads * (widest > 2 ? kMaxSide / 2 : kMaxSide);
  // Where one axis is short, the other one makes up for it.
  const int64_t reads = extent(tile.read_axis);
  const int64_t writes = extent(tile.write_axis);
  tile.write_extent = Side(writes, std::min(most_elements / Side(reads, most_reads), items));
  tile.read_extent = Side(reads, std::min(most_elements / tile.write_extent, items));
  // So few elements are no work for a group.
  if (tile.read_extent * tile.write_extent < items) return;
  int64_t left = std::min(capabilities.row_shared_bytes, kMaxBytes);
  for (size_t k = 0; k < loops.reads.size(); ++k) {
    if (!tile.is_tiled[k]) continue;
    const int64_t bytes = BytesOf(tile, loops.reads[k].type);
    tile.is_tiled[k] = bytes <= left;
    if (tile.is_tiled[k]) left -= bytes;
  }
  if (std::ranges::count(tile.is_tiled, true) == 0) return;
  const auto quotient = [](int64_t count, int64_t size) { return (count + size - 1) / size; };
  const int64_t along_reads = quotient(extent(tile.read_axis), tile.read_extent);
  const int64_t along_writes = quotient(extent(tile.write_axis), tile.write_extent);
  int64_t tiles = along_reads * along_writes;
  for (int axis = 0; axis < loops.form.rank; ++axis) {
    if (axis != tile.read_axis && axis != tile.write_axis) tiles *= extent(axis);
  }
  loops.form.tile = std::move(tile);
  loops.given = {tiles, along_reads, along_writes};
}

Launch WriteMapOfTiles(Writer& writer, const Source& source) {
  return TileWriter(writer, source).Write();
}

}  // namespace onnxifi::codegen
