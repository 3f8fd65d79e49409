// SPDX-License-Identifier: Apache-2.0
//
// UsedTiles: a processor's are used once a product by them was right: some
// machines that only imitate a processor say that they have instructions which they do not carry
// out.

#include "backends/cpu/integer/used_tiles.h"

#include <atomic>
#include <cstddef>
#include <vector>

#include "backends/cpu/integer/amx_tiles.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::integer {
namespace {

std::atomic<const TileFunctions*> given_tiles = nullptr;

// Rows of more than one tile, and of all bytes, those that are negative as signed ones among them.
bool AreRight(const TileFunctions& tiles) {
  constexpr int64_t kQuadBytes = 4;
  constexpr int64_t kQuads = kTileQuads + 3, kBytes = kQuads * kQuadBytes;
  constexpr int64_t kColumns = 2 * kTileColumns;
  const auto byte = [](int64_t k) { return static_cast<uint8_t>(k * 89 + (k >> 5)); };
  std::vector<uint8_t> a(static_cast<size_t>(kMaxTileBlockRows * kBytes));
  for (size_t k = 0; k < a.size(); ++k) a[k] = byte(static_cast<int64_t>(k));
  std::vector<int8_t> panel(static_cast<size_t>((kQuads + kTileQuads) * kColumns * kQuadBytes));
  for (size_t k = 0; k < panel.size(); ++k) {
    panel[k] = static_cast<int8_t>(byte(static_cast<int64_t>(k) + 7));
  }
  const uint8_t* rows[kMaxTileBlockRows];
  for (int64_t r = 0; r < kMaxTileBlockRows; ++r) rows[r] = a.data() + r * kBytes;
  std::vector<int32_t> sums(static_cast<size_t>(kMaxTileBlockRows * kColumns), 5);
  const int64_t at_row = 0;
  tiles.begin();
  tiles.multiply({rows, 2, 2, kBytes, panel.data(), &at_row, 1, kQuads, sums.data()});
  tiles.end();
  for (int64_t r = 0; r < kMaxTileBlockRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) {
      int32_t sum = 5;
      for (int64_t k = 0; k < kBytes; ++k) {
        sum += rows[r][k] * panel[static_cast<size_t>((k / kQuadBytes * kColumns + c) * kQuadBytes +
                                                      k % kQuadBytes)];
      }
      if (sums[static_cast<size_t>(r * kColumns + c)] != sum) return false;
    }
  }
  return true;
}

const TileFunctions* FindProcessorTiles() {
  const TileFunctions* const tiles = AmxTiles();
  return tiles != nullptr && AreRight(*tiles) ? tiles : nullptr;
}

}  // namespace

const TileFunctions* ProcessorTiles() {
  if (!processor::HasByteTiles()) return nullptr;
  static const TileFunctions* const tiles = FindProcessorTiles();
  return tiles;
}

const TileFunctions* UsedTiles() {
  const TileFunctions* const given = given_tiles.load(std::memory_order_relaxed);
  return given != nullptr ? given : ProcessorTiles();
}

void GiveTiles(const TileFunctions* tiles) { given_tiles = tiles; }

}  // namespace onnxifi::integer
