// SPDX-License-Identifier: Apache-2.0
//
// Scatter: the kernels that scatter_kernels.h puts together. Each gives the same bits on every
// device and in every run: updates of one target take effect in ascending order.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/codegen/family.h"
#include "backends/core/codegen/group_sum.h"
#include "backends/core/codegen/scatter_kernels.h"

namespace onnxifi::codegen {
namespace {

using program::Index;
using tensor::ElementType;

// Words of a column that are looked at together, so that their loads are under way at a time.
constexpr int kWordsAtOnce = 8;
// Two digits' counts are halves of a word. Those of a column belong to one item, so that nobody
// changes the other half meanwhile; a word more than columns, so that items which go through digits
// side by side meet no bank of shared memory twice.
constexpr int kSpareCounts = 1;
constexpr int kCountBits = 16;
// Items that add up the counts of all digits.
constexpr int kAddingItems = 32;

class ScatterWriter {
 public:
  ScatterWriter(Writer& writer, const Source& source)
      : writer_(writer), source_(source), index_(*source.step.As<Index>()) {
    for (const program::Dim& dim : index_.target) {
      wide_extents_.push_back(writer_.UseDim(dim, /*is_wide=*/true));
      extents_.push_back("n" + wide_extents_.back().substr(1));
    }
  }

  // A loop for each axis of the domain.
  Launch InOrder() {
    writer_.Open("if (ITEM < count)");
    std::vector<std::string> at;
    for (int axis = 0; axis < source_.form.rank; ++axis) {
      at.push_back(writer_.NewName("j"));
      writer_.Open("for (idx ", at.back(), " = 0; ", at.back(), " < ", Extent(writer_, axis),
                   "; ++", at.back(), ")");
    }
    OpenTarget(at);
    const std::string update = Read(0, at);
    const std::string value =
        is_replacing() ? update : Combine(WriteReadBack(writer_, source_.step, 0, target_), update);
    WriteStore(writer_, source_.step, 0, target_, value);
    writer_.Close();
    for (int axis = 0; axis < source_.form.rank; ++axis) writer_.Close();
    writer_.Close();
    return {};
  }

  Launch ClearClaims() {
    const std::string claims = writer_.UseScratch(/*is_write=*/true, 3, "u32");
    writer_.Open("if (ITEM < count)");
    writer_.Line("STORE_WORD(", claims, ", AS(idx, ITEM) * ", kClaimsPerItem, ", 0u, 0u, 0u, 0u);");
    writer_.Close();
    return {.given_items = kClaimRuns, .group_size = items_};
  }

  // The largest claim stays, that of the last update.
  Launch ClaimTargets() {
    const std::string claims = writer_.UseScratch(/*is_write=*/true, 3, "u32");
    OpenTarget(OpenItems(writer_, source_.form.rank));
    writer_.Line("MAX_BITS(", claims, ", ", TargetNumber(), ", AS(u32, ITEM) + 1u);");
    return CloseItem();
  }

  Launch ScatterClaimed() {
    const std::string claims = writer_.UseScratch(/*is_write=*/false, 3, "u32");
    const std::vector<std::string> at = OpenItems(writer_, source_.form.rank);
    OpenTarget(at);
    writer_.Open("if (LOAD(", claims, ", ", TargetNumber(), ") == AS(u32, ITEM) + 1u)");
    WriteStore(writer_, source_.step, 0, target_, Read(0, at));
    writer_.Close();
    return CloseItem();
  }

  Launch WriteWords() {
    const std::string words = writer_.UseScratch(/*is_write=*/true, 0, "u64");
    const std::vector<std::string> at = OpenItems(writer_, source_.form.rank);
    writer_.Line("STORE(", words, ", ITEM, ", WordOf(at, "AS(u64, ITEM)"), ");");
    writer_.Close();
    return {.item_axes = source_.form.rank, .group_size = items_};
  }

