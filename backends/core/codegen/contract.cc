// SPDX-License-Identifier: Apache-2.0
//
// Contract: an item per output, which sums its products in ascending order; or, of many products, a
// group per output. For what TiledProduct does not cut into tiles.

#include "backends/core/codegen/family.h"

namespace onnxifi::codegen {
namespace {

using program::Contract;
using tensor::ElementType;

class ContractWriter {
 public:
  ContractWriter(Writer& writer, const Source& source)
      : writer_(writer), source_(source), contract_(*source.step.As<Contract>()) {}

  Launch Write() {
    if (source_.form.is_grouped) return WriteGroup();
    const int rank = source_.form.rank;
    out_ = OpenItems(writer_, rank);
    DeclareSum();
    const std::vector<std::string> k = OpenLoops(contract_.inner);
    AddProductAt(k);
    CloseLoops(k.size());
    WriteOutputs(sum_);
    writer_.Close();
    return {.item_axes = rank};
  }

 private:
  void DeclareSum() {
    sum_ = writer_.NewName("s");
    writer_.Line(SumType(contract_.accumulator), " ", sum_, " = 0;");
  }

  // The items take products in turns and add their sums up. All items of all groups meet at every
  // barrier.
  Launch WriteGroup() {
    const int rank = source_.form.rank;
    const int items = Launch().group_size;
    const std::string is_inside = writer_.Declare("bool", "GROUP < count");
    const std::string group =
        writer_.Declare("idx", Text(is_inside, " ? AS(idx, GROUP) : AS(idx, 0)"));
    std::vector<std::string> extents, inner;
    for (int axis = 0; axis < rank; ++axis) extents.push_back(Extent(writer_, axis));
    out_ = WriteCoordinates(writer_, group, extents);
    std::string total = "1";
    for (const program::Dim& extent : contract_.inner) {
      inner.push_back(writer_.UseDim(extent));
      total += " * " + inner.back();
    }
    total = writer_.Declare("idx", total);
    DeclareSum();
    const std::string k = writer_.NewName("k");
    writer_.Open("for (idx ", k, " = AS(idx, LANE); ", k, " < ", total, "; ", k, " += ", items,
                 ")");
    AddProductAt(WriteCoordinates(writer_, k, inner));
    writer_.Close();
    const std::string shared = writer_.NewName("g");
    writer_.Share(Text(SumType(contract_.accumulator), " ", shared, "[", items, "]"));
    writer_.Line(shared, "[LANE] = ", sum_, ";");
    writer_.Line("BARRIER;");
    const std::string half = writer_.NewName("j");
    writer_.Open("for (int ", half, " = ", items / 2, "; ", half, " > 0; ", half, " /= 2)");
    writer_.Line("if (LANE < ", half, ") ", shared, "[LANE] += ", shared, "[LANE + ", half, "];");
    writer_.Line("BARRIER;");
    writer_.Close();
    writer_.Open("if (LANE == 0 && ", is_inside, ")");
    WriteOutputs(Text(shared, "[0]"));
    writer_.Close();
    return {.item_axes = rank, .has_group_per_item = true, .group_size = items};
  }

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

  // The product at these inner coordinates.
  void AddProductAt(const std::vector<std::string>& k) {
    if (contract_.form == Contract::Form::kMatMul) {
      AddElements(k);
    } else {
      AddTap(k);
    }
  }

  void AddElements(const std::vector<std::string>& k) {
    const auto batch = out_.begin() + contract_.batch_axes;
    const auto n_begin = batch + contract_.m_axes;
    std::vector<std::string> a_at(out_.begin(), n_begin);
    a_at.insert(a_at.end(), k.begin(), k.end());
    std::vector<std::string> b_at(out_.begin(), batch);
    b_at.insert(b_at.end(), k.begin(), k.end());
    b_at.insert(b_at.end(), n_begin, out_.end());
    AddProduct(a_at, b_at);
  }

  void AddTap(const std::vector<std::string>& k) {
    const bool is_transposed = contract_.form == Contract::Form::kConvTranspose;
    const program::Dim& channels = contract_.inner[0];
    const std::string group_outputs =
        writer_.DeclareQuotient(Extent(writer_, 1), writer_.UseDim(contract_.group));
    const std::string group = writer_.Declare("idx", Text(out_[1], " / ", group_outputs));
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
        // Of no meaning where it is negative, which is no element.
        position = writer_.DeclareQuotient(scaled, stride);
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
