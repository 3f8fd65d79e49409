// SPDX-License-Identifier: Apache-2.0
//
// EyeLike, Trilu: what is on, above or below a diagonal of matrices.

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

Status LowerEyeLike(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& input = lowering.In(0);
  if (input.rank() != 2) {
    return lowering.InvalidModel("The input has " + std::to_string(input.rank()) +
                                 " axes instead of 2.");
  }
  const int64_t dtype = lowering.Int("dtype", static_cast<int64_t>(input.type()));
  const std::optional<ElementType> type = tensor::ElementTypeFromOnnx(dtype);
  if (!type || *type == ElementType::kString || tensor::IsComplex(*type)) {
    return lowering.UnsupportedAttribute("dtype " + std::to_string(dtype) +
                                         " is no numeric element type.");
  }

  StepBuilder map(lowering, input.shape);
  Expr diagonal = map.Coordinate(0) + map.Extent(lowering.Int("k", 0));
  lowering.Set(0, map.WriteMap(diagonal == map.Coordinate(1), *type));
  return base::Ok();
}

// The triangle as a view that is 0 elsewhere; nothing where the input is a view with another fill.
std::optional<Operand> Triangle(const Operand& input, Dim k, bool is_upper) {
  if (!input.view.guards.empty() && input.view.fill.u != 0) return std::nullopt;
  const int rank = input.rank();
  const Dim rows = input.shape[rank - 2];
  const Dim columns = input.shape[rank - 1];
  // No further than the corners.
  k = Max(Dim(0) - rows, Min(k, columns));
  program::Guard guard;
  guard.coefficients.resize(static_cast<size_t>(rank), Dim(0));
  guard.coefficients[rank - 2] = Dim(is_upper ? -1 : 1);
  guard.coefficients[rank - 1] = Dim(is_upper ? 1 : -1);
  guard.offset = is_upper ? Dim(0) - k : k;
  guard.extent = Dim(2) * (rows + columns) + 1;
  Operand triangle = input;
  triangle.view.guards.push_back(std::move(guard));
  triangle.view.fill.u = 0;
  return triangle;
}

// The upper part keeps j - i >= k, the lower one j - i <= k.
Status LowerTrilu(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& input = lowering.In(0);
  const int rank = input.rank();
  if (rank < 2) {
    return lowering.InvalidModel("The input has " + std::to_string(rank) +
                                 " axes instead of at least 2.");
  }

  const bool is_upper = lowering.Int("upper", 1) != 0;
  std::optional<int64_t> known = 0;
  if (lowering.Has(1)) {
    const tensor::Tensor* constant = lowering.SmallConstant(1);
    const bool is_known = constant != nullptr && constant->element_count() == 1 &&
                          constant->type() == ElementType::kInt64;
    known = is_known ? std::optional(tensor::LoadScalar(constant->type(), constant->data(), 0).i)
                     : std::nullopt;
  }
  if (known && !tensor::IsComplex(input.type())) {
    if (const std::optional<Operand> triangle = Triangle(input, *known, is_upper)) {
      lowering.Set(0, *triangle);
      return base::Ok();
    }
  }
  StepBuilder map(lowering, input.shape);
  Expr k = map.Extent(0);
  if (lowering.Has(1)) {
    ONNXIFI_RETURN_IF_ERROR(lowering.Require(Equal(Product(lowering.In(1).shape), 1),
                                             Code::kInvalidModel, "k is not one element."));
    k = Cast(map.Read(lowering.Reshaped(lowering.In(1), {})), ElementType::kInt64);
  }
  Expr distance = map.Coordinate(rank - 1) - map.Coordinate(rank - 2);
  Expr is_kept = is_upper ? k <= distance : distance <= k;
  Expr value = map.ReadView(input.view);
  lowering.Set(0, map.WriteMap(Select(is_kept, value, Like(value, 0)), input.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"EyeLike", 22, LowerEyeLike},
    {"Trilu", 14, LowerTrilu, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> DiagonalOperators() { return kOperators; }

}  // namespace onnxifi::ops
