// SPDX-License-Identifier: Apache-2.0
//
// AttentionWriter: what the kernels of Attention have in common: their numbers, the coordinates of
// queries, and tiles of operands that a group brings to shared memory. For attention*.cc alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_ATTENTION_WRITER_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_ATTENTION_WRITER_H_

#include <functional>
#include <string>
#include <vector>

#include "backends/core/codegen/family.h"

namespace onnxifi::codegen {

// Kernels of Attention. A group takes a block of rows, which are queries, also of several heads
// that share keys and values, and so many values of them. Those of many rows have a second number
// for parts of the keys; in those of few rows the form of the loops says whether they take parts.
struct AttentionBlock {
  int rows;
  int columns;  // of values
};
inline constexpr int kAttentionJoin = 0;
inline constexpr int kAttentionFewRows = 1;
inline constexpr AttentionBlock kAttentionFewRowBlocks[] = {{1, 64},  {1, 128}, {4, 64},
                                                            {4, 128}, {16, 64}, {16, 128}};
inline constexpr int kAttentionManyRows = 7;
inline constexpr AttentionBlock kAttentionManyRowBlocks[] = {{64, 64}, {64, 128}};
inline constexpr int kAttentionManyRowParts = 9;
// The same by matrix units, of float16 or bfloat16.
inline constexpr int kAttentionUnits = 11;
inline constexpr int kAttentionUnitParts = 13;
inline constexpr int kAttentionUnitItems = 128;
// The same by matrix units of TF32, as 3xTF32 (split_product_text.cc).
inline constexpr int kAttentionSplits = 15;
inline constexpr int kAttentionSplitParts = 17;
// Keys of a block, where rows are few and where they are many, and elements of their depth at a
// time.
inline constexpr int kAttentionFewRowKeys = 128;
inline constexpr int kAttentionFewRowDepth = 32;
inline constexpr int kAttentionManyRowKeys = 64;
inline constexpr int kAttentionManyRowDepth = 16;
// Between ranges of keys working memory has so much of a group of many rows, by items: its sums,
// and of each row the highest score and the sum of weights.
constexpr int AttentionItems(const AttentionBlock& block) { return block.columns; }
constexpr int64_t AttentionCarried(const AttentionBlock& block, int items) {
  return block.rows * block.columns + 2 * items;
}

// Numbers that MakeAttentionKernels gives every kernel.
inline constexpr int kAttentionGroups = 0;
// All but the join of parts: blocks of rows and of values; rows that share keys and values, and the
// extent of the last batch axis, or 1 if that axis is among these rows; then, where there are
// parts, how many, and keys of each, or, where there are ranges, the ends of this one.
inline constexpr int kAttentionRowBlocks = 1;
inline constexpr int kAttentionValueBlocks = 2;
inline constexpr int kAttentionSharedRows = 3;
inline constexpr int kAttentionLastBatch = 4;
inline constexpr int kAttentionParts = 5;
inline constexpr int kAttentionPartLength = 6;
inline constexpr int kAttentionFirstKey = 5;
inline constexpr int kAttentionEndKey = 6;
// Of the join.
inline constexpr int kAttentionJoinedParts = 1;

// Working memory of parts: for each row, which counts along the batch axes and the queries, and
// each part of it the sums of its values; and beside that its highest score and its sum of weights.
inline constexpr int kAttentionPartSums = 0;
inline constexpr int kAttentionPartStates = 1;

// The lowest score, of no key.
inline constexpr char kAttentionLowest[] = "FROM_BITS_f32(0xff800000u)";

class AttentionWriter {
 public:
  AttentionWriter(Writer& writer, const Source& source);

 protected:
  // Declares which block a group has. All items of all groups meet at every barrier: PoCL 3.1 loses
  // variables across one within a condition. A group behind the last one does what the first one
  // does, and stores nothing.
  enum class Keys { kAll, kRange, kPart };
  void PlaceGroup(const AttentionBlock& block, Keys keys);
  // Coordinates in the group's batch; of a row of the queries.
  std::vector<std::string> At(const std::string& row, const std::string& column) const;
  std::vector<std::string> AtQuery(const std::string& row, const std::string& column) const;
  std::string Evaluate(program::ExprId root, Scope scope);
  std::string Score(const std::string& row, const std::string& key, const std::string& sum);
  // Computes the results of `sum` for a row and value, and stores them.
  void StoreResults(const std::string& row, const std::string& value, const std::string& sum);
  // Stores what a group has of row r of its block and one value: the sum, or results of its
  // quotient with the sum of weights.
  struct Found {
    std::string r, value, sum, highest, total;
  };
  void StoreFound(const Found& found);

  // What a group brings: `slow` x `fast` elements of an operand from a corner to its ends, zeros
  // beyond those. Neighbouring items bring neighbours along the fast axis.
  struct Tile {
    int operand;        // 0, 1, 2: Q, K, V
    bool is_fast_last;  // the fast axis is the last one of the view
    int slow, fast;
    std::string slow_begin, slow_end, fast_begin, fast_end;
    std::string array;
    // The index in `array` of what is at such places of the tile.
    std::function<std::string(const std::string& slow, const std::string& fast)> place;
  };
  void Bring(const Tile& tile, int group_size);
  // The index in an array of an element of a row: of a query, a key, or the values of a key.
  using ArrayIndex = std::function<std::string(const std::string& row, const std::string& element)>;
  // So many rows of the block of queries, or of the keys from `first_key` on, to the arrays
  // `queries` and `tile`: `depth` elements of each, from `depth` on. Neighbouring items bring
  // neighbours of a row unless K has its keys there in memory.
  void BringQueries(int rows, int depth, const ArrayIndex& place, int group_size);
  void BringKeys(int keys, int depth, const ArrayIndex& place, int group_size);
  // Values of so many keys from `first_key` + `first` on to `tile`.
  void BringValues(int keys, const std::string& first, int values, int pitch, int group_size);
  // Declares the score, of the sum at `place` of shared memory, where it leaves the score.
  void WriteScore(const std::string& row, const std::string& key, const std::string& place);

  Writer& writer_;
  const Source& source_;
  const program::Attention& attention_;
  const size_t rank_;
  std::vector<std::string> batch_;               // coordinates
  std::string queries_, keys_, width_, values_;  // extents
  // Of a group: which one, whether it stores what it finds, its keys and its block.
  std::string group_, is_stored_;
  std::string first_, end_;
  std::string part_, parts_;
  std::string first_row_, first_value_;
  std::string shared_rows_;
  std::string row_of_all_;  // the first row, of those of all batches
};

Launch WriteAttentionOfFewRows(Writer& writer, const Source& source, const AttentionBlock& block);
Launch WriteAttentionOfManyRows(Writer& writer, const Source& source, const AttentionBlock& block,
                                bool has_parts);
Launch WriteAttentionByUnits(Writer& writer, const Source& source, const AttentionBlock& block,
                             bool has_parts);
Launch WriteAttentionBySplits(Writer& writer, const Source& source, const AttentionBlock& block,
                              bool has_parts);
// Joins parts.
Launch WriteAttentionJoin(Writer& writer, const Source& source);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_ATTENTION_WRITER_H_
