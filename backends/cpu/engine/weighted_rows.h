// SPDX-License-Identifier: Apache-2.0
//
// WeightedRows: a Map or Reduce that adds up rows of memory, each times one weight:
//   out[row, lane] = sum over taps of weight[row, tap] * source[place[row, tap] + lane]
// as Resize, GridSample, RoiAlign and bags of embeddings are, or a Reduce to the mean, the maximum
// or the minimum of such rows, as those of a graph's neighbours or of RoiAlign's points. Weights
// and places are computed once per row; the sum of a row that lies together stays in registers.
// Other rows are points (weighted_points.h).

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_WEIGHTED_ROWS_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_WEIGHTED_ROWS_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/code.h"
#include "backends/cpu/engine/runtime.h"

namespace onnxifi::engine {

inline constexpr int kNoRowAxis = -1;

// How the rows of a step are told. Immutable.
struct WeightedRows {
  // The roots of `numbers` that a tap has: its weight, and a coordinate per axis of the view but
  // for that along the row (-1 where rows have no axis).
  struct Tap {
    int read = 0;
    int weight = 0;  // -1: every weight is 1
    int along = 0;
    std::vector<int> coordinates;  // -1: along the row
  };
  // An axis along which every tap reads the element of its own index, with the same weight: where
  // the rows at its indices follow one another, they are one row.
  struct EvenAxis {
    int axis = 0;
    std::vector<int> along;  // by tap: the axis of its view
  };
  Code numbers;
  std::vector<Tap> taps;  // of a Map its terms, in order; of a Reduce one, for every element
  int row_axis = 0;       // or kNoRowAxis: every element is a row of its own
  int reduced_axes = 0;
  bool begins_with_zero = true;  // else with the first term
  // Of a Reduce, by which operation: kAdd, or kMax or kMin, which begin with a number.
  program::ExprOp operation = program::ExprOp::kAdd;
  float begin = 0;
  std::optional<Code> finish;       // of its result, as kState; nothing where that is the root
  std::vector<EvenAxis> even_axes;  // of a Map
};

// Null where the step is no such sum of float32.
std::shared_ptr<const WeightedRows> FindWeightedRows(const program::ExprPool& pool,
                                                     const program::Step& step, LoopSet loops);

// Null where rows are short or not together in memory, and where sums of so many elements are made
// in parts.
std::unique_ptr<device::BoundKernel> BindWeightedRows(std::shared_ptr<const WeightedRows> rows,
                                                      const device::BoundStep& step,
                                                      Runtime& runtime);

// A tap of one row: the element where its row begins, and what to do with its product.
struct RowTap {
  int64_t place;
  float weight;
  // Of the last tap of a part: how many parts before it are then added to it. -1 for other taps.
  int32_t merges;
};
// Of a tap that a guard keeps out.
inline constexpr int64_t kNowhere = std::numeric_limits<int64_t>::min();
// Parts that wait to be added up, at most.
inline constexpr int kMaxParts = 8;

// sums[lane] = first + weight * source[place + lane] + ..., in this order, each product rounded;
// the sum of a part begins with 0, but for the first, and ends as its last tap says. The last of
// `taps` ends the last part, with all others added to it.
void SumWeightedRow(const float* source, std::span<const RowTap> taps, float first, int64_t length,
                    float* sums);

// extremes[lane] = the largest (kMax) or smallest (kMin) of `begin` and weight * source[place +
// lane] of all taps, one after the other. A tap that is kNowhere has 0 there.
void FindExtremesOfRows(program::ExprOp operation, const float* source,
                        std::span<const RowTap> taps, float begin, int64_t length, float* extremes);

// Rows of the channels of an image, which are so short that a call for each takes longer than its
// sums: numbers of row r and tap t at weights[t][r] (null: 1) and places[t * place_stride + r].
struct ShortRows {
  std::span<const float* const> weights;
  const int64_t* places;
  int64_t place_stride;
  const int64_t* targets;  // where rows begin in the sums
  int64_t rows;
  int64_t length;
  float first;
};
inline constexpr int64_t kMaxShortRow = 256;
// The same sums as SumWeightedRow, of one part; zero times the weight of a tap that is kNowhere is
// added to `first`.
void SumShortRows(const float* source, const ShortRows& rows, float* sums);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_WEIGHTED_ROWS_H_
