// SPDX-License-Identifier: Apache-2.0
//
// GridSample, AffineGrid: sampling at positions that are data, and the positions of an affine
// transformation. Positions and weights are worked out once per point, for all channels.

#include <algorithm>

#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"

namespace onnxifi::ops {
namespace {

enum class Padding : uint8_t { kZeros, kBorder, kReflection };

// One spatial axis of the input, as the elements taken around a sampling point and their weights.
struct SampledAxis {
  std::vector<Expr> positions;  // int64
  std::vector<Expr> weights;    // none where there is one position
};

// Mirrors at both ends of [lowest, highest] until within: a triangle wave of period 2 (highest -
// lowest).
Expr Reflect(Expr x, Expr lowest, Expr highest) {
  const Expr range = highest - lowest;
  const Expr period = range + range;
  const Expr within = Binary(ExprOp::kMod, x - lowest, period);
  return Select(range > Like(x, 0), lowest + Minimum(within, period - within), lowest);
}

// The weights of Keys' cubic convolution (a = -0.75) for the distances t + 1, t, 1 - t, 2 - t.
std::vector<Expr> CubicWeights(Expr t) {
  constexpr double kA = -0.75;
  auto near = [&](Expr d) {
    return ((Like(d, kA + 2) * d - Like(d, kA + 3)) * d) * d + Like(d, 1);
  };
  auto far = [&](Expr d) {
    return ((Like(d, kA) * d - Like(d, 5 * kA)) * d + Like(d, 8 * kA)) * d - Like(d, 4 * kA);
  };
  const Expr one = Like(t, 1);
  return {far(t + one), near(t), near(one - t), far(Like(t, 2) - t)};
}

// `normal`: the grid's coordinate in [-1, 1]; `extent`: of the input's axis.
SampledAxis SampleAxis(StepBuilder& map, std::string_view mode, Padding padding,
                       bool aligns_corners, Expr normal, Dim extent) {
  const ElementType type = normal.type();
  const Expr half = Like(normal, 0.5);
  const Expr one = Like(normal, 1);
  const Expr size = Cast(map.Extent(extent), type);
  const Expr lowest = Like(normal, aligns_corners ? 0.0 : -0.5);
  const Expr highest = aligns_corners ? size - one : size - half;
  Expr x =
      aligns_corners ? (normal + one) * half * (size - one) : ((normal + one) * size - one) * half;
  if (mode == "nearest") x = Unary(ExprOp::kRoundEven, x);
  const Expr is_outside = x < lowest || x > highest;
  // Cubic weights are those of the point itself, however far outside, as PyTorch and ONNX Runtime
  // have it; the elements that they are for are the border's.
  if (padding == Padding::kBorder && mode != "cubic") {
    x = Select(is_outside, Maximum(Like(x, 0), Minimum(x, size - one)), x);
  } else if (padding == Padding::kReflection) {
    x = Select(is_outside, Reflect(x, lowest, highest), x);
  }

  SampledAxis axis;
  const Expr base = Unary(ExprOp::kFloor, x);
  const Expr t = x - base;
  int64_t first = 0;
  if (mode == "linear") {
    axis.weights = {one - t, t};
  } else if (mode == "cubic") {
    axis.weights = CubicWeights(t);
    first = -1;
  }
  for (size_t k = 0; k < std::max<size_t>(1, axis.weights.size()); ++k) {
    Expr position = Cast(base, ElementType::kInt64) + map.Extent(first + static_cast<int64_t>(k));
    if (padding == Padding::kBorder) {
      position = Maximum(map.Extent(0), Minimum(position, map.Extent(extent - 1)));
    } else if (padding == Padding::kReflection) {
      position = Cast(Reflect(Cast(position, type), lowest, highest), ElementType::kInt64);
    }
    axis.positions.push_back(position);
  }
  return axis;
}

// Computes the expressions once per point into tables of their own, and reads these in `map`, whose
// domain is that of the points and an axis of channels behind them.
void ReadPerPoint(Lowering& lowering, StepBuilder& points, StepBuilder& map,
                  const std::vector<std::vector<Expr>*>& computed) {
  std::vector<Operand> tables;
  std::vector<Expr> values;
  for (const std::vector<Expr>* each : computed) {
    values.insert(values.end(), each->begin(), each->end());
  }
  for (const Expr& value : values) {
    tables.push_back(lowering.Temporary(value.type(), points.domain()));
  }
  points.WriteMapTo(tables, values);
  size_t next = 0;
  for (std::vector<Expr>* each : computed) {
    for (Expr& value : *each) {
      const Operand& table = tables[next++];
      value = map.Read(program::InsertAxis(table, table.rank()));
    }
  }
}

// Adds the elements around a point to `sum`, each times one weight: those of all combinations of
// the axes from `axis` on, at the coordinates and with the weight chosen for those before, which
// the channel follows.
void AddWeighted(const GuardedSource& x, const std::vector<SampledAxis>& axes, size_t axis,
                 std::vector<Expr>& at, std::optional<Expr> weight, Expr channel, Expr& sum) {
  if (axis == axes.size()) {
    at.push_back(channel);
    sum = sum + *weight * Cast(x.At(at), sum.type());
    at.pop_back();
    return;
  }
  for (size_t k = 0; k < axes[axis].positions.size(); ++k) {
    const Expr own = axes[axis].weights[k];
    at.push_back(axes[axis].positions[k]);
    AddWeighted(x, axes, axis + 1, at, weight ? *weight * own : own, channel, sum);
    at.pop_back();
  }
}

// What lies at a point, in a type of arithmetic where there are weights.
Expr Interpolate(StepBuilder& map, const GuardedSource& x, const std::vector<SampledAxis>& axes,
                 Expr channel) {
  std::vector<Expr> at = {map.Coordinate(0)};
  if (axes[0].weights.empty()) {
    for (const SampledAxis& axis : axes) at.push_back(axis.positions[0]);
    at.push_back(channel);
    return x.At(at);
  }
  Expr sum = Like(axes[0].weights[0], 0);
  AddWeighted(x, axes, 0, at, std::nullopt, channel, sum);
  return sum;
}

Result<Padding> PaddingMode(Lowering& lowering) {
  const std::string name = lowering.String("padding_mode", "zeros");
  if (name == "zeros") return Padding::kZeros;
  if (name == "border") return Padding::kBorder;
  if (name == "reflection") return Padding::kReflection;
  return lowering.UnsupportedAttribute("padding_mode '" + name +
                                       "' is not zeros, border or reflection.");
}

// X[N, C, spatial], grid[N, out spatial, r] -> [N, C, out spatial]; the grid names the axes last
// first.
Status LowerGridSample(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& x = lowering.In(0);
  const Operand& grid = lowering.In(1);
  const int spatial_rank = x.rank() - 2;
  if (spatial_rank < 1 || spatial_rank > 3 || grid.rank() != x.rank()) {
    return lowering.UnsupportedShape("X and grid have " + std::to_string(x.rank()) + " and " +
                                     std::to_string(grid.rank()) +
                                     " axes; equal numbers from 3 to 5 are supported.");
  }
  std::string mode = lowering.String("mode", lowering.version() < 20 ? "bilinear" : "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  if (mode != "linear" && mode != "cubic" && mode != "nearest") {
    return lowering.UnsupportedAttribute("mode '" + mode + "' is not linear, cubic or nearest.");
  }
  const bool is_number = tensor::IsFloat(x.type()) || tensor::IsInteger(x.type());
  if (!is_number || (mode != "nearest" && !tensor::IsFloat(x.type()))) {
    return lowering.UnsupportedType(0);
  }
  if (!tensor::IsFloat(grid.type())) return lowering.UnsupportedType(1);
  ONNXIFI_ASSIGN_OR_RETURN(const Padding padding, PaddingMode(lowering));
  ONNXIFI_RETURN_IF_ERROR(
      lowering.RequireEqual(x.shape[0], grid.shape[0], "The batches of X and grid"));
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(
      grid.shape.back(), spatial_rank, "The last extent of grid and the spatial axes of X"));
  const bool aligns_corners = lowering.Int("align_corners", 0) != 0;