  // Looks at all words: of a target's updates the last one replaces it, or the first one combines
  // all of them.
  Launch ScatterFew() {
    const std::string words = writer_.UseScratch(/*is_write=*/false, 0, "u64");
    const std::string item = writer_.Declare("idx", "AS(idx, ITEM)");
    const std::string number = OpenWord(words, item);
    const std::string takes = writer_.NewName("s");
    const std::string other = writer_.NewName("j");
    const std::string end = writer_.UseGiven(kUpdateCount);
    writer_.Line("bool ", takes, " = true;");
    if (is_replacing()) {
      writer_.Open("for (idx ", other, " = ", item, " + 1; ", takes, " && ", other, " < ", end,
                   "; ++", other, ")");
      writer_.Line(takes, " = ", NumberOf(words, other), " != ", number, ";");
      writer_.Close();
      writer_.Open("if (", takes, ")");
      StoreUpdate(number, item);
    } else {
      const std::vector<std::string> target = TargetAt(number);
      const std::string value = DeclareValue(target);
      writer_.Open("for (idx ", other, " = 0; ", takes, " && ", other, " < ", end, "; ++", other,
                   ")");
      writer_.Open("if (", NumberOf(words, other), " == ", number, ")");
      writer_.Line(takes, " = ", other, " >= ", item, ";");
      CombineUpdate(value, other);
      writer_.Close();
      writer_.Close();
      writer_.Open("if (", takes, ")");
      WriteStore(writer_, source_.step, 0, target, value);
    }
    writer_.Close();
    return CloseWord(kUpdateCount);
  }

  Launch CountDigits(bool is_of_updates) {
    const std::string counts = writer_.UseScratch(/*is_write=*/true, 2, "u32");
    CountColumns(is_of_updates);
    const std::string row = OpenRows();
    const std::string sum = writer_.NewName("s");
    writer_.Line("u32 ", sum, " = 0u;");
    writer_.Line(sum, " += ", counts_, "[", OpenColumns(row), "];");
    writer_.Close();
    writer_.Open("if (", is_inside_, ")");
    writer_.Line("STORE(", counts, ", ", CountAt(row), ", ", sum, " & 0xffffu);");
    writer_.Line("STORE(", counts, ", ", CountAt(Text("(", row, " + ", rows(), ")")), ", ", sum,
                 " >> ", kCountBits, ");");
    writer_.Close();
    writer_.Close();
    return {.given_items = kWordBlocks, .has_group_per_item = true, .group_size = items_};
  }

  // Of a digit the counts become the sums of those of the blocks before; that of all goes behind
  // the counts of all digits.
  Launch AddCounts() {
    const std::string counts = writer_.UseScratch(/*is_write=*/true, 2, "u32");
    is_inside_ = writer_.Declare("bool", "GROUP < count");
    const std::string digit =
        writer_.Declare("idx", Text(is_inside_, " ? AS(idx, GROUP) : AS(idx, 0)"));
    const std::string sums = writer_.NewName("g");
    writer_.Share(Text("u32 ", sums, "[", items_, "]"));
    const std::string blocks = writer_.UseGiven(kWordBlocks);
    const std::string length =
        writer_.Declare("idx", Text("(", blocks, " + ", items_ - 1, ") / ", items_));
    const std::string first = writer_.Declare("idx", Text("AS(idx, LANE) * ", length));
    const std::string last = writer_.Declare("idx", Text(first, " + ", length));
    const std::string end =
        writer_.Declare("idx", Text(last, " < ", blocks, " ? ", last, " : ", blocks));
    const std::string row = writer_.Declare("idx", Text(digit, " * ", blocks));
    const std::string sum = writer_.NewName("s");
    const auto open_blocks = [&] {
      const std::string block = writer_.NewName("j");
      writer_.Open("for (idx ", block, " = ", first, "; ", block, " < ", end, "; ++", block, ")");
      return Text(row, " + ", block);
    };
    writer_.Line("u32 ", sum, " = 0u;");
    writer_.Line(sum, " += LOAD(", counts, ", ", open_blocks(), ");");
    writer_.Close();
    const GroupSum sum_of = WriteGroupSum(writer_, "u32", sum, items_, sums);
    writer_.Open("if (", is_inside_, ")");
    writer_.Line(sum, " = ", sum_of.before, ";");
    const std::string at = open_blocks();
    const std::string own = writer_.Declare("u32", Text("LOAD(", counts, ", ", at, ")"));
    writer_.Line("STORE(", counts, ", ", at, ", ", sum, ");");
    writer_.Line(sum, " += ", own, ";");
    writer_.Close();
    writer_.Line("if (LANE == 0) STORE(", counts, ", ", CountOfAllAt(digit), ", ", sum_of.all,
                 ");");
    writer_.Close();
    return {.given_items = kDigitCount, .has_group_per_item = true, .group_size = items_};
  }

