// SPDX-License-Identifier: Apache-2.0
//
// Tuning: rules read and derived.

#include "backends/core/codegen/tuning.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace onnxifi::codegen {
namespace {

using base::Code;
using base::Status;

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Takes what is before the first `mark`, or all, out of `text`.
std::string_view TakeUntil(std::string_view& text, char mark) {
  const size_t end = std::min(text.find(mark), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return Trimmed(part);
}

// Whole numbers from 0 to a million, as many as there are places; false for anything else.
bool ReadNumbers(std::string_view fields, std::initializer_list<int*> places) {
  for (int* place : places) {
    const std::string_view field = TakeUntil(fields, ',');
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), *place);
    if (error != std::errc() || end != field.data() + field.size()) return false;
    if (*place < 0 || *place > 1'000'000) return false;
  }
  return fields.empty();
}

bool IsPowerOfTwo(int value) { return value > 0 && (value & (value - 1)) == 0; }

// Vectors have the lengths that OpenCL knows, and a block fits what any compiler unrolls.
bool IsTile(const Tuning::Tile& tile) {
  return tile.rows >= 1 && tile.vectors >= 1 && tile.rows * tile.vectors <= 64 &&
         IsPowerOfTwo(tile.vector_bits) && tile.vector_bits >= 32 && tile.vector_bits <= 512 &&
         tile.group_size >= 1 && tile.group_size <= 1024;
}

bool IsBlock(const Tuning::Tile& tile) {
  if (tile.rows < 1 || tile.vectors < 1 || tile.rows * tile.vectors > 64 || tile.parts < 1 ||
      !IsPowerOfTwo(tile.item_rows) || !IsPowerOfTwo(tile.item_columns) || tile.item_rows > 1024 ||
      tile.item_columns > 1024 || tile.parts > 1024) {
    return false;
  }
  const int items = tile.item_rows * tile.item_columns;
  if (items > 1024 || items * tile.parts > 1024) return false;
  if (tile.depth == 0) return true;
  return tile.parts == 1 && IsPowerOfTwo(tile.depth) && tile.depth <= items;
}

// What the tiles of a group take, two pieces of the depth at once, and its parts' sums.
int64_t SharedBytes(const TileShape& tile, int sum_bits) {
  const int64_t parts = tile.parts == 1 ? 0 : tile.parts;
  const int64_t sums = parts * tile.block_rows() * tile.block_columns();
  if (tile.depth == 0) return sums * (sum_bits / 8);
  const int64_t bringers = tile.group_size / tile.depth;
  const int64_t place = tile.block_rows() + tile.block_columns() + 2 * bringers;
  return (sums + 2 * tile.depth * place) * (sum_bits / 8);
}

// That keep a multiprocessor busy while each has few sums.
constexpr int64_t kBusyItems = 256;

// What a group counts for where items keep the device busy. An item waits for a load from memory
// only if its products of the piece before end sooner. With 64 sums, and pieces 16 deep, these are
// 1,024 multiply-adds that do not wait for each other, more cycles than the 400 to 800 of a load,
// so that an item for each of the 128 lanes of a multiprocessor is enough. Still each
// multiprocessor needs a group.
int64_t CountedItems(const TileShape& tile) {
  constexpr int kManySums = 64;
  const int64_t items = std::max(1, tile.group_size);
  if (tile.depth == 0 || tile.rows * tile.columns() < kManySums) return items;
  return std::max(items, std::min(2 * items, kBusyItems));
}

// Of all blocks, those parts that are no outputs included. An item takes an element of each of its
// rows and columns from shared memory for all products of them, and a group brings there one of
// each row and column of the block, from further away: a load takes some seven times as long as a
// product, and one from the tensors twice that.
double Work(const TileShape& tile, int64_t rows, int64_t columns) {
  const auto padded = [](int64_t count, int64_t size) {
    return static_cast<double>((count + size - 1) / size * size);
  };
  constexpr double kProduct = 0.15;
  return padded(rows, tile.block_rows()) * padded(columns, tile.block_columns()) *
         (kProduct + 1.0 / tile.rows + 1.0 / tile.columns() + 2.0 / tile.block_rows() +
          2.0 / tile.block_columns());
}

