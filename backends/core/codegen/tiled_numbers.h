// SPDX-License-Identifier: Apache-2.0
//
// The numbers that the kernels of a TiledProduct are given. For tiled_geometry.cc, which finds
// them, and the files that write the kernels, alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_NUMBERS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_NUMBERS_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/core/codegen/expression.h"
#include "backends/core/program/program.h"

namespace onnxifi::codegen {

// How many elements of the depth one item lays out.
inline constexpr int64_t kChunk = 32;

// Of LoopNest::given. Behind them: by batch axis the steps of rows and of columns, the extents of
// what is laid out of each; by column axis its pitch; of a convolution, by spatial axis extents and
// phases of the image; of a transposed one, then, how many q there are and the first.
enum GivenNumber : int {
  kRows,
  kRowTiles,
  kColumns,
  kColumnTiles,
  kLastStart,  // of a block's columns
  kChannels,   // inner loop of the sums; in whole words
  kDepth,      // in whole words
  kInner,      // elements of the depth that there are
  kChannelWords,
  kDepthWords,
  kStep,      // from one element of the depth to the next, in the columns
  kRowStep,   // the same in the rows, where items read their own
  kRowPitch,  // from one row to the next there
  kRowTilePitch,
  kRowPartPitch,
  kTilePitch,  // columns
  kPartPitch,  // columns
  kPhasePitch,
  kChunks,
  kItems,
  kRowItems,
  kColumnItems,
  kDepthPartCount,
  kDepthPartLength,
  kDepthPartItems,
  kJoinItems,
  kFixed,
};

// What `root` loads and which coordinates it names.
std::vector<program::ExprId> Leaves(const program::ExprPool& pool, program::ExprId root);
// Which reads `roots` load.
std::vector<bool> ReadsOf(const program::Program& program, const program::Step& step,
                          std::span<const program::ExprId> roots);

// Elements between the rows of blocks in shared memory, so that few of them begin in one bank.
inline constexpr int kCooperativeSpare = 8;
// How much of the depth is brought to shared memory at once.
inline int CooperativeDepth(const MatrixBlock& block) {
  constexpr int kMinDepth = 16;
  return block.depth * std::max(1, kMinDepth / block.depth);
}

// Fragments: words of 16 bytes of the depth that a group brings to shared memory at once, and how
// many pieces of so many are there or on their way.
inline constexpr int kPieceWords = 4;
inline constexpr int kPieceStages = 3;

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Of the taps of an axis, how many strides the last one reaches.
inline int64_t MaxShift(int64_t taps, int64_t dilation, int64_t stride) {
  return std::max<int64_t>(0, (taps - 1) * dilation / stride);
}

// Of a transposed convolution, the q of an axis's outputs (tiled_product.h).
struct Span {
  int64_t first;
  int64_t count;
};
inline Span SpanOf(int64_t out, int64_t pad, int64_t stride) {
  const int64_t first = FloorDiv(pad, stride);
  return {first, FloorDiv(out - 1 + pad, stride) - first + 1};
}

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_NUMBERS_H_
