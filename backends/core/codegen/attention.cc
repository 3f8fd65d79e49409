// SPDX-License-Identifier: Apache-2.0
//
// Attention after Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), and
// Dao et al., "FlashAttention" (2022): a group takes the keys block by block, and keeps for each of
// its queries the largest score so far, the sum of exponentials less that, and the values weighted
// by these. Where a block has a larger score, all three shrink by what that makes. Scores are never
// in memory; a group shares one block of them. Very many keys are taken in ranges, between which
// working memory has what the group keeps.

#include "backends/core/codegen/attention.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/family.h"
#include "backends/core/program/operand_extents.h"

namespace onnxifi::codegen {
namespace {

using program::Attention;

// A group of kSide x kSide items has kRows queries, kKeys keys and kValues values of each at a
// time, and of operands so many elements of the sums' depth: less than 9 KiB of shared memory, and
// 16 scores and 32 sums an item.
constexpr int kSide = 8;
constexpr int kGroupSize = kSide * kSide;
constexpr int kRows = 32;
constexpr int kKeys = 32;
constexpr int kValues = 64;
constexpr int kDepth = 16;
constexpr int kItemRows = kRows / kSide;
constexpr int kItemKeys = kKeys / kSide;
constexpr int kItemValues = kValues / kSide;
// A row of shared memory has an element more, so that a column lies in all of its banks.
constexpr int kPitch = kRows + 1;
// Shared memory has a tile of Q and one of K, or one of V, and behind these the scores or weights;
// in the end the sums.
constexpr int kTile = 2 * kDepth * kPitch;
static_assert(kRows == kKeys && kKeys % kDepth == 0 && kRows <= kGroupSize);
static_assert(kDepth * kValues <= kTile && kRows * kValues <= kTile + kRows * kPitch);

// The numbers that MakeAttentionKernel gives.
constexpr int kGroups = 0;
constexpr int kQueryBlocks = 1;
constexpr int kValueBlocks = 2;
// Of ranges of keys alone.
constexpr int kFirstKey = 3;
constexpr int kEndKey = 4;

// Between ranges working memory has so much of a group: its sums, and of each row its highest score
// and its sum of weights.
constexpr int kCarried = kRows * kValues + 2 * kRows;

int64_t Blocks(int64_t count, int64_t size) { return count / size + (count % size != 0 ? 1 : 0); }

// Keys that a group takes in one start: as many as its items go rounds for that no driver minds, in
// all loops: some for each block, and others for each piece of the scores' depth.
int64_t KeysAtOnce(int64_t width) {
  constexpr int64_t kMaxRounds = 49152;
  constexpr int64_t kRoundsOfBlock = 224;
  constexpr int64_t kRoundsOfPiece = 2 * kRows * kDepth / kGroupSize + kDepth + 1;
  const int64_t rounds = kRoundsOfBlock + Blocks(width, kDepth) * kRoundsOfPiece;
  return kKeys * std::max<int64_t>(1, kMaxRounds / rounds);
}

constexpr char kLowest[] = "FROM_BITS_f32(0xff800000u)";

class AttentionWriter {
 public:
  AttentionWriter(Writer& writer, const Source& source)
      : writer_(writer), source_(source), attention_(*source.step.As<Attention>()) {}

