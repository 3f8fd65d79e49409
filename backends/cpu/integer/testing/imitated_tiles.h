// SPDX-License-Identifier: Apache-2.0
//
// ImitatedTiles: for tests: what the instructions of AMX do, in loops, so that products in tiles
// can be checked on processors without them. ForEachMultiplier goes through everything that
// multiplies bytes.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_TESTING_IMITATED_TILES_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_TESTING_IMITATED_TILES_H_

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "backends/cpu/integer/tile_block-inl.h"
#include "backends/cpu/integer/tile_block.h"
#include "backends/cpu/integer/used_tiles.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::integer {

class ImitatedTiles {
 public:
  // Whether the thread has tiles: between begin and end.
  static inline thread_local bool is_begun = false;

  static const TileFunctions* Functions() {
    static constexpr TileFunctions kFunctions = {
        [] { Expect(false); },
        [](const TileBlock& block) {
          if (!is_begun) throw std::logic_error("Tiles are used before they are configured.");
          MultiplyTiles(ImitatedTiles(), block);
        },
        [] { Expect(true); },
    };
    return &kFunctions;
  }

  template <int tile>
  void Load(const uint8_t* address, int64_t stride) {
    for (int64_t r = 0; r < kRows; ++r) {
      std::memcpy(tiles_[tile][r], address + r * stride, kBytes);
    }
  }
  template <int tile>
  void Store(uint8_t* address, int64_t stride) {
    for (int64_t r = 0; r < kRows; ++r) {
      std::memcpy(address + r * stride, tiles_[tile][r], kBytes);
    }
  }
  template <int sums, int rows, int columns>
  void Multiply() {
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < kRows; ++c) {
        uint32_t sum;
        std::memcpy(&sum, tiles_[sums][r] + 4 * c, sizeof(sum));
        for (int64_t k = 0; k < kBytes; ++k) {
          const auto column = static_cast<int8_t>(tiles_[columns][k / 4][4 * c + k % 4]);
          sum += static_cast<uint32_t>(tiles_[rows][r][k] * column);
        }
        std::memcpy(tiles_[sums][r] + 4 * c, &sum, sizeof(sum));
      }
    }
  }
  void CopyRow(const uint8_t* row, int64_t bytes, uint8_t* target) const {
    std::memset(target, 0, kBytes);
    std::memcpy(target, row, static_cast<size_t>(bytes));
  }

 private:
  static constexpr int64_t kRows = 16, kBytes = 64;

  static void Expect(bool has_begun) {
    if (is_begun != has_begun) throw std::logic_error("Tiles are begun and ended in turns.");
    is_begun = !has_begun;
  }

  uint8_t tiles_[8][kRows][kBytes] = {};
};

// Calls body(name) for each instruction set of the processor, without instructions for bytes, with
// them, and with tiles: imitated ones, and its own if it has some.
template <class Body>
void ForEachMultiplier(const Body& body) {
  processor::AllowByteTiles(false);
  processor::ForEachTarget([&](const char* target) {
    for (const bool is_allowed : {false, true}) {
      processor::AllowByteProducts(is_allowed);
      if (is_allowed && !processor::HasByteProducts()) continue;
      body(std::string(target) + (is_allowed ? " with byte products" : ""));
    }
    if (!processor::HasByteProducts() || std::string(target) != "AVX3") return;
    GiveTiles(ImitatedTiles::Functions());
    body(std::string(target) + " with imitated tiles");
    GiveTiles(nullptr);
    processor::AllowByteTiles(true);
    if (ProcessorTiles() != nullptr) body(std::string(target) + " with tiles");
    processor::AllowByteTiles(false);
  });
  processor::AllowByteTiles(true);
}

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_TESTING_IMITATED_TILES_H_
