// SPDX-License-Identifier: Apache-2.0
//
// Contract: an item per output, which sums its products in ascending order; or, where there are
// enough outputs, a group of items per block of them: an item has one column of the block and all
// of its rows, so that each element it reads is used once per row. The elements that only the row
// decides on are the same for the whole group. Columns are a product's columns and a convolution's
// pixels.

#include "backends/core/codegen/family.h"

namespace onnxifi::codegen {
namespace {

using program::Contract;
using tensor::ElementType;

constexpr int kBlockRows = 8;
constexpr int kUnrolled = 4;

class ContractWriter {
 public:
  ContractWriter(Writer& writer, const Source& source)
      : writer_(writer), source_(source), contract_(*source.step.As<Contract>()) {}

  Launch Write() {
    if (source_.form.is_blocked) return WriteBlocks();
    const int rank = source_.form.rank;
    out_ = OpenItems(writer_, rank);
    sum_ = writer_.NewName("s");
    writer_.Line(SumType(contract_.accumulator), " ", sum_, " = 0;");
    if (contract_.form == Contract::Form::kMatMul) {
      WriteProduct();
    } else {
      WriteConvolution();
    }
    WriteOutputs(sum_);
    writer_.Close();
    return {.item_axes = rank};
  }

 private:
  // What is made of a sum, at the coordinates of the output.
  void WriteOutputs(const std::string& sum) {
    Scope scope;
    scope.coordinates = scope.indices = out_;
    const std::string_view lane = LaneType(contract_.accumulator);
    scope.accumulator = writer_.Declare(lane, Text("AS(", lane, ", ", sum, ")"));
    const std::vector<std::string> values =
        WriteExpressions(writer_, source_.program, source_.step, scope, contract_.roots);
    for (size_t k = 0; k < values.size(); ++k) {
      WriteStore(writer_, source_.step, static_cast<int>(k), out_, values[k]);
    }
  }

  // Opens a loop for each extent and gives the names of what counts.
  std::vector<std::string> OpenLoops(std::span<const program::Dim> extents) {
    std::vector<std::string> names;
    for (const program::Dim& extent : extents) {
      names.push_back(writer_.NewName("k"));
      writer_.Open("for (idx ", names.back(), " = 0; ", names.back(), " < ", writer_.UseDim(extent),
                   "; ++", names.back(), ")");
    }
    return names;
  }
  void CloseLoops(size_t count) {
    for (size_t k = 0; k < count; ++k) writer_.Close();
  }

  std::string Element(program::ExprId prologue, const std::vector<std::string>& at) {
    Scope scope;
    scope.coordinates = scope.indices = at;
    const program::ExprId roots[] = {prologue};
    return WriteExpressions(writer_, source_.program, source_.step, scope, roots)[0];
  }

  void AddProduct(const std::vector<std::string>& a_at, const std::vector<std::string>& b_at) {
    const std::string a = Element(contract_.a_prologue, a_at);
    const std::string b = Element(contract_.b_prologue, b_at);
    const std::string_view type = SumType(contract_.accumulator);
    writer_.Line(sum_, " += AS(", type, ", ", a, ") * AS(", type, ", ", b, ");");
  }

  void WriteProduct() {
    const auto batch = out_.begin() + contract_.batch_axes;
    const auto n_begin = batch + contract_.m_axes;
    const std::vector<std::string> k = OpenLoops(contract_.inner);
    std::vector<std::string> a_at(out_.begin(), n_begin);
    a_at.insert(a_at.end(), k.begin(), k.end());
    std::vector<std::string> b_at(out_.begin(), batch);
    b_at.insert(b_at.end(), k.begin(), k.end());
    b_at.insert(b_at.end(), n_begin, out_.end());
    AddProduct(a_at, b_at);
    CloseLoops(k.size());
  }