  Launch Write() {
    const auto rank = source_.step.domain.size();
    writer_.Share(Text("f32 shared_f32[", kTile + kRows * kPitch, "]"));
    writer_.Share(Text("f32 highest[", kRows, "]"));
    writer_.Share(Text("f32 shrinks[", kRows, "]"));
    // All items of all groups meet at every barrier: PoCL 3.1 loses variables across one within a
    // condition. A group behind the last one does what the first one does, and stores nothing.
    is_stored_ = writer_.Declare("bool", "GROUP < count");
    group_ = writer_.Declare("idx", Text(is_stored_, " ? AS(idx, GROUP) : AS(idx, 0)"));
    std::vector<std::string> extents;
    for (size_t axis = 0; axis + 2 < rank; ++axis) {
      extents.push_back(Extent(writer_, static_cast<int>(axis)));
    }
    extents.push_back(writer_.UseGiven(kQueryBlocks));
    extents.push_back(writer_.UseGiven(kValueBlocks));
    batch_ = WriteCoordinates(writer_, group_, extents);
    const std::string query_block = batch_[rank - 2];
    const std::string value_block = batch_[rank - 1];
    batch_.resize(rank - 2);
    first_query_ = writer_.Declare("idx", Text(query_block, " * ", kRows));
    first_value_ = writer_.Declare("idx", Text(value_block, " * ", kValues));
    queries_ = Extent(writer_, static_cast<int>(rank) - 2);
    values_ = Extent(writer_, static_cast<int>(rank) - 1);
    keys_ = writer_.UseDim(attention_.keys);
    width_ = writer_.UseDim(attention_.width);
    writer_.Line("const int across = LANE % ", kSide, ";");
    writer_.Line("const int first_row = LANE / ", kSide, " * ", kItemRows, ";");
    writer_.Line("const f32 lowest = ", kLowest, ";");
    writer_.Line("f32 sums[", kItemRows * kItemValues, "];");
    writer_.Line("UNROLL for (int n = 0; n < ", kItemRows * kItemValues, "; ++n) sums[n] = 0;");
    // Of row LANE, in the items that have one.
    writer_.Line("f32 high = lowest;");
    writer_.Line("f32 total = 0;");
    std::string first = "0";
    std::string end = keys_;
    if (source_.form.is_grouped) {
      first = writer_.UseGiven(kFirstKey);
      end = writer_.UseGiven(kEndKey);
      carried_ = writer_.UseScratch(/*is_write=*/true, 0, "f32");
      writer_.Open("if (", first, " > 0)");
      WriteCarried(/*is_store=*/false);
      writer_.Close();
    }
    writer_.Open("for (idx first_key = ", first, "; first_key < ", end, "; first_key += ", kKeys,
                 ")");
    WriteScores();
    WriteWeights();
    WriteSums();
    writer_.Close();
    if (source_.form.is_grouped) {
      writer_.Open("if (", is_stored_, " && ", end, " < ", keys_, ")");
      WriteCarried(/*is_store=*/true);
      writer_.Close();
      is_stored_ = writer_.Declare("bool", Text(is_stored_, " && ", end, " >= ", keys_));
    }
    WriteOutputs();
    return {.given_items = kGroups, .has_group_per_item = true, .group_size = kGroupSize};
  }

 private:
  std::vector<std::string> At(const std::string& row, const std::string& column) const {
    std::vector<std::string> at = batch_;
    at.push_back(row);
    at.push_back(column);
    return at;
  }

  // What an item has, to or from working memory: neighbours beside neighbours.
  void WriteCarried(bool is_store) {
    const auto move = [&](const std::string& name, const std::string& place) {
      const std::string at = Text(group_, " * ", kCarried, " + ", place);
      if (is_store) {
        writer_.Line("STORE(", carried_, ", ", at, ", ", name, ");");
      } else {
        writer_.Line(name, " = LOAD(", carried_, ", ", at, ");");
      }
    };
    writer_.Open("UNROLL for (int n = 0; n < ", kItemRows * kItemValues, "; ++n)");
    move("sums[n]", Text("n * ", kGroupSize, " + LANE"));
    writer_.Close();
    writer_.Open("if (LANE < ", kRows, ")");
    move("high", Text(kRows * kValues, " + LANE"));
    move("total", Text(kRows * kValues + kRows, " + LANE"));
    writer_.Close();
  }

  std::string Evaluate(program::ExprId root, const std::vector<std::string>& at,
                       const std::string& accumulator) {
    Scope scope;
    scope.coordinates = scope.indices = at;
    scope.accumulator = accumulator;
    const program::ExprId roots[] = {root};
    return WriteExpressions(writer_, source_.program, source_.step, scope, roots)[0];
  }