  // Words of a digit keep their order.
  Launch PlaceWords(bool is_of_updates) {
    const std::string placed = writer_.UseScratch(/*is_write=*/true, 1, "u64");
    CountColumns(is_of_updates);
    FindPlacesOfDigits();
    // Columns' counts become the sums of those of the columns before.
    const std::string row = OpenRows();
    const std::string sum = writer_.NewName("s");
    writer_.Line("u32 ", sum, " = 0u;");
    const std::string at = writer_.Declare("int", OpenColumns(row));
    const std::string own = writer_.Declare("u32", Text(counts_, "[", at, "]"));
    writer_.Line(counts_, "[", at, "] = ", sum, ";");
    writer_.Line(sum, " += ", own, ";");
    writer_.Close();
    writer_.Close();
    writer_.Line("BARRIER;");
    const Word word = OpenWords(is_of_updates);
    const std::string before = writer_.Declare("u32", Text(counts_, "[", word.count_at, "]"));
    writer_.Line("STORE(", placed, ", AS(idx, ", places_, "[", word.digit, "] + (", before, " >> ",
                 word.shift, " & 0xffffu)), ", word.word, ");");
    writer_.Line(counts_, "[", word.count_at, "] = ", before, " + (1u << ", word.shift, ");");
    CloseWords();
    return {.given_items = kWordBlocks, .has_group_per_item = true, .group_size = items_};
  }

  // Of a target's words, which stand side by side or with others between them, the last one
  // replaces it, or the first one of a range combines those of the range.
  Launch ScatterSorted() {
    const std::string words = writer_.UseScratch(/*is_write=*/false, 0, "u64");
    const std::string begin = writer_.UseGiven(kRangeBegin);
    const std::string item = writer_.Declare("idx", Text("AS(idx, ITEM) + ", begin));
    const std::string number = OpenWord(words, item);
    const std::string mask = writer_.UseGiven(kSortedBits);
    const std::string bits = writer_.Declare("idx", Text(number, " & ", mask));
    const auto agrees = [&](const std::string& place) {
      return Text("(", NumberOf(words, place), " & ", mask, ") == ", bits);
    };
    const std::string takes = writer_.NewName("s");
    const std::string other = writer_.NewName("j");
    writer_.Line("bool ", takes, " = true;");
    if (is_replacing()) {
      writer_.Open("for (idx ", other, " = ", item, " + 1; ", takes, " && ", other, " < ",
                   writer_.UseGiven(kUpdateCount), " && ", agrees(other), "; ++", other, ")");
      writer_.Line(takes, " = ", NumberOf(words, other), " != ", number, ";");
      writer_.Close();
      writer_.Open("if (", takes, ")");
      StoreUpdate(number, UpdateOf(words, item));
    } else {
      const std::string before = other + " - 1";
      writer_.Open("for (idx ", other, " = ", item, "; ", takes, " && ", other, " > ", begin,
                   " && ", agrees(before), "; --", other, ")");
      writer_.Line(takes, " = ", NumberOf(words, before), " != ", number, ";");
      writer_.Close();
      writer_.Open("if (", takes, ")");
      const std::vector<std::string> target = TargetAt(number);
      const std::string value = DeclareValue(target);
      const std::string place = writer_.NewName("j");
      writer_.Open("for (idx ", place, " = ", item, "; ", place, " < ", writer_.UseGiven(kRangeEnd),
                   " && ", agrees(place), "; ++", place, ")");
      writer_.Open("if (", NumberOf(words, place), " == ", number, ")");
      CombineUpdate(value, UpdateOf(words, place));
      writer_.Close();
      writer_.Close();
      WriteStore(writer_, source_.step, 0, target, value);
    }
    writer_.Close();
    return CloseWord(kRangeCount);
  }

 private:
  bool is_replacing() const { return index_.combine == Index::Combine::kNone; }

  std::string Read(int read, std::span<const std::string> at) {
    return writer_.Declare(LaneType(source_.step.reads[static_cast<size_t>(read)].type),
                           WriteLoad(writer_, source_.step, read, at));
  }

  // Reads the target of the update at some coordinates and opens the block of those that have one.
  void OpenTarget(const std::vector<std::string>& at) {
    target_.clear();
    std::string is_inside = "true";
    for (size_t axis = 0; axis < index_.target.size(); ++axis) {
      target_.push_back(Read(static_cast<int>(axis) + 1, at));
      is_inside +=
          Text(" && ", target_[axis], " >= 0 && ", target_[axis], " < ", wide_extents_[axis]);
    }
    writer_.Open("if (", is_inside, ")");
  }
  Launch CloseItem() {
    writer_.Close();
    writer_.Close();
    return {.item_axes = source_.form.rank, .group_size = items_};
  }