  void WriteConvolution() {
    const bool is_transposed = contract_.form == Contract::Form::kConvTranspose;
    const program::Dim& channels = contract_.inner[0];
    const std::string group_outputs =
        writer_.Declare("idx", Text(Extent(writer_, 1), " / ", writer_.UseDim(contract_.group)));
    const std::string group = writer_.Declare("idx", Text(out_[1], " / ", group_outputs));
    const std::vector<std::string> k = OpenLoops(contract_.inner);
    const std::string channel =
        writer_.Declare("idx", Text(group, " * ", writer_.UseDim(channels), " + ", k[0]));
    std::vector<std::string> a_at = {out_[0], channel};
    std::string condition;
    for (size_t axis = 0; axis < contract_.strides.size(); ++axis) {
      const std::string extent = writer_.UseDim(contract_.a_spatial[axis]);
      const std::string pad = writer_.UseDim(contract_.pads_begin[axis]);
      const std::string stride = writer_.UseDim(contract_.strides[axis]);
      const std::string dilation = writer_.UseDim(contract_.dilations[axis]);
      const std::string& out = out_[axis + 2];
      const std::string& tap = k[axis + 1];
      std::string position;
      if (is_transposed) {
        const std::string scaled =
            writer_.Declare("idx", Text(out, " + ", pad, " - ", tap, " * ", dilation));
        position = writer_.Declare("idx", Text(scaled, " / ", stride));
        condition += Text(condition.empty() ? "" : " && ", scaled, " >= 0 && ", position, " * ",
                          stride, " == ", scaled, " && ", position, " < ", extent);
      } else {
        position = writer_.Declare(
            "idx", Text(out, " * ", stride, " + ", tap, " * ", dilation, " - ", pad));
        condition +=
            Text(condition.empty() ? "" : " && ", position, " >= 0 && ", position, " < ", extent);
      }
      a_at.push_back(position);
    }
    // Padding is left out rather than multiplied by zero: it meets no infinity.
    if (!condition.empty()) writer_.Open("if (", condition, ")");
    std::vector<std::string> b_at = {out_[1], k[0]};
    if (is_transposed) {
      b_at = {channel, writer_.Declare("idx", Text(out_[1], " % ", group_outputs))};
    }
    b_at.insert(b_at.end(), k.begin() + 1, k.end());
    AddProduct(a_at, b_at);
    if (!condition.empty()) writer_.Close();
    CloseLoops(k.size());
  }

  // --- blocks ---

  std::string ProductOf(std::span<const std::string> extents) {
    std::string product = extents.empty() ? "1" : extents[0];
    for (size_t k = 1; k < extents.size(); ++k) product += " * " + extents[k];
    return writer_.Declare("idx", product);
  }