  // Of many channels those of a point are read and written together.
  constexpr int64_t kMinTogether = 8;
  const Dim channels = x.shape[1];
  const bool is_together = !channels.is_constant() || channels.constant() >= kMinTogether;

  // Where points lie is worked out once for all channels: of many, or of what is not sampled in
  // float32, before all else; of few, kernels keep it in registers.
  Shape shape(grid.shape.begin(), grid.shape.end() - 1);
  const Shape point_shape = shape;
  shape.push_back(x.shape[1]);
  StepBuilder map(lowering, shape);
  const bool is_in_one = !is_together && mode != "nearest" && x.type() == ElementType::kFloat32;
  std::optional<StepBuilder> before;
  if (!is_in_one) before.emplace(lowering, point_shape);
  StepBuilder& points = is_in_one ? map : *before;
  std::vector<SampledAxis> axes;
  for (int axis = 0; axis < spatial_rank; ++axis) {
    const Operand component =
        IndexColumn(grid, spatial_rank - 1 - axis, /*trailing=*/is_in_one ? 1 : 0);
    const Expr normal = points.ReadArithmetic(component);
    axes.push_back(SampleAxis(points, mode, padding, aligns_corners, normal, x.shape[2 + axis]));
  }
  if (!is_in_one) {
    std::vector<std::vector<Expr>*> computed;
    for (SampledAxis& axis : axes) {
      computed.push_back(&axis.positions);
      computed.push_back(&axis.weights);
    }
    ReadPerPoint(lowering, points, map, computed);
  }

