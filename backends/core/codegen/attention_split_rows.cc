// SPDX-License-Identifier: Apache-2.0
//
// Attention of many queries by matrix units of TF32 whose sums are as of float32: 3xTF32, as
// split_product_text.cc describes it. Operands may be of any type and lie in any order, as a group
// brings them to shared memory as float32.
//
// What a unit sums of 8 places of the depth, or of 8 keys, is scaled back where it is added to an
// item's own sum. Where it is not finite, which infinities, NaN and numbers beyond 2^100 make it,
// the item sums these places by plain multiply-adds, so that its results are those of attention
// without units.

#include <algorithm>
#include <functional>
#include <string>

#include "backends/core/codegen/attention_unit_rows.h"

namespace onnxifi::codegen {
namespace {

constexpr int kUnitDepth = 8;    // of an instruction
constexpr int kPieceDepth = 32;  // of keys in shared memory at a time
constexpr int kKeptDepth = 64;   // of queries
constexpr int kKeyPitch = kPieceDepth + 4;
constexpr int kQueryPitch = kKeptDepth + 4;
constexpr int kBlocksAtOnce = 4;  // of the columns of an instruction

class SplitRowsWriter final : public UnitRowsWriter {
 public:
  SplitRowsWriter(Writer& writer, const Source& source, const AttentionBlock& block, bool has_parts)
      : UnitRowsWriter(writer, source, block, has_parts),
        piece_keys_(block.columns > kRows ? 16 : 32) {}

 private:
  void ShareOperands() override {
    writer_.Share(Text("f32 queries[", kRows * kQueryPitch, "]"));
    // Of K, by key, then depth; or of V, by key, then values.
    writer_.Share(Text("f32 tile[", std::max(kKeys * kKeyPitch, piece_keys_ * value_pitch_), "]"));
  }

  // Elements of shared memory at a row or a column of an operand and a place of the depth.
  using Element = std::function<std::string(const std::string& at, const std::string& depth)>;

  // Adds to `sums` products of the item's rows and of `blocks` blocks of columns, 8 places deep.
  void MultiplySplit(const std::string& sums, int blocks, const Element& of_row,
                     const Element& of_column) {
    writer_.Line("u32 large[4];");
    writer_.Line("u32 small[4];");
    for (int n = 0; n < 4; ++n) {
      const std::string row = Text("(warp_row + of_eight + ", n % 2 * 8, ")");
      writer_.Line("large[", n, "] = BITS_f32(", of_row(row, Text("(of_four + ", n / 2 * 4, ")")),
                   ");");
      writer_.Line("SPLIT(large[", n, "], small[", n, "]);");
    }
    writer_.Open("UNROLL for (int first = 0; first < ", blocks, "; first += ", kBlocksAtOnce, ")");
    writer_.Line("u32 own[", 2 * kBlocksAtOnce, "];");
    writer_.Line("u32 rest[", 2 * kBlocksAtOnce, "];");
    writer_.Line("f32 parts[", 4 * kBlocksAtOnce, "];");
    const auto open_blocks = [&] {
      writer_.Open("UNROLL for (int n = 0; n < ", kBlocksAtOnce, "; ++n)");
    };
    open_blocks();
    for (int half = 0; half < 2; ++half) {
      const std::string column = Text("((first + n) * ", kUnitColumns, " + of_eight)");
      writer_.Line("own[n * 2 + ", half, "] = BITS_f32(",
                   of_column(column, Text("(of_four + ", half * 4, ")")), ");");
      writer_.Line("SPLIT(own[n * 2 + ", half, "], rest[n * 2 + ", half, "]);");
    }
    writer_.Close();
    // The smallest first. Each needs the sums of the one before, so another block comes between.
    const auto multiply = [&](std::string_view how, std::string_view rows,
                              std::string_view columns) {
      open_blocks();
      std::string arguments;
      for (int k = 0; k < 4; ++k) arguments += Text("parts[n * 4 + ", k, "], ");
      for (int k = 0; k < 4; ++k) arguments += Text(rows, "[", k, "], ");
      writer_.Line("MATRIX_tf32", how, "(", arguments, columns, "[n * 2], ", columns,
                   "[n * 2 + 1]);");
      writer_.Close();
    };
    multiply("_FROM_ZERO", "small", "own");
    multiply("", "large", "rest");
    multiply("", "large", "own");
    writer_.Line("f32 all = parts[0];");
    writer_.Line("UNROLL for (int n = 1; n < ", 4 * kBlocksAtOnce, "; ++n) all += parts[n];");
    writer_.Line("const bool is_finite = all - all == 0;");
    writer_.Open("if (is_finite)");
    writer_.Open("UNROLL for (int n = 0; n < ", 4 * kBlocksAtOnce, "; ++n)");
    writer_.Line(sums, "[first * 4 + n] = M_fma(parts[n], FROM_BITS_f32(0x27800000u), ", sums,
                 "[first * 4 + n]);");  // 2^-48
    writer_.Close();
    writer_.Close();
    writer_.Open("if (!is_finite)");
    writer_.Open("for (int place = 0; place < ", kUnitDepth, "; ++place)");
    open_blocks();
    for (int k = 0; k < 4; ++k) {
      const std::string sum = Text(sums, "[(first + n) * 4 + ", k, "]");
      const std::string row = Text("(warp_row + of_eight + ", k / 2 * 8, ")");
      const std::string column =
          Text("((first + n) * ", kUnitColumns, " + of_four * 2 + ", k % 2, ")");
      writer_.Line(sum, " = M_fma(", of_row(row, "place"), ", ", of_column(column, "place"), ", ",
                   sum, ");");
    }
    writer_.Close();
    writer_.Close();
    writer_.Close();
    writer_.Close();
  }