  Launch WriteBlocks() {
    const bool is_product = contract_.form == Contract::Form::kMatMul;
    Launch launch;
    launch.has_group_per_item = true;
    launch.block_rows = kBlockRows;
    launch.item_axes = is_product ? contract_.batch_axes : 1;
    launch.row_axes = is_product ? contract_.m_axes : 1;
    launch.row_parts = is_product ? 1 : contract_.group;
    std::vector<std::string> extents;
    for (int axis = 0; axis < source_.form.rank; ++axis) extents.push_back(Extent(writer_, axis));
    const auto all = std::span<const std::string>(extents);
    const auto batch_extents = all.first(static_cast<size_t>(launch.item_axes));
    const auto row_extents =
        all.subspan(batch_extents.size(), static_cast<size_t>(launch.row_axes));
    const auto column_extents = all.subspan(batch_extents.size() + row_extents.size());

    // Which block: its rows first, so that groups that follow each other share their columns.
    writer_.Open("");
    const std::string parts = is_product ? "1" : writer_.UseDim(contract_.group);
    const std::string rows = writer_.Declare("idx", Text(ProductOf(row_extents), " / ", parts));
    const std::string columns = ProductOf(column_extents);
    const std::string row_tiles =
        writer_.Declare("idx", Text("(", rows, " + ", kBlockRows - 1, ") / ", kBlockRows));
    const std::string column_tiles = writer_.Declare(
        "idx", Text("(", columns, " + ", launch.group_size - 1, ") / ", launch.group_size));
    const std::string block = writer_.Declare("idx", "AS(idx, GROUP)");
    const std::string tiles = writer_.Declare("idx", Text(block, " / ", row_tiles));
    const std::string first_row =
        writer_.Declare("idx", Text(block, " % ", row_tiles, " * ", kBlockRows));
    const std::string column = writer_.Declare(
        "idx", Text(tiles, " % ", column_tiles, " * ", launch.group_size, " + AS(idx, LANE)"));
    const std::string matrix = writer_.Declare("idx", Text(tiles, " / ", column_tiles));
    const std::string part = writer_.Declare("idx", Text(matrix, " % ", parts));
    const std::vector<std::string> batch =
        WriteCoordinates(writer_, writer_.Declare("idx", Text(matrix, " / ", parts)),
                         {batch_extents.begin(), batch_extents.end()});
    // Beyond the edge the last row and column are computed once more and not written.
    const std::vector<std::string> column_at = WriteCoordinates(
        writer_,
        writer_.Declare("idx", Text(column, " < ", columns, " ? ", column, " : ", columns, " - 1")),
        {column_extents.begin(), column_extents.end()});
    std::vector<std::vector<std::string>> rows_at;
    std::vector<std::string> row_names;
    std::vector<std::string> sums;
    const std::string_view type = SumType(contract_.accumulator);
    for (int k = 0; k < kBlockRows; ++k) {
      row_names.push_back(writer_.Declare("idx", Text(first_row, " + ", k)));
      const std::string& row = row_names.back();
      const std::string kept = writer_.Declare("idx", Text("(", row, " < ", rows, " ? ", row, " : ",
                                                           rows, " - 1) + ", part, " * ", rows));
      rows_at.push_back(WriteCoordinates(writer_, kept, {row_extents.begin(), row_extents.end()}));
      sums.push_back(writer_.NewName("s"));
      writer_.Line(type, " ", sums.back(), " = 0;");
    }

    // The inner axes but one are loops; that one is unrolled.
    const size_t unrolled = is_product ? contract_.inner.size() - 1 : 0;
    std::vector<program::Dim> outer_inner = contract_.inner;
    outer_inner.erase(outer_inner.begin() + static_cast<std::ptrdiff_t>(unrolled));
    const std::vector<std::string> outer_k = OpenLoops(outer_inner);
    std::string is_inside;
    std::vector<std::string> positions;
    for (size_t axis = 0; !is_product && axis < contract_.strides.size(); ++axis) {
      const std::string extent = writer_.UseDim(contract_.a_spatial[axis]);
      const std::string position = writer_.Declare(
          "idx", Text(column_at[axis], " * ", writer_.UseDim(contract_.strides[axis]), " + ",
                      outer_k[axis], " * ", writer_.UseDim(contract_.dilations[axis]), " - ",
                      writer_.UseDim(contract_.pads_begin[axis])));
      is_inside += Text(axis == 0 ? "" : " && ", position, " >= 0 && ", position, " < ", extent);
      // Padding is read at the nearest element and left out of the sum.
      positions.push_back(
          writer_.Declare("idx", Text(position, " < 0 ? 0 : ", position, " < ", extent, " ? ",
                                      position, " : ", extent, " - 1")));
    }
    if (!is_inside.empty()) is_inside = writer_.Declare("int", is_inside);

    const auto step = [&](const std::string& k) {
      std::vector<std::string> shared_at = batch;
      if (is_product) {
        std::vector<std::string> inner = outer_k;
        inner.push_back(k);
        shared_at.insert(shared_at.end(), inner.begin(), inner.end());
        shared_at.insert(shared_at.end(), column_at.begin(), column_at.end());
      } else {
        const std::string channel =
            writer_.Declare("idx", Text(part, " * ", writer_.UseDim(contract_.inner[0]), " + ", k));
        shared_at.push_back(channel);
        shared_at.insert(shared_at.end(), positions.begin(), positions.end());
      }
      const std::string shared =
          Element(is_product ? contract_.b_prologue : contract_.a_prologue, shared_at);
      for (size_t row = 0; row < sums.size(); ++row) {
        std::vector<std::string> own_at = is_product ? batch : std::vector<std::string>();
        own_at.insert(own_at.end(), rows_at[row].begin(), rows_at[row].end());
        if (is_product) own_at.insert(own_at.end(), outer_k.begin(), outer_k.end());
        own_at.push_back(k);
        if (!is_product) own_at.insert(own_at.end(), outer_k.begin(), outer_k.end());
        const std::string own =
            Element(is_product ? contract_.a_prologue : contract_.b_prologue, own_at);
        const std::string& sum = sums[row];
        const std::string next =
            tensor::IsFloat(contract_.accumulator)
                ? Text("M_fma(", own, ", ", shared, ", ", sum, ")")
                : Text(sum, " + AS(", type, ", ", own, ") * AS(", type, ", ", shared, ")");
        writer_.Line(sum, " = ",
                     is_inside.empty() ? next : Text(is_inside, " ? ", next, " : ", sum), ";");
      }
    };
    const std::string length = writer_.UseDim(contract_.inner[unrolled]);
    const std::string k = writer_.NewName("k");
    writer_.Line("idx ", k, " = 0;");
    writer_.Open("for (; ", k, " + ", kUnrolled, " <= ", length, "; ", k, " += ", kUnrolled, ")");
    for (int next = 0; next < kUnrolled; ++next) {
      step(writer_.Declare("idx", Text(k, " + ", next)));
    }
    writer_.Close();
    writer_.Open("for (; ", k, " < ", length, "; ++", k, ")");
    step(k);
    writer_.Close();
    CloseLoops(outer_k.size());

    for (size_t row = 0; row < sums.size(); ++row) {
      writer_.Open("if (", column, " < ", columns, " && ", row_names[row], " < ", rows, ")");
      out_ = batch;
      out_.insert(out_.end(), rows_at[row].begin(), rows_at[row].end());
      out_.insert(out_.end(), column_at.begin(), column_at.end());
      WriteOutputs(sums[row]);
      writer_.Close();
    }
    writer_.Close();
    return launch;
  }

  Writer& writer_;
  const Source& source_;
  const Contract& contract_;
  std::vector<std::string> out_;  // coordinates of the output
  std::string sum_;
};

}  // namespace

std::string_view SumType(ElementType accumulator) {
  switch (accumulator) {
    case ElementType::kFloat32:
      return "f32";
    case ElementType::kFloat64:
      return "f64";
    case ElementType::kInt32:
    case ElementType::kUint32:
      return "u32";
    default:
      return "u64";
  }
}

Launch WriteContract(Writer& writer, const Source& source) {
  return ContractWriter(writer, source).Write();
}

}  // namespace onnxifi::codegen
