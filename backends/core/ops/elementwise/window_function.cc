// SPDX-License-Identifier: Apache-2.0
//
// HannWindow, HammingWindow, BlackmanWindow: sums of cosines of 2 pi n / N, where N is the size, or
// in the symmetric form one less.

#include <numbers>

#include "backends/core/ops/elementwise/floating_type.h"
#include "backends/core/ops/lowering.h"
#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"

namespace onnxifi::ops {
namespace {

// w[n] = constant - first * cos(2 pi n / N) + second * cos(4 pi n / N)
struct Coefficients {
  double constant, first, second;
};
constexpr Coefficients kHann{0.5, 0.5, 0};
// 25 / 46 and 21 / 46, the rational forms that ONNX gives.
constexpr Coefficients kHamming{25.0 / 46, 21.0 / 46, 0};
constexpr Coefficients kBlackman{0.42, 0.5, 0.08};

template <const Coefficients& coefficients>
Status LowerWindow(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const int64_t number = lowering.Int("output_datatype", 1);
  const std::optional<ElementType> type = tensor::ElementTypeFromOnnx(number);
  if (!type || (!tensor::IsFloat(*type) && !tensor::IsInteger(*type))) {
    return lowering.UnsupportedAttribute("Attribute output_datatype (" + std::to_string(number) +
                                         ") is not the number of a float or integer type.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(Dims sizes, lowering.IntegersOrRuntime(0));
  if (sizes.size() != 1) {
    return lowering.InvalidModel("Input 0 gives " + std::to_string(sizes.size()) +
                                 " sizes and must give 1.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(Dim size, AsExtent(lowering, sizes[0]));
  const bool is_periodic = lowering.Int("periodic", 1) != 0;

  StepBuilder map(lowering, {size});
  // A window of one symmetric point has no period; any other divisor keeps its cosines at 1.
  const Dim period = Max(is_periodic ? size : size - 1, Dim(1));
  const ElementType compute = FloatingType(*type);
  Expr turns = Cast(map.Coordinate(0), compute) / Cast(map.Extent(period), compute);
  Expr angle = turns * Like(turns, 2 * std::numbers::pi);
  Expr value = Like(turns, coefficients.constant) -
               Like(turns, coefficients.first) * Unary(ExprOp::kCos, angle);
  if (coefficients.second != 0) {
    Expr twice = Unary(ExprOp::kCos, angle * Like(angle, 2));
    value = value + Like(turns, coefficients.second) * twice;
  }
  lowering.Set(0, map.WriteMap(value, *type));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"BlackmanWindow", 17, LowerWindow<kBlackman>},
    {"HammingWindow", 17, LowerWindow<kHamming>},
    {"HannWindow", 17, LowerWindow<kHann>},
};

}  // namespace

std::span<const Operator> WindowFunctionOperators() { return kOperators; }

}  // namespace onnxifi::ops