// The rules of a device whose items are the lanes.
std::vector<Tuning::Tile> GroupTiles(const DeviceLimits& limits) {
  const int64_t most_group_items = std::max<int64_t>(limits.most_group_items, 1);
  std::vector<Tuning::Tile> tiles;
  const auto add = [&](Tuning::Tile tile) {
    const auto size = [&] { return tile.item_rows * tile.item_columns * tile.parts; };
    while (size() > most_group_items && tile.parts > 1) tile.parts /= 2;
    while (size() > most_group_items && tile.item_rows > 1) tile.item_rows /= 2;
    while (size() > most_group_items && tile.item_columns > 1) tile.item_columns /= 2;
    tile.group_size = size();
    tile.depth = std::min(tile.depth, tile.group_size);
    tiles.push_back(tile);
  };
  // So few rows are nothing to share: an item reads its columns once for all of them. Deep sums are
  // shared out, so that there are items enough.
  constexpr int kShallow = 64;
  const bool is_cut = limits.multiprocessors > 0;
  for (const int rows : {1, 2, 4, 8}) {
    add({.most_rows = rows,
         .rows = rows,
         .vectors = 4,
         .most_depth = kShallow,
         .item_rows = 1,
         .item_columns = 64});
    if (!is_cut) {
      add({.most_rows = rows,
           .rows = rows,
           .vectors = 4,
           .item_rows = 1,
           .item_columns = 16,
           .parts = 16});
      continue;
    }
    // The fewer columns there are, the more items each has. Each brings words of four columns.
    for (const int columns : {16, 8, 4}) {
      const int most_parts = rows <= 4 ? 128 : 64;
      add({.most_rows = rows,
           .rows = rows,
           .vectors = 4,
           .item_rows = 1,
           .item_columns = columns,
           .parts = std::min(512 / columns, most_parts),
           .is_alternative = true});
    }
  }
  const auto add_shared = [&](int rows, int columns, int item_rows, int item_columns, int depth) {
    add({.rows = rows,
         .vectors = columns,
         .item_rows = item_rows,
         .item_columns = item_columns,
         .depth = depth,
         .is_alternative = true});
  };
  // Where blocks share out their depth there are groups enough for the device, which wait for
  // longer pieces less often, and large blocks where there are many.
  const int depth = is_cut ? 16 : 8;
  if (is_cut) {
    add_shared(8, 8, 16, 16, depth);
    add_shared(8, 8, 8, 16, depth);
  }
  add_shared(8, 8, 8, 8, depth);
  add_shared(8, 8, 4, 16, depth);
  add_shared(8, 8, 2, 32, depth);
  add_shared(4, 4, 16, 8, 16);
  add_shared(4, 4, 8, 16, 16);
  add_shared(4, 4, 4, 32, 16);
  // Of images of a few pixels.
  add_shared(8, 4, 16, 4, 16);
  add_shared(4, 4, 16, 4, 16);
  return tiles;
}

}  // namespace

// Which share of its items a device has at work, at most 1, if blocks share out their depth.
double Tuning::Busy(const TileShape& tile, int64_t rows, int64_t columns, int64_t inner,
                    int64_t count) const {
  const auto blocks = [](int64_t whole, int64_t size) {
    return static_cast<double>((whole + size - 1) / size);
  };
  // Items that read what nobody else does are at work only while they wait for enough.
  constexpr double kReaders = 4;
  const bool are_readers = tile.depth == 0;
  const int64_t cuts = are_readers ? 1 : std::max<int64_t>(1, inner / kMinBusyDepth);
  const double items = blocks(rows, tile.block_rows()) * blocks(columns, tile.block_columns()) *
                       static_cast<double>(count * cuts * CountedItems(tile));
  return std::min(1.0, items / static_cast<double>(busy_items) / (are_readers ? kReaders : 1));
}

