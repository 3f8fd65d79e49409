// SPDX-License-Identifier: Apache-2.0
//
// Resize, Upsample: which axes change, by what scale, to what extents. shape/resample does the
// rest.

#include <algorithm>
#include <cmath>

#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"
#include "backends/core/ops/shape/resample.h"

namespace onnxifi::ops {
namespace {

// floor(in * scale), the product rounded to float32, as ONNX's shape inference and ONNX Runtime
// have it: 10 * 0.7 is 7, though the float32 nearest to 0.7 is below it. `scale` is numerator /
// 2^exponent, so the product is q / 2^exponent with the integer q = in * numerator. Half a unit in
// the 24th bit of q is added before the rest is cut off, 2^(dropped - 1) where q has 24 + dropped
// bits. A tie that would round down to an even q stays below the next integer unless the extent has
// 24 bits itself.
Dim ScaleExtent(const Dim& in, const Dim& numerator, int exponent) {
  constexpr int kMantissaBits = 24;
  constexpr int kMaxDropped = 39;  // beyond, thresholds leave int64, and extents every memory
  const Dim q = in * numerator;
  Dim half = 0;
  for (int dropped = 1; dropped < std::min(exponent, kMaxDropped); ++dropped) {
    const Dim is_shorter = Less(q, Dim(int64_t{1} << (kMantissaBits - 1 + dropped)));
    half = Select(is_shorter, half, Dim(int64_t{1} << (dropped - 1)));
  }
  return FloorDiv(q + half, int64_t{1} << exponent);
}

// A float is an integer times a power of two, so that it is an exact fraction of Dims.
Status SetScale(Lowering& lowering, float scale, ResizedAxis& axis) {
  int exponent = 0;
  const double fraction = std::frexp(scale, &exponent);
  if (!(scale > 0) || !std::isfinite(scale) || exponent < -16 || exponent > 31) {
    return lowering.UnsupportedAttribute("Scale " + std::to_string(scale) +
                                         " is outside [2^-17, 2^31).");
  }
  int64_t numerator = static_cast<int64_t>(std::ldexp(fraction, 24));
  exponent -= 24;
  while (exponent < 0 && numerator % 2 == 0) {
    numerator /= 2;
    ++exponent;
  }
  axis.numerator = exponent > 0 ? numerator << exponent : numerator;
  axis.denominator = exponent < 0 ? int64_t{1} << -exponent : 1;
  axis.is_float_scale = true;
  axis.out = ScaleExtent(axis.in, axis.numerator, exponent < 0 ? -exponent : 0);
  return base::Ok();
}

bool IsGiven(const Lowering& lowering, int input) {
  return input >= 0 && lowering.Has(input) && !(Product(lowering.In(input).shape) == Dim(0));
}

Operand ElementOf(const Operand& vector, int64_t k) {
  return program::RemoveAxis(program::Slice(vector, 0, k, 1, 1), 0);
}

Status RequireLength(Lowering& lowering, int input, size_t length) {
  if (lowering.In(input).rank() != 1) {
    return lowering.InvalidModel("Input " + std::to_string(input) + " has " +
                                 std::to_string(lowering.In(input).rank()) +
                                 " axes instead of one.");
  }
  return lowering.RequireEqual(
      lowering.In(input).shape[0], static_cast<int64_t>(length),
      "The length of input " + std::to_string(input) + " and the number of axes");
}

// Extents floor(in * scale); scales that are not known now are multiplied when the program runs.
Status ScaleByInput(Lowering& lowering, int input, std::vector<ResizedAxis>& axes) {
  ONNXIFI_RETURN_IF_ERROR(RequireLength(lowering, input, axes.size()));
  if (!tensor::IsFloat(lowering.In(input).type())) return lowering.UnsupportedType(input);
  if (const tensor::Tensor* scales = lowering.SmallConstant(input)) {
    for (size_t k = 0; k < axes.size(); ++k) {
      ONNXIFI_RETURN_IF_ERROR(SetScale(
          lowering, static_cast<float>(scales->AsDouble(static_cast<int64_t>(k))), axes[k]));
    }
    return base::Ok();
  }
  if (const std::optional<Dims> scales = lowering.Integers(input);
      scales &&
      std::ranges::all_of(*scales, [](const Dim& scale) { return scale.is_constant(); })) {
    for (size_t k = 0; k < axes.size(); ++k) {
      ONNXIFI_RETURN_IF_ERROR(
          SetScale(lowering, static_cast<float>((*scales)[k].constant()), axes[k]));
    }
    return base::Ok();
  }
  const int count = static_cast<int>(axes.size());
  StepBuilder map(lowering, {Dim(count)});
  Expr in = map.Extent(1);
  for (int k = 0; k < count; ++k) {
    in = Select(map.Coordinate(0) == map.Extent(k), map.Extent(axes[k].in), in);
  }
  // Rounded to float32, as by ScaleExtent.
  Expr scale = Cast(map.Read(lowering.In(input)), ElementType::kFloat32);
  Expr out = Unary(ExprOp::kFloor, Cast(in, ElementType::kFloat32) * scale);
  // NaN and negative scales give 0; what no memory holds stays too large for any.
  Expr bounded = Select(out > Like(out, 0), Minimum(out, Like(out, 0x1p62)), Like(out, 0));
  const Operand numbers = map.WriteMap(Cast(bounded, ElementType::kInt64), ElementType::kInt64);
  const Dims extents = lowering.ReadAtRunTime(numbers, count, /*lower=*/0);
  for (int k = 0; k < count; ++k) {
    axes[k].out = extents[k];
    axes[k].scale = ElementOf(lowering.In(input), k);
    axes[k].is_float_scale = true;
  }
  return base::Ok();
}

// Extents given; keep_aspect_ratio_policy gives all axes the smallest or largest of their scales
// instead.
Status SetSizes(Lowering& lowering, int input, std::vector<ResizedAxis>& axes) {
  ONNXIFI_RETURN_IF_ERROR(RequireLength(lowering, input, axes.size()));
  ONNXIFI_ASSIGN_OR_RETURN(Dims sizes, lowering.IntegersOrRuntime(input, axes.size()));
  const std::string policy = lowering.String("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller") {
    return lowering.UnsupportedAttribute("keep_aspect_ratio_policy '" + policy +
                                         "' is not stretch, not_larger or not_smaller.");
  }
  for (size_t k = 0; k < axes.size(); ++k) {
    ONNXIFI_ASSIGN_OR_RETURN(axes[k].numerator, AsExtent(lowering, sizes[k]));
    axes[k].denominator = axes[k].in;
    axes[k].out = axes[k].numerator;
  }
  if (policy == "stretch" || axes.empty()) return base::Ok();
  Dim numerator = axes[0].numerator;
  Dim denominator = axes[0].denominator;
  for (const ResizedAxis& axis : axes) {
    const Dim left = axis.numerator * denominator;
    const Dim right = numerator * axis.denominator;
    const Dim wins = policy == "not_larger" ? Less(left, right) : Less(right, left);
    numerator = Select(wins, axis.numerator, numerator);
    denominator = Select(wins, axis.denominator, denominator);
  }
  for (ResizedAxis& axis : axes) {
    axis.numerator = numerator;
    axis.denominator = denominator;
    axis.out = FloorDiv(Dim(2) * axis.in * numerator + denominator, Dim(2) * denominator);
  }
  return base::Ok();
}

Result<Resampling> ReadResampling(Lowering& lowering) {
  Resampling how;
  const std::string mode = lowering.String("mode", "nearest");
  if (mode == "nearest") {
    how.kernel = Resampling::Kernel::kNearest;
  } else if (mode == "linear" || mode == "bilinear") {
    how.kernel = Resampling::Kernel::kLinear;
  } else if (mode == "cubic") {
    how.kernel = Resampling::Kernel::kCubic;
  } else {
    return lowering.UnsupportedAttribute("mode '" + mode + "' is not nearest, linear or cubic.");
  }
  const bool has_modes = lowering.version() >= 11;
  how.coordinates =
      has_modes ? lowering.String("coordinate_transformation_mode", "half_pixel") : "asymmetric";
  how.nearest = lowering.node().op_type == "Upsample" ? "floor" : "simple";
  if (has_modes) how.nearest = lowering.String("nearest_mode", "round_prefer_floor");
  // ONNX has tf_half_pixel_for_nn in version 11 alone; tf2onnx writes it in later ones, too.
  const std::string_view coordinates[] = {
      "half_pixel",    "half_pixel_symmetric", "asymmetric",          "pytorch_half_pixel",
      "align_corners", "tf_crop_and_resize",   "tf_half_pixel_for_nn"};
  if (std::find(std::begin(coordinates), std::end(coordinates), how.coordinates) ==
      std::end(coordinates)) {
    return lowering.UnsupportedAttribute("coordinate_transformation_mode '" + how.coordinates +
                                         "' is not supported.");
  }
  const std::string_view nearest[] = {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil",
                                      "simple"};
  if (std::find(std::begin(nearest), std::end(nearest), how.nearest) == std::end(nearest)) {
    return lowering.UnsupportedAttribute("nearest_mode '" + how.nearest + "' is not supported.");
  }
  how.cubic_a = lowering.Float("cubic_coeff_a", -0.75f);
  how.antialias = lowering.Int("antialias", 0) != 0;
  how.exclude_outside = lowering.Int("exclude_outside", 0) != 0;
  how.extrapolation = lowering.Float("extrapolation_value", 0.0f);
  return how;
}

Result<std::vector<ResizedAxis>> NamedAxes(Lowering& lowering) {
  const Operand& x = lowering.In(0);
  ONNXIFI_ASSIGN_OR_RETURN(const AxisList list,
                           AxisList::FromAttribute(lowering, "axes", x.rank(), x.rank()));
  std::vector<ResizedAxis> axes;
  for (int axis : list.Known()) {
    ResizedAxis resized;
    resized.axis = axis;
    resized.in = x.shape[axis];
    axes.push_back(std::move(resized));
  }
  return axes;
}

Operand ResampleChanged(Lowering& lowering, const std::vector<ResizedAxis>& axes,
                        const Resampling& how) {
  std::vector<ResizedAxis> changed;
  for (const ResizedAxis& axis : axes) {
    const bool is_same =
        !axis.scale && axis.numerator == axis.denominator && axis.out == axis.in && !how.crops();
    if (!is_same) changed.push_back(axis);
  }
  return Resample(lowering, lowering.In(0), changed, how);
}

Status CheckType(Lowering& lowering, const Resampling& how) {
  const ElementType type = lowering.In(0).type();
  const bool is_number = tensor::IsFloat(type) || tensor::IsInteger(type);
  const bool is_copied = how.kernel == Resampling::Kernel::kNearest && !how.crops();
  return is_number || is_copied ? base::Ok() : lowering.UnsupportedType(0);
}

Status LowerResize(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  ONNXIFI_ASSIGN_OR_RETURN(const Resampling how, ReadResampling(lowering));
  ONNXIFI_RETURN_IF_ERROR(CheckType(lowering, how));
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<ResizedAxis> axes, NamedAxes(lowering));
  const bool has_roi = lowering.version() >= 11;
  const int scales = has_roi ? 2 : 1;
  const int sizes = has_roi ? 3 : -1;
  if (IsGiven(lowering, sizes)) {
    ONNXIFI_RETURN_IF_ERROR(SetSizes(lowering, sizes, axes));
  } else if (IsGiven(lowering, scales)) {
    ONNXIFI_RETURN_IF_ERROR(ScaleByInput(lowering, scales, axes));
  } else {
    return lowering.InvalidModel("Neither scales nor sizes are given.");
  }
  if (how.crops()) {
    if (!IsGiven(lowering, 1)) return lowering.InvalidModel("roi is missing.");
    ONNXIFI_RETURN_IF_ERROR(RequireLength(lowering, 1, 2 * axes.size()));
    for (size_t k = 0; k < axes.size(); ++k) {
      axes[k].roi_start = ElementOf(lowering.In(1), static_cast<int64_t>(k));
      axes[k].roi_end = ElementOf(lowering.In(1), static_cast<int64_t>(k + axes.size()));
    }
  }