  // Rows and columns of an operand from a corner to its ends.
  struct Part {
    std::string row, row_end, column, column_end;
  };
  // The items bring `rows` x `columns` elements of a part to `place`, which is an index for row r
  // and column c; zeros beyond the ends. Neighbours bring neighbours along the columns, or along
  // the rows.
  void Bring(program::ExprId prologue, const Part& from, int rows, int columns,
             const std::string& place, bool is_along_rows = false) {
    writer_.Open("for (int n = LANE; n < ", rows * columns, "; n += ", kGroupSize, ")");
    writer_.Line("const int r = n ", is_along_rows ? Text("% ", rows) : Text("/ ", columns), ";");
    writer_.Line("const int c = n ", is_along_rows ? Text("/ ", rows) : Text("% ", columns), ";");
    const std::string row = writer_.Declare("idx", Text(from.row, " + r"));
    const std::string column = writer_.Declare("idx", Text(from.column, " + c"));
    writer_.Line("f32 element = 0;");
    writer_.Open("if (", row, " < ", from.row_end, " && ", column, " < ", from.column_end, ")");
    writer_.Line("element = ", Evaluate(prologue, At(row, column), {}), ";");
    writer_.Close();
    writer_.Line("shared_f32[", place, "] = element;");
    writer_.Close();
  }

  // Sums of products of Q and K, of each item its own.
  void WriteScores() {
    writer_.Line("f32 scores[", kItemRows * kItemKeys, "];");
    writer_.Line("UNROLL for (int n = 0; n < ", kItemRows * kItemKeys, "; ++n) scores[n] = 0;");
    writer_.Open("for (idx depth = 0; depth < ", width_, "; depth += ", kDepth, ")");
    // Both lie with the depth slowest.
    Bring(attention_.query_prologue, {first_query_, queries_, "depth", width_}, kRows, kDepth,
          Text("c * ", kPitch, " + r"));
    const int second = kDepth * kPitch;
    Bring(attention_.key_prologue, {"depth", width_, "first_key", keys_}, kDepth, kKeys,
          Text(second, " + r * ", kPitch, " + c"),
          /*is_along_rows=*/source_.form.read_steps[1] != LastStep::kOne);
    writer_.Line("BARRIER;");
    writer_.Open("for (int k = 0; k < ", kDepth, "; ++k)");
    writer_.Line("f32 own[", kItemKeys, "];");
    writer_.Line("UNROLL for (int c = 0; c < ", kItemKeys, "; ++c) own[c] = shared_f32[", second,
                 " + k * ", kPitch, " + across + c * ", kSide, "];");
    writer_.Open("UNROLL for (int r = 0; r < ", kItemRows, "; ++r)");
    writer_.Line("const f32 q = shared_f32[k * ", kPitch, " + first_row + r];");
    writer_.Line("UNROLL for (int c = 0; c < ", kItemKeys, "; ++c) scores[r * ", kItemKeys,
                 " + c] = M_fma(q, own[c], scores[r * ", kItemKeys, " + c]);");
    writer_.Close();
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Close();
  }

  // Opens the loop of an item over its part of the block's `columns` x kRows elements, where r and
  // c are those of the element; neighbours are along the columns. Its text is long, so it is not
  // unrolled, and what it takes and leaves is in shared memory.
  void OpenElements(int columns) {
    writer_.Open("for (int n = LANE; n < ", kRows * columns, "; n += ", kGroupSize, ")");
    writer_.Line("const int r = n / ", columns, ";");
    writer_.Line("const int c = n % ", columns, ";");
  }

