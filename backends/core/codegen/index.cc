// SPDX-License-Identifier: Apache-2.0
//
// Index: non-zero elements are counted block by block before each block writes its own; top-k sorts
// runs of elements by their ranks, merges runs by the places that their elements have in each
// other, and gives what is left of the last one. Scatter and suppression have files of their own.

#include "backends/core/codegen/family.h"
#include "backends/core/codegen/group_sum.h"
#include "backends/core/codegen/index_kernels.h"

namespace onnxifi::codegen {
namespace {

using program::Index;
using tensor::ElementType;

class IndexWriter {
 public:
  IndexWriter(Writer& writer, const Source& source)
      : writer_(writer), source_(source), index_(*source.step.As<Index>()) {}

  Launch Write(int kernel) {
    switch (index_.kind) {
      case Index::Kind::kScatter:
        return WriteScatter(writer_, source_, kernel);
      case Index::Kind::kTopK:
        return kernel == kSortRuns ? SortRuns() : MergeRuns(/*is_last=*/kernel == kTakeLargest);
      case Index::Kind::kCountNonZero:
        return kernel == kCountBlocks ? CountBlocks() : AddCounts();
      case Index::Kind::kNonZero:
        return kernel == kCountBlocks ? CountBlocks() : NonZero();
      case Index::Kind::kSuppress:
        return WriteSuppress(writer_, source_, kernel);
    }
    return {};
  }

 private:
  std::string Read(int read, std::span<const std::string> at) {
    return writer_.Declare(LaneType(source_.step.reads[static_cast<size_t>(read)].type),
                           WriteLoad(writer_, source_.step, read, at));
  }

  // A read's element in the widest type of its class.
  std::string WideRead(int read, std::span<const std::string> at) {
    const ElementType type = source_.step.reads[static_cast<size_t>(read)].type;
    return writer_.Declare(LaneType(WideType(type)),
                           WriteCast(writer_, type, WideType(type), Read(read, at)));
  }

  // Whether `a` comes before `b` among the largest: NaN counts as the largest of all.
  static std::string IsGreater(ElementType wide, const std::string& a, const std::string& b) {
    if (!tensor::IsFloat(wide)) return Text("(", a, " > ", b, ")");
    return Text("(", a, " > ", b, " || (", a, " != ", a, " && ", b, " == ", b, "))");
  }

  // Whether `a`, element number `a_at`, comes before `b` in the result.
  std::string ComesBefore(const std::string& a, const std::string& a_at, const std::string& b,
                          const std::string& b_at) const {
    const ElementType wide = WideType(source_.step.reads[0].type);
    const std::string& high = index_.largest ? a : b;
    const std::string& low = index_.largest ? b : a;
    return Text(IsGreater(wide, high, low), " || (!", IsGreater(wide, low, high), " && ", a_at,
                " < ", b_at, ")");
  }

  // An item per element, which counts what comes before it in its run.
  Launch SortRuns() {
    const int rank = source_.form.rank;
    const std::string sorted = writer_.UseScratch(/*is_write=*/true, 0, "i64");
    std::vector<std::string> at = OpenItems(writer_, rank);
    const std::string element = at.back();
    const std::string extent = Extent(writer_, rank - 1);
    const std::string value = WideRead(0, at);
    const std::string begin = writer_.Declare("idx", Text(element, " / ", kRun, " * ", kRun));
    const std::string last = writer_.Declare("idx", Text(begin, " + ", kRun));
    const std::string end =
        writer_.Declare("idx", Text(last, " < ", extent, " ? ", last, " : ", extent));
    const std::string before = writer_.NewName("s");
    const std::string other = writer_.NewName("j");
    writer_.Line("idx ", before, " = 0;");
    writer_.Open("for (idx ", other, " = ", begin, "; ", other, " < ", end, "; ++", other, ")");
    at.back() = other;
    const std::string rival = WideRead(0, at);
    writer_.Line(before, " += (", ComesBefore(rival, other, value, element), ") ? 1 : 0;");
    writer_.Close();
    writer_.Line("STORE(", sorted, ", AS(idx, ITEM) - ", element, " + ", begin, " + ", before, ", ",
                 element, ");");
    writer_.Close();
    return {.item_axes = rank};
  }

