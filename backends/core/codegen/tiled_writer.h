// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct::PartWriter: writes one kernel of a TiledProduct. For the files that define its
// methods alone: tiled_layout_text.cc lays operands out, tiled_product_text.cc sums a block per
// item, group_product_text.cc a block per group, matrix_unit_text.cc, split_product_text.cc and
// cooperative_matrix_text.cc by the units that devices have for that; tiled_writer.cc has what they
// share.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_WRITER_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_WRITER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/codegen/family.h"
#include "backends/core/codegen/tiled_numbers.h"
#include "backends/core/codegen/tiled_product.h"

namespace onnxifi::codegen {

class TiledProduct::PartWriter {
 public:
  PartWriter(const TiledProduct& product, Writer& writer, const Source& source)
      : product_(product),
        contract_(product.contract_),
        writer_(writer),
        source_(source),
        sum_type_(SumType(contract_.accumulator)) {}

  Launch WriteOperand(bool is_rows);
  Launch WriteImage();
  // With an item per element: neighbours write neighbours.
  Launch WriteImageElements();
  Launch WriteSums();
  // The sums of a block by a group: those of all of the depth, or of a part of it, or of all parts.
  enum class Sums : uint8_t { kWhole, kOfPart, kJoined };
  Launch WriteGroupSums(Sums sums);

 private:
  // The numbers behind the fixed ones.
  enum class Group : uint8_t {
    kRowBatch,
    kColumnBatch,
    kRowPacked,
    kColumnPacked,
    kPitch,
    kImage,
    kPhases,
    kSpan,
    kFirst
  };
  std::string Given(Group group, int axis);

  std::string OpenItem();
  std::string Element(bool is_a, const std::vector<std::string>& at);
  // The same in the type that the operand is laid out in.
  std::string LaidOutElement(bool is_rows, const std::vector<std::string>& at);
  // The neutral type that holds an element of what is laid out.
  std::string_view StoredType(bool is_rows) const {
    return product_.stored_type(PartOf(is_rows)) == contract_.accumulator
               ? sum_type_
               : LaneType(product_.stored_type(PartOf(is_rows)));
  }
  // An element of what was laid out, as the sums want it.
  std::string LoadElement(bool is_rows, const std::string& buffer, const std::string& at);
  // The same of `width` elements, 1 or 4, from there on: `are_aligned` if `at` is a multiple of 4.
  std::string LoadElements(bool is_rows, const std::string& buffer, const std::string& at,
                           int width, bool are_aligned);
  static Part PartOf(bool is_rows) { return is_rows ? Part::kRows : Part::kColumns; }

  std::string InExtent(int axis) {
    return writer_.UseDim(contract_.a_spatial[static_cast<size_t>(axis)]);
  }
  // Where element `at` of a phase of the image lies in the tensor.
  std::string Position(int axis, const std::string& at, const std::string& phase);
  // Of a transposed convolution: how many elements its image has before the first q.
  std::string MaxShift(int axis) {
    return Text("(", Given(Group::kImage, axis), " - ", Given(Group::kSpan, axis), ")");
  }
  // The output, or none, that column `at` of the item's phase is.
  std::string OutputAt(int axis, const std::string& at);
  static std::string IsOutput(const std::string& at, const std::string& extent) {
    return Text(at, " >= 0 && ", at, " < ", extent);
  }

  // An element of a buffer.
  struct Location {
    std::string buffer;
    std::string at;
  };

  // Which block of outputs is summed, and where its operands begin.
  struct Block {
    std::vector<std::string> extents;  // of the loops' axes
    std::vector<std::string> batch;    // coordinates
    std::string part;                  // group of the convolution
    std::string row_tile;
    std::string first;  // column
    std::string from;   // column; earlier where the columns end before the block does
    Location rows, columns;
  };
  // For block `number` of all.
  Block WriteBlock(const std::string& number);
  // Axes of the loops that columns have.
  int CountColumnAxes() const { return source_.form.rank - source_.form.outer_rank; }
  std::string OutExtent(const Block& block, int axis) const {
    return block.extents[static_cast<size_t>(source_.form.outer_rank + axis)];
  }
  // How many columns an axis has.
  std::string Span(const Block& block, int axis) {
    return product_.is_transposed() ? Given(Group::kSpan, axis) : OutExtent(block, axis);
  }
  // The coordinates of an output up to those of its row, which is `row` of all groups.
  std::vector<std::string> WriteRowCoordinates(const Block& block, const std::string& row);