  // Scores of the sums, then exponentials of these less the largest so far.
  void WriteWeights() {
    const std::string place = Text("shared_f32[", kTile, " + r * ", kPitch, " + c]");
    writer_.Open("UNROLL for (int r = 0; r < ", kItemRows, "; ++r)");
    writer_.Line("UNROLL for (int c = 0; c < ", kItemKeys, "; ++c) shared_f32[", kTile,
                 " + (first_row + r) * ", kPitch, " + across + c * ", kSide, "] = scores[r * ",
                 kItemKeys, " + c];");
    writer_.Close();
    writer_.Line("BARRIER;");
    OpenElements(kKeys);
    const std::string query = writer_.Declare("idx", Text(first_query_, " + r"));
    const std::string key = writer_.Declare("idx", "first_key + c");
    writer_.Line("f32 score = lowest;");
    writer_.Open("if (", query, " < ", queries_, " && ", key, " < ", keys_, ")");
    writer_.Line("const f32 sum = ", place, ";");
    writer_.Line("score = ", Evaluate(attention_.score, At(query, key), "sum"), ";");
    writer_.Close();
    writer_.Line(place, " = score;");
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Open("if (LANE < ", kRows, ")");
    writer_.Line("f32 higher = high;");
    writer_.Open("for (int k = 0; k < ", kKeys, "; ++k)");
    writer_.Line("const f32 score = shared_f32[", kTile, " + LANE * ", kPitch, " + k];");
    writer_.Line("higher = score > higher ? score : higher;");
    writer_.Close();
    // Also where both are infinite and their difference is no number.
    writer_.Line("f32 shrink = 1;");
    writer_.Line("if (higher != high) shrink = M_exp(high - higher);");
    writer_.Line("total *= shrink;");
    writer_.Line("high = higher;");
    writer_.Line("highest[LANE] = higher;");
    writer_.Line("shrinks[LANE] = shrink;");
    writer_.Close();
    writer_.Line("BARRIER;");
    OpenElements(kKeys);
    writer_.Line("const f32 score = ", place, ";");
    // The weight of the lowest score is 0 even where there is no higher one yet.
    writer_.Line("f32 weight = 0;");
    writer_.Line("if (score != lowest) weight = M_exp(score - highest[r]);");
    writer_.Line(place, " = weight;");
    writer_.Close();
    writer_.Open("UNROLL for (int r = 0; r < ", kItemRows, "; ++r)");
    writer_.Line("const f32 shrink = shrinks[first_row + r];");
    writer_.Line("UNROLL for (int c = 0; c < ", kItemValues, "; ++c) sums[r * ", kItemValues,
                 " + c] *= shrink;");
    writer_.Close();
  }

  // Adds the values of the block's keys.
  void WriteSums() {
    writer_.Open("for (int first = 0; first < ", kKeys, "; first += ", kDepth, ")");
    Bring(attention_.value_prologue, {"first_key + first", keys_, first_value_, values_}, kDepth,
          kValues, Text("r * ", kValues, " + c"));
    writer_.Line("BARRIER;");
    writer_.Open("if (LANE < ", kRows, ")");
    writer_.Line("for (int k = 0; k < ", kDepth, "; ++k) total += shared_f32[", kTile, " + LANE * ",
                 kPitch, " + first + k];");
    writer_.Close();
    writer_.Open("for (int k = 0; k < ", kDepth, "; ++k)");
    writer_.Line("f32 own[", kItemValues, "];");
    writer_.Line("UNROLL for (int c = 0; c < ", kItemValues, "; ++c) own[c] = shared_f32[k * ",
                 kValues, " + across + c * ", kSide, "];");
    writer_.Open("UNROLL for (int r = 0; r < ", kItemRows, "; ++r)");
    writer_.Line("const f32 weight = shared_f32[", kTile, " + (first_row + r) * ", kPitch,
                 " + first + k];");
    writer_.Line("UNROLL for (int c = 0; c < ", kItemValues, "; ++c) sums[r * ", kItemValues,
                 " + c] = M_fma(weight, own[c], sums[r * ", kItemValues, " + c]);");
    writer_.Close();
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Close();
  }

  void WriteOutputs() {
    writer_.Line("if (LANE < ", kRows, ") shrinks[LANE] = total;");
    writer_.Open("UNROLL for (int r = 0; r < ", kItemRows, "; ++r)");
    writer_.Line("UNROLL for (int c = 0; c < ", kItemValues, "; ++c) shared_f32[(first_row + r) * ",
                 kValues, " + across + c * ", kSide, "] = sums[r * ", kItemValues, " + c];");
    writer_.Close();
    writer_.Line("BARRIER;");
    OpenElements(kValues);
    const std::string query = writer_.Declare("idx", Text(first_query_, " + r"));
    const std::string value = writer_.Declare("idx", Text(first_value_, " + c"));
    writer_.Open("if (", is_stored_, " && ", query, " < ", queries_, " && ", value, " < ", values_,
                 ")");
    writer_.Line("f32 result = 0;");
    writer_.Line("if (", keys_, " > 0) result = shared_f32[n] / shrinks[r];");
    Scope scope;
    scope.coordinates = scope.indices = At(query, value);
    scope.accumulator = "result";
    const std::vector<std::string> results =
        WriteExpressions(writer_, source_.program, source_.step, scope, attention_.roots);
    for (size_t k = 0; k < results.size(); ++k) {
      WriteStore(writer_, source_.step, static_cast<int>(k), scope.coordinates, results[k]);
    }
    writer_.Close();
    writer_.Close();
  }

