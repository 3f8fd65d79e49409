// SPDX-License-Identifier: Apache-2.0
//
// Attention of few queries, a decoder's step: memory is what it takes, so that many groups take the
// keys of few rows, each its part of them (after Dao et al., "Flash-Decoding for long-context
// inference", 2023). A group has its own highest score, sum of weights and sums of values, and
// leaves them in working memory, where a second kernel joins them. Where keys are few one group
// takes them all, and writes results.
//
// Queries of heads that share keys and values are rows of the same block, so that these are read
// once for all of them.

#include <string>
#include <vector>

#include "backends/core/codegen/attention_writer.h"

namespace onnxifi::codegen {
namespace {

constexpr int kGroupSize = kAttentionFewRowKeys;
constexpr int kDepth = kAttentionFewRowDepth;
// A row of shared memory has an element more, so that a column lies in all of its banks.
constexpr int kPitch = kDepth + 1;
constexpr int kTile = kAttentionFewRowKeys * kPitch;
// Items that go through the keys of a row together.
constexpr int kScanners = 8;
// Values that items have one of.
constexpr int kItemValues = 64;
constexpr int kSubsets = kGroupSize / kItemValues;  // of keys, in sums of values

class FewRowsWriter final : public AttentionWriter {
 public:
  FewRowsWriter(Writer& writer, const Source& source, const AttentionBlock& block)
      : AttentionWriter(writer, source),
        block_(block),
        rows_(block.rows),
        columns_(block.columns),
        value_blocks_(block.columns / kItemValues) {}

  Launch Write() {
    writer_.Share(Text("f32 tile[", kTile, "]"));
    // By key, then row.
    writer_.Share(Text("f32 weights[", kAttentionFewRowKeys * rows_, "]"));
    writer_.Share(Text("f32 queries[", kDepth * rows_, "]"));
    writer_.Share(Text("f32 scanned[", kScanners * rows_, "]"));
    writer_.Share(Text("f32 highest[", rows_, "]"));
    writer_.Share(Text("f32 shrinks[", rows_, "]"));
    PlaceGroup(block_, source_.form.is_grouped ? Keys::kPart : Keys::kAll);
    writer_.Line("const f32 lowest = ", kAttentionLowest, ";");
    writer_.Line("const int across = LANE % ", kItemValues, ";");
    writer_.Line("const int subset = LANE / ", kItemValues, ";");
    writer_.Line("f32 sums[", rows_ * value_blocks_, "];");
    writer_.Line("UNROLL for (int n = 0; n < ", rows_ * value_blocks_, "; ++n) sums[n] = 0;");
    // Of the keys that are this item's.
    writer_.Line("f32 totals[", rows_, "];");
    writer_.Line("UNROLL for (int r = 0; r < ", rows_, "; ++r) totals[r] = 0;");
    // Of row LANE, in the items that have one.
    writer_.Line("f32 high = lowest;");
    writer_.Open("for (idx first_key = ", first_, "; first_key < ", end_,
                 "; first_key += ", kAttentionFewRowKeys, ")");
    WriteScores();
    WriteWeights();
    WriteSums();
    writer_.Close();
    WriteTotals();
    WriteOutputs();
    return {.given_items = kAttentionGroups, .has_group_per_item = true, .group_size = kGroupSize};
  }

 private:
  // Of an item's key.
  void WriteScores() {
    writer_.Line("f32 scores[", rows_, "];");
    writer_.Line("UNROLL for (int r = 0; r < ", rows_, "; ++r) scores[r] = 0;");
    writer_.Open("for (idx depth = 0; depth < ", width_, "; depth += ", kDepth, ")");
    BringQueries(
        rows_, kDepth,
        [&](const std::string& row, const std::string& k) {
          return Text(k, " * ", rows_, " + ", row);
        },
        kGroupSize);
    BringKeys(
        kAttentionFewRowKeys, kDepth,
        [](const std::string& key, const std::string& k) {
          return Text(key, " * ", kPitch, " + ", k);
        },
        kGroupSize);
    writer_.Line("BARRIER;");
    writer_.Open("for (int k = 0; k < ", kDepth, "; ++k)");
    writer_.Line("const f32 own = tile[LANE * ", kPitch, " + k];");
    writer_.Line("UNROLL for (int r = 0; r < ", rows_, "; ++r) scores[r] = M_fma(queries[k * ",
                 rows_, " + r], own, scores[r]);");
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Close();
  }