int64_t Tuning::BusyGroups(const TileShape& tile) const {
  if (busy_items == 0) return 0;
  return std::max<int64_t>(1, busy_items / CountedItems(tile));
}

TileShape Tuning::TileFor(int64_t rows, int64_t depth, int sum_bits, int64_t columns, int64_t inner,
                          int64_t count) const {
  std::optional<TileShape> best;
  double least_work = 0;
  bool best_is_of_few_rows = false;
  for (const Tile& tile : tiles) {
    if (tile.most_rows != 0 && rows > tile.most_rows) continue;
    if (tile.most_depth != 0 && depth > tile.most_depth) continue;
    // Those for few rows need no kernels beside.
    if (best && tile.most_rows == 0 && best_is_of_few_rows) break;
    TileShape shape{.rows = tile.rows,
                    .vectors = tile.vectors,
                    .lanes = std::max(1, tile.vector_bits / sum_bits),
                    .group_size = tile.group_size,
                    .are_items_lanes = are_items_lanes,
                    .item_rows = tile.item_rows,
                    .item_columns = tile.item_columns,
                    .depth = tile.depth,
                    .parts = tile.parts};
    shape.busy_groups = BusyGroups(shape);
    const auto is_too_large = [&] {
      return shape.is_of_group() && SharedBytes(shape, sum_bits) > shared_bytes;
    };
    while (is_too_large() && shape.depth > 1) shape.depth /= 2;
    if (is_too_large()) continue;
    if (!tile.is_alternative) return shape;
    double work = Work(shape, rows, columns);
    if (busy_items > 0) work /= Busy(shape, rows, columns, inner, count);
    if (!best || work < least_work) {
      best = shape;
      least_work = work;
      best_is_of_few_rows = tile.most_rows != 0;
    }
  }
  if (best) return *best;
  return {.rows = 4, .vectors = 4, .are_items_lanes = are_items_lanes};
}

void Tuning::Describe(Capabilities& capabilities) const {
  capabilities.run_length = run_length;
  capabilities.run_group_size = run_group_size;
  capabilities.row_parts = row_parts;
  capabilities.byte_array_padding = byte_array_padding;
  capabilities.row_group_size = row_group_size;
  capabilities.row_shared_bytes = row_shared_bytes;
  capabilities.long_item_group_size = long_item_group_size;
  capabilities.is_float64_fast = is_float64_fast;
  capabilities.matrix_units.split_depth = split_depth;
}

Tuning DeriveTuning(const DeviceLimits& limits) {
  Tuning tuning;
  tuning.is_float64_fast = limits.is_float64_fast;
  if (!limits.is_processor) {
    const auto group_size = static_cast<int>(std::clamp<int64_t>(limits.most_group_items, 1, 64));
    tuning.tiles = GroupTiles(limits);
    // More is not given without a request.
    constexpr int64_t kMaxSharedBytes = int64_t{48} << 10;
    tuning.shared_bytes = std::min(
        limits.shared_bytes, limits.multiprocessors > 0 ? kMaxSharedBytes : tuning.shared_bytes);
    tuning.are_items_lanes = true;
    // A few groups on each hide what others wait for.
    tuning.busy_items = limits.multiprocessors * kBusyItems;
    tuning.run_group_size = group_size;
    tuning.long_item_group_size = group_size;
    // So many loads of a long row are under way at a time.
    constexpr int kRowItems = 256;
    if (limits.most_group_items >= kRowItems) tuning.row_group_size = kRowItems;
    tuning.row_shared_bytes = std::min(limits.shared_bytes, kMaxSharedBytes);
    return tuning;
  }
  const int vector_bits = std::clamp(limits.vector_bits, 32, 512);
  const int registers = vector_bits == 512 ? 32 : 16;
  constexpr int kVectors = 2;
  const int rows = std::min(8, (registers - kVectors - 1) / kVectors);
  // A row alone has more vectors instead, and so little to do that an item is not worth a group.
  tuning.tiles = {
      {.most_rows = 1, .rows = 1, .vectors = 4, .vector_bits = vector_bits, .group_size = 4},
      {.most_rows = 4, .rows = 4, .vectors = kVectors, .vector_bits = vector_bits},
      {.most_rows = 0, .rows = rows, .vectors = kVectors, .vector_bits = vector_bits}};
  tuning.run_length = 64;
  tuning.run_group_size = 16;
  // Of floats a vector of any processor.
  tuning.row_parts = 16;
  // PoCL 3.1 with LLVM 15 makes zeros of an array of 16 bytes that two loops in vectors change; an
  // array of 17 stays what it is.
  tuning.byte_array_padding = 1;
  // A few, so that there are groups for every thread.
  tuning.long_item_group_size = 4;
  return tuning;
}