  Writer& writer_;
  const Source& source_;
  const Attention& attention_;
  std::vector<std::string> batch_;  // coordinates
  std::string first_query_, first_value_;
  std::string queries_, keys_, width_, values_;  // extents
  std::string group_, is_stored_;                // which one; whether it has results to store
  std::string carried_;                          // working memory
};

}  // namespace

bool IsWorthwhileAttention(const program::Step& step) {
  // Few queries leave most of a group's rows idle, and many values mean that scores are computed
  // for each block of them.
  constexpr int64_t kMinQueries = kRows / 8;
  constexpr int64_t kMaxValues = 2 * kValues;
  const program::Dim& queries = step.domain[step.domain.size() - 2];
  const program::Dim& values = step.domain.back();
  return (!queries.is_constant() || queries.constant() >= kMinQueries) && values.is_constant() &&
         values.constant() <= kMaxValues;
}

KernelSequence MakeAttentionKernel(const LoopFacts& facts, const device::BoundStep& step,
                                   LoopNest loops) {
  const tensor::Extents& domain = step.domain;
  const size_t rank = domain.size();
  const int64_t query_blocks = Blocks(domain[rank - 2], kRows);
  const int64_t value_blocks = Blocks(domain[rank - 1], kValues);
  int64_t groups = tensor::ElementCount(std::span(domain).first(rank - 2));
  for (const int64_t blocks : {query_blocks, value_blocks}) {
    if (__builtin_mul_overflow(groups, blocks, &groups)) groups = INT64_MAX;
  }
  loops.given = {groups, query_blocks, value_blocks};
  // What a view may be over: an operand, the scores or the domain. Coordinates reach a block beyond
  // their end.
  tensor::Extents reached(domain);
  for (int operand = 0; operand < 3; ++operand) {
    const tensor::Extents extents = program::OperandExtents(*step.step, operand, step.dims);
    for (size_t axis = 0; axis < rank; ++axis) {
      reached[axis] = std::max(reached[axis], extents[axis]);
    }
  }
  reached[rank - 1] = std::max(reached[rank - 1], step.Number(step.step->As<Attention>()->keys));
  constexpr int64_t kNarrow = int64_t{1} << 29;
  bool is_narrow =
      groups <= kNarrow && reached[rank - 2] <= kNarrow && reached[rank - 1] <= kNarrow;
  for (size_t k = 0; k < loops.reads.size(); ++k) {
    // Loads at coordinates of their own are in 64 bits.
    is_narrow = is_narrow && (facts.is_indexed[k] || IsNarrow(loops.reads[k], reached));
  }
  for (const device::BoundView& view : loops.writes) {
    is_narrow = is_narrow && IsNarrow(view, domain);
  }
  loops.form.is_narrow = is_narrow;
  KernelSequence sequence;
  const auto* attention = step.step->As<Attention>();
  const int64_t keys = step.Number(attention->keys);
  const int64_t at_once = KeysAtOnce(step.Number(attention->width));
  if (keys <= at_once || groups == 0) {
    sequence.launches.push_back({.loops = std::move(loops)});
    return sequence;
  }
  loops.form.is_grouped = true;
  loops.form.is_narrow = is_narrow && groups <= kNarrow / kCarried;
  for (int64_t first = 0; first < keys; first += at_once) {
    loops.given = {groups, query_blocks, value_blocks, first, std::min(first + at_once, keys)};
    sequence.launches.push_back({.loops = loops});
  }
  sequence.scratch_bytes[0] = groups * kCarried * static_cast<int64_t>(sizeof(float));
  return sequence;
}

Launch WriteAttention(Writer& writer, const Source& source) {
  return AttentionWriter(writer, source).Write();
}

}  // namespace onnxifi::codegen