  // Within the block that OpenTarget has opened.
  std::string TargetNumber() {
    std::string number = "AS(idx, 0)";
    for (size_t axis = 0; axis < target_.size(); ++axis) {
      const std::string at = Text("AS(idx, ", target_[axis], ")");
      number =
          writer_.Declare("idx", axis == 0 ? at : Text(number, " * ", extents_[axis], " + ", at));
    }
    return number;
  }
  std::vector<std::string> TargetAt(const std::string& number) {
    return WriteCoordinates(writer_, number, extents_);
  }

  // A shift: the bits of a word that say which update it is.
  std::string UpdateBits() { return Text("AS(int, ", writer_.UseGiven(kUpdateBits), ")"); }
  std::string NumberOf(const std::string& words, const std::string& place) {
    return Text("AS(idx, LOAD(", words, ", ", place, ") >> ", UpdateBits(), ")");
  }
  std::string UpdateOf(const std::string& words, const std::string& place) {
    return writer_.Declare("idx", Text("AS(idx, LOAD(", words, ", ", place, ") & (AS(u64, 1) << ",
                                       UpdateBits(), ") - AS(u64, 1))"));
  }

  // Opens the block of word `item`, if it has a target; gives the target's number.
  std::string OpenWord(const std::string& words, const std::string& item) {
    writer_.Open("if (ITEM < count)");
    std::string number = writer_.Declare("idx", NumberOf(words, item));
    writer_.Open("if (", number, " < ", writer_.UseGiven(kTargetCount), ")");
    return number;
  }
  Launch CloseWord(ScatterNumber items) {
    writer_.Close();
    writer_.Close();
    return {.given_items = items, .group_size = items_};
  }

  std::vector<std::string> UpdateAt(const std::string& update) {
    std::vector<std::string> extents;
    for (int axis = 0; axis < source_.form.rank; ++axis) extents.push_back(Extent(writer_, axis));
    return WriteCoordinates(writer_, update, extents);
  }
  void StoreUpdate(const std::string& number, const std::string& update) {
    const std::string value = Read(0, UpdateAt(update));
    WriteStore(writer_, source_.step, 0, TargetAt(number), value);
  }
  // A variable that begins as what the target holds.
  std::string DeclareValue(const std::vector<std::string>& target) {
    std::string value = writer_.NewName("s");
    const std::string before = WriteReadBack(writer_, source_.step, 0, target);
    writer_.Line(LaneType(source_.step.writes[0].type), " ", value, " = ", before, ";");
    return value;
  }
  void CombineUpdate(const std::string& value, const std::string& update) {
    writer_.Line(value, " = ", Combine(value, Read(0, UpdateAt(update))), ";");
  }

  // The word of an update at some coordinates; `number`: which one it is, of type u64.
  std::string WordOf(const std::vector<std::string>& at, const std::string& number) {
    const std::string target = writer_.NewName("s");
    writer_.Line("idx ", target, " = ", writer_.UseGiven(kTargetCount), ";");
    OpenTarget(at);
    writer_.Line(target, " = ", TargetNumber(), ";");
    writer_.Close();
    return Text("AS(u64, ", target, ") << ", UpdateBits(), " | ", number);
  }

  // Counts the digits of a block's words by columns.
  void CountColumns(bool is_of_updates) {
    is_inside_ = writer_.Declare("bool", "GROUP < count");
    block_ = writer_.Declare("idx", Text(is_inside_, " ? AS(idx, GROUP) : AS(idx, 0)"));
    counts_ = writer_.NewName("g");
    const int size = rows() * (digits_.columns + kSpareCounts);
    writer_.Share(Text("u32 ", counts_, "[", size, "]"));
    const std::string clear = writer_.NewName("j");
    writer_.Open("for (int ", clear, " = LANE; ", clear, " < ", size, "; ", clear, " += ", items_,
                 ")");
    writer_.Line(counts_, "[", clear, "] = 0u;");
    writer_.Close();
    writer_.Line("BARRIER;");
    const Word word = OpenWords(is_of_updates);
    writer_.Line(counts_, "[", word.count_at, "] += 1u << ", word.shift, ";");
    CloseWords();
    writer_.Line("BARRIER;");
  }
  // Of words with the counts of two digits, this one and the one as far behind it.
  int rows() const { return digits_.digits / 2; }