  // Scores of the sums, then exponentials of these less the largest so far.
  void WriteWeights() {
    const std::string place = Text("weights[LANE * ", rows_, " + r]");
    writer_.Line("UNROLL for (int r = 0; r < ", rows_, "; ++r) ", place, " = scores[r];");
    writer_.Line("const idx key = first_key + AS(idx, LANE);");
    // The text of a score is long, so that this loop is not unrolled.
    writer_.Open("for (int r = 0; r < ", rows_, "; ++r)");
    const std::string row = writer_.Declare("idx", Text(first_row_, " + r"));
    WriteScore(row, "key", place);
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Open("if (LANE < ", kScanners * rows_, ")");
    writer_.Line("f32 higher = lowest;");
    writer_.Open("for (int k = 0; k < ", kAttentionFewRowKeys / kScanners, "; ++k)");
    writer_.Line("const f32 score = weights[k * ", kScanners * rows_, " + LANE];");
    writer_.Line("higher = score > higher ? score : higher;");
    writer_.Close();
    writer_.Line("scanned[LANE] = higher;");
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Open("if (LANE < ", rows_, ")");
    writer_.Line("f32 higher = high;");
    writer_.Open("for (int k = 0; k < ", kScanners, "; ++k)");
    writer_.Line("const f32 score = scanned[k * ", rows_, " + LANE];");
    writer_.Line("higher = score > higher ? score : higher;");
    writer_.Close();
    // Also where both are infinite and their difference is no number.
    writer_.Line("f32 shrink = 1;");
    writer_.Line("if (higher != high) shrink = M_exp(high - higher);");
    writer_.Line("high = higher;");
    writer_.Line("highest[LANE] = higher;");
    writer_.Line("shrinks[LANE] = shrink;");
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Open("UNROLL for (int r = 0; r < ", rows_, "; ++r)");
    writer_.Line("const f32 score = ", place, ";");
    // The weight of the lowest score is 0 even where there is no higher one yet.
    writer_.Line("f32 weight = 0;");
    writer_.Line("if (score != lowest) weight = M_exp(score - highest[r]);");
    writer_.Line(place, " = weight;");
    writer_.Line("const f32 shrink = shrinks[r];");
    writer_.Line("totals[r] = totals[r] * shrink + weight;");
    writer_.Line("UNROLL for (int n = 0; n < ", value_blocks_, "; ++n) sums[n * ", rows_,
                 " + r] *= shrink;");
    writer_.Close();
  }

  // Adds the values of the block's keys. Keys behind the part are another group's, or none; their
  // values may be infinite, and are not read.
  void WriteSums() {
    const int keys = kAttentionFewRowKeys * kDepth / columns_;
    writer_.Open("for (int first = 0; first < ", kAttentionFewRowKeys, " && first_key + first < ",
                 end_, "; first += ", keys, ")");
    BringValues(keys, "first", columns_, columns_, kGroupSize);
    writer_.Line("BARRIER;");
    writer_.Open("for (int k = 0; k < ", keys / kSubsets, "; ++k)");
    writer_.Line("const int of_tile = k * ", kSubsets, " + subset;");
    writer_.Line("f32 own[", value_blocks_, "];");
    writer_.Line("UNROLL for (int n = 0; n < ", value_blocks_, "; ++n) own[n] = tile[of_tile * ",
                 columns_, " + n * ", kItemValues, " + across];");
    writer_.Open("UNROLL for (int r = 0; r < ", rows_, "; ++r)");
    writer_.Line("const f32 weight = weights[(first + of_tile) * ", rows_, " + r];");
    writer_.Line("UNROLL for (int n = 0; n < ", value_blocks_, "; ++n) sums[n * ", rows_,
                 " + r] = M_fma(weight, own[n], sums[n * ", rows_, " + r]);");
    writer_.Close();
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Close();
  }

  // Of all items; and sums of values to shared memory.
  void WriteTotals() {
    writer_.Open("UNROLL for (int r = 0; r < ", rows_, "; ++r)");
    writer_.Line("weights[LANE * ", rows_, " + r] = totals[r];");
    writer_.Line("UNROLL for (int n = 0; n < ", value_blocks_, "; ++n) tile[(subset * ", rows_,
                 " + r) * ", columns_, " + n * ", kItemValues, " + across] = sums[n * ", rows_,
                 " + r];");
    writer_.Close();
    writer_.Line("BARRIER;");
    const auto scan = [&](int items, int count, const std::string& from, const std::string& to) {
      writer_.Open("if (LANE < ", items, ")");
      writer_.Line("f32 total = 0;");
      writer_.Line("for (int k = 0; k < ", count, "; ++k) total += ", from, "[k * ", items,
                   " + LANE];");
      writer_.Line(to, "[LANE] = total;");
      writer_.Close();
      writer_.Line("BARRIER;");
    };
    scan(kScanners * rows_, kGroupSize / kScanners, "weights", "scanned");
    scan(rows_, kScanners, "scanned", "shrinks");
  }

  void WriteOutputs() {
    writer_.Open("for (int n = LANE; n < ", rows_ * columns_, "; n += ", kGroupSize, ")");
    writer_.Line("const int r = n / ", columns_, ";");
    writer_.Line("const int c = n % ", columns_, ";");
    const std::string value = writer_.Declare("idx", Text(first_value_, " + c"));
    std::string sum = "(tile[n]";
    for (int subset = 1; subset < kSubsets; ++subset) {
      sum += Text(" + tile[", subset * rows_ * columns_, " + n]");
    }
    StoreFound({.r = "r",
                .value = value,
                .sum = sum + ")",
                .highest = "highest[r]",
                .total = "shrinks[r]"});
    writer_.Close();
  }

