// SPDX-License-Identifier: Apache-2.0
//
// Suppression: an item per row, which compares each box with those that it has kept; or, of many
// boxes, block by block: a group decides on a block of its row, and an item for each box behind it
// compares that with what was kept of the block.

#include "backends/core/codegen/family.h"
#include "backends/core/codegen/index_kernels.h"

namespace onnxifi::codegen {
namespace {

class SuppressWriter {
 public:
  SuppressWriter(Writer& writer, const Source& source) : writer_(writer), source_(source) {}

  Launch Suppress() {
    const int last = source_.form.rank - 1;
    std::vector<std::string> at = OpenItems(writer_, last);
    at.push_back("0");
    const std::string length = Extent(writer_, last);
    writer_.Open("if (", length, " > 0)");
    const std::string threshold = Read(5, at);
    const std::string limit = Read(6, at);
    const std::string kept = writer_.NewName("s");
    const std::string box = writer_.NewName("j");
    writer_.Line("i64 ", kept, " = 0;");
    writer_.Open("for (idx ", box, " = 0; ", box, " < ", length, "; ++", box, ")");
    at.back() = box;
    const std::vector<std::string> edges = Edges(at);
    const std::string is_kept = writer_.NewName("s");
    writer_.Line("bool ", is_kept, " = ", Read(0, at), " != 0 && ", kept, " < ", limit, ";");
    const std::string before = writer_.NewName("j");
    writer_.Open("for (idx ", before, " = 0; ", is_kept, " && ", before, " < ", box, "; ++", before,
                 ")");
    std::vector<std::string> before_at = at;
    before_at.back() = before;
    writer_.Open("if (", WriteReadBack(writer_, source_.step, 0, before_at), " != 0)");
    const std::vector<std::string> others = Edges(before_at);
    writer_.Line("if (", Overlaps(edges, others, threshold), ") ", is_kept, " = false;");
    writer_.Close();
    writer_.Close();
    WriteStore(writer_, source_.step, 0, at, Text("AS(u8, ", is_kept, " ? 1 : 0)"));
    writer_.Line("if (", is_kept, ") ++", kept, ";");
    writer_.Close();
    writer_.Close();
    writer_.Close();
    return {.item_axes = last};
  }

  // An item per box.
  Launch BeginBoxes() {
    const std::string alive = writer_.UseScratch(/*is_write=*/true, 0, "u32");
    const std::string counts = writer_.UseScratch(/*is_write=*/true, 1, "i64");
    const std::vector<std::string> at = OpenItems(writer_, source_.form.rank);
    writer_.Line("STORE(", alive, ", ITEM, AS(u32, ", Read(0, at), " != 0 ? 1 : 0));");
    writer_.Line("if (AS(idx, ITEM) < ", writer_.UseGiven(kRows), ") STORE(", counts,
                 ", ITEM, AS(i64, 0));");
    writer_.Close();
    return {.item_axes = source_.form.rank};
  }

