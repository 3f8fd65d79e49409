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

#include <algorithm>
#include <string>
#include <utility>

#include "backends/core/codegen/attention_writer.h"
#include "backends/core/program/expr.h"

namespace onnxifi::codegen {
namespace {

constexpr int kRows = kAttentionManyRowBlocks[0].rows;
constexpr int kKeys = kAttentionManyRowKeys;
constexpr int kDepth = kAttentionManyRowDepth;
constexpr int kItemRows = 8;
constexpr int kItemValues = 8;
constexpr int kFour = 4;
constexpr int kDown = kRows / kItemRows;  // items along the rows
// Rows of shared memory are four longer, so that columns lie in more of its banks.
constexpr int kPitch = kRows + kFour;
static_assert(kRows == kKeys && kKeys % kDepth == 0);
// So much of the depth of queries is kept in shared memory where a group may have that.
constexpr int kKeptDepth = 64;
constexpr char kLowest[] = "FROM_BITS_f32(0xff800000u)";

class ManyRowsWriter : public AttentionWriter {
 public:
  ManyRowsWriter(Writer& writer, const Source& source, const AttentionBlock& block, bool has_parts,
                 int group_size)
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

  Launch Write() {
    const bool has_ranges = source_.form.is_grouped;
    ShareOperands();
    // By key, then row; in the end sums, by row, then value.
    writer_.Share(Text("f32 weights[", kKeys * kPitch, "]"));
    writer_.Share(Text("f32 scanned[", group_size_, "]"));
    writer_.Share(Text("f32 shrinks[", kRows, "]"));
    PlaceGroup(block_, has_ranges ? Keys::kRange : has_parts_ ? Keys::kPart : Keys::kAll);
    writer_.Line("const f32 lowest = ", kLowest, ";");
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

 protected:
  // What an item has of operands, scores and sums, and where.
  virtual bool UsesProducts() const { return false; }
  virtual void ShareOperands() {
    writer_.Share(Text("f32 queries[", query_depth_ * kPitch, "]"));
    // Of K, or of V.
    writer_.Share(Text("f32 tile[", tile_, "]"));
  }
  virtual void PlaceItem() {
    writer_.Line("const int across = LANE % ", across_, ";");
    writer_.Line("const int down = LANE / ", across_, ";");
  }

  int64_t SharedBytes(int query_depth) const {
    const int floats = (query_depth + kKeys) * kPitch + tile_ + group_size_ + kRows;
    return floats * static_cast<int64_t>(sizeof(float));
  }

  // Number `number`, an int, of what an item has, of `items` items.
  static std::string PlaceOf(const std::string& number, const std::string& item, int items) {
    return Text(number, " / ", kFour, " * ", items * kFour, " + ", item, " * ", kFour, " + ",
                number, " % ", kFour);
  }
  static std::string RowOf(const std::string& number) { return PlaceOf(number, "down", kDown); }
  std::string ColumnOf(const std::string& number) const {
    return PlaceOf(number, "across", across_);
  }

  // What an item has, to or from working memory: neighbours beside neighbours.
  void WriteCarried(bool is_store) {
    const auto move = [&](const std::string& name, const std::string& place) {
      const std::string at =
          Text(group_, " * ", AttentionCarried(block_, group_size_), " + ", place);
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

  // Fours of a row of shared memory from `first` on, so many elements of it in all.
  void LoadFours(const std::string& name, const std::string& array, const std::string& first,
                 int items, const std::string& item, int count) {
    writer_.Line("f32 ", name, "[", count, "];");
    for (int n = 0; n < count; n += kFour) {
      const std::string four =
          writer_.Declare("f32x4", Text("LOAD4_SHARED(", array, ", ", first, " + ", n * items,
                                        " + ", item, " * ", kFour, ")"));
      for (int k = 0; k < kFour; ++k) {
        writer_.Line(name, "[", n + k, "] = ", four, ".", std::string(1, "xyzw"[k]), ";");
      }
    }
  }

  // Adds products of elements of two rows of shared memory: those of an item's rows and of its
  // `count` columns.
  void WriteProducts(const std::string& rows, const std::string& rows_at,
                     const std::string& columns_at, int count, const std::string& sums) {
    LoadFours("own", "tile", columns_at, across_, "across", count);
    LoadFours("of_row", rows, rows_at, kDown, "down", kItemRows);
    writer_.Open("UNROLL for (int r = 0; r < ", kItemRows, "; ++r)");
    writer_.Line("UNROLL for (int c = 0; c < ", count, "; ++c) ", sums, "[r * ", count,
                 " + c] = M_fma(of_row[r], own[c], ", sums, "[r * ", count, " + c]);");
    writer_.Close();
  }

  // Sums of products of Q and K, of each item its own.
  virtual void WriteScores() {
    writer_.Line("f32 scores[", kItemRows * item_keys_, "];");
    writer_.Line("UNROLL for (int n = 0; n < ", kItemRows * item_keys_, "; ++n) scores[n] = 0;");
    writer_.Open("for (idx depth = 0; depth < ", width_, "; depth += ", kDepth, ")");
    // Both lie with the depth slowest. Queries of few pieces of that are brought once.
    const std::string query_at =
        writer_.Declare("int", Text("AS(int, depth % ", query_depth_, ") * ", kPitch));
    writer_.Open("if (", width_, " > ", query_depth_, " || first_key == ", first_, ")");
    Bring({.operand = 0,
           .is_fast_last = true,
           .slow = kRows,
           .fast = kDepth,
           .slow_begin = first_row_,
           .slow_end = shared_rows_,
           .fast_begin = "depth",
           .fast_end = width_,
           .array = "queries",
           .place =
               [&](const std::string& row, const std::string& k) {
                 return Text(query_at, " + ", k, " * ", kPitch, " + ", row);
               }},
          group_size_);
    writer_.Close();
    Tile keys{.operand = 1,
              .is_fast_last = false,
              .slow = kKeys,
              .fast = kDepth,
              .slow_begin = "first_key",
              .slow_end = end_,
              .fast_begin = "depth",
              .fast_end = width_,
              .array = "tile",
              .place = [](const std::string& key, const std::string& k) {
                return Text(k, " * ", kPitch, " + ", key);
              }};
    if (!HasRowsOfKeys()) {
      std::swap(keys.slow, keys.fast);
      std::swap(keys.slow_begin, keys.fast_begin);
      std::swap(keys.slow_end, keys.fast_end);
      keys.is_fast_last = true;
      keys.place = [](const std::string& k, const std::string& key) {
        return Text(k, " * ", kPitch, " + ", key);
      };
    }
    Bring(keys, group_size_);
    writer_.Line("BARRIER;");
    writer_.Open("for (int k = 0; k < ", kDepth, "; ++k)");
    WriteProducts("queries", Text(query_at, " + k * ", kPitch), Text("k * ", kPitch), item_keys_,
                  "scores");
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Close();
  }

  // Whether a score reads anything beside the sum: neighbouring keys are neighbours in memory.
  bool HasReadsInScores() const {
    const program::ExprId roots[] = {attention_.score};
    const auto reachable = program::Reachable(source_.program.exprs, roots);
    return std::any_of(reachable.begin(), reachable.end(), [&](program::ExprId id) {
      return source_.program.exprs[id].op == program::ExprOp::kLoad;
    });
  }

  // Declares the score, of the sum at `place` of shared memory.
  void WriteScore(const std::string& row, const std::string& key, const std::string& place) {
    writer_.Line("f32 score = lowest;");
    writer_.Open("if (", row, " < ", shared_rows_, " && ", key, " < ", end_, ")");
    writer_.Line("const f32 sum = ", place, ";");
    writer_.Line("score = ", Score(row, key, "sum"), ";");
    writer_.Close();
    writer_.Line(place, " = score;");
  }

  virtual void ShareScores() {
    writer_.Open("UNROLL for (int c = 0; c < ", item_keys_, "; ++c)");
    writer_.Line("UNROLL for (int r = 0; r < ", kItemRows, "; ++r) weights[(", ColumnOf("c"),
                 ") * ", kPitch, " + ", RowOf("r"), "] = scores[r * ", item_keys_, " + c];");
    writer_.Close();
  }

  // Scores of the sums, then exponentials of these less the largest so far.
  void WriteWeights() {
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

  // Adds the values of the block's keys. Keys behind the end are another group's, or none; their
  // values may be infinite, and are not read.
  virtual void WriteSums() {
    writer_.Open("for (int first = 0; first < ", kKeys, " && first_key + first < ", end_,
                 "; first += ", kDepth, ")");
    Bring({.operand = 2,
           .is_fast_last = true,
           .slow = kDepth,
           .fast = block_.columns,
           .slow_begin = "first_key + first",
           .slow_end = end_,
           .fast_begin = first_value_,
           .fast_end = values_,
           .array = "tile",
           .place =
               [&](const std::string& key, const std::string& value) {
                 return Text(key, " * ", block_.columns, " + ", value);
               }},
          group_size_);
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

  // Puts sums of the columns from `first` on of the block, as many as there are rows, into
  // `weights` by row.
  virtual void ShareSums(int first) {
    const int fours = kRows / (across_ * kFour);
    writer_.Open("UNROLL for (int r = 0; r < ", kItemRows, "; ++r)");
    writer_.Line("UNROLL for (int c = 0; c < ", fours * kFour, "; ++c) weights[(", RowOf("r"),
                 ") * ", kPitch, " + ", ColumnOf("c"), "] = sums[r * ", kItemValues, " + ",
                 first / across_, " + c];");
    writer_.Close();
  }
  virtual std::string Unscaled(const std::string& sum) const { return sum; }

  void WriteOutputs() {
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

  const AttentionBlock block_;
  const bool has_parts_;
  const int group_size_;
  const int sums_;       // of an item
  const int across_;     // items along the keys and the values
  const int item_keys_;  // of an item
  const int scanners_;   // items that share a row of the softmax
  const int tile_;
  const int query_depth_;  // of queries in shared memory
  std::string carried_;    // working memory
};

constexpr int kWarp = 32;
constexpr int kWarpRows = 16;    // of a warp
constexpr int kUnitColumns = 8;  // of an instruction
constexpr int kUnitWords = 8;    // of its depth
constexpr int kUnitKeys = 16;    // by which values are added up
constexpr int kUnitDepth = 64;   // that is in shared memory at a time
// Rows of words begin four apart modulo 32: the items of a warp, which read 8 rows of 4 words, find
// 32 banks. In rows of values, which they read 4 of 8 words of, eight apart.
constexpr int kWordPitch = kUnitDepth / 2 + 4;
constexpr int kPairs = kKeys / 2;

// By matrix units (matrix_unit_text.cc) that multiply operands of 16 bits: warps have 16 rows each.
// The softmax is that of ManyRowsWriter. A weight is the sum of two numbers of 16 bits, a large one
// that is never all of it and a small one, so that sums are as of float32; of float16 weights are
// scaled, so that the small ones are not lost. An infinite value times a weight below 2^-27 of the
// largest is no number.
class UnitRowsWriter final : public ManyRowsWriter {
 public:
  UnitRowsWriter(Writer& writer, const Source& source, const AttentionBlock& block, bool has_parts)
      : ManyRowsWriter(writer, source, block, has_parts, kAttentionUnitItems),
        type_(source.step.reads[0].type),
        value_pitch_(block.columns + 8) {}

 private:
  bool is_half() const { return type_ == tensor::ElementType::kFloat16; }
  bool UsesProducts() const override { return true; }

  void ShareOperands() override {
    writer_.Share(Text("u32 queries[", kRows * kWordPitch, "]"));
    // Of K, by key, then words of the depth; or of V, by pairs of keys, then values.
    writer_.Share(Text("u32 tile[", std::max(kKeys * kWordPitch, kPairs * value_pitch_), "]"));
  }
  void PlaceItem() override {
    writer_.Line("const int warp_row = LANE / ", kWarp, " * ", kWarpRows, ";");
    writer_.Line("const int of_eight = LANE % ", kWarp, " / 4;");
    writer_.Line("const int of_four = LANE % 4;");
  }

  // Calls the unit for the sums from `sums` on.
  void Multiply(const std::string& sums, const std::string& a, const std::string& b0,
                const std::string& b1) {
    std::string arguments;
    for (int n = 0; n < 4; ++n) arguments += Text(sums, " + ", n, "], ");
    for (int n = 0; n < 4; ++n) arguments += Text(a, "[", n, "], ");
    writer_.Line(is_half() ? "MATRIX_f16(" : "MATRIX_bf16(", arguments, b0, ", ", b1, ");");
  }

  // Brings words of an operand whose depth is its fast axis.
  void BringWords(int operand, const std::string& row_begin, const std::string& row_end,
                  const std::string& array) {
    constexpr int kRowWords = kUnitDepth / 8;  // of 16 bytes
    constexpr int kRounds = kRows * kRowWords / kAttentionUnitItems;
    const std::string load = writer_.NewName("l");
    const std::string words = writer_.NewName("s");
    writer_.Line("u32x4 ", words, "[", kRounds, "];");
    const auto open = [&] {
      writer_.Open("UNROLL for (int ", load, " = 0; ", load, " < ", kRounds, "; ++", load, ")");
      return writer_.Declare("int", Text("LANE + ", load, " * ", kAttentionUnitItems));
    };
    std::string n = open();
    writer_.Line(words, "[", load, "] = MAKE4(u32, 0u, 0u, 0u, 0u);");
    const std::string row = writer_.Declare("idx", Text(row_begin, " + ", n, " / ", kRowWords));
    const std::string depth = writer_.Declare("idx", Text("depth + ", n, " % ", kRowWords, " * 8"));
    writer_.Open("if (", row, " < ", row_end, " && ", depth, " < ", width_, ")");
    LoadWord(operand, operand == 0 ? AtQuery(row, depth) : At(depth, row),
             Text(words, "[", load, "]"));
    writer_.Close();
    writer_.Close();
    n = open();
    for (int part = 0; part < 4; ++part) {
      writer_.Line(array, "[", n, " / ", kRowWords, " * ", kWordPitch, " + ", n, " % ", kRowWords,
                   " * 4 + ", part, "] = ", words, "[", load, "].", std::string(1, "xyzw"[part]),
                   ";");
    }
    writer_.Close();
  }
  void LoadWord(int operand, const std::vector<std::string>& at, const std::string& word) {
    const std::string buffer = writer_.UseBuffer(/*is_write=*/false, operand, type_);
    const std::string index = WriteIndex(writer_, source_.step, /*is_write=*/false, operand, at);
    writer_.Line(word, " = LOAD_WORD(", buffer, ", ", index, ");");
  }

  void WriteScores() override {
    constexpr int kScores = kKeys / kUnitColumns * 4;
    writer_.Line("f32 scores[", kScores, "];");
    writer_.Line("UNROLL for (int n = 0; n < ", kScores, "; ++n) scores[n] = 0;");
    writer_.Open("for (idx depth = 0; depth < ", width_, "; depth += ", kUnitDepth, ")");
    writer_.Open("if (", width_, " > ", kUnitDepth, " || first_key == ", first_, ")");
    BringWords(0, first_row_, shared_rows_, "queries");
    writer_.Close();
    BringWords(1, "first_key", end_, "tile");
    writer_.Line("BARRIER;");
    writer_.Open("for (int k = 0; k < ", kUnitDepth / 2, "; k += ", kUnitWords, ")");
    writer_.Line("u32 a[4];");
    for (int n = 0; n < 4; ++n) {
      writer_.Line("a[", n, "] = queries[(warp_row + of_eight + ", n % 2 * 8, ") * ", kWordPitch,
                   " + k + of_four + ", n / 2 * 4, "];");
    }
    writer_.Open("UNROLL for (int n = 0; n < ", kKeys / kUnitColumns, "; ++n)");
    const std::string key = Text("(n * ", kUnitColumns, " + of_eight) * ", kWordPitch);
    const std::string b0 = writer_.Declare("u32", Text("tile[", key, " + k + of_four]"));
    const std::string b1 = writer_.Declare("u32", Text("tile[", key, " + k + of_four + 4]"));
    Multiply("scores[n * 4", "a", b0, b1);
    writer_.Close();
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Close();
  }

  void ShareScores() override {
    writer_.Open("UNROLL for (int n = 0; n < ", kKeys / kUnitColumns, "; ++n)");
    for (int k = 0; k < 4; ++k) {
      writer_.Line("weights[(n * ", kUnitColumns, " + of_four * 2 + ", k % 2, ") * ", kPitch,
                   " + warp_row + of_eight + ", k / 2 * 8, "] = scores[n * 4 + ", k, "];");
    }
    writer_.Close();
  }

  // Words of two neighbouring keys each, so that an instruction finds its depth in them.
  void BringValues() {
    const int row_words = block_.columns / 8;
    const int rounds = kPairs * row_words / kAttentionUnitItems;
    const std::string load = writer_.NewName("l");
    writer_.Line("u32x4 even[", rounds, "];");
    writer_.Line("u32x4 odd[", rounds, "];");
    const auto open = [&] {
      writer_.Open("UNROLL for (int ", load, " = 0; ", load, " < ", rounds, "; ++", load, ")");
      return writer_.Declare("int", Text("LANE + ", load, " * ", kAttentionUnitItems));
    };
    std::string n = open();
    const std::string key =
        writer_.Declare("idx", Text("first_key + ", n, " / ", row_words, " * 2"));
    const std::string value =
        writer_.Declare("idx", Text(first_value_, " + ", n, " % ", row_words, " * 8"));
    for (const char* const half : {"even", "odd"}) {
      const std::string own = half[0] == 'e' ? key : Text(key, " + 1");
      writer_.Line(half, "[", load, "] = MAKE4(u32, 0u, 0u, 0u, 0u);");
      writer_.Open("if (", own, " < ", end_, " && ", value, " < ", values_, ")");
      LoadWord(2, At("(" + own + ")", value), Text(half, "[", load, "]"));
      writer_.Close();
    }
    writer_.Close();
    n = open();
    for (int part = 0; part < 4; ++part) {
      const std::string a = Text("even[", load, "].", std::string(1, "xyzw"[part]));
      const std::string b = Text("odd[", load, "].", std::string(1, "xyzw"[part]));
      const std::string at = Text("tile[", n, " / ", row_words, " * ", value_pitch_, " + ", n,
                                  " % ", row_words, " * 8 + ");
      writer_.Line(at, 2 * part, "] = (", a, " & 0xffffu) | (", b, " << 16);");
      writer_.Line(at, 2 * part + 1, "] = (", a, " >> 16) | (", b, " & 0xffff0000u);");
    }
    writer_.Close();
  }

  void WriteSums() override {
    using tensor::ElementType;
    BringValues();
    writer_.Line("BARRIER;");
    writer_.Open("UNROLL for (int n = 0; n < ", sums_, "; ++n)");
    writer_.Line("sums[n] *= shrinks[warp_row + of_eight + n / 2 % 2 * 8];");
    writer_.Close();
    writer_.Open("for (int k = 0; k < ", kKeys, "; k += ", kUnitKeys, ")");
    writer_.Line("u32 large[4];");
    writer_.Line("u32 small[4];");
    writer_.Open("UNROLL for (int n = 0; n < 4; ++n)");
    for (const int half : {0, 1}) {
      const std::string weight = Text("weight", half);
      const std::string code = Text("code", half);
      const std::string rest = Text("rest", half);
      writer_.Line("const f32 ", weight, " = weights[(k + of_four * 2 + n / 2 * 8 + ", half, ") * ",
                   kPitch, " + warp_row + of_eight + n % 2 * 8]",
                   is_half() ? " * FROM_BITS_f32(0x46800000u)" : "", ";");  // 2^14
      // Less by more than a rounding.
      writer_.Line("const f32 most", half, " = ", weight, " * FROM_BITS_f32(",
                   is_half() ? "0x3f7fc000u" : "0x3f7e0000u", ");");
      writer_.Line("const u16 ", code, " = ",
                   WriteCast(writer_, ElementType::kFloat32, type_, Text("most", half)), ";");
      writer_.Line("const f32 less", half, " = ",
                   WriteCast(writer_, type_, ElementType::kFloat32, code), ";");
      writer_.Line("const f32 left", half, " = ", weight, " - less", half, ";");
      writer_.Line("const u16 ", rest, " = ",
                   WriteCast(writer_, ElementType::kFloat32, type_, Text("left", half)), ";");
    }
    writer_.Line("large[n] = AS(u32, code0) | AS(u32, code1) << 16;");
    writer_.Line("small[n] = AS(u32, rest0) | AS(u32, rest1) << 16;");
    writer_.Close();
    writer_.Open("UNROLL for (int n = 0; n < ", block_.columns / kUnitColumns, "; ++n)");
    const std::string at =
        Text("(k / 2 + of_four) * ", value_pitch_, " + n * ", kUnitColumns, " + of_eight");
    const std::string b0 = writer_.Declare("u32", Text("tile[", at, "]"));
    const std::string b1 = writer_.Declare("u32", Text("tile[", at, " + ", 4 * value_pitch_, "]"));
    Multiply("sums[n * 4", "large", b0, b1);
    Multiply("sums[n * 4", "small", b0, b1);
    writer_.Close();
    writer_.Close();
    writer_.Line("BARRIER;");
  }

  void ShareSums(int first) override {
    writer_.Open("UNROLL for (int n = 0; n < ", kRows / kUnitColumns, "; ++n)");
    for (int k = 0; k < 4; ++k) {
      writer_.Line("weights[(warp_row + of_eight + ", k / 2 * 8, ") * ", kPitch, " + n * ",
                   kUnitColumns, " + of_four * 2 + ", k % 2, "] = sums[", first / 2, " + n * 4 + ",
                   k, "];");
    }
    writer_.Close();
  }
  std::string Unscaled(const std::string& sum) const override {
    return is_half() ? Text("(", sum, " * FROM_BITS_f32(0x38800000u))") : sum;  // 2^-14
  }

  const tensor::ElementType type_;
  const int value_pitch_;
};

}  // namespace

Launch WriteAttentionOfManyRows(Writer& writer, const Source& source, const AttentionBlock& block,
                                bool has_parts) {
  return ManyRowsWriter(writer, source, block, has_parts, AttentionItems(block)).Write();
}

Launch WriteAttentionByUnits(Writer& writer, const Source& source, const AttentionBlock& block,
                             bool has_parts) {
  return UnitRowsWriter(writer, source, block, has_parts).Write();
}

}  // namespace onnxifi::codegen