  lowering.Set(0, ResampleChanged(lowering, axes, how));
  return base::Ok();
}

// Opset 1: height_scale and width_scale of four axes; 7: scales; 9 and 10: an input.
Status LowerUpsample(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(lowering.version() < 9 ? 1 : 2));
  ONNXIFI_ASSIGN_OR_RETURN(Resampling how, ReadResampling(lowering));
  ONNXIFI_RETURN_IF_ERROR(CheckType(lowering, how));
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<ResizedAxis> axes, NamedAxes(lowering));
  if (lowering.version() >= 9) {
    ONNXIFI_RETURN_IF_ERROR(ScaleByInput(lowering, 1, axes));
  } else {
    std::vector<float> scales;
    if (const std::vector<float>* given = lowering.Floats("scales")) scales = *given;
    if (lowering.version() < 7) {
      scales = {1, 1, lowering.Float("height_scale", 1), lowering.Float("width_scale", 1)};
    }
    if (scales.size() != axes.size()) {
      return lowering.InvalidModel(std::to_string(scales.size()) + " scales are given for " +
                                   std::to_string(axes.size()) + " axes.");
    }
    for (size_t k = 0; k < axes.size(); ++k) {
      ONNXIFI_RETURN_IF_ERROR(SetScale(lowering, scales[k], axes[k]));
    }
  }

  lowering.Set(0, ResampleChanged(lowering, axes, how));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Resize", 19, LowerResize, "", InputKinds::kStrings},
    {"Upsample", 10, LowerUpsample, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> ResizeOperators() { return kOperators; }

}  // namespace onnxifi::ops
