// SPDX-License-Identifier: Apache-2.0
//
// MelWeightMatrix (opset 17): triangles over the bins of a spectrum, whose corners lie evenly on
// the mel scale, mel(f) = 2595 * log10(1 + f / 700).

#include <numbers>

#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"

namespace onnxifi::ops {
namespace {

constexpr double kMelPerUnit = 2595 / std::numbers::ln10;
constexpr double kCornerHertz = 700;

Expr Mel(Expr hertz) {
  const Expr x = Unary(ExprOp::kLog1p, hertz / Like(hertz, kCornerHertz));
  return x * Like(x, kMelPerUnit);
}

Expr Hertz(Expr mel) {
  const Expr x = Unary(ExprOp::kExpm1, mel / Like(mel, kMelPerUnit));
  return x * Like(x, kCornerHertz);
}

Status LowerMelWeightMatrix(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(5));
  const int64_t number = lowering.Int("output_datatype", 1);
  const std::optional<ElementType> type = tensor::ElementTypeFromOnnx(number);
  if (!type || (!tensor::IsFloat(*type) && !tensor::IsInteger(*type))) {
    return lowering.UnsupportedAttribute("Attribute output_datatype (" + std::to_string(number) +
                                         ") is not the number of a float or integer type.");
  }
  Dims numbers;
  for (int input = 0; input < 3; ++input) {
    ONNXIFI_ASSIGN_OR_RETURN(const Dims given, lowering.IntegersOrRuntime(input, 1));
    if (given.size() != 1) {
      return lowering.InvalidModel("Input " + std::to_string(input) + " has " +
                                   std::to_string(given.size()) + " elements instead of one.");
    }
    ONNXIFI_ASSIGN_OR_RETURN(const Dim extent, AsExtent(lowering, given[0]));
    numbers.push_back(extent);
  }
  for (int input = 3; input < 5; ++input) {
    if (!tensor::IsFloat(lowering.In(input).type())) return lowering.UnsupportedType(input);
    if (lowering.In(input).rank() > 1) {
      return lowering.InvalidModel("Input " + std::to_string(input) + " has " +
                                   std::to_string(lowering.In(input).rank()) +
                                   " axes instead of none.");
    }
  }
  const Dim mels = numbers[0];
  const Dim length = numbers[1];

  // Corners are rounded down to bins, so that rounding errors would move triangles.
  const ElementType compute = ElementType::kFloat64;
  StepBuilder map(lowering, {FloorDiv(length, 2) + 1, mels});
  const Expr low = Mel(Cast(map.Read(lowering.In(3)), compute));
  const Expr high = Mel(Cast(map.Read(lowering.In(4)), compute));
  const Expr step = (high - low) / Cast(map.Extent(mels + 2), compute);
  const Expr rate = Cast(map.Extent(numbers[2]), compute);
  const Expr bins = Cast(map.Extent(length + 1), compute);
  const Expr band = Cast(map.Coordinate(1), compute);
  const auto corner = [&](int position) {
    const Expr hertz = Hertz((band + Like(band, position)) * step + low);
    return Unary(ExprOp::kFloor, bins * hertz / rate);
  };
  const Expr left = corner(0);
  const Expr centre = corner(1);
  const Expr right = corner(2);
  const Expr bin = Cast(map.Coordinate(0), compute);
  const Expr zero = Like(bin, 0);
  const Expr one = Like(bin, 1);
  const Expr falls = centre <= bin && bin < right;
  const Expr rises = left <= bin && bin <= centre;
  const Expr rising = Select(rises, (bin - left) / (centre - left), zero);
  const Expr peak = Select(bin == centre, one, zero);
  const Expr value =
      Select(falls, (right - bin) / (right - centre), Select(left == centre, peak, rising));
  lowering.Set(0, map.WriteMap(value, *type));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"MelWeightMatrix", 17, LowerMelWeightMatrix},
};

}  // namespace

std::span<const Operator> MelWeightMatrixOperators() { return kOperators; }

}  // namespace onnxifi::ops