  void WriteScores() override {
    writer_.Line("f32 scores[", kScores, "];");
    writer_.Line("UNROLL for (int n = 0; n < ", kScores, "; ++n) scores[n] = 0;");
    writer_.Open("for (idx depth = 0; depth < ", width_, "; depth += ", kPieceDepth, ")");
    const std::string query_at = writer_.Declare("int", Text("AS(int, depth % ", kKeptDepth, ")"));
    writer_.Open("if (", width_, " > ", kKeptDepth, " || first_key == ", first_, ")");
    // Rows with the depth as their fast axis.
    BringQueries(
        kRows, kPieceDepth,
        [&](const std::string& row, const std::string& k) {
          return Text(row, " * ", kQueryPitch, " + ", query_at, " + ", k);
        },
        kAttentionUnitItems);
    writer_.Close();
    BringKeys(
        kKeys, kPieceDepth,
        [](const std::string& key, const std::string& k) {
          return Text(key, " * ", kKeyPitch, " + ", k);
        },
        kAttentionUnitItems);
    writer_.Line("BARRIER;");
    writer_.Open("for (int k = 0; k < ", kPieceDepth, " && depth + k < ", width_,
                 "; k += ", kUnitDepth, ")");
    MultiplySplit(
        "scores", kKeys / kUnitColumns,
        [&](const std::string& row, const std::string& depth) {
          return Text("queries[", row, " * ", kQueryPitch, " + ", query_at, " + k + ", depth, "]");
        },
        [&](const std::string& key, const std::string& depth) {
          return Text("tile[", key, " * ", kKeyPitch, " + k + ", depth, "]");
        });
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Close();
  }

  void WriteSums() override {
    writer_.Open("for (int first_of = 0; first_of < ", kKeys, " && first_key + first_of < ", end_,
                 "; first_of += ", piece_keys_, ")");
    BringValues(piece_keys_, "first_of", block_.columns, value_pitch_, kAttentionUnitItems);
    writer_.Line("BARRIER;");
    writer_.Open("if (first_of == 0)");
    WriteShrinking();
    writer_.Close();
    writer_.Open("for (int k = 0; k < ", piece_keys_, "; k += ", kUnitDepth, ")");
    MultiplySplit(
        "sums", block_.columns / kUnitColumns,
        [&](const std::string& row, const std::string& key) {
          return Text("weights[(first_of + k + ", key, ") * ", kPitch, " + ", row, "]");
        },
        [&](const std::string& value, const std::string& key) {
          return Text("tile[(k + ", key, ") * ", value_pitch_, " + ", value, "]");
        });
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Close();
  }

  const int piece_keys_;  // by which values are in shared memory
};

}  // namespace

Launch WriteAttentionBySplits(Writer& writer, const Source& source, const AttentionBlock& block,
                              bool has_parts) {
  return SplitRowsWriter(writer, source, block, has_parts).Write();
}

}  // namespace onnxifi::codegen
