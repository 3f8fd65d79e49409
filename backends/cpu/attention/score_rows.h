// SPDX-License-Identifier: Apache-2.0
//
// ScoreRows: blocks of scores in a cache: scaled and masked, and turned into weights while the
// largest score and the sum of weights of each row are kept (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018). Vector code for the processor at hand.

#ifndef ONNXIFI_BACKENDS_CPU_ATTENTION_SCORE_ROWS_H_
#define ONNXIFI_BACKENDS_CPU_ATTENTION_SCORE_ROWS_H_

#include <cstdint>

namespace onnxifi::attention {

// Rows of scores, `stride` floats from one to the next.
struct ScoreRows {
  float* scores;
  int64_t stride;
  int64_t rows;
  int64_t keys;
};

// A row becomes row * factor + addend, or row / factor + addend.
struct Scaling {
  float factor = 1;
  bool divides = false;
  const float* addend = nullptr;  // at any address; null for none
  bool is_addend_one = false;     // one number for all keys
};
void ScaleRow(const Scaling& scaling, float* row, int64_t keys);

// Of the keys met so far, by row: the largest score, the sum of exp(score - largest), and what that
// sum was multiplied by in the last block, since the largest score grew. Without keys they are
// minus infinity and 0.
struct RowSums {
  float* largest;
  float* total;
  float* shrink;
};
// Scores become exp(score - largest), to the bound of vector_math's Exp; below 1e-38 they become 0.
// A row with NaN, or with an infinite score, has a total of NaN from then on. In a row whose scores
// are all minus infinity the weights are 0.
void WeighRows(const ScoreRows& block, const RowSums& sums);

// Multiplies rows that shrink.
void ShrinkRows(const float* shrink, int64_t rows, float* sums, int64_t stride, int64_t columns);
// to[column] = sums[column] / total.
void DivideRow(const float* sums, float total, int64_t columns, float* to);
// to[column] = to[column] + sums[column] * weight.
void AddRow(const float* sums, float weight, int64_t columns, float* to);

// The largest absolute value, infinity for infinities and NaN; the numbers lie at any address.
float LargestOf(const float* numbers, int64_t count);

}  // namespace onnxifi::attention

#endif  // ONNXIFI_BACKENDS_CPU_ATTENTION_SCORE_ROWS_H_