  // A tap of a convolution's kernel.
  struct Tap {
    std::vector<std::string> reaches;  // by axis: how many elements on in the padded tensor
    std::string offset;                // in the image
    std::string number;                // among all taps, of a transposed convolution

    // Where the elements of this tap begin in a panel.
    std::string RowsIn(const std::string& panel, const std::string& channels, int rows) const {
      return Text("(", panel, " + ", number, " * ", channels, " * ", rows, ")");
    }
  };
  // Opens a loop per spatial axis.
  Tap OpenTaps();
  Tap OpenTapsOfPhase();

  // Sets `sum` to the sum of column `column` anew, from the taps that lie in the tensor alone:
  // it is that of row `row` and column `lane` of the block.
  void WriteSumWithoutPadding(const std::string& sum, const Block& block, const std::string& row,
                              const std::string& lane, const std::string& column);
  // Stores what the epilogue makes of a sum.
  // `loaded`: as Scope has it.
  void WriteOutputs(const std::vector<std::string>& at, const std::string& sum,
                    std::map<int, std::string> loaded = {});

  // Names of one row of a block that was summed by an item.
  struct SummedRow {
    std::string first_lane, end_lane;
    std::string from;  // the column of lane 0
    std::string row;
    std::string sums;
  };
  void WriteSumsWithoutPadding(const Block& block, const SummedRow& of);
  void WriteProducts(const std::string& tile, const Block& block);