  // An item per place in a run. Of each run only the first k elements can be among the first k of
  // several, and only they are looked at.
  Launch MergeRuns(bool is_last) {
    const int rank = source_.form.rank;
    const std::string sorted = writer_.UseScratch(/*is_write=*/false, 0, "i64");
    const std::string merged =
        is_last ? std::string() : writer_.UseScratch(/*is_write=*/true, 1, "i64");
    std::vector<std::string> at = OpenItems(writer_, rank);
    const std::string place = at.back();
    const std::string extent = Extent(writer_, rank - 1);
    const std::string row = writer_.Declare("idx", Text("AS(idx, ITEM) - ", place));
    const std::string run = writer_.UseGiven(kRunLength);
    const std::string together = writer_.UseGiven(kMergedLength);
    const std::string most = writer_.UseDim(index_.k);
    const std::string own =
        writer_.Declare("idx", Text(writer_.DeclareQuotient(place, run), " * ", run));
    writer_.Open("if (", place, " - ", own, " < ", most, ")");
    const std::string element =
        writer_.Declare("idx", Text("AS(idx, LOAD(", sorted, ", ", row, " + ", place, "))"));
    at.back() = element;
    const std::string value = WideRead(0, at);
    const std::string begin =
        writer_.Declare("idx", Text(writer_.DeclareQuotient(place, together), " * ", together));
    const std::string before = writer_.NewName("s");
    const std::string other = writer_.NewName("j");
    writer_.Line("idx ", before, " = ", place, " - ", own, ";");
    writer_.Open("for (idx ", other, " = ", begin, "; ", other, " < ", begin, " + ", together,
                 " && ", other, " < ", extent, " && ", before, " < ", most, "; ", other,
                 " += ", run, ")");
    const std::string low = writer_.NewName("s");
    const std::string high = writer_.NewName("s");
    writer_.Line("idx ", low, " = 0;");
    writer_.Line("idx ", high, " = ", extent, " - ", other, " < ", run, " ? ", extent, " - ", other,
                 " : ", run, ";");
    writer_.Line("if (", most, " < ", high, ") ", high, " = ", most, ";");
    writer_.Line("if (", other, " == ", own, ") ", high, " = 0;");
    writer_.Open("while (", low, " < ", high, ")");
    const std::string middle = writer_.Declare("idx", Text("(", low, " + ", high, ") / 2"));
    const std::string rival_at = writer_.Declare(
        "idx", Text("AS(idx, LOAD(", sorted, ", ", row, " + ", other, " + ", middle, "))"));
    std::vector<std::string> other_at = at;
    other_at.back() = rival_at;
    const std::string rival = WideRead(0, other_at);
    const std::string is_before =
        writer_.Declare("bool", ComesBefore(rival, rival_at, value, element));
    writer_.Line(low, " = ", is_before, " ? ", middle, " + 1 : ", low, ";");
    writer_.Line(high, " = ", is_before, " ? ", high, " : ", middle, ";");
    writer_.Close();
    writer_.Line(before, " += ", low, ";");
    writer_.Close();
    writer_.Open("if (", before, " < ", most, ")");
    if (is_last) {
      std::vector<std::string> slot = at;
      slot.back() = before;
      const std::vector<program::View>& writes = source_.step.writes;
      if (writes[0].buffer != program::kNoBuffer) {
        WriteStore(writer_, source_.step, 0, slot, Read(0, at));
      }
      if (writes.size() > 1 && writes[1].buffer != program::kNoBuffer) {
        WriteStore(writer_, source_.step, 1, slot, Text("AS(i64, ", element, ")"));
      }
    } else {
      writer_.Line("STORE(", merged, ", ", row, " + ", begin, " + ", before, ", ", element, ");");
    }
    writer_.Close();
    writer_.Close();
    writer_.Close();
    return {.item_axes = rank};
  }