  // Opens the loops over the words of an item that has a column.
  struct Word {
    std::string word, digit;
    std::string count_at, shift;  // of the digit's count
  };
  Word OpenWords(bool is_of_updates) {
    const std::string total = writer_.Declare(
        "idx", Text(is_inside_, " ? ", writer_.UseGiven(kUpdateCount), " : AS(idx, 0)"));
    writer_.Open("if (LANE < ", digits_.columns, ")");
    const std::string begin = writer_.Declare(
        "idx", Text("(", block_, " * ", digits_.columns, " + AS(idx, LANE)) * ", kColumnWords));
    const std::string last = writer_.Declare("idx", Text(begin, " + ", kColumnWords));
    const std::string end =
        writer_.Declare("idx", Text(last, " < ", total, " ? ", last, " : ", total));
    const std::string first = writer_.NewName("j");
    writer_.Open("for (idx ", first, " = ", begin, "; ", first, " < ", end, "; ", first,
                 " += ", kWordsAtOnce, ")");
    const std::string words = writer_.NewName("s");
    writer_.Line("u64 ", words, "[", kWordsAtOnce, "];");
    const auto open_words = [&] {
      std::string lane = writer_.NewName("l");
      writer_.Open("UNROLL for (int ", lane, " = 0; ", lane, " < ", kWordsAtOnce, "; ++", lane,
                   ")");
      return lane;
    };
    std::string lane = open_words();
    // In place of words behind the end the first one is looked at.
    const std::string wanted = writer_.Declare("idx", Text(first, " + AS(idx, ", lane, ")"));
    const std::string place =
        writer_.Declare("idx", Text(wanted, " < ", end, " ? ", wanted, " : ", first));
    const std::string word =
        is_of_updates
            ? WordOf(UpdateAt(place), Text("AS(u64, ", place, ")"))
            : Text("LOAD(", writer_.UseScratch(/*is_write=*/false, 0, "u64"), ", ", place, ")");
    writer_.Line(words, "[", lane, "] = ", word, ";");
    writer_.Close();
    lane = open_words();
    writer_.Open("if (", first, " + AS(idx, ", lane, ") < ", end, ")");
    Word opened;
    opened.word = Text(words, "[", lane, "]");
    opened.digit =
        writer_.Declare("int", Text("AS(int, AS(u32, ", opened.word, " >> AS(int, ",
                                    writer_.UseGiven(kDigitAt), ")) & ", digits_.digits - 1, "u)"));
    opened.count_at = writer_.Declare(
        "int", Text(opened.digit, " % ", rows(), " * ", digits_.columns + kSpareCounts, " + LANE"));
    opened.shift = writer_.Declare("int", Text(opened.digit, " / ", rows(), " * ", kCountBits));
    return opened;
  }
  void CloseWords() {
    for (int block = 0; block < 4; ++block) writer_.Close();
  }

  // Opens the loop over the rows that an item adds up.
  std::string OpenRows() {
    std::string row = writer_.NewName("j");
    writer_.Open("for (int ", row, " = LANE; ", row, " < ", rows(), "; ", row, " += ", items_, ")");
    return row;
  }
  // Opens the loop over the columns of a row and says where one's counts are.
  std::string OpenColumns(const std::string& row) {
    const std::string column = writer_.NewName("l");
    writer_.Open("UNROLL for (int ", column, " = 0; ", column, " < ", digits_.columns, "; ++",
                 column, ")");
    return Text(row, " * ", digits_.columns + kSpareCounts, " + ", column);
  }

