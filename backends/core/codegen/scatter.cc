// SPDX-License-Identifier: Apache-2.0
//
// Scatter: the kernels that scatter_kernels.h puts together. Each gives the same bits on every
// device and in every run: updates of one target take effect in ascending order.

#include <string>
#include <string_view>
#include <vector>

#include "backends/core/codegen/family.h"
#include "backends/core/codegen/scatter_kernels.h"

namespace onnxifi::codegen {
namespace {

using program::Index;
using tensor::ElementType;

// Counts of a digit lie so many apart in shared memory that items count without waiting for each
// other's bank.
constexpr int kRowOfCounts = 65;

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
    writer_.Line("STORE(", claims, ", ITEM, 0u);");
    writer_.Close();
    return {.given_items = kClaimWords};
  }

  // The largest claim stays, that of the last update.
  Launch ClaimTargets() {
    const std::string claims = writer_.UseScratch(/*is_write=*/true, 3, "u32");
    OpenTarget(OpenItems(writer_, source_.form.rank));
    writer_.Line("MAX_BITS(", claims, ", ", TargetNumber(), " + 1, AS(u32, ITEM) + 1u);");
    return CloseItem();
  }

  Launch ScatterClaimed() {
    const std::string claims = writer_.UseScratch(/*is_write=*/false, 3, "u32");
    const std::vector<std::string> at = OpenItems(writer_, source_.form.rank);
    OpenTarget(at);
    writer_.Open("if (LOAD(", claims, ", ", TargetNumber(), " + 1) == AS(u32, ITEM) + 1u)");
    WriteStore(writer_, source_.step, 0, target_, Read(0, at));
    writer_.Close();
    return CloseItem();
  }

  // All that find one store the same.
  Launch FindDuplicates() {
    const std::string claims = writer_.UseScratch(/*is_write=*/true, 3, "u32");
    OpenTarget(OpenItems(writer_, source_.form.rank));
    writer_.Open("if (LOAD(", claims, ", ", TargetNumber(), " + 1) != AS(u32, ITEM) + 1u)");
    writer_.Line("STORE(", claims, ", 0, 1u);");
    writer_.Close();
    return CloseItem();
  }

  Launch ScatterUnique() {
    const std::vector<std::string> at = OpenItems(writer_, source_.form.rank);
    writer_.Open("if (!(", HasDuplicates(), "))");
    OpenTarget(at);
    const std::string update = Read(0, at);
    WriteStore(writer_, source_.step, 0, target_,
               Combine(WriteReadBack(writer_, source_.step, 0, target_), update));
    writer_.Close();
    return CloseItem();
  }

  Launch ExpectDuplicates() {
    const std::string claims = writer_.UseScratch(/*is_write=*/true, 3, "u32");
    writer_.Line("if (ITEM < count) STORE(", claims, ", 0, 1u);");
    return {.given_items = kOne};
  }