  // Whether the element of the first read is not 0.
  std::string IsNonZero(std::span<const std::string> at) {
    const ElementType type = source_.step.reads[0].type;
    const std::string value = Read(0, at);
    // Every bit but those of the signs: a zero may be negative.
    if (type == ElementType::kComplex64)
      return Text("(", value, " & ", Bits64(0x7fffffff7fffffff), ") != 0");
    if (type == ElementType::kComplex128) {
      return Text("((LOW_u128(", value, ") | HIGH_u128(", value, ")) & ",
                  Bits64(0x7fffffffffffffff), ") != 0");
    }
    return Text(WriteCast(writer_, type, ElementType::kBool, value), " != 0");
  }

  // Opens the block of an item and, within it, the loop over the elements of block number ITEM.
  // `begin` writes what comes before the loop. Gives the coordinates of an element.
  template <typename Begin>
  std::vector<std::string> OpenBlock(const Begin& begin) {
    writer_.Open("if (ITEM < count)");
    const std::string total = writer_.UseGiven(kElements);
    const std::string length = writer_.UseGiven(kBlockLength);
    const std::string first = writer_.Declare("idx", Text("AS(idx, ITEM) * ", length));
    const std::string last = writer_.Declare("idx", Text(first, " + ", length));
    const std::string end =
        writer_.Declare("idx", Text(last, " < ", total, " ? ", last, " : ", total));
    std::vector<std::string> extents, at;
    for (int axis = 0; axis < source_.form.rank; ++axis) extents.push_back(Extent(writer_, axis));
    for (const std::string& start : WriteCoordinates(writer_, first, extents)) {
      at.push_back(writer_.NewName("c"));
      writer_.Line("idx ", at.back(), " = ", start, ";");
    }
    begin();
    const std::string element = writer_.NewName("j");
    writer_.Open("for (idx ", element, " = ", first, "; ", element, " < ", end, "; ++", element,
                 ")");
    return at;
  }
  // Steps from the coordinates of one element to those of the next, and closes what was opened,
  // with what `end` writes between the loop and the end of the item.
  template <typename End>
  Launch CloseBlock(const std::vector<std::string>& at, const End& end) {
    for (size_t axis = at.size(); axis-- > 0;) {
      writer_.Line("++", at[axis], ";");
      if (axis == 0) break;
      writer_.Open("if (", at[axis], " == ", Extent(writer_, static_cast<int>(axis)), ")");
      writer_.Line(at[axis], " = 0;");
    }
    for (size_t axis = 1; axis < at.size(); ++axis) writer_.Close();
    writer_.Close();
    end();
    writer_.Close();
    return {.given_items = kBlocks, .group_size = source_.capabilities.long_item_group_size};
  }

  bool has_groups() const { return source_.capabilities.run_length == 1; }

  // Of a group: the elements [first_, end_) of its block, none where it is not one of those that
  // were asked for; an array for sums.
  void BeginGroup() {
    is_inside_ = writer_.Declare("bool", "GROUP < count");
    const std::string block =
        writer_.Declare("idx", Text(is_inside_, " ? AS(idx, GROUP) : AS(idx, 0)"));
    const std::string length = writer_.UseGiven(kBlockLength);
    const std::string total = writer_.Declare(
        "idx", Text(is_inside_, " ? ", writer_.UseGiven(kElements), " : AS(idx, 0)"));
    first_ = writer_.Declare("idx", Text(block, " * ", length));
    const std::string last = writer_.Declare("idx", Text(first_, " + ", length));
    end_ = writer_.Declare("idx", Text(last, " < ", total, " ? ", last, " : ", total));
    sums_ = writer_.NewName("g");
    writer_.Share(Text("idx ", sums_, "[", items_, "]"));
  }
  Launch EndGroup() const {
    return {.given_items = kBlocks, .has_group_per_item = true, .group_size = items_};
  }
  std::vector<std::string> ElementAt(const std::string& position) {
    std::vector<std::string> extents;
    for (int axis = 0; axis < source_.form.rank; ++axis) extents.push_back(Extent(writer_, axis));
    return WriteCoordinates(writer_, position, extents);
  }

