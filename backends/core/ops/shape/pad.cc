// SPDX-License-Identifier: Apache-2.0
//
// Pad: with a fill value known now a guarded view; otherwise a Map that reads at positions folded
// back into the input.

#include <algorithm>

#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"

namespace onnxifi::ops {
namespace {

struct Amounts {
  Dims before;  // per axis; negative crops
  Dims after;
};

Result<Amounts> PadAmounts(Lowering& lowering) {
  const int rank = lowering.In(0).rank();
  Dims pads;
  if (lowering.version() >= 11) {
    ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
    ONNXIFI_ASSIGN_OR_RETURN(pads, lowering.IntegersOrRuntime(1));
  } else if (const std::vector<int64_t>* given =
                 lowering.Ints(lowering.version() < 2 ? "paddings" : "pads")) {
    pads = ToDims(*given);
  }
  ONNXIFI_ASSIGN_OR_RETURN(AxisList axes, AxisList::FromInput(lowering, 3, rank, rank));
  if (static_cast<int>(pads.size()) != 2 * axes.size()) {
    return lowering.InvalidModel("pads has " + std::to_string(pads.size()) + " elements for " +
                                 std::to_string(axes.size()) + " axes; two each are needed.");
  }
  const Dims starts(pads.begin(), pads.begin() + axes.size());
  const Dims ends(pads.begin() + axes.size(), pads.end());
  Amounts amounts;
  for (int axis = 0; axis < rank; ++axis) {
    amounts.before.push_back(axes.ValueAt(axis, starts, 0));
    amounts.after.push_back(axes.ValueAt(axis, ends, 0));
  }
  return amounts;
}

// The fill value when it is known now: the attribute of the first opsets, a constant, or nothing at
// all.
std::optional<tensor::Scalar> KnownFill(const Lowering& lowering) {
  const ElementType type = lowering.In(0).type();
  if (type == ElementType::kString) return std::nullopt;  // Its number is the program's.
  if (!lowering.Has(2)) {
    const tensor::Scalar value{.f = lowering.Float("value", 0.0f)};
    return CastScalar(ElementType::kFloat64, type, value);
  }
  const tensor::Tensor* constant = lowering.SmallConstant(2);
  if (constant == nullptr || constant->element_count() != 1) return std::nullopt;
  return LoadScalar(type, constant->data(), 0);
}

// The fill value as a scalar: without one, strings are filled with the empty string.
Operand Fill(Lowering& lowering) {
  if (lowering.Has(2)) return lowering.Reshaped(lowering.In(2), {});
  return lowering.ConstantTensor(*tensor::Tensor::Allocate(lowering.In(0).type(), {}));
}

// Where position x outside [0, d) of a padded axis takes its element from.
Expr Folded(StepBuilder& map, std::string_view mode, Expr x, Dim d) {
  const Expr zero = map.Extent(0);
  if (mode == "edge") return Maximum(zero, Minimum(x, map.Extent(d - 1)));
  if (mode == "wrap") return Binary(ExprOp::kMod, x, map.Extent(d));
  // Reflection without repeating the edge has the period 2 (d - 1); one element reflects to itself.
  const Expr period = map.Extent(Max(1, Dim(2) * (d - 1)));
  const Expr within = Binary(ExprOp::kMod, x, period);
  return Minimum(within, map.Extent(Max(0, Dim(2) * (d - 1))) - within);
}

Status LowerPad(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const std::string mode = lowering.String("mode", "constant");
  const std::string_view modes[] = {"constant", "reflect", "edge", "wrap"};
  if (std::find(std::begin(modes), std::end(modes), mode) == std::end(modes)) {
    return lowering.UnsupportedAttribute("mode '" + mode +
                                         "' is not constant, reflect, edge or wrap.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(Amounts pads, PadAmounts(lowering));
  const Operand& data = lowering.In(0);
  if (lowering.Has(2)) {
    if (lowering.In(2).type() != data.type()) return lowering.UnsupportedType(2);
    ONNXIFI_RETURN_IF_ERROR(lowering.Require(Equal(Product(lowering.In(2).shape), 1),
                                             Code::kInvalidModel,
                                             "The fill value is not one element."));
  }
  Shape shape;
  for (int axis = 0; axis < data.rank(); ++axis) {
    const Dim extent = data.shape[axis] + pads.before[axis] + pads.after[axis];
    ONNXIFI_ASSIGN_OR_RETURN(Dim checked, AsExtent(lowering, extent));
    shape.push_back(checked);
  }

  const std::optional<tensor::Scalar> fill = KnownFill(lowering);
  if (mode == "constant" && fill) {
    std::optional<Operand> padded = program::Pad(data, pads.before, pads.after, *fill);
    if (!padded) padded = program::Pad(lowering.Dense(data), pads.before, pads.after, *fill);
    lowering.Set(0, {padded->view, shape});
    return base::Ok();
  }
  StepBuilder map(lowering, shape);
  std::vector<Expr> at;
  Expr is_inside = map.Extent(0) == map.Extent(0);
  for (int axis = 0; axis < data.rank(); ++axis) {
    const Expr x = map.Coordinate(axis) - map.Extent(pads.before[axis]);
    const Dim d = data.shape[axis];
    at.push_back(mode == "constant" ? x : Folded(map, mode, x, d));
    is_inside = is_inside && map.Extent(0) <= x && x < map.Extent(d);
  }
  Expr value = map.ReadAt(data, at);
  if (mode == "constant") {
    value = Select(is_inside, value, map.Read(Fill(lowering)));
  }
  lowering.Set(0, map.WriteMap(value, data.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Pad", 25, LowerPad, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> PadOperators() { return kOperators; }

}  // namespace onnxifi::ops