  // Where the first word of each digit of the block goes: `places_`.
  void FindPlacesOfDigits() {
    const std::string counts = writer_.UseScratch(/*is_write=*/false, 2, "u32");
    places_ = writer_.NewName("g");
    writer_.Share(Text("u32 ", places_, "[", std::max(digits_.digits, kAddingItems), "]"));
    const int per_item = std::max(1, digits_.digits / kAddingItems);
    const auto open_digits = [&] {
      const std::string lane = writer_.NewName("l");
      writer_.Open("for (int ", lane, " = 0; ", lane, " < ", per_item, "; ++", lane, ")");
      std::string digit = writer_.Declare("int", Text("LANE * ", per_item, " + ", lane));
      writer_.Open("if (", digit, " < ", digits_.digits, ")");
      return digit;
    };
    const auto close_digits = [&] {
      writer_.Close();
      writer_.Close();
    };
    const std::string sum = writer_.NewName("s");
    writer_.Line("u32 ", sum, " = 0u;");
    writer_.Line(sum, " += LOAD(", counts, ", ", CountOfAllAt(open_digits()), ");");
    close_digits();
    writer_.Line(sum, " = ", WriteGroupSum(writer_, "u32", sum, kAddingItems, places_).before, ";");
    writer_.Line("BARRIER;");
    const std::string digit = open_digits();
    writer_.Line(places_, "[", digit, "] = ", sum, " + LOAD(", counts, ", ", CountAt(digit), ");");
    writer_.Line(sum, " += LOAD(", counts, ", ", CountOfAllAt(digit), ");");
    close_digits();
  }

  // Where the count of a digit is, of this block and of all.
  std::string CountAt(const std::string& digit) {
    return Text("AS(idx, ", digit, ") * ", writer_.UseGiven(kWordBlocks), " + ", block_);
  }
  std::string CountOfAllAt(const std::string& digit) {
    return Text(digits_.digits, " * ", writer_.UseGiven(kWordBlocks), " + AS(idx, ", digit, ")");
  }

  // What `update` makes of what was there `before`.
  std::string Combine(const std::string& before, const std::string& update) {
    const ElementType type = source_.step.writes[0].type;
    const ElementType wide = WideType(type);
    const std::string_view lane = LaneType(wide);
    const std::string a = writer_.Declare(lane, WriteCast(writer_, type, wide, before));
    const std::string b = writer_.Declare(lane, WriteCast(writer_, type, wide, update));
    const bool is_float = tensor::IsFloat(wide);
    const auto arithmetic = [&](std::string_view op) {
      if (is_float) return Text(a, op, b);
      return Text("AS(", lane, ", AS(u64, ", a, ")", op, "AS(u64, ", b, "))");
    };
    const std::string or_nan = is_float ? Text(" || ", a, " != ", a) : "";
    std::string combined = b;
    switch (index_.combine) {
      case Index::Combine::kNone:
        break;
      case Index::Combine::kAdd:
        combined = arithmetic(" + ");
        break;
      case Index::Combine::kMul:
        combined = arithmetic(" * ");
        break;
      case Index::Combine::kMin:
        combined = Text(a, " < ", b, or_nan, " ? ", a, " : ", b);
        break;
      case Index::Combine::kMax:
        combined = Text(b, " < ", a, or_nan, " ? ", a, " : ", b);
        break;
    }
    const std::string result = writer_.Declare(lane, combined);
    return writer_.Declare(LaneType(type), WriteCast(writer_, wide, type, result));
  }

  Writer& writer_;
  const Source& source_;
  const Index& index_;
  const int items_ = source_.capabilities.row_group_size;  // of a group
  const DigitCounts digits_ = DigitCountsFor(source_.capabilities);
  // By axis of the target: its extent as idx, and as i64.
  std::vector<std::string> extents_, wide_extents_;
  std::vector<std::string> target_;  // coordinates that OpenTarget has read
  // Of a group: whether it is one of those asked for, the number of its block, and in shared memory
  // the counts of digits by column and the places of digits.
  std::string is_inside_, block_, counts_, places_;
};

}  // namespace

Launch WriteScatter(Writer& writer, const Source& source, int kernel) {
  ScatterWriter scatter(writer, source);
  switch (kernel) {
    case kClearClaims:
      return scatter.ClearClaims();
    case kClaimTargets:
      return scatter.ClaimTargets();
    case kScatterClaimed:
      return scatter.ScatterClaimed();
    case kWriteWords:
      return scatter.WriteWords();
    case kScatterFew:
      return scatter.ScatterFew();
    case kCountUpdates:
      return scatter.CountDigits(/*is_of_updates=*/true);
    case kPlaceUpdates:
      return scatter.PlaceWords(/*is_of_updates=*/true);
    case kCountDigits:
      return scatter.CountDigits(/*is_of_updates=*/false);
    case kAddCounts:
      return scatter.AddCounts();
    case kPlaceWords:
      return scatter.PlaceWords(/*is_of_updates=*/false);
    case kScatterSorted:
      return scatter.ScatterSorted();
    default:
      return scatter.InOrder();
  }
}

}  // namespace onnxifi::codegen
