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

// The upper part keeps j - i >= k, the lower one j - i <= k.
Status LowerTrilu(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& input = lowering.In(0);
  const int rank = input.rank();
  if (rank < 2) {
    return lowering.InvalidModel("The input has " + std::to_string(rank) +
                                 " axes instead of at least 2.");
  }

  StepBuilder map(lowering, input.shape);
  Expr k = map.Extent(0);
  if (lowering.Has(1)) {
    ONNXIFI_RETURN_IF_ERROR(lowering.Require(Equal(Product(lowering.In(1).shape), 1),
                                             Code::kInvalidModel, "k is not one element."));
    k = Cast(map.Read(lowering.Reshaped(lowering.In(1), {})), ElementType::kInt64);
  }
  Expr distance = map.Coordinate(rank - 1) - map.Coordinate(rank - 2);
  Expr is_kept = lowering.Int("upper", 1) != 0 ? k <= distance : distance <= k;
  Expr value = map.ReadView(input.view);
  lowering.Set(0, map.WriteMap(Select(is_kept, value, Like(value, 0)), input.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"EyeLike", 22, LowerEyeLike},
    {"Trilu", 14, LowerTrilu},
};

}  // namespace

std::span<const Operator> DiagonalOperators() { return kOperators; }

}  // namespace onnxifi::ops
