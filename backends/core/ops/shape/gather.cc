// SPDX-License-Identifier: Apache-2.0
//
// Gather, GatherElements, GatherND: loads at positions that are data. A position outside [-d, d -
// 1] reads 0: ONNX leaves it undefined, and it must not touch memory. Constant positions that go on
// evenly, as those of windows that an exporter cut out, are a view.

#include <algorithm>
#include <optional>

#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/registry.h"
#include "backends/core/program/even_positions.h"

namespace onnxifi::ops {
namespace {

Status CheckIndices(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  return tensor::IsInteger(lowering.In(1).type()) ? base::Ok() : lowering.UnsupportedType(1);
}

// Axes of `extents` take the place of `axis`, along which their elements are at even positions.
Operand ViewAtEvenPositions(const Operand& data, int axis, const program::EvenPositions& even,
                            const Shape& extents) {
  Operand result = data;
  const auto walk = [&](Dims& form, Dim& offset) {
    const Dim step = form[static_cast<size_t>(axis)];
    offset = offset + step * even.first;
    form.erase(form.begin() + axis);
    for (size_t k = 0; k < even.steps.size(); ++k) {
      form.insert(form.begin() + axis + static_cast<ptrdiff_t>(k), step * even.steps[k]);
    }
  };
  walk(result.view.strides, result.view.offset);
  for (program::Guard& guard : result.view.guards) walk(guard.coefficients, guard.offset);
  result.shape.erase(result.shape.begin() + axis);
  result.shape.insert(result.shape.begin() + axis, extents.begin(), extents.end());
  return result;
}

Status LowerGather(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckIndices(lowering));
  const Operand& data = lowering.In(0);
  const Operand& indices = lowering.In(1);
  ONNXIFI_ASSIGN_OR_RETURN(const int axis, lowering.Axis(lowering.Int("axis", 0), data.rank()));
  const Dim d = data.shape[axis];

  // One position known now is a view.
  if (std::optional<Dims> known = lowering.Integers(1); known && indices.rank() == 0) {
    const Dim given = known->front();
    const Dim position = given + Select(Less(given, 0), d, Dim(0));
    const Dim is_inside = Less(-1, position) * Less(position, d);
    if (is_inside == Dim(1)) {
      lowering.Set(0, program::RemoveAxis(program::Slice(data, axis, position, 1, 1), axis));
      return base::Ok();
    }
  }
  if (const std::optional<program::EvenPositions> even =
          program::FindEvenPositions(lowering.program(), indices.view, indices.shape, d)) {
    lowering.Set(0, ViewAtEvenPositions(data, axis, *even, indices.shape));
    return base::Ok();
  }
  Shape shape(data.shape.begin(), data.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + axis + 1, data.shape.end());
  StepBuilder map(lowering, shape);
  Operand aligned = indices;
  for (int k = axis + 1; k < data.rank(); ++k) {
    aligned = program::InsertAxis(aligned, aligned.rank());
  }
  std::vector<Expr> at;
  for (int k = 0; k < data.rank(); ++k) {
    if (k == axis) {
      at.push_back(WrapNegative(map, map.Read(aligned), d));
    } else {
      at.push_back(map.Coordinate(k < axis ? k : k + indices.rank() - 1));
    }
  }
  Expr value = ReadGuarded(map, data, at, {axis});
  lowering.Set(0, map.WriteMap(value, data.type()));
  return base::Ok();
}

Status LowerGatherElements(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckIndices(lowering));
  const Operand& data = lowering.In(0);
  const Operand& indices = lowering.In(1);
  ONNXIFI_ASSIGN_OR_RETURN(const int axis, lowering.Axis(lowering.Int("axis", 0), data.rank()));
  if (indices.rank() != data.rank()) {
    return lowering.InvalidModel("The indices have " + std::to_string(indices.rank()) +
                                 " axes and the data " + std::to_string(data.rank()) + ".");
  }

  StepBuilder map(lowering, indices.shape);
  std::vector<Expr> at;
  std::vector<int> checked;
  for (int k = 0; k < data.rank(); ++k) {
    at.push_back(k == axis ? WrapNegative(map, map.Read(indices), data.shape[axis])
                           : map.Coordinate(k));
    // The indices may be longer than the data along other axes, too.
    const Dim is_longer = Less(data.shape[k], indices.shape[k]);
    if (k == axis || !(is_longer == Dim(0))) checked.push_back(k);
  }
  lowering.Set(0, map.WriteMap(ReadGuarded(map, data, at, checked), data.type()));
  return base::Ok();
}

// out[b.., i.., s..] = data[b.., indices[b.., i.., 0], indices[b.., i.., 1], .., s..]
Status LowerGatherNd(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckIndices(lowering));
  const Operand& data = lowering.In(0);
  const Operand& indices = lowering.In(1);
  const int64_t batch = lowering.Int("batch_dims", 0);
  if (indices.rank() == 0 || batch < 0 || batch >= std::min(data.rank(), indices.rank())) {
    return lowering.InvalidModel(
        "batch_dims (" + std::to_string(batch) + ") is not below the ranks of data (" +
        std::to_string(data.rank()) + ") and indices (" + std::to_string(indices.rank()) + ").");
  }
  std::optional<int64_t> by_ranks;
  if (const std::optional<int> declared = lowering.DeclaredRank(0)) {
    by_ranks = indices.rank() - 1 + data.rank() - batch - *declared;
  }
  ONNXIFI_ASSIGN_OR_RETURN(const int depth,
                           IndexDepth(lowering, indices, data.rank() - batch, by_ranks));
  for (int k = 0; k < batch; ++k) {
    ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(data.shape[k], indices.shape[k],
                                                  "Extents of batch axis " + std::to_string(k)));
  }

  Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  const int inner = static_cast<int>(batch) + depth;
  const int lead = static_cast<int>(shape.size());
  shape.insert(shape.end(), data.shape.begin() + inner, data.shape.end());
  StepBuilder map(lowering, shape);
  std::vector<Expr> at;
  std::vector<int> checked;
  for (int k = 0; k < data.rank(); ++k) {
    if (k < batch) {
      at.push_back(map.Coordinate(k));
    } else if (k < inner) {
      checked.push_back(k);
      Expr index = map.Read(IndexColumn(indices, k - static_cast<int>(batch), data.rank() - inner));
      at.push_back(WrapNegative(map, index, data.shape[k]));
    } else {
      at.push_back(map.Coordinate(k - inner + lead));
    }
  }
  lowering.Set(0, map.WriteMap(ReadGuarded(map, data, at, checked), data.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Gather", 13, LowerGather, "", InputKinds::kStrings},
    {"GatherElements", 13, LowerGatherElements, "", InputKinds::kStrings},
    {"GatherND", 13, LowerGatherNd, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> GatherOperators() { return kOperators; }

}  // namespace onnxifi::ops
