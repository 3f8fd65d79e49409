// SPDX-License-Identifier: Apache-2.0
//
// Scatter, ScatterElements, ScatterND: a copy of the data, then one Index step that writes the
// updates into it. Positions out of range are skipped; duplicates are combined in the order of the
// updates. Bools are combined as in numpy and ONNX Runtime: add and max are OR, mul and min are
// AND.

#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using program::Index;

Result<Index::Combine> Reduction(Lowering& lowering) {
  const std::string name = lowering.String("reduction", "none");
  if (name == "none") return Index::Combine::kNone;
  if (name == "add") return Index::Combine::kAdd;
  if (name == "mul") return Index::Combine::kMul;
  if (name == "min") return Index::Combine::kMin;
  if (name == "max") return Index::Combine::kMax;
  return lowering.UnsupportedAttribute("reduction '" + name +
                                       "' is not none, add, mul, min or max.");
}

Status CheckScatter(Lowering& lowering, Index::Combine combine) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
  if (!tensor::IsInteger(lowering.In(1).type())) return lowering.UnsupportedType(1);
  const ElementType type = lowering.In(0).type();
  if (lowering.In(2).type() != type) {
    return Status(Code::kMismatchingDatatype, lowering.node().op_type + ": The data are " +
                                                  std::string(Name(type)) + " and the updates " +
                                                  std::string(Name(lowering.In(2).type())) + ".");
  }
  const bool is_combined = tensor::IsFloat(type) || tensor::IsInteger(type) || tensor::IsBool(type);
  if (combine != Index::Combine::kNone && !is_combined) return lowering.UnsupportedType(0);
  return base::Ok();
}

// Positions along one axis of the target, as int64 over `domain`.
View PositionsOver(Lowering& lowering, const Shape& domain, const Operand& indices, Dim extent) {
  StepBuilder map(lowering, indices.shape);
  Expr position = WrapNegative(map, map.ReadView(indices.view), extent);
  return program::BroadcastTo(map.WriteMap(position, ElementType::kInt64), domain);
}

// The coordinate itself along `axis` of the domain.
View CoordinateOver(Lowering& lowering, const Shape& domain, int axis) {
  StepBuilder map(lowering, {domain[axis]});
  Operand line = map.WriteMap(map.Coordinate(0), ElementType::kInt64);
  while (line.rank() < static_cast<int>(domain.size()) - axis) {
    line = program::InsertAxis(line, line.rank());
  }
  return program::BroadcastTo(line, domain);
}

// A copy as the numbers 0 and 1, of which the largest is OR and the smallest AND.
Operand AsNumbers(Lowering& lowering, const Operand& bools) {
  StepBuilder map(lowering, bools.shape);
  return map.WriteMap(Cast(map.ReadView(bools.view), ElementType::kUint8), ElementType::kUint8);
}

Operand AsBools(Lowering& lowering, const Operand& numbers) {
  StepBuilder map(lowering, numbers.shape);
  return map.WriteMap(Cast(map.ReadView(numbers.view), ElementType::kBool), ElementType::kBool);
}

Operand CopyOf(Lowering& lowering, const Operand& data) {
  StepBuilder copy(lowering, data.shape);
  return copy.WriteMap(copy.ReadView(data.view), data.type());
}

// `positions`: one view per axis of the data.
void EmitScatter(Lowering& lowering, const std::vector<View>& positions, Index::Combine combine) {
  const Operand& data = lowering.In(0);
  Operand updates = lowering.In(2);
  const bool combines_bools = combine != Index::Combine::kNone && tensor::IsBool(data.type());
  const Operand result = combines_bools ? AsNumbers(lowering, data) : CopyOf(lowering, data);
  if (combines_bools) {
    updates = AsNumbers(lowering, updates);
    if (combine == Index::Combine::kAdd) combine = Index::Combine::kMax;
    if (combine == Index::Combine::kMul) combine = Index::Combine::kMin;
  }

  Index index;
  index.kind = Index::Kind::kScatter;
  index.combine = combine;
  index.target = data.shape;
  StepBuilder scatter(lowering, updates.shape);
  scatter.AddRead(updates.view);
  for (const View& position : positions) scatter.AddRead(position);
  scatter.Finish(std::move(index), {result.view});
  lowering.Set(0, combines_bools ? AsBools(lowering, result) : result);
}

Status LowerScatterElements(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Index::Combine combine, Reduction(lowering));
  ONNXIFI_RETURN_IF_ERROR(CheckScatter(lowering, combine));
  const Operand& data = lowering.In(0);
  const Operand& indices = lowering.In(1);
  const Operand& updates = lowering.In(2);
  ONNXIFI_ASSIGN_OR_RETURN(const int axis, lowering.Axis(lowering.Int("axis", 0), data.rank()));
  if (indices.rank() != data.rank() || updates.rank() != data.rank()) {
    return lowering.InvalidModel("The data, indices and updates have " +
                                 std::to_string(data.rank()) + ", " +
                                 std::to_string(indices.rank()) + " and " +
                                 std::to_string(updates.rank()) + " axes; they must agree.");
  }
  for (int k = 0; k < data.rank(); ++k) {
    ONNXIFI_RETURN_IF_ERROR(
        lowering.RequireEqual(indices.shape[k], updates.shape[k],
                              "Extents of axis " + std::to_string(k) + " of indices and updates"));
  }

  std::vector<View> positions;
  for (int k = 0; k < data.rank(); ++k) {
    positions.push_back(k == axis ? PositionsOver(lowering, updates.shape, indices, data.shape[k])
                                  : CoordinateOver(lowering, updates.shape, k));
  }
  EmitScatter(lowering, positions, combine);
  return base::Ok();
}

// data[indices[i.., 0], .., indices[i.., depth - 1], s..] = updates[i.., s..]
Status LowerScatterNd(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Index::Combine combine, Reduction(lowering));
  ONNXIFI_RETURN_IF_ERROR(CheckScatter(lowering, combine));
  const Operand& data = lowering.In(0);
  const Operand& indices = lowering.In(1);
  const Operand& updates = lowering.In(2);
  if (indices.rank() == 0) return lowering.InvalidModel("The indices are a scalar.");
  ONNXIFI_ASSIGN_OR_RETURN(const int depth,
                           IndexDepth(lowering, indices, data.rank(),
                                      indices.rank() - 1 + data.rank() - updates.rank()));
  Shape expected(indices.shape.begin(), indices.shape.end() - 1);
  const int lead = static_cast<int>(expected.size());
  expected.insert(expected.end(), data.shape.begin() + depth, data.shape.end());
  if (expected.size() != updates.shape.size()) {
    return lowering.InvalidModel("The updates have " + std::to_string(updates.rank()) +
                                 " axes instead of " + std::to_string(expected.size()) + ".");
  }
  for (int k = 0; k < updates.rank(); ++k) {
    ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(
        updates.shape[k], expected[k], "Extents of axis " + std::to_string(k) + " of the updates"));
  }

  std::vector<View> positions;
  for (int k = 0; k < data.rank(); ++k) {
    positions.push_back(k < depth ? PositionsOver(lowering, updates.shape,
                                                  IndexColumn(indices, k, data.rank() - depth),
                                                  data.shape[k])
                                  : CoordinateOver(lowering, updates.shape, k - depth + lead));
  }
  EmitScatter(lowering, positions, combine);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Scatter", 11, LowerScatterElements, "", InputKinds::kStrings},
    {"ScatterElements", 18, LowerScatterElements, "", InputKinds::kStrings},
    {"ScatterND", 18, LowerScatterNd, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> ScatterOperators() { return kOperators; }

}  // namespace onnxifi::ops