  Launch WriteWords() {
    const std::string words = writer_.UseScratch(/*is_write=*/true, 0, "u64");
    const std::vector<std::string> at = OpenItems(writer_, source_.form.rank);
    const std::string number = writer_.NewName("s");
    writer_.Line("idx ", number, " = ", writer_.UseGiven(kTargetCount), ";");
    OpenTarget(at);
    writer_.Line(number, " = ", TargetNumber(), ";");
    writer_.Close();
    writer_.Line("STORE(", words, ", ITEM, AS(u64, ", number, ") << ", UpdateBits(),
                 " | AS(u64, ITEM));");
    writer_.Close();
    return {.item_axes = source_.form.rank};
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

  Launch CountDigits() {
    const std::string words = writer_.UseScratch(/*is_write=*/false, 0, "u64");
    const std::string counts = writer_.UseScratch(/*is_write=*/true, 2, "u32");
    OpenBlock(words);
    writer_.Open("if (LANE < ", kDigits, ")");
    const std::string sum = writer_.NewName("s");
    const std::string lane = writer_.NewName("l");
    writer_.Line("u32 ", sum, " = 0u;");
    writer_.Open("for (int ", lane, " = 0; ", lane, " < ", group_size_, "; ++", lane, ")");
    writer_.Line(sum, " += ", counts_, "[LANE * ", kRowOfCounts, " + ", lane, "];");
    writer_.Close();
    writer_.Open("if (", is_inside_, ")");
    writer_.Line("STORE(", counts, ", ", CountAt(), ", ", sum, ");");
    writer_.Close();
    writer_.Close();
    return {.given_items = kWordBlocks, .has_group_per_item = true};
  }

  // Counts, digit by digit and of each digit block by block, become the sums of those before them.
  Launch AddCounts() {
    const std::string counts = writer_.UseScratch(/*is_write=*/true, 2, "u32");
    const std::string sums = writer_.NewName("g");
    writer_.Share(Text("u32 ", sums, "[", group_size_, "]"));
    const std::string total =
        writer_.Declare("idx", Text(writer_.UseGiven(kWordBlocks), " * ", kDigits));
    const std::string length =
        writer_.Declare("idx", Text("(", total, " + ", group_size_ - 1, ") / ", group_size_));
    const std::string begin = writer_.Declare("idx", Text("AS(idx, LANE) * ", length));
    const std::string last = writer_.Declare("idx", Text(begin, " + ", length));
    const std::string limit =
        writer_.Declare("idx", Text(HasDuplicates(), " ? ", total, " : AS(idx, 0)"));
    const std::string end =
        writer_.Declare("idx", Text(last, " < ", limit, " ? ", last, " : ", limit));
    const std::string sum = writer_.NewName("s");
    writer_.Line("u32 ", sum, " = 0u;");
    const auto open_counts = [&] {
      std::string place = writer_.NewName("j");
      writer_.Open("for (idx ", place, " = ", begin, "; ", place, " < ", end, "; ++", place, ")");
      return place;
    };
    writer_.Line(sum, " += LOAD(", counts, ", ", open_counts(), ");");
    writer_.Close();
    writer_.Line(sums, "[LANE] = ", sum, ";");
    writer_.Line("BARRIER;");
    writer_.Line(sum, " = 0u;");
    const std::string lane = writer_.NewName("l");
    writer_.Open("for (int ", lane, " = 0; ", lane, " < LANE; ++", lane, ")");
    writer_.Line(sum, " += ", sums, "[", lane, "];");
    writer_.Close();
    writer_.Open("if (GROUP < count)");
    const std::string place = open_counts();
    const std::string own = writer_.Declare("u32", Text("LOAD(", counts, ", ", place, ")"));
    writer_.Line("STORE(", counts, ", ", place, ", ", sum, ");");
    writer_.Line(sum, " += ", own, ";");
    writer_.Close();
    writer_.Close();
    return {.given_items = kOne, .has_group_per_item = true};
  }

  // Words of a digit keep their order.
  Launch PlaceWords() {
    const std::string words = writer_.UseScratch(/*is_write=*/false, 0, "u64");
    const std::string placed = writer_.UseScratch(/*is_write=*/true, 1, "u64");
    const std::string counts = writer_.UseScratch(/*is_write=*/false, 2, "u32");
    OpenBlock(words);
    writer_.Open("if (LANE < ", kDigits, ")");
    const std::string place = writer_.NewName("s");
    const std::string lane = writer_.NewName("l");
    writer_.Line("u32 ", place, " = LOAD(", counts, ", ", CountAt(), ");");
    writer_.Open("for (int ", lane, " = 0; ", lane, " < ", group_size_, "; ++", lane, ")");
    const std::string slot = writer_.Declare("int", Text("LANE * ", kRowOfCounts, " + ", lane));
    const std::string own = writer_.Declare("u32", Text(counts_, "[", slot, "]"));
    writer_.Line(counts_, "[", slot, "] = ", place, ";");
    writer_.Line(place, " += ", own, ";");
    writer_.Close();
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Open("if (", is_inside_, ")");
    const auto [word, at] = OpenDigits(words);
    writer_.Line("STORE(", placed, ", AS(idx, ", counts_, "[", at, "]), ", word, ");");
    writer_.Line(counts_, "[", at, "] += 1u;");
    writer_.Close();
    writer_.Close();
    return {.given_items = kWordBlocks, .has_group_per_item = true};
  }

  // Of a target's words, which stand side by side, the last one replaces it, or the first one of a
  // range combines those of the range.
  Launch ScatterSorted() {
    const std::string words = writer_.UseScratch(/*is_write=*/false, 0, "u64");
    const std::string begin = writer_.UseGiven(kRangeBegin);
    const std::string item = writer_.Declare("idx", Text("AS(idx, ITEM) + ", begin));
    const std::string number = OpenWord(words, item);
    writer_.Open("if (", HasDuplicates(), ")");
    const std::string takes = writer_.NewName("s");
    writer_.Line("bool ", takes, " = true;");
    if (is_replacing()) {
      writer_.Line("if (", item, " + 1 < ", writer_.UseGiven(kUpdateCount), ") ", takes, " = ",
                   NumberOf(words, item + " + 1"), " != ", number, ";");
      writer_.Open("if (", takes, ")");
      StoreUpdate(number, UpdateOf(words, item));
    } else {
      writer_.Line("if (", item, " > ", begin, ") ", takes, " = ", NumberOf(words, item + " - 1"),
                   " != ", number, ";");
      writer_.Open("if (", takes, ")");
      const std::vector<std::string> target = TargetAt(number);
      const std::string value = DeclareValue(target);
      const std::string place = writer_.NewName("j");
      writer_.Open("for (idx ", place, " = ", item, "; ", takes, "; ++", place, ")");
      CombineUpdate(value, UpdateOf(words, place));
      writer_.Line(takes, " = ", place, " + 1 < ", writer_.UseGiven(kRangeEnd), ";");
      writer_.Line("if (", takes, ") ", takes, " = ", NumberOf(words, place + " + 1"),
                   " == ", number, ";");
      writer_.Close();
      WriteStore(writer_, source_.step, 0, target, value);
    }
    writer_.Close();
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
    return {.item_axes = source_.form.rank};
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

  // A condition.
  std::string HasDuplicates() {
    return Text("LOAD(", writer_.UseScratch(/*is_write=*/false, 3, "u32"), ", 0) != 0u");
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
    return {.given_items = items};
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

  // Counts the digits of a block's words, each item those of a few neighbours.
  void OpenBlock(const std::string& words) {
    is_inside_ = writer_.Declare("bool", Text("GROUP < count && ", HasDuplicates()));
    block_ = writer_.Declare("idx", Text(is_inside_, " ? AS(idx, GROUP) : AS(idx, 0)"));
    counts_ = writer_.NewName("g");
    writer_.Share(Text("u32 ", counts_, "[", kDigits * kRowOfCounts, "]"));
    const std::string digit = writer_.NewName("j");
    writer_.Open("for (int ", digit, " = 0; ", digit, " < ", kDigits, "; ++", digit, ")");
    writer_.Line(counts_, "[", digit, " * ", kRowOfCounts, " + LANE] = 0u;");
    writer_.Close();
    const std::string length = writer_.UseGiven(kWordsPerItem);
    const std::string total = writer_.Declare(
        "idx", Text(is_inside_, " ? ", writer_.UseGiven(kUpdateCount), " : AS(idx, 0)"));
    begin_ = writer_.Declare("idx",
                             Text("(", block_, " * ", group_size_, " + AS(idx, LANE)) * ", length));
    const std::string last = writer_.Declare("idx", Text(begin_, " + ", length));
    end_ = writer_.Declare("idx", Text(last, " < ", total, " ? ", last, " : ", total));
    const std::string at = OpenDigits(words).at;
    writer_.Line(counts_, "[", at, "] += 1u;");
    writer_.Close();
    writer_.Line("BARRIER;");
  }
  struct Digit {
    std::string word;
    std::string at;  // of its count, for this item
  };
  // Opens a loop over an item's words.
  Digit OpenDigits(const std::string& words) {
    const std::string place = writer_.NewName("j");
    writer_.Open("for (idx ", place, " = ", begin_, "; ", place, " < ", end_, "; ++", place, ")");
    Digit digit;
    digit.word = writer_.Declare("u64", Text("LOAD(", words, ", ", place, ")"));
    digit.at = writer_.Declare(
        "int", Text("AS(int, AS(u32, ", digit.word, " >> AS(int, ", writer_.UseGiven(kDigitAt),
                    ")) & ", kDigits - 1, "u) * ", kRowOfCounts, " + LANE"));
    return digit;
  }
  // Where the count of digit LANE of the block is.
  std::string CountAt() {
    return Text("AS(idx, LANE) * ", writer_.UseGiven(kWordBlocks), " + ", block_);
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
  const int group_size_ = Launch().group_size;
  // By axis of the target: its extent as idx, and as i64.
  std::vector<std::string> extents_, wide_extents_;
  std::vector<std::string> target_;  // coordinates that OpenTarget has read
  // Of a block: whether it is one of those asked for, its number, the counts of digits by item, and
  // the item's words [begin, end).
  std::string is_inside_, block_, counts_, begin_, end_;
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
    case kFindDuplicates:
      return scatter.FindDuplicates();
    case kScatterUnique:
      return scatter.ScatterUnique();
    case kExpectDuplicates:
      return scatter.ExpectDuplicates();
    case kWriteWords:
      return scatter.WriteWords();
    case kScatterFew:
      return scatter.ScatterFew();
    case kCountDigits:
      return scatter.CountDigits();
    case kAddCounts:
      return scatter.AddCounts();
    case kPlaceWords:
      return scatter.PlaceWords();
    case kScatterSorted:
      return scatter.ScatterSorted();
    default:
      return scatter.InOrder();
  }
}

}  // namespace onnxifi::codegen