Status AddRules(std::string_view table, std::string_view name, Tuning& tuning) {
  std::vector<Tuning::Tile> tiles;
  while (!table.empty()) {
    const std::string_view line = TakeUntil(table, '\n');
    // Names of devices have commas, too.
    std::string_view fields = line;
    if (line.empty() || line.front() == '#' || !line.starts_with(name)) continue;
    fields.remove_prefix(name.size());
    if (!TakeUntil(fields, ',').empty()) continue;
    const std::string_view kind = TakeUntil(fields, ',');
    if (kind == "tile") {
      Tuning::Tile tile;
      int most_rows = 0;
      if (ReadNumbers(fields, {&most_rows, &tile.rows, &tile.vectors, &tile.vector_bits,
                               &tile.group_size}) &&
          IsTile(tile)) {
        tile.most_rows = most_rows;
        tiles.push_back(tile);
        continue;
      }
    } else if (kind == "block") {
      Tuning::Tile tile;
      int most_rows = 0;
      int most_depth = 0;
      if (ReadNumbers(fields, {&most_rows, &most_depth, &tile.rows, &tile.vectors, &tile.item_rows,
                               &tile.item_columns, &tile.depth, &tile.parts}) &&
          IsBlock(tile)) {
        tile.most_rows = most_rows;
        tile.most_depth = most_depth;
        tile.group_size = tile.item_rows * tile.item_columns * tile.parts;
        tiles.push_back(tile);
        continue;
      }
    } else if (kind == "run") {
      int length = 0;
      int group_size = 0;
      if (ReadNumbers(fields, {&length, &group_size}) && length >= 1 && length <= 4096 &&
          group_size >= 1 && group_size <= 1024) {
        tuning.run_length = length;
        tuning.run_group_size = group_size;
        continue;
      }
    } else if (kind == "busy") {
      int items = 0;
      if (ReadNumbers(fields, {&items})) {
        tuning.busy_items = items;
        continue;
      }
    } else if (kind == "3xtf32") {
      int depth = 0;
      if (ReadNumbers(fields, {&depth}) && depth >= Tuning::kMinSplitDepth) {
        tuning.split_depth = depth;
        continue;
      }
    }
    return Status(Code::kInvalidProperty,
                  "A table of tiles has a line that says nothing: " + std::string(line));
  }
  tuning.tiles.insert(tuning.tiles.begin(), tiles.begin(), tiles.end());
  return base::Ok();
}

Tuning FindTuning(const DeviceLimits& limits, std::string_view name, std::string_view table,
                  const std::filesystem::path& file) {
  if (const char* const kind = std::getenv("ONNXIFI_TUNING"); kind != nullptr && *kind != '\0') {
    DeviceLimits forced = limits;
    forced.is_processor = forced.is_float64_fast = std::string_view(kind) == "processor";
    forced.multiprocessors = 16;
    return DeriveTuning(forced);
  }
  Tuning tuning = DeriveTuning(limits);
  // A backend's own table is tested to be right.
  static_cast<void>(AddRules(table, name, tuning));
  if (file.empty()) return tuning;
  std::ifstream stream(file);
  const std::string lines{std::istreambuf_iterator<char>(stream), {}};
  Tuning measured = tuning;
  if (AddRules(lines, name, measured).ok()) return measured;
  return tuning;
}

}  // namespace onnxifi::codegen