  class DepthCursor;
  // Names of an item's variables: its places among the items of its group, and its sums, an array
  // of its rows.
  struct GroupItem {
    std::string row, column, part;
    std::string sums;
    std::string is_of_block;  // its group has one
    // Of the depth that its group sums; empty: all of it.
    std::string first, end;
    // Of its rows, how many it has sums of, and the first of these.
    int rows = 1;
    std::string first_row = "0";
    std::string last_row;  // of its block's, that is one
  };
  int block_items() const { return product_.tile_.item_rows * product_.tile_.item_columns; }
  std::string DepthPartPlace(const std::string& part, const std::string& number) const;
  void StoreDepthPart(const std::string& group, const GroupItem& item);
  void JoinDepthParts(const std::string& group, const GroupItem& item);
  // A loop that the compiler takes apart, so that it names places of arrays by constants.
  std::string OpenUnrolled(int count);
  void WriteProduct(const std::string& sum, const std::string& a, const std::string& b);
  std::string WriteItemRows(const Block& block, const std::string& at);
  std::string WriteOwnRows(const Block& block, const GroupItem& item, const std::string& k);
  int OwnWidth() const;
  std::string WriteOwnColumns(const Block& block, const GroupItem& item, const std::string& at,
                              const std::string& last);
  void WriteItemProducts(const GroupItem& item, const std::string& rows,
                         const std::string& columns);
  std::string LastColumn(const Block& block);
  int SharedWidth() const;
  void PlaceInWarp(GroupItem& item);
  // An operand of a device's matrix units, of which a piece of the depth is in shared memory.
  struct UnitOperand {
    bool is_rows = false;
    int count = 0;              // rows or columns of the block
    tensor::ElementType type;   // of what is multiplied
    std::string shared = {};    // the name of the array, of all pieces
    std::string elements = {};  // of what an item brings of the next piece
    int loads = 0;              // how many these are
    // Of fragments: whether words are copied as they are, and where the item reads them.
    bool is_copied = false;
    std::string place = {};
  };
  // Rounds in which the group brings `depth` places of both operands to shared memory, while it
  // multiplies those before: `multiply` writes that for the piece of the parity that it is given,
  // `put` the store of an element of an operand: in the piece of a parity, at a row and a place.
  struct UnitRounds {
    int depth = 0;
    std::function<void(const std::string& parity)> multiply;
    std::function<void(const UnitOperand& operand, const std::string& parity,
                       const std::string& row, const std::string& place)>
        put;
  };
  void WriteUnitRounds(const UnitRounds& rounds, std::span<UnitOperand> operands,
                       const Block& block, const GroupItem& item);
  void WriteMatrixSums(const MatrixUnit& unit, const Block& block, const GroupItem& item);
  // How many elements of a column follow each other in memory.
  int ColumnWord() const { return product_.word_elements() > 1 ? source_.form.lanes : 1; }
  // Where an element of an operand lies, of place or channel `place` of the depth: of row `row` of
  // a block's rows, `at` being the first, and of `column` columns behind its first one.
  std::string RowAt(const std::string& at, const std::string& place, const std::string& row) const;
  std::string ColumnAt(const std::string& at, const std::string& place, const std::string& column);
  std::string LoadUnitWord(const UnitOperand& operand, const Block& block, const std::string& at,
                           const std::string& place, const std::string& own);
  // Rounds in which the group copies a piece of both operands while it multiplies an earlier one:
  // `multiply` gets the name of the number of that piece's first word in shared memory.
  void WriteFragmentRounds(std::span<UnitOperand> operands, const Block& block,
                           const GroupItem& item,
                           const std::function<void(const std::string&)>& multiply);
  std::string WriteFragmentPlace(const UnitOperand& operand, const GroupItem& item);
  std::string LoadFragments(const UnitOperand& operand, const std::string& word, int count);
  void WriteUnitProducts(const MatrixUnit& unit, std::span<const UnitOperand> operands,
                         const std::string& word, const GroupItem& item);
  // The same of three products, and what becomes of their sums in the end.
  void WriteSplitProducts(const MatrixUnit& unit, std::span<const UnitOperand> operands,
                          const std::string& word, const GroupItem& item);
  void FinishSplitSums(const Block& block, const GroupItem& item);
  void WriteCooperativeSums(const MatrixUnit& unit, const Block& block, const GroupItem& item);
  std::string LoadUnitElement(bool is_rows, tensor::ElementType type, const std::string& buffer,
                              const std::string& at);
  std::string MatrixRowOf(const GroupItem& item, const std::string& number) const;
  std::string MatrixColumnOf(const GroupItem& item, const std::string& number) const;
  std::string RowOf(const GroupItem& item, const std::string& number) const;
  std::string Widened(const std::string& value, int width) const;
  std::string ColumnOf(const GroupItem& item, const std::string& number) const;
  void WriteColumnLoad(const std::string& to, const Block& block, const std::string& at,
                       const std::string& lane, const std::string& last);
  static std::string Lesser(const std::string& a, const std::string& b) {
    return Text("(", a, " < ", b, " ? ", a, " : ", b, ")");
  }
  void WriteSharedSums(const Block& block, const GroupItem& item);
  void WriteDirectSums(const Block& block, GroupItem item);
  void WriteTensorSums(const Block& block, const GroupItem& item);
  // `outputs`: by axis, the name of an array of the columns' coordinates.
  void WriteRunSums(const Block& block, const GroupItem& item,
                    const std::vector<std::string>& outputs);
  void OpenSumOfParts(const GroupItem& item);
  // Makes those of an item's sums anew for which `is_wrong` is true: `write_again` sets a sum, of a
  // row and a column of the block, the latter `column` among all.
  using IsWrong = std::function<std::string(const std::string& sum)>;
  using WriteAgain = std::function<void(const std::string& sum, const std::string& row,
                                        const std::string& lane, const std::string& column)>;
  void WriteGroupSumsAgain(const Block& block, const GroupItem& item, const IsWrong& is_wrong,
                           const WriteAgain& write_again);
  void WriteGroupSumsWithoutPadding(const Block& block, const GroupItem& item);
  // Adds the coordinates of a column to `at`; gives whether it is an output.
  std::string WriteColumnCoordinates(const Block& block, const std::string& column,
                                     std::vector<std::string>& at);
  void WriteGroupOutputs(const Block& block, const GroupItem& item);
  // Reads of the epilogue that have one element a row, whatever the column.
  std::vector<int> RowReads();

  const TiledProduct& product_;
  const program::Contract& contract_;
  Writer& writer_;
  const Source& source_;
  const std::string_view sum_type_;
  std::vector<std::string> output_phases_;  // of the item's outputs, if transposed, by axis
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_WRITER_H_