  const AttentionBlock block_;
  const int rows_;
  const int columns_;
  const int value_blocks_;
};

class JoinWriter final : public AttentionWriter {
 public:
  using AttentionWriter::AttentionWriter;

  Launch Write() {
    writer_.Share(Text("f32 shares[", kGroupSize, "]"));
    writer_.Share(Text("f32 found[", kGroupSize, "]"));
    writer_.Share(Text("f32 totals[", kGroupSize, "]"));
    const std::string is_stored = writer_.Declare("bool", "GROUP < count");
    const std::string row =
        writer_.Declare("idx", Text(is_stored, " ? AS(idx, GROUP) : AS(idx, 0)"));
    const std::string parts = writer_.UseGiven(kAttentionJoinedParts);
    const std::string sums = writer_.UseScratch(/*is_write=*/false, kAttentionPartSums, "f32");
    const std::string states = writer_.UseScratch(/*is_write=*/false, kAttentionPartStates, "f32");
    std::vector<std::string> extents;
    for (size_t axis = 0; axis + 1 < rank_; ++axis) {
      extents.push_back(Extent(writer_, static_cast<int>(axis)));
    }
    batch_ = WriteCoordinates(writer_, row, extents);
    const std::string query = batch_.back();
    batch_.pop_back();
    const std::string first_part = writer_.Declare("idx", Text(row, " * ", parts));
    // Items that have found anything.
    const std::string finders = writer_.Declare(
        "int", Text(parts, " < ", kGroupSize, " ? AS(int, ", parts, ") : ", kGroupSize));
    writer_.Line("f32 highest = ", kAttentionLowest, ";");
    writer_.Open("for (idx part = AS(idx, LANE); part < ", parts, "; part += ", kGroupSize, ")");
    writer_.Line("const f32 score = LOAD(", states, ", (", first_part, " + part) * 2);");
    writer_.Line("highest = score > highest ? score : highest;");
    writer_.Close();
    writer_.Line("found[LANE] = highest;");
    writer_.Line("BARRIER;");
    writer_.Open("for (int k = 0; k < ", finders, "; ++k)");
    writer_.Line("const f32 score = found[k];");
    writer_.Line("highest = score > highest ? score : highest;");
    writer_.Close();
    writer_.Line("const int across = LANE % ", kItemValues, ";");
    writer_.Line("const int subset = LANE / ", kItemValues, ";");
    writer_.Line("f32 own_total = 0;");
    writer_.Open("for (idx first_value = 0; first_value < ", values_,
                 "; first_value += ", kItemValues, ")");
    writer_.Line("const idx value = first_value + AS(idx, across);");
    writer_.Line("f32 sum = 0;");
    writer_.Open("for (idx first = 0; first < ", parts, "; first += ", kGroupSize, ")");
    writer_.Line("const idx part = first + AS(idx, LANE);");
    writer_.Line("f32 share = 0;");
    writer_.Open("if (part < ", parts, ")");
    writer_.Line("const f32 score = LOAD(", states, ", (", first_part, " + part) * 2);");
    // Also where both are infinite and their difference is no number.
    writer_.Line("share = 1;");
    writer_.Line("if (score != highest) share = M_exp(score - highest);");
    writer_.Line("if (first_value == 0) own_total += share * LOAD(", states, ", (", first_part,
                 " + part) * 2 + 1);");
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Line("shares[LANE] = share;");
    writer_.Line("BARRIER;");
    writer_.Line("const idx left = ", parts, " - first;");
    writer_.Line("const int used = value >= ", values_, " ? 0 : left < ", kGroupSize,
                 " ? AS(int, left) : ", kGroupSize, ";");
    writer_.Line("for (int k = subset; k < used; k += ", kSubsets, ") sum = M_fma(shares[k], LOAD(",
                 sums, ", (", first_part, " + first + k) * ", values_, " + value), sum);");
    writer_.Close();
    writer_.Line("found[LANE] = sum;");
    writer_.Line("totals[LANE] = own_total;");
    writer_.Line("BARRIER;");
    writer_.Open("if (", is_stored, " && subset == 0 && value < ", values_, ")");
    writer_.Line("f32 total = 0;");
    writer_.Line("for (int k = 0; k < ", finders, "; ++k) total += totals[k];");
    for (int subset = 1; subset < kSubsets; ++subset) {
      writer_.Line("sum += found[LANE + ", subset * kItemValues, "];");
    }
    writer_.Line("const f32 result = sum / total;");
    StoreResults(query, "value", "result");
    writer_.Close();
    writer_.Close();
    return {.given_items = kAttentionGroups, .has_group_per_item = true, .group_size = kGroupSize};
  }
};

}  // namespace

Launch WriteAttentionOfFewRows(Writer& writer, const Source& source, const AttentionBlock& block) {
  return FewRowsWriter(writer, source, block).Write();
}

Launch WriteAttentionJoin(Writer& writer, const Source& source) {
  return JoinWriter(writer, source).Write();
}

}  // namespace onnxifi::codegen