  // Neighbouring items look at neighbouring elements.
  Launch CountBlocksByGroups() {
    const std::string counts = writer_.UseScratch(/*is_write=*/true, 0, "i64");
    BeginGroup();
    const std::string found = writer_.NewName("s");
    const std::string element = writer_.NewName("j");
    writer_.Line("idx ", found, " = 0;");
    writer_.Open("for (idx ", element, " = ", first_, " + AS(idx, LANE); ", element, " < ", end_,
                 "; ", element, " += ", items_, ")");
    writer_.Line(found, " += (", IsNonZero(ElementAt(element)), ") ? 1 : 0;");
    writer_.Close();
    const GroupSum sum = WriteGroupSum(writer_, "idx", found, items_, sums_);
    writer_.Line("if (LANE == 0 && ", is_inside_, ") STORE(", counts, ", GROUP, AS(i64, ", sum.all,
                 "));");
    return EndGroup();
  }

  // Declares an item's share of the sum of the counts of the blocks before block `end`.
  std::string SumOfOwnCounts(const std::string& end) {
    const std::string counts = writer_.UseScratch(/*is_write=*/false, 0, "i64");
    std::string sum = writer_.NewName("s");
    const std::string block = writer_.NewName("j");
    writer_.Line("idx ", sum, " = 0;");
    writer_.Open("for (idx ", block, " = AS(idx, LANE); ", block, " < ", end, "; ", block,
                 " += ", items_, ")");
    writer_.Line(sum, " += AS(idx, LOAD(", counts, ", ", block, "));");
    writer_.Close();
    return sum;
  }

  // An item looks at some elements in a row twice: which are not zero, and where they go.
  Launch NonZeroByGroups() {
    BeginGroup();
    const std::string room = writer_.Declare("i64", RoomOf());
    const std::string before =
        SumOfOwnCounts(writer_.Declare("idx", Text(is_inside_, " ? AS(idx, GROUP) : AS(idx, 0)")));
    const std::string found = writer_.NewName("s");
    writer_.Line("idx ", found, " = ", WriteGroupSum(writer_, "idx", before, items_, sums_).all,
                 ";");
    const std::string tile = writer_.NewName("j");
    writer_.Open("for (idx ", tile, " = ", first_, "; ", tile, " < ", end_, "; ", tile,
                 " += ", items_ * kItemElements, ")");
    const std::string own =
        writer_.Declare("idx", Text(tile, " + AS(idx, LANE) * ", kItemElements));
    const std::string bits = writer_.NewName("s");
    const std::string count = writer_.NewName("s");
    writer_.Line("u32 ", bits, " = 0u;");
    writer_.Line("idx ", count, " = 0;");
    const auto open_elements = [&] {
      std::string element = writer_.NewName("l");
      writer_.Open("UNROLL for (int ", element, " = 0; ", element, " < ", kItemElements, "; ++",
                   element, ")");
      return element;
    };
    std::string element = open_elements();
    // Of none the first one is looked at.
    const std::string at = writer_.Declare("idx", Text(own, " + AS(idx, ", element, ")"));
    const std::string known =
        writer_.Declare("idx", Text(at, " < ", end_, " ? ", at, " : ", first_));
    const std::string condition = IsNonZero(ElementAt(known));
    const std::string is_found =
        writer_.Declare("bool", Text(at, " < ", end_, " && (", condition, ")"));
    writer_.Line(bits, " |= ", is_found, " ? 1u << ", element, " : 0u;");
    writer_.Line(count, " += ", is_found, " ? 1 : 0;");
    writer_.Close();
    const GroupSum sum = WriteGroupSum(writer_, "idx", count, items_, sums_);
    const std::string place = writer_.NewName("s");
    writer_.Line("idx ", place, " = ", found, " + ", sum.before, ";");
    element = open_elements();
    writer_.Open("if ((", bits, " >> ", element, " & 1u) != 0u && AS(i64, ", place, ") < ", room,
                 ")");
    const std::vector<std::string> coordinates =
        ElementAt(writer_.Declare("idx", Text(own, " + AS(idx, ", element, ")")));
    for (size_t axis = 0; axis < coordinates.size(); ++axis) {
      const std::string slot[] = {std::to_string(axis), place};
      WriteStore(writer_, source_.step, 0, slot, Text("AS(i64, ", coordinates[axis], ")"));
    }
    writer_.Line("++", place, ";");
    writer_.Close();
    writer_.Close();
    writer_.Line(found, " += ", sum.all, ";");
    writer_.Close();
    return EndGroup();
  }

