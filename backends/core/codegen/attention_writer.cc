// SPDX-License-Identifier: Apache-2.0
//
// AttentionWriter: an item loads several elements or words before it stores the first of them, so
// that their loads are under way together.

#include "backends/core/codegen/attention_writer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "backends/core/program/product_operand.h"

namespace onnxifi::codegen {
namespace {

using tensor::ElementType;

// The element in bytes [at, at + bytes) of a word.
std::string FromWord(ElementType type, const std::string& word, int at) {
  const std::string part = Text(word, ".", std::string(1, "xyzw"[at / 4]));
  if (type == ElementType::kFloat32) return Text("FROM_BITS_f32(", part, ")");
  return Text("AS(u16, ", part, " >> ", at % 4 * 8, " & 0xffffu)");
}

}  // namespace

AttentionWriter::AttentionWriter(Writer& writer, const Source& source)
    : writer_(writer),
      source_(source),
      attention_(*source.step.As<program::Attention>()),
      rank_(source.step.domain.size()) {
  queries_ = Extent(writer_, static_cast<int>(rank_) - 2);
  values_ = Extent(writer_, static_cast<int>(rank_) - 1);
  keys_ = writer_.UseDim(attention_.keys);
  width_ = writer_.UseDim(attention_.width);
}

std::vector<std::string> AttentionWriter::At(const std::string& row,
                                             const std::string& column) const {
  std::vector<std::string> at = batch_;
  at.push_back(row);
  at.push_back(column);
  return at;
}

std::vector<std::string> AttentionWriter::AtQuery(const std::string& row,
                                                  const std::string& column) const {
  if (batch_.empty() || shared_rows_.empty()) return At(row, column);
  const Writer::Division division = writer_.DeclareDivision(row, queries_);
  std::vector<std::string> at = At(division.rest, column);
  std::string& last = at[rank_ - 3];
  last = writer_.Declare("idx", Text(last, " + ", division.quotient));
  return at;
}

void AttentionWriter::PlaceGroup(const AttentionBlock& block, Keys keys) {
  is_stored_ = writer_.Declare("bool", "GROUP < count");
  group_ = writer_.Declare("idx", Text(is_stored_, " ? AS(idx, GROUP) : AS(idx, 0)"));
  std::string rest = group_;
  first_ = "0";
  end_ = keys_;
  if (keys == Keys::kRange) {
    first_ = writer_.UseGiven(kAttentionFirstKey);
    end_ = writer_.UseGiven(kAttentionEndKey);
  } else if (keys == Keys::kPart) {
    parts_ = writer_.UseGiven(kAttentionParts);
    const Writer::Division division = writer_.DeclareDivision(rest, parts_);
    part_ = division.rest;
    rest = division.quotient;
    const std::string length = writer_.UseGiven(kAttentionPartLength);
    first_ = writer_.Declare("idx", Text(part_, " * ", length));
    const std::string left = writer_.Declare("idx", Text(keys_, " - ", first_));
    end_ = writer_.Declare(
        "idx", Text(first_, " + (", left, " < ", length, " ? ", left, " : ", length, ")"));
  }
  const Writer::Division of_values =
      writer_.DeclareDivision(rest, writer_.UseGiven(kAttentionValueBlocks));
  const Writer::Division of_rows =
      writer_.DeclareDivision(of_values.quotient, writer_.UseGiven(kAttentionRowBlocks));
  first_value_ = writer_.Declare("idx", Text(of_values.rest, " * ", block.columns));
  first_row_ = writer_.Declare("idx", Text(of_rows.rest, " * ", block.rows));
  shared_rows_ = writer_.UseGiven(kAttentionSharedRows);
  std::vector<std::string> extents;
  for (size_t axis = 0; axis + 2 < rank_; ++axis) {
    extents.push_back(axis + 3 < rank_ ? Extent(writer_, static_cast<int>(axis))
                                       : writer_.UseGiven(kAttentionLastBatch));
  }
  batch_ = WriteCoordinates(writer_, of_rows.quotient, extents);
  row_of_all_ =
      writer_.Declare("idx", Text(of_rows.quotient, " * ", shared_rows_, " + ", first_row_));
}

std::string AttentionWriter::Evaluate(program::ExprId root, Scope scope) {
  scope.indices = scope.coordinates;
  const program::ExprId roots[] = {root};
  return WriteExpressions(writer_, source_.program, source_.step, scope, roots)[0];
}

std::string AttentionWriter::Score(const std::string& row, const std::string& key,
                                   const std::string& sum) {
  Scope scope;
  scope.coordinates = AtQuery(row, key);
  scope.accumulator = sum;
  return Evaluate(attention_.score, std::move(scope));
}

void AttentionWriter::StoreResults(const std::string& row, const std::string& value,
                                   const std::string& sum) {
  Scope scope;
  scope.coordinates = scope.indices = AtQuery(row, value);
  scope.accumulator = sum;
  const std::vector<std::string> results =
      WriteExpressions(writer_, source_.program, source_.step, scope, attention_.roots);
  for (size_t k = 0; k < results.size(); ++k) {
    WriteStore(writer_, source_.step, static_cast<int>(k), scope.coordinates, results[k]);
  }
}

void AttentionWriter::StoreFound(const Found& found) {
  const std::string row = writer_.Declare("idx", Text(first_row_, " + ", found.r));
  writer_.Open("if (", is_stored_, " && ", row, " < ", shared_rows_, " && ", found.value, " < ",
               values_, ")");
  if (parts_.empty()) {
    const std::string result = writer_.NewName("v");
    writer_.Line("f32 ", result, " = 0;");
    writer_.Line("if (", keys_, " > 0) ", result, " = ", found.sum, " / ", found.total, ";");
    StoreResults(row, found.value, result);
  } else {
    const std::string sums = writer_.UseScratch(/*is_write=*/true, kAttentionPartSums, "f32");
    const std::string states = writer_.UseScratch(/*is_write=*/true, kAttentionPartStates, "f32");
    const std::string at = writer_.Declare(
        "idx", Text("(", row_of_all_, " + ", found.r, ") * ", parts_, " + ", part_));
    writer_.Line("STORE(", sums, ", ", at, " * ", values_, " + ", found.value, ", ", found.sum,
                 ");");
    writer_.Open("if (", found.value, " == 0)");
    writer_.Line("STORE(", states, ", ", at, " * 2, ", found.highest, ");");
    writer_.Line("STORE(", states, ", ", at, " * 2 + 1, ", found.total, ");");
    writer_.Close();
  }
  writer_.Close();
}

void AttentionWriter::WriteScore(const std::string& row, const std::string& key,
                                 const std::string& place) {
  writer_.Line("f32 score = lowest;");
  writer_.Open("if (", row, " < ", shared_rows_, " && ", key, " < ", end_, ")");
  writer_.Line("const f32 sum = ", place, ";");
  writer_.Line("score = ", Score(row, key, "sum"), ";");
  writer_.Close();
  writer_.Line(place, " = score;");
}

void AttentionWriter::BringQueries(int rows, int depth, const ArrayIndex& place, int group_size) {
  Bring({.operand = 0,
         .is_fast_last = true,
         .slow = rows,
         .fast = depth,
         .slow_begin = first_row_,
         .slow_end = shared_rows_,
         .fast_begin = "depth",
         .fast_end = width_,
         .array = "queries",
         .place = place},
        group_size);
}

void AttentionWriter::BringKeys(int keys, int depth, const ArrayIndex& place, int group_size) {
  Tile tile{.operand = 1,
            .is_fast_last = false,
            .slow = keys,
            .fast = depth,
            .slow_begin = "first_key",
            .slow_end = end_,
            .fast_begin = "depth",
            .fast_end = width_,
            .array = "tile",
            .place = place};
  if (!source_.form.has_words[1] && source_.form.read_steps[1] == LastStep::kOne) {
    std::swap(tile.slow, tile.fast);
    std::swap(tile.slow_begin, tile.fast_begin);
    std::swap(tile.slow_end, tile.fast_end);
    tile.is_fast_last = true;
    tile.place = [&](const std::string& k, const std::string& key) { return place(key, k); };
  }
  Bring(tile, group_size);
}

void AttentionWriter::BringValues(int keys, const std::string& first, int values, int pitch,
                                  int group_size) {
  Bring({.operand = 2,
         .is_fast_last = true,
         .slow = keys,
         .fast = values,
         .slow_begin = "first_key + " + first,
         .slow_end = end_,
         .fast_begin = first_value_,
         .fast_end = values_,
         .array = "tile",
         .place = [&](const std::string& key,
                      const std::string& value) { return Text(key, " * ", pitch, " + ", value); }},
        group_size);
}

void AttentionWriter::Bring(const Tile& tile, int group_size) {
  constexpr int kMaxAtOnce = 8;
  const ElementType type = source_.step.reads[static_cast<size_t>(tile.operand)].type;
  const bool has_words = source_.form.has_words[static_cast<size_t>(tile.operand)];
  const int lanes = has_words ? 128 / tensor::BitWidth(type) : 1;
  const program::ExprId prologues[] = {attention_.query_prologue, attention_.key_prologue,
                                       attention_.value_prologue};
  const program::ExprId prologue = prologues[tile.operand];
  const int fast_units = tile.fast / lanes;
  const int units = tile.slow * fast_units;
  const int rounds = (units + group_size - 1) / group_size;
  const int at_once = std::min(rounds, kMaxAtOnce);
  const bool is_exact = units % (group_size * at_once) == 0;
  const std::string first = writer_.NewName("j");
  const std::string load = writer_.NewName("l");
  const std::string elements = writer_.NewName("s");
  const std::string_view element_type = has_words ? "u32x4" : "f32";
  writer_.Open("for (int ", first, " = LANE; ", first, " < ", units, "; ", first,
               " += ", group_size * at_once, ")");
  writer_.Line(element_type, " ", elements, "[", at_once, "];");
  const auto open = [&] {
    writer_.Open("UNROLL for (int ", load, " = 0; ", load, " < ", at_once, "; ++", load, ")");
    const std::string n = writer_.Declare("int", Text(first, " + ", load, " * ", group_size));
    const std::string slow = writer_.Declare("int", Text(n, " / ", fast_units));
    std::string fast = Text(n, " % ", fast_units);
    if (lanes > 1) fast += Text(" * ", lanes);
    return std::array{n, slow, writer_.Declare("int", fast)};
  };
  {
    const auto [n, slow, fast] = open();
    writer_.Line(elements, "[", load,
                 "] = ", has_words ? "MAKE4(u32, 0u, 0u, 0u, 0u)" : "AS(f32, 0)", ";");
    const std::string slow_at = writer_.Declare("idx", Text(tile.slow_begin, " + ", slow));
    const std::string fast_at = writer_.Declare("idx", Text(tile.fast_begin, " + ", fast));
    writer_.Open("if (", is_exact ? "" : Text(n, " < ", units, " && "), slow_at, " < ",
                 tile.slow_end, " && ", fast_at, " < ", tile.fast_end, ")");
    Scope scope;
    scope.coordinates = tile.operand == 0   ? AtQuery(slow_at, fast_at)
                        : tile.is_fast_last ? At(slow_at, fast_at)
                                            : At(fast_at, slow_at);
    if (has_words) {
      const std::string buffer = writer_.UseBuffer(/*is_write=*/false, tile.operand, type);
      const std::string at =
          WriteIndex(writer_, source_.step, /*is_write=*/false, tile.operand, scope.coordinates);
      writer_.Line(elements, "[", load, "] = LOAD_WORD(", buffer, ", ", at, ");");
    } else {
      writer_.Line(elements, "[", load, "] = ", Evaluate(prologue, scope), ";");
    }
    writer_.Close();
    writer_.Close();
  }
  const auto [n, slow, fast] = open();
  if (!is_exact) writer_.Open("if (", n, " < ", units, ")");
  const std::string element = Text(elements, "[", load, "]");
  if (has_words) {
    for (int lane = 0; lane < lanes; ++lane) {
      Scope scope;
      scope.coordinates.assign(rank_, "0");
      scope.loaded[tile.operand] = writer_.Declare(
          LaneType(type), FromWord(type, element, lane * tensor::BitWidth(type) / 8));
      writer_.Line(tile.array, "[", tile.place(slow, Text("(", fast, " + ", lane, ")")),
                   "] = ", Evaluate(prologue, scope), ";");
    }
  } else {
    writer_.Line(tile.array, "[", tile.place(slow, fast), "] = ", element, ";");
  }
  if (!is_exact) writer_.Close();
  writer_.Close();
  writer_.Close();
}

}  // namespace onnxifi::codegen
