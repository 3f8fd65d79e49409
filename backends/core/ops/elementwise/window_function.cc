// SPDX-License-Identifier: Apache-2.0
//
// HannWindow, HammingWindow, BlackmanWindow: sums of cosines of 2 pi n / N, where N is the size, or
// in the symmetric form one less. A cosine of an angle that is rounded is off by as much as the
// angle where it is steep; squares of sines of half the angle, which is at most pi / 2 from the
// nearer end, are off by less, and nothing cancels at the ends:
//   cos(2 a) = 1 - 2 sin^2(a), cos(4 a) = 1 - 8 sin^2(a) (1 - sin^2(a))
// A window of floats whose size the model gives is a constant, computed in double precision: twice
// the rounding of a float32 sine is several times that of a result that is rounded once.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "backends/core/ops/elementwise/floating_type.h"
#include "backends/core/ops/lowering.h"
#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::ops {
namespace {

// w[n] = end + first * (1 - cos(2 pi n / N)) - second * (1 - cos(4 pi n / N))
struct Coefficients {
  double end, first, second;
};
constexpr Coefficients kHann{0, 0.5, 0};
// 25 / 46 and 21 / 46, the rational forms that ONNX gives.
constexpr Coefficients kHamming{4.0 / 46, 21.0 / 46, 0};
constexpr Coefficients kBlackman{0, 0.5, 0.08};

// Longer windows are computed by the device, so that a number in a model takes no memory here.
constexpr int64_t kMaxConstantSize = int64_t{1} << 16;

Result<tensor::Tensor> MakeWindow(const Coefficients& coefficients, int64_t size, bool is_periodic,
                                  ElementType type) {
  ONNXIFI_ASSIGN_OR_RETURN(tensor::Tensor window, tensor::Tensor::Allocate(type, {size}));
  const auto period = static_cast<double>(std::max<int64_t>(is_periodic ? size : size - 1, 1));
  for (int64_t n = 0; n < size; ++n) {
    const double from_end = std::min(static_cast<double>(n), period - static_cast<double>(n));
    const double sine = std::sin(std::numbers::pi * (from_end / period));
    const double square = sine * sine;
    const double slope = 2 * coefficients.first - 8 * coefficients.second * (1 - square);
    tensor::Scalar value{};
    value.f = coefficients.end + square * slope;
    tensor::StoreScalar(type, window.mutable_data(), n,
                        tensor::CastScalar(ElementType::kFloat64, type, value));
  }
  return window;
}

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
  if (tensor::IsFloat(*type) && size.is_constant() && size.constant() <= kMaxConstantSize) {
    ONNXIFI_ASSIGN_OR_RETURN(tensor::Tensor window,
                             MakeWindow(coefficients, size.constant(), is_periodic, *type));
    lowering.Set(0, lowering.ConstantTensor(std::move(window)));
    return base::Ok();
  }

  StepBuilder map(lowering, {size});
  // A window of one symmetric point has no period; any other divisor keeps its cosines at 1.
  const Dim period = Max(is_periodic ? size : size - 1, Dim(1));
  const ElementType compute = FloatingType(*type);
  Expr number_of_points = Cast(map.Extent(period), compute);
  Expr from_start = Cast(map.Coordinate(0), compute);
  Expr from_end = Binary(ExprOp::kMin, from_start, number_of_points - from_start);
  Expr turns = from_end / number_of_points;
  Expr sine = Unary(ExprOp::kSin, turns * Like(turns, std::numbers::pi));
  Expr square = sine * sine;
  Expr slope = Like(turns, 2 * coefficients.first);
  if (coefficients.second != 0) {
    slope = slope - Like(turns, 8 * coefficients.second) * (Like(turns, 1) - square);
  }
  Expr value = square * slope;
  if (coefficients.end != 0) value = value + Like(turns, coefficients.end);
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