  // Axes of an image as points have them, the channels last.
  std::vector<int> channels_last = {0}, channels_first = {0, spatial_rank + 1};
  for (int axis = 1; axis <= spatial_rank; ++axis) {
    channels_last.push_back(axis + 1);
    channels_first.push_back(axis);
  }
  channels_last.push_back(1);
  Operand image = program::Permute(x, channels_last);
  if (is_together) image = lowering.Dense(image);
  std::vector<int> checked;
  for (int axis = 0; axis < spatial_rank; ++axis) checked.push_back(1 + axis);
  const GuardedSource source(map, image, checked);
  const Expr value = Interpolate(map, source, axes, map.Coordinate(spatial_rank + 1));
  Operand out;
  if (is_together) {
    out = lowering.Temporary(x.type(), shape);
    lowering.Set(0, program::Permute(out, channels_first));
  } else {
    Shape plain;
    for (int axis : channels_first) plain.push_back(shape[static_cast<size_t>(axis)]);
    const Operand result = lowering.Temporary(x.type(), plain);
    lowering.Set(0, result);
    out = program::Permute(result, channels_last);
  }
  map.WriteMapTo({out}, {Cast(value, x.type())});
  return base::Ok();
}

// The points of an axis of the grid, in [-1, 1]: the middles of as many equal parts, or both ends
// and what divides the way between them.
Operand AxisPoints(Lowering& lowering, Dim extent, bool aligns_corners, ElementType type) {
  StepBuilder map(lowering, {extent});
  const Expr position = Cast(map.Coordinate(0), type);
  const Expr count = Cast(map.Extent(extent), type);
  const Expr one = Like(position, 1);
  const Expr two = Like(position, 2);
  Expr base = (two * position + one) / count - one;
  if (aligns_corners) {
    base = Select(count == one, -one, two * position / (count - one) - one);
  }
  return map.WriteMap(base, type);
}

// grid[n, spatial.., i] = sum over j of theta[n, i, j] * base[j], where base names the axes last
// first and ends in 1.
Status LowerAffineGrid(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& theta = lowering.In(0);
  if (!tensor::IsFloat(theta.type())) return lowering.UnsupportedType(0);
  std::optional<int64_t> count;  // batch, channels, and the axes that theta moves
  if (theta.rank() == 3 && theta.shape[1].is_constant()) count = 2 + theta.shape[1].constant();
  ONNXIFI_ASSIGN_OR_RETURN(Shape size, lowering.IntegersOrRuntime(1, count));
  const int spatial_rank = static_cast<int>(size.size()) - 2;
  if (theta.rank() != 3 || (spatial_rank != 2 && spatial_rank != 3)) {
    return lowering.InvalidModel("theta has " + std::to_string(theta.rank()) +
                                 " axes instead of 3, or size " + std::to_string(size.size()) +
                                 " elements instead of 4 or 5.");
  }
  for (Dim& extent : size) {
    ONNXIFI_ASSIGN_OR_RETURN(extent, AsExtent(lowering, extent));
  }
  ONNXIFI_RETURN_IF_ERROR(
      lowering.RequireEqual(theta.shape[0], size[0], "The batches of theta and size"));
  ONNXIFI_RETURN_IF_ERROR(
      lowering.RequireEqual(theta.shape[1], spatial_rank, "The rows of theta and spatial axes"));
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(theta.shape[2], spatial_rank + 1,
                                                "The columns of theta and spatial axes plus 1"));
  const bool aligns_corners = lowering.Int("align_corners", 0) != 0;

  // Where the axes' points lie, once for all of them.
  const ElementType type = tensor::ArithmeticType(theta.type());
  std::vector<Operand> bases;
  for (int axis = 0; axis < spatial_rank; ++axis) {
    bases.push_back(AxisPoints(lowering, size[2 + axis], aligns_corners, type));
    for (int k = axis + 1; k < spatial_rank; ++k) {
      bases.back() = program::InsertAxis(bases.back(), bases.back().rank());
    }
  }
  Shape points = {size[0]};
  points.insert(points.end(), size.begin() + 2, size.end());
  Shape shape = points;
  shape.push_back(spatial_rank);
  const Operand grid = lowering.Temporary(theta.type(), shape);
  for (int row = 0; row < spatial_rank; ++row) {
    StepBuilder map(lowering, points);
    const auto element = [&](int column) {
      Operand values = IndexColumn(IndexColumn(theta, column, /*trailing=*/0), row, /*trailing=*/0);
      for (int axis = 0; axis < spatial_rank; ++axis) values = program::InsertAxis(values, 1);
      return map.ReadArithmetic(values);
    };
    Expr sum = element(spatial_rank);
    for (int column = 0; column < spatial_rank; ++column) {
      sum = sum + element(column) * map.Read(bases[spatial_rank - 1 - column]);
    }
    map.WriteMapTo({IndexColumn(grid, row, /*trailing=*/0)}, {Cast(sum, theta.type())});
  }
  lowering.Set(0, grid);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"GridSample", 22, LowerGridSample},
    {"AffineGrid", 20, LowerAffineGrid},
};

}  // namespace

std::span<const Operator> GridSampleOperators() { return kOperators; }

}  // namespace onnxifi::ops
