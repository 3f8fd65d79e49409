// SPDX-License-Identifier: Apache-2.0
//
// Attention of many queries, after Milakov and Gimelshein, "Online normalizer calculation for
// softmax" (2018), and Dao et al., "FlashAttention" (2022): a group takes the keys block by block,
// and keeps for each of its queries the largest score so far, the sum of exponentials less that,
// and the values weighted by these. Where a block has a larger score, all three shrink by what that
// makes. Scores are never in memory; a group shares one block of them. Very many keys are taken in
// ranges, between which working memory has what the group keeps; where groups are few, each takes a
// part of the keys, and attention_few_rows.cc joins them.
//
// An item has 8 rows and up to 8 keys or values of them in two fours: neighbouring items have
// neighbouring fours, which are read from shared memory by 16 bytes.

#include "backends/core/codegen/attention_many_rows.h"

#include <algorithm>
#include <string>

#include "backends/core/program/expr.h"

namespace onnxifi::codegen {
namespace {

constexpr int kDepth = kAttentionManyRowDepth;
constexpr int kItemRows = 8;
constexpr int kItemValues = 8;
constexpr int kFour = 4;
constexpr int kDown = kAttentionManyRowBlocks[0].rows / kItemRows;  // items along the rows
static_assert(kAttentionManyRowBlocks[0].rows == kAttentionManyRowKeys &&
              kAttentionManyRowKeys % kDepth == 0);
// So much of the depth of queries is kept in shared memory where a group may have that.
constexpr int kKeptDepth = 64;

// Number `number`, an int, of what an item has, of `items` items.
std::string PlaceOf(const std::string& number, const std::string& item, int items) {
  return Text(number, " / ", kFour, " * ", items * kFour, " + ", item, " * ", kFour, " + ", number,
              " % ", kFour);
}

}  // namespace

ManyRowsWriter::ManyRowsWriter(Writer& writer, const Source& source, const AttentionBlock& block,
                               bool has_parts, int group_size)
    : AttentionWriter(writer, source),
      block_(block),
      has_parts_(has_parts),
      group_size_(group_size),
      sums_(block.rows * block.columns / group_size),
      across_(group_size_ / kDown),
      item_keys_(kKeys / across_),
      scanners_(group_size_ / kRows),
      tile_(std::max(kDepth * kPitch, kDepth * block.columns)),
      query_depth_(SharedBytes(kKeptDepth) <= source.capabilities.row_shared_bytes ? kKeptDepth
                                                                                   : kDepth) {}

Launch ManyRowsWriter::Write() {
  const bool has_ranges = source_.form.is_grouped;
  ShareOperands();
  // By key, then row; in the end sums, by row, then value.
  writer_.Share(Text("f32 weights[", kKeys * kPitch, "]"));
  writer_.Share(Text("f32 scanned[", group_size_, "]"));
  writer_.Share(Text("f32 shrinks[", kRows, "]"));
  PlaceGroup(block_, has_ranges ? Keys::kRange : has_parts_ ? Keys::kPart : Keys::kAll);
  writer_.Line("const f32 lowest = ", kAttentionLowest, ";");
  PlaceItem();
  // Of the softmax an item does a row, or the keys of one of several parts of it.
  writer_.Line("const int own_row = LANE % ", kRows, ";");
  writer_.Line("const int scanner = LANE / ", kRows, ";");
  writer_.Line("f32 sums[", sums_, "];");
  writer_.Line("UNROLL for (int n = 0; n < ", sums_, "; ++n) sums[n] = 0;");
  writer_.Line("f32 high = lowest;");
  writer_.Line("f32 total = 0;");
  if (has_ranges) {
    carried_ = writer_.UseScratch(/*is_write=*/true, 0, "f32");
    writer_.Open("if (", first_, " > 0)");
    WriteCarried(/*is_store=*/false);
    writer_.Close();
  }
  writer_.Open("for (idx first_key = ", first_, "; first_key < ", end_, "; first_key += ", kKeys,
               ")");
  WriteScores();
  WriteWeights();
  WriteSums();
  writer_.Close();
  if (has_ranges) {
    writer_.Open("if (", is_stored_, " && ", end_, " < ", keys_, ")");
    WriteCarried(/*is_store=*/true);
    writer_.Close();
    is_stored_ = writer_.Declare("bool", Text(is_stored_, " && ", end_, " >= ", keys_));
  }
  WriteOutputs();
  return {.given_items = kAttentionGroups,
          .has_group_per_item = true,
          .group_size = group_size_,
          .uses_products = UsesProducts()};
}

void ManyRowsWriter::ShareOperands() {
  writer_.Share(Text("f32 queries[", query_depth_ * kPitch, "]"));
  // Of K, or of V.
  writer_.Share(Text("f32 tile[", tile_, "]"));
}

void ManyRowsWriter::PlaceItem() {
  writer_.Line("const int across = LANE % ", across_, ";");
  writer_.Line("const int down = LANE / ", across_, ";");
}

int64_t ManyRowsWriter::SharedBytes(int query_depth) const {
  const int floats = (query_depth + kKeys) * kPitch + tile_ + group_size_ + kRows;
  return floats * static_cast<int64_t>(sizeof(float));
}

std::string ManyRowsWriter::RowOf(const std::string& number) {
  return PlaceOf(number, "down", kDown);
}

std::string ManyRowsWriter::ColumnOf(const std::string& number) const {
  return PlaceOf(number, "across", across_);
}

void ManyRowsWriter::WriteCarried(bool is_store) {
  const auto move = [&](const std::string& name, const std::string& place) {
    const std::string at = Text(group_, " * ", AttentionCarried(block_, group_size_), " + ", place);
    if (is_store) {
      writer_.Line("STORE(", carried_, ", ", at, ", ", name, ");");
    } else {
      writer_.Line(name, " = LOAD(", carried_, ", ", at, ");");
    }
  };
  writer_.Open("UNROLL for (int n = 0; n < ", sums_, "; ++n)");
  move("sums[n]", Text("n * ", group_size_, " + LANE"));
  writer_.Close();
  move("high", Text(sums_ * group_size_, " + LANE"));
  move("total", Text((sums_ + 1) * group_size_, " + LANE"));
}

void ManyRowsWriter::LoadFours(const std::string& name, const std::string& array,
                               const std::string& first, int items, const std::string& item,
                               int count) {
  writer_.Line("f32 ", name, "[", count, "];");
  for (int n = 0; n < count; n += kFour) {
    const std::string four =
        writer_.Declare("f32x4", Text("LOAD4_SHARED(", array, ", ", first, " + ", n * items, " + ",
                                      item, " * ", kFour, ")"));
    for (int k = 0; k < kFour; ++k) {
      writer_.Line(name, "[", n + k, "] = ", four, ".", std::string(1, "xyzw"[k]), ";");
    }
  }
}

void ManyRowsWriter::WriteProducts(const std::string& rows, const std::string& rows_at,
                                   const std::string& columns_at, int count,
                                   const std::string& sums) {
  LoadFours("own", "tile", columns_at, across_, "across", count);
  LoadFours("of_row", rows, rows_at, kDown, "down", kItemRows);
  writer_.Open("UNROLL for (int r = 0; r < ", kItemRows, "; ++r)");
  writer_.Line("UNROLL for (int c = 0; c < ", count, "; ++c) ", sums, "[r * ", count,
               " + c] = M_fma(of_row[r], own[c], ", sums, "[r * ", count, " + c]);");
  writer_.Close();
}

void ManyRowsWriter::WriteScores() {
  writer_.Line("f32 scores[", kItemRows * item_keys_, "];");
  writer_.Line("UNROLL for (int n = 0; n < ", kItemRows * item_keys_, "; ++n) scores[n] = 0;");
  writer_.Open("for (idx depth = 0; depth < ", width_, "; depth += ", kDepth, ")");
  // Both lie with the depth slowest. Queries of few pieces of that are brought once.
  const std::string query_at =
      writer_.Declare("int", Text("AS(int, depth % ", query_depth_, ") * ", kPitch));
  writer_.Open("if (", width_, " > ", query_depth_, " || first_key == ", first_, ")");
  const auto by_depth = [](const std::string& row, const std::string& k) {
    return Text(k, " * ", kPitch, " + ", row);
  };
  BringQueries(
      kRows, kDepth,
      [&](const std::string& row, const std::string& k) {
        return query_at + " + " + by_depth(row, k);
      },
      group_size_);
  writer_.Close();
  BringKeys(kKeys, kDepth, by_depth, group_size_);
  writer_.Line("BARRIER;");
  writer_.Open("for (int k = 0; k < ", kDepth, "; ++k)");
  WriteProducts("queries", Text(query_at, " + k * ", kPitch), Text("k * ", kPitch), item_keys_,
                "scores");
  writer_.Close();
  writer_.Line("BARRIER;");
  writer_.Close();
}

bool ManyRowsWriter::HasReadsInScores() const {
  const program::ExprId roots[] = {attention_.score};
  const auto reachable = program::Reachable(source_.program.exprs, roots);
  return std::any_of(reachable.begin(), reachable.end(), [&](program::ExprId id) {
    return source_.program.exprs[id].op == program::ExprOp::kLoad;
  });
}

void ManyRowsWriter::ShareScores() {
  writer_.Open("UNROLL for (int c = 0; c < ", item_keys_, "; ++c)");
  writer_.Line("UNROLL for (int r = 0; r < ", kItemRows, "; ++r) weights[(", ColumnOf("c"), ") * ",
               kPitch, " + ", RowOf("r"), "] = scores[r * ", item_keys_, " + c];");
  writer_.Close();
}

void ManyRowsWriter::WriteWeights() {
  ShareScores();
  writer_.Line("BARRIER;");
  // The text of a score is long, so that no loop over it is unrolled.
  const bool is_apart = HasReadsInScores();
  if (is_apart) {
    writer_.Open("for (int n = LANE; n < ", kRows * kKeys, "; n += ", group_size_, ")");
    const std::string row = writer_.Declare("idx", Text(first_row_, " + n / ", kKeys));
    const std::string key = writer_.Declare("idx", Text("first_key + n % ", kKeys));
    WriteScore(row, key, Text("weights[n % ", kKeys, " * ", kPitch, " + n / ", kKeys, "]"));
    writer_.Close();
    writer_.Line("BARRIER;");
  }
  const int scanned = kKeys / scanners_;
  const auto open_keys = [&] {
    writer_.Open("for (int k = 0; k < ", scanned, "; ++k)");
    writer_.Line("const int of_key = scanner * ", scanned, " + k;");
    return Text("weights[of_key * ", kPitch, " + own_row]");
  };
  writer_.Line("f32 higher = high;");
  const std::string place = open_keys();
  if (is_apart) {
    writer_.Line("const f32 score = ", place, ";");
  } else {
    const std::string row = writer_.Declare("idx", Text(first_row_, " + own_row"));
    const std::string key = writer_.Declare("idx", "first_key + of_key");
    WriteScore(row, key, place);
  }
  writer_.Line("higher = score > higher ? score : higher;");
  writer_.Close();
  if (scanners_ > 1) {
    writer_.Line("scanned[LANE] = higher;");
    writer_.Line("BARRIER;");
    writer_.Open("UNROLL for (int n = 0; n < ", scanners_, "; ++n)");
    writer_.Line("const f32 score = scanned[n * ", kRows, " + own_row];");
    writer_.Line("higher = score > higher ? score : higher;");
    writer_.Close();
  }
  // Also where both are infinite and their difference is no number.
  writer_.Line("f32 shrink = 1;");
  writer_.Line("if (higher != high) shrink = M_exp(high - higher);");
  writer_.Line("total *= shrink;");
  writer_.Line("high = higher;");
  writer_.Line("if (scanner == 0) shrinks[own_row] = shrink;");
  open_keys();
  writer_.Line("const f32 score = ", place, ";");
  // The weight of the lowest score is 0 even where there is no higher one yet.
  writer_.Line("f32 weight = 0;");
  writer_.Line("if (score != lowest) weight = M_exp(score - high);");
  writer_.Line(place, " = weight;");
  writer_.Line("total += weight;");
  writer_.Close();
}

void ManyRowsWriter::WriteSums() {
  writer_.Open("for (int first = 0; first < ", kKeys, " && first_key + first < ", end_,
               "; first += ", kDepth, ")");
  BringValues(kDepth, "first", block_.columns, block_.columns, group_size_);
  writer_.Line("BARRIER;");
  writer_.Open("if (first == 0)");
  writer_.Open("UNROLL for (int r = 0; r < ", kItemRows, "; ++r)");
  writer_.Line("const f32 shrink = shrinks[", RowOf("r"), "];");
  writer_.Line("UNROLL for (int c = 0; c < ", kItemValues, "; ++c) sums[r * ", kItemValues,
               " + c] *= shrink;");
  writer_.Close();
  writer_.Close();
  writer_.Open("for (int k = 0; k < ", kDepth, "; ++k)");
  WriteProducts("weights", Text("(first + k) * ", kPitch), Text("k * ", block_.columns),
                kItemValues, "sums");
  writer_.Close();
  writer_.Line("BARRIER;");
  writer_.Close();
}

void ManyRowsWriter::ShareSums(int first) {
  const int fours = kRows / (across_ * kFour);
  writer_.Open("UNROLL for (int r = 0; r < ", kItemRows, "; ++r)");
  writer_.Line("UNROLL for (int c = 0; c < ", fours * kFour, "; ++c) weights[(", RowOf("r"), ") * ",
               kPitch, " + ", ColumnOf("c"), "] = sums[r * ", kItemValues, " + ", first / across_,
               " + c];");
  writer_.Close();
}

void ManyRowsWriter::WriteOutputs() {
  writer_.Line("scanned[LANE] = total;");
  writer_.Line("if (scanner == 0) shrinks[own_row] = high;");
  for (int first = 0; first < block_.columns; first += kRows) {
    writer_.Line("BARRIER;");
    ShareSums(first);
    writer_.Line("BARRIER;");
    writer_.Open("for (int n = LANE; n < ", kRows * kRows, "; n += ", group_size_, ")");
    writer_.Line("const int r = n / ", kRows, ";");
    writer_.Line("const int c = n % ", kRows, ";");
    const std::string value = writer_.Declare("idx", Text(first_value_, " + ", first, " + c"));
    std::string total = "(scanned[r]";
    for (int n = 1; n < scanners_; ++n) total += Text(" + scanned[", n * kRows, " + r]");
    StoreFound({.r = "r",
                .value = value,
                .sum = Unscaled(Text("weights[r * ", kPitch, " + c]")),
                .highest = "shrinks[r]",
                .total = total + ")"});
    writer_.Close();
  }
}

Launch WriteAttentionOfManyRows(Writer& writer, const Source& source, const AttentionBlock& block,
                                bool has_parts) {
  return ManyRowsWriter(writer, source, block, has_parts, AttentionItems(block)).Write();
}

}  // namespace onnxifi::codegen
