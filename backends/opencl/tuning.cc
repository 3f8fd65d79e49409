// SPDX-License-Identifier: Apache-2.0
//
// Tuning: a line per rule, its fields between commas.

#include "backends/opencl/tuning.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "backends/opencl/kernels.h"

namespace onnxifi::opencl {
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

}  // namespace

codegen::TileShape Tuning::TileFor(int64_t rows, int sum_bits) const {
  for (const Tile& tile : tiles) {
    if (tile.most_rows != 0 && rows > tile.most_rows) continue;
    return {tile.rows, tile.vectors, std::max(1, tile.vector_bits / sum_bits), tile.group_size};
  }
  return {.rows = 4, .vectors = 4, .lanes = 1, .group_size = 1};
}

Status AddRules(std::string_view table, std::string_view device_class, Tuning& tuning) {
  std::vector<Tuning::Tile> tiles;
  while (!table.empty()) {
    const std::string_view line = TakeUntil(table, '\n');
    std::string_view fields = line;
    if (line.empty() || line.front() == '#' || TakeUntil(fields, ',') != device_class) continue;
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
    } else if (kind == "run") {
      int length = 0;
      int group_size = 0;
      if (ReadNumbers(fields, {&length, &group_size}) && length >= 1 && length <= 4096 &&
          group_size >= 1 && group_size <= 1024) {
        tuning.run_length = length;
        tuning.run_group_size = group_size;
        continue;
      }
    }
    return Status(Code::kInvalidProperty,
                  "A table of tiles has a line that says nothing: " + std::string(line));
  }
  tuning.tiles.insert(tuning.tiles.begin(), tiles.begin(), tiles.end());
  return base::Ok();
}

Tuning FindTuning(std::string_view device_class, std::string_view name,
                  const std::filesystem::path& folder) {
  Tuning tuning;
  // The embedded table is tested to be right.
  static_cast<void>(AddRules(kTuningTable, device_class, tuning));
  if (folder.empty()) return tuning;
  std::ifstream file(folder / kTuningFile);
  const std::string table{std::istreambuf_iterator<char>(file), {}};
  Tuning measured = tuning;
  if (AddRules(table, name, measured).ok()) return measured;
  return tuning;
}

}  // namespace onnxifi::opencl