  Launch CountBlocks() {
    if (has_groups()) return CountBlocksByGroups();
    const std::string counts = writer_.UseScratch(/*is_write=*/true, 0, "i64");
    const std::string found = writer_.NewName("s");
    const std::vector<std::string> at = OpenBlock([&] { writer_.Line("i64 ", found, " = 0;"); });
    writer_.Line(found, " += (", IsNonZero(at), ") ? 1 : 0;");
    return CloseBlock(at, [&] { writer_.Line("STORE(", counts, ", ITEM, ", found, ");"); });
  }

  // Declares the sum of the counts of the blocks before block `end`.
  std::string SumOfCounts(const std::string& end) {
    const std::string counts = writer_.UseScratch(/*is_write=*/false, 0, "i64");
    std::string sum = writer_.NewName("s");
    writer_.Line("i64 ", sum, " = 0;");
    const std::string block = writer_.NewName("j");
    writer_.Open("for (idx ", block, " = 0; ", block, " < ", end, "; ++", block, ")");
    writer_.Line(sum, " += LOAD(", counts, ", ", block, ");");
    writer_.Close();
    return sum;
  }

  Launch AddCounts() {
    if (has_groups()) {
      const std::string is_inside = writer_.Declare("bool", "GROUP < count");
      const std::string sums = writer_.NewName("g");
      writer_.Share(Text("idx ", sums, "[", items_, "]"));
      const std::string own = SumOfOwnCounts(writer_.UseGiven(kBlocks));
      const std::string all = WriteGroupSum(writer_, "idx", own, items_, sums).all;
      writer_.Open("if (LANE == 0 && ", is_inside, ")");
      WriteStore(writer_, source_.step, 0, {}, Text("AS(i64, ", all, ")"));
      writer_.Close();
      return {.has_group_per_item = true, .group_size = items_};
    }
    writer_.Open("if (ITEM < count)");
    WriteStore(writer_, source_.step, 0, {}, SumOfCounts(writer_.UseGiven(kBlocks)));
    writer_.Close();
    return {};
  }

  // The write has an axis per axis of the domain and one for the elements found; the buffer ends
  // where it ends. How many elements it has room for, an i64.
  std::string RoomOf() {
    if (source_.form.rank == 0) return "0";
    std::string capacity = "AS(i64, 1)";
    const program::BufferId buffer = source_.step.writes[0].buffer;
    for (const program::Dim& dim : source_.program.buffers[static_cast<size_t>(buffer)].shape) {
      capacity += Text(" * ", writer_.UseDim(dim, /*is_wide=*/true));
    }
    return Text(capacity, " / ", source_.form.rank);
  }

  Launch NonZero() {
    if (has_groups()) return NonZeroByGroups();
    std::string found, room;
    const std::vector<std::string> at = OpenBlock([&] {
      room = writer_.Declare("i64", RoomOf());
      found = SumOfCounts("AS(idx, ITEM)");
    });
    writer_.Open("if ((", IsNonZero(at), ") && ", found, " < ", room, ")");
    for (size_t axis = 0; axis < at.size(); ++axis) {
      const std::string slot[] = {std::to_string(axis), found};
      WriteStore(writer_, source_.step, 0, slot, Text("AS(i64, ", at[axis], ")"));
    }
    writer_.Line("++", found, ";");
    writer_.Close();
    return CloseBlock(at, [] {});
  }

  Writer& writer_;
  const Source& source_;
  const Index& index_;
  const int items_ = source_.capabilities.row_group_size;  // of a group
  std::string is_inside_, first_, end_, sums_;             // as BeginGroup says
};

}  // namespace

Launch WriteIndex(Writer& writer, const Source& source, int kernel) {
  return IndexWriter(writer, source).Write(kernel);
}

}  // namespace onnxifi::codegen
