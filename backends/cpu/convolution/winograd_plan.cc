// SPDX-License-Identifier: Apache-2.0
//
// Winograd plan: sizes from the caches, costs in multiply-adds.

#include "backends/cpu/convolution/winograd_plan.h"

#include <algorithm>

#include "backends/cpu/convolution/winograd_weights.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/threads/thread_pool.h"

namespace onnxifi::convolution {
namespace {

constexpr int64_t kLineFloats = 16;

int64_t RoundUp(int64_t number, int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

int64_t TilesAlong(int64_t extent, Tile tile) {
  const auto side = static_cast<int64_t>(tile);
  return (extent + side - 1) / side;
}

// A float of weights from memory, as the multiply-adds that a thread could do meanwhile.
double CostOfAWeight() {
  return processor::kCyclesPerFloatFromMemory * processor::MultiplyAddsPerCycle();
}

// How many of `tiles` tiles, `most` at the most, a thread transforms and multiplies at a time: as
// many chunks for every thread, several where that costs little, so that a thread that is late
// leaves some to others.
int64_t ChooseChunk(int64_t tiles, int64_t most, int64_t rows, int64_t threads) {
  // In tiles: weights are read once in a chunk; some rows of a block are less than a block is
  // worth; at the end threads wait for the last, for a share of a chunk.
  constexpr double kWeights = 2;
  const int64_t least = std::max<int64_t>(1, (tiles + most * threads - 1) / (most * threads));
  const int64_t each = threads == 1 ? 1 : threads::ThreadPool::kPartsPerThread;
  int64_t best = 1;
  double best_cost = 0;
  for (int64_t rounds = least; rounds <= std::max(least, each); ++rounds) {
    const int64_t even = std::max<int64_t>(1, (tiles + rounds * threads - 1) / (rounds * threads));
    for (const int64_t chunk : {even, RoundUp(even, rows)}) {
      const int64_t chunks = (tiles + chunk - 1) / chunk;
      const auto needed = static_cast<double>((chunks + threads - 1) / threads);
      const double ragged = chunk % rows == 0 ? 0 : static_cast<double>(rows) / 4;
      const double cost =
          needed * (static_cast<double>(chunk) + ragged + kWeights) +
          threads::ThreadPool::kShareWaitedFor * static_cast<double>(threads == 1 ? 0 : chunk);
      if (best_cost == 0 || cost < best_cost) {
        best = chunk;
        best_cost = cost;
      }
    }
  }
  return best;
}

constexpr int64_t kSharedFloats = int64_t{1} << 22;  // of any last-level cache: 16 MiB

// All but the chunks.
WinogradPlan DescribeTiles(Tile tile, const WinogradShape& shape) {
  WinogradPlan plan{};
  plan.tile = tile;
  plan.tiles_down = TilesAlong(shape.out_height, tile);
  plan.tiles_across = TilesAlong(shape.out_width, tile);
  plan.tiles = shape.batch * plan.tiles_down * plan.tiles_across;
  // Whole vectors and whole cache lines.
  plan.in_stride = RoundUp(shape.in_channels, kLineFloats);
  plan.out_stride = RoundUp(shape.out_channels, gemm::PanelColumns());
  return plan;
}

}  // namespace

WinogradPlan MakePlan(Tile tile, const WinogradShape& shape, int threads) {
  WinogradPlan plan = DescribeTiles(tile, shape);
  const int64_t floats_per_tile = Frequencies(tile) * (plan.in_stride + plan.out_stride);
  // Chunks of a thread's own stay in its L2 cache; weights too large for that are read once, by all
  // threads together.
  const int64_t own_floats = processor::L2Floats() / 2;
  const int64_t weights = TransformedSize(tile, shape.in_channels, shape.out_channels);
  const int64_t rows = gemm::BlockRows();
  plan.is_by_frequency = threads > 1 && weights > own_floats;
  const int64_t limit = plan.is_by_frequency || weights > own_floats ? kSharedFloats : own_floats;
  const int64_t most = std::max<int64_t>(1, limit / floats_per_tile);
  if (plan.is_by_frequency) {
    const int64_t chunks = std::max<int64_t>(1, (plan.tiles + most - 1) / most);
    plan.chunk = std::max<int64_t>(1, (plan.tiles + chunks - 1) / chunks);
  } else {
    plan.chunk = ChooseChunk(plan.tiles, most, rows, threads);
  }
  // A cache line more, so that the frequencies of a tile do not share a set of the cache.
  plan.in_frequency_stride = plan.chunk * plan.in_stride + kLineFloats;
  plan.out_frequency_stride = plan.chunk * plan.out_stride + kLineFloats;
  plan.work_floats = Frequencies(tile) * (plan.in_frequency_stride + plan.out_frequency_stride);
  return plan;
}

FramePlan MakeFramePlan(Tile tile, const WinogradShape& shape, const FrameAxis& axis, int threads) {
  WinogradShape frame = shape;
  frame.batch = 1;
  FramePlan plan{};
  WinogradPlan& tiles = plan.tiles;
  tiles = DescribeTiles(tile, frame);
  const auto floats_per_tile = [&](int64_t frames) {
    return Frequencies(tile) * (axis.Reach(frames) * tiles.in_stride + frames * tiles.out_stride);
  };
  // Weights and chunks as in MakePlan.
  const int64_t own_floats = processor::L2Floats() / 2;
  const int64_t weights =
      TransformedSize(tile, axis.kernel * shape.in_channels, shape.out_channels);
  tiles.is_by_frequency = threads > 1 && weights > own_floats;
  const int64_t limit = weights > own_floats ? kSharedFloats : own_floats;
  plan.frames = std::max<int64_t>(1, axis.out);
  while (plan.frames > 1 && floats_per_tile(plan.frames) > limit) {
    plan.frames = (plan.frames + 1) / 2;
  }
  plan.frame_chunks = (axis.out + plan.frames - 1) / plan.frames;
  int64_t most = std::max<int64_t>(1, limit / floats_per_tile(plan.frames));
  if (!tiles.is_by_frequency && threads > 1) {
    // Several chunks for every thread, of no less than a block of rows.
    const int64_t parts = threads * threads::ThreadPool::kPartsPerThread;
    const int64_t even = (shape.batch * plan.frame_chunks * tiles.tiles + parts - 1) / parts;
    const int64_t block = (gemm::BlockRows() + plan.frames - 1) / plan.frames;
    most = std::min(most, std::max({even, block, int64_t{1}}));
  }
  plan.tile_chunks = std::max<int64_t>(1, (tiles.tiles + most - 1) / most);
  tiles.chunk = std::max<int64_t>(1, (tiles.tiles + plan.tile_chunks - 1) / plan.tile_chunks);
  tiles.in_frequency_stride = axis.Reach(plan.frames) * tiles.chunk * tiles.in_stride + kLineFloats;
  tiles.out_frequency_stride = plan.frames * tiles.chunk * tiles.out_stride + kLineFloats;
  tiles.work_floats = Frequencies(tile) * (tiles.in_frequency_stride + tiles.out_frequency_stride);
  return plan;
}

double WinogradCost(Tile tile, const WinogradShape& shape) {
  const double tiles = static_cast<double>(shape.batch) *
                       static_cast<double>(TilesAlong(shape.out_height, tile)) *
                       static_cast<double>(TilesAlong(shape.out_width, tile));
  const auto frequencies = static_cast<double>(Frequencies(tile));
  const auto in = static_cast<double>(shape.in_channels);
  const auto out = static_cast<double>(shape.out_channels);
  return std::max(tiles, CostOfAWeight()) * frequencies * in * out *
             static_cast<double>(shape.frame_taps) +
         tiles * frequencies * (in + out) * processor::kMultiplyAddsPerTransformedFloat;
}

double DirectCost(const WinogradShape& shape) {
  const double pixels = static_cast<double>(shape.batch) * static_cast<double>(shape.out_height) *
                        static_cast<double>(shape.out_width);
  return std::max(pixels, CostOfAWeight()) * 9 * static_cast<double>(shape.frame_taps) *
         static_cast<double>(shape.in_channels) * static_cast<double>(shape.out_channels);
}

std::optional<Tile> ChooseTile(const WinogradShape& shape) {
  const double direct = DirectCost(shape);
  const double narrow = WinogradCost(Tile::k2x2, shape);
  const double wide = WinogradCost(Tile::k4x4, shape);
  if (std::min(narrow, wide) > kWorthwhile * direct) return std::nullopt;
  return wide < narrow ? Tile::k4x4 : Tile::k2x2;
}

int64_t TilesOf(const WinogradPlan& plan, int64_t chunk) {
  return std::min(plan.chunk, plan.tiles - chunk * plan.chunk);
}

}  // namespace onnxifi::convolution
