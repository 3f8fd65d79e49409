// SPDX-License-Identifier: Apache-2.0
//
// LayerNormalization and RMSNormalization: over all axes from `axis` on.
//   y = (x - mean) / sqrt(variance + epsilon) * scale + bias;   RMS: y = x / sqrt(mean of squares +
//   epsilon) * scale

#include <numeric>

#include "backends/core/ops/normalization/row.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

Result<std::vector<int>> RowAxes(const Lowering& lowering, int rank) {
  ONNXIFI_ASSIGN_OR_RETURN(int axis, lowering.Axis(lowering.Int("axis", -1), rank));
  std::vector<int> axes(rank - axis);
  std::iota(axes.begin(), axes.end(), axis);
  return axes;
}

// Attribute `stash_type`: the type of the statistics. They are never computed in less than float32.
Result<ElementType> StashType(const Lowering& lowering) {
  const int64_t number = lowering.Int("stash_type", 1);
  const std::optional<ElementType> type = tensor::ElementTypeFromOnnx(number);
  if (type && tensor::IsFloat(*type)) return *type;
  return lowering.UnsupportedAttribute("Attribute stash_type (" + std::to_string(number) +
                                       ") is not the number of a float type.");
}

ElementType ComputeType(ElementType x, ElementType stash) {
  return x == ElementType::kFloat64 ? x : tensor::ArithmeticType(stash);
}

// Scale and bias stretch to X, never the other way round.
Status CheckStretches(Lowering& lowering, int input) {
  const Shape& x = lowering.In(0).shape;
  ONNXIFI_ASSIGN_OR_RETURN(Shape shape, lowering.Broadcast(x, lowering.In(input).shape));
  if (shape.size() != x.size()) {
    return Status(Code::kMismatchingShape,
                  lowering.node().op_type + ": Input " + std::to_string(input) + " has " +
                      std::to_string(shape.size()) + " axes, more than the " +
                      std::to_string(x.size()) + " of the data.");
  }
  for (size_t axis = 0; axis < x.size(); ++axis) {
    ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(
        shape[axis], x[axis], "Extents of input " + std::to_string(input) + " and the data"));
  }
  return base::Ok();
}

Expr InverseRoot(const Lowering& lowering, Expr variance) {
  Expr epsilon = Like(variance, lowering.Float("epsilon", 1e-5f));
  return Like(variance, 1) / Unary(ExprOp::kSqrt, variance + epsilon);
}

Status LowerLayerNormalization(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<int> axes, RowAxes(lowering, x.rank()));
  ONNXIFI_ASSIGN_OR_RETURN(ElementType stash, StashType(lowering));
  for (int input : {1, 2}) {
    if (lowering.Has(input)) ONNXIFI_RETURN_IF_ERROR(CheckStretches(lowering, input));
  }

  const ElementType type = ComputeType(x.type(), stash);
  RowBuilder row(lowering, x.shape, axes);
  Expr element = row.Read(x, type);
  const RowBuilder::Moments moments = row.AddMoments(element);
  Expr inverse = InverseRoot(lowering, moments.variance);
  Expr value = (element - moments.mean) * inverse * row.Read(lowering.In(1), type);
  if (lowering.Has(2)) value = value + row.Read(lowering.In(2), type);
  lowering.Set(0, row.Write(value, x.type()));
  if (lowering.Wants(1)) lowering.Set(1, row.WritePerRow(moments.mean, stash, /*keepdims=*/true));
  if (lowering.Wants(2)) lowering.Set(2, row.WritePerRow(inverse, stash, /*keepdims=*/true));
  row.Finish();
  return base::Ok();
}

Status LowerRmsNormalization(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& x = lowering.In(0);
  const Operand& scale = lowering.In(1);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  if (!tensor::IsFloat(scale.type())) return lowering.UnsupportedType(1);
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<int> axes, RowAxes(lowering, x.rank()));
  ONNXIFI_ASSIGN_OR_RETURN(ElementType stash, StashType(lowering));
  ONNXIFI_RETURN_IF_ERROR(CheckStretches(lowering, 1));

  const ElementType type = ComputeType(x.type(), stash);
  RowBuilder row(lowering, x.shape, axes);
  Expr element = row.Read(x, type);
  program::Reduction squares;
  Expr mean_square = AddSum(squares, element * element) / Cast(row.Count(), type);
  Expr inverse = InverseRoot(lowering, row.AddPass(std::move(squares), mean_square));
  lowering.Set(0, row.Write(element * inverse * row.Read(scale, type), scale.type()));
  row.Finish();
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"LayerNormalization", 17, LowerLayerNormalization},
    {"RMSNormalization", 23, LowerRmsNormalization},
};

}  // namespace

std::span<const Operator> LayerNormalizationOperators() { return kOperators; }

}  // namespace onnxifi::ops