  // A group per row. Its items take the boxes of the block in turns; whoever is kept takes those
  // behind it in the block away. All items of all groups meet at every barrier.
  Launch KeepOfBlock() {
    constexpr int kItems = kBoxBlock / 4;
    const std::string alive = writer_.UseScratch(/*is_write=*/false, 0, "u32");
    const std::string counts = writer_.UseScratch(/*is_write=*/true, 1, "i64");
    const std::string of_block = writer_.NewName("g");
    writer_.Share(Text("u32 ", of_block, "[", kBoxBlock, "]"));
    std::vector<std::string> shared_edges;
    for (int edge = 0; edge < 4; ++edge) {
      shared_edges.push_back(writer_.NewName("g"));
      writer_.Share(Text("f32 ", shared_edges.back(), "[", kBoxBlock, "]"));
    }
    const std::string is_inside = writer_.Declare("bool", "GROUP < count");
    const std::string row =
        writer_.Declare("idx", Text(is_inside, " ? AS(idx, GROUP) : AS(idx, 0)"));
    std::vector<std::string> at = RowCoordinates(row);
    const std::string threshold = Read(5, at);
    const std::string limit = Read(6, at);
    const std::string begin = writer_.UseGiven(kBlockBegin);
    const std::string boxes =
        writer_.Declare("int", Text("AS(int, ", writer_.UseGiven(kBlockEnd), " - ", begin, ")"));
    const std::string kept = writer_.NewName("s");
    writer_.Line("i64 ", kept, " = LOAD(", counts, ", ", row, ");");
    const auto open_own = [&] {
      std::string box = writer_.NewName("j");
      writer_.Open("for (int ", box, " = LANE; ", box, " < ", boxes, "; ", box, " += ", kItems,
                   ")");
      at.back() = writer_.Declare("idx", Text(begin, " + ", box));
      return box;
    };
    const std::string brought = open_own();
    writer_.Line(of_block, "[", brought, "] = LOAD(", alive, ", ", row, " * ",
                 Extent(writer_, source_.form.rank - 1), " + ", at.back(), ");");
    for (int edge = 0; edge < 4; ++edge) {
      writer_.Line(shared_edges[static_cast<size_t>(edge)], "[", brought,
                   "] = ", WriteLoad(writer_, source_.step, edge + 1, at), ";");
    }
    writer_.Close();
    writer_.Line("BARRIER;");
    const auto shared_box = [&](const std::string& box) {
      std::vector<std::string> edges;
      for (const std::string& array : shared_edges) {
        edges.push_back(writer_.Declare("f32", Text(array, "[", box, "]")));
      }
      return edges;
    };
    const std::string box = writer_.NewName("j");
    writer_.Open("for (int ", box, " = 0; ", box, " < ", boxes, "; ++", box, ")");
    const std::string is_kept =
        writer_.Declare("bool", Text(of_block, "[", box, "] != 0u && ", kept, " < ", limit));
    writer_.Line("BARRIER;");
    writer_.Open("if (", is_kept, ")");
    writer_.Line("++", kept, ";");
    const std::vector<std::string> edges = shared_box(box);
    const std::string other = writer_.NewName("j");
    writer_.Open("for (int ", other, " = LANE; ", other, " < ", boxes, "; ", other, " += ", kItems,
                 ")");
    writer_.Open("if (", other, " > ", box, " && ", of_block, "[", other, "] != 0u)");
    const std::vector<std::string> others = shared_box(other);
    writer_.Line("if (", Overlaps(others, edges, threshold), ") ", of_block, "[", other, "] = 0u;");
    writer_.Close();
    writer_.Close();
    writer_.Close();
    writer_.Open("if (!", is_kept, " && LANE == 0)");
    writer_.Line(of_block, "[", box, "] = 0u;");
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Close();
    writer_.Open("if (", is_inside, ")");
    const std::string told = open_own();
    WriteStore(writer_, source_.step, 0, at, Text("AS(u8, ", of_block, "[", told, "])"));
    writer_.Close();
    writer_.Open("if (LANE == 0)");
    writer_.Line("STORE(", counts, ", ", row, ", ", kept, ");");
    writer_.Close();
    writer_.Close();
    return {.given_items = kRows, .has_group_per_item = true, .group_size = kItems};
  }

