// SPDX-License-Identifier: Apache-2.0
//
// AmxTiles: every tile has 16 rows of 64 bytes, so one configuration serves all blocks of a
// product. Instructions are written out: the compiler's own functions do not tell it that a tile
// reads memory.

#include "backends/cpu/integer/amx_tiles.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "backends/cpu/integer/tile_block-inl.h"

namespace onnxifi::integer {
namespace {

struct Configuration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Configuration) == 64);

struct Tiles {
  template <int tile>
  void Load(const uint8_t* address, int64_t stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2"
                     :
                     : "r"(address), "r"(stride), "i"(tile)
                     : "memory");
  }
  template <int tile>
  void Store(uint8_t* address, int64_t stride) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)"
                     :
                     : "r"(address), "r"(stride), "i"(tile)
                     : "memory");
  }
  // The operands stand in the opposite order of the manual's: columns, rows, sums.
  template <int sums, int rows, int columns>
  void Multiply() {
    __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(rows), "i"(columns));
  }
  void CopyRow(const uint8_t* row, int64_t bytes, uint8_t* target) const {
    const __mmask64 mask = bytes >= 64 ? ~uint64_t{0} : (uint64_t{1} << bytes) - 1;
    _mm512_store_si512(target, _mm512_maskz_loadu_epi8(mask, row));
  }
};

void Begin() {
  static constexpr Configuration kConfiguration;
  __asm__ volatile("ldtilecfg %0" : : "m"(kConfiguration));
}

void Multiply(const TileBlock& block) { MultiplyTiles(Tiles(), block); }

// Of tiles that hold nothing, nothing is kept when another thread has its turn.
void End() { __asm__ volatile("tilerelease"); }

constexpr TileFunctions kFunctions = {Begin, Multiply, End};

}  // namespace

const TileFunctions* AmxTiles() { return &kFunctions; }

}  // namespace onnxifi::integer

#else

namespace onnxifi::integer {

const TileFunctions* AmxTiles() { return nullptr; }

}  // namespace onnxifi::integer

#endif