  // An item per box behind the block, of all rows.
  Launch SuppressBehind() {
    const std::string alive = writer_.UseScratch(/*is_write=*/true, 0, "u32");
    writer_.Open("if (ITEM < count)");
    const std::string length = Extent(writer_, source_.form.rank - 1);
    const std::string begin = writer_.UseGiven(kBlockBegin);
    const std::string end = writer_.UseGiven(kBlockEnd);
    const std::string behind = writer_.Declare("idx", Text(length, " - ", end));
    const std::string row = writer_.Declare("idx", Text("AS(idx, ITEM) / ", behind));
    const std::string box =
        writer_.Declare("idx", Text(end, " + AS(idx, ITEM) - ", row, " * ", behind));
    std::vector<std::string> at = RowCoordinates(row);
    const std::string threshold = Read(5, at);
    const std::string place = writer_.Declare("idx", Text(row, " * ", length, " + ", box));
    writer_.Open("if (LOAD(", alive, ", ", place, ") != 0u)");
    at.back() = box;
    const std::vector<std::string> edges = Edges(at);
    const std::string is_free = writer_.NewName("s");
    writer_.Line("bool ", is_free, " = true;");
    const std::string before = writer_.NewName("j");
    writer_.Open("for (idx ", before, " = ", begin, "; ", is_free, " && ", before, " < ", end,
                 "; ++", before, ")");
    at.back() = before;
    writer_.Open("if (", WriteReadBack(writer_, source_.step, 0, at), " != 0)");
    writer_.Line("if (", Overlaps(edges, Edges(at), threshold), ") ", is_free, " = false;");
    writer_.Close();
    writer_.Close();
    writer_.Line("if (!", is_free, ") STORE(", alive, ", ", place, ", 0u);");
    writer_.Close();
    writer_.Close();
    return {.given_items = kBoxesBehind};
  }

 private:
  std::string Read(int read, std::span<const std::string> at) {
    return writer_.Declare(LaneType(source_.step.reads[static_cast<size_t>(read)].type),
                           WriteLoad(writer_, source_.step, read, at));
  }

  // The coordinates of a row, with the last one to be filled in.
  std::vector<std::string> RowCoordinates(const std::string& row) {
    std::vector<std::string> extents;
    for (int axis = 0; axis + 1 < source_.form.rank; ++axis) {
      extents.push_back(Extent(writer_, axis));
    }
    std::vector<std::string> at = WriteCoordinates(writer_, row, extents);
    at.emplace_back("0");
    return at;
  }

  // Whether the intersection of two boxes over their union is above the threshold.
  std::string Overlaps(const std::vector<std::string>& edges,
                       const std::vector<std::string>& others, const std::string& threshold) {
    const auto difference = [&](const std::string& high_a, const std::string& high_b,
                                const std::string& low_a, const std::string& low_b) {
      return writer_.Declare(
          "f32", Text("(", high_b, " < ", high_a, " ? ", high_b, " : ", high_a, ") - (", low_a,
                      " < ", low_b, " ? ", low_b, " : ", low_a, ")"));
    };
    const std::string height = difference(edges[2], others[2], edges[0], others[0]);
    const std::string width = difference(edges[3], others[3], edges[1], others[1]);
    const auto area = [&](const std::vector<std::string>& of) {
      return writer_.Declare("f32",
                             Text("(", of[2], " - ", of[0], ") * (", of[3], " - ", of[1], ")"));
    };
    const std::string shared = writer_.Declare("f32", Text(height, " * ", width));
    const std::string area_a = area(edges);
    const std::string area_b = area(others);
    const std::string joined = writer_.Declare("f32", Text(area_a, " + ", area_b, " - ", shared));
    return Text(height, " > 0 && ", width, " > 0 && ", joined, " > 0 && ", shared, " / ", joined,
                " > ", threshold);
  }

  std::vector<std::string> Edges(std::span<const std::string> at) {
    std::vector<std::string> edges;
    for (int read = 1; read <= 4; ++read) edges.push_back(Read(read, at));
    return edges;
  }

  Writer& writer_;
  const Source& source_;
};

}  // namespace

Launch WriteSuppress(Writer& writer, const Source& source, int kernel) {
  SuppressWriter suppress(writer, source);
  switch (kernel) {
    case kBeginBoxes:
      return suppress.BeginBoxes();
    case kKeepOfBlock:
      return suppress.KeepOfBlock();
    case kSuppressBehind:
      return suppress.SuppressBehind();
    default:
      return suppress.Suppress();
  }
}

}  // namespace onnxifi::codegen
