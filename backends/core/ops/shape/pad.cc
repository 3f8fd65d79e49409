// SPDX-License-Identifier: Apache-2.0
//
// Pad: with a fill value known now a guarded view; otherwise Maps: what is inside is copied, and
// borders read at positions folded back into the input.

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
  if (lowering.version() >= 11) ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  ONNXIFI_ASSIGN_OR_RETURN(AxisList axes, AxisList::FromInput(lowering, 3, rank, rank));
  Dims pads;
  if (lowering.version() >= 11) {
    ONNXIFI_ASSIGN_OR_RETURN(pads, lowering.IntegersOrRuntime(1, 2 * axes.size()));
  } else if (const std::vector<int64_t>* given =
                 lowering.Ints(lowering.version() < 2 ? "paddings" : "pads")) {
    pads = ToDims(*given);
  }
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
  if (tensor::IsComplex(type)) {                          // A view's fill has no imaginary part.
    return lowering.Has(2) ? std::nullopt : std::optional(tensor::Scalar{.f = 0});
  }
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

// How positions beyond an axis of `extent` elements fold back into it. Where no border is as long
// as that, they do so once at most, which takes no division.
struct Border {
  std::string_view mode;
  Dim extent;
  bool is_once;

  Border(std::string_view mode, const Amounts& pads, size_t axis, Dim extent)
      : mode(mode),
        extent(extent),
        is_once(std::max(pads.before[axis].UpperBound(), pads.after[axis].UpperBound()) <
                extent.LowerBound()) {}

  // Where position x takes its element from.
  Expr PositionOf(StepBuilder& map, Expr x) const {
    const Expr zero = map.Extent(0);
    if (mode == "edge") return Maximum(zero, Minimum(x, map.Extent(extent - 1)));
    const Expr length = map.Extent(extent);
    if (mode == "wrap") {
      if (!is_once) return Binary(ExprOp::kMod, x, length);
      return Select(x < zero, x + length, Select(x < length, x, x - length));
    }
    // Reflection without repeating the edge has the period 2 (extent - 1); one element reflects to
    // itself.
    const Expr last = map.Extent(Max(0, Dim(2) * (extent - 1)));
    const Expr within = is_once
                            ? Maximum(x, -x)
                            : Binary(ExprOp::kMod, x, map.Extent(Max(1, Dim(2) * (extent - 1))));
    return Minimum(within, last - within);
  }
};

// A part of the result along one axis, and along all of them.
struct Part {
  Dim begin, extent;
  bool is_folded;  // has positions beyond the input
};
using Region = std::vector<Part>;

// The input, and what is before and behind it along each axis, for the whole of the axes before.
// Nothing where an axis is cropped, or where there is less to copy than steps for borders take.
std::optional<std::vector<Region>> Regions(const Amounts& pads, const Shape& in,
                                           const Shape& shape) {
  constexpr int64_t kMinElements = int64_t{1} << 14;
  if (tensor::Product(shape).UpperBound() < kMinElements) return std::nullopt;
  const auto is_cropped = [](const Dim& pad) { return pad.LowerBound() < 0; };
  if (std::ranges::any_of(pads.before, is_cropped) || std::ranges::any_of(pads.after, is_cropped)) {
    return std::nullopt;
  }
  Region within;
  for (size_t axis = 0; axis < in.size(); ++axis) {
    within.push_back({pads.before[axis], in[axis], false});
  }
  std::vector<Region> regions = {within};
  for (size_t axis = 0; axis < in.size(); ++axis) {
    const auto append = [&](const Dim& begin, const Dim& extent) {
      if (extent == Dim(0)) return;
      Region region = within;
      for (size_t other = 0; other < axis; ++other) region[other] = {0, shape[other], true};
      region[axis] = {begin, extent, true};
      regions.push_back(std::move(region));
    };
    append(0, pads.before[axis]);
    append(pads.before[axis] + in[axis], pads.after[axis]);
  }
  return regions;
}

void PadRegion(Lowering& lowering, std::string_view mode, const Amounts& pads, const Region& region,
               const Operand& result) {
  const Operand& data = lowering.In(0);
  Operand target = result;
  for (size_t axis = 0; axis < region.size(); ++axis) {
    target =
        program::Slice(target, static_cast<int>(axis), region[axis].begin, 1, region[axis].extent);
  }
  StepBuilder map(lowering, target.shape);
  std::vector<Expr> position;
  bool is_folded = false, is_within = true;
  for (size_t axis = 0; axis < region.size(); ++axis) {
    const Part& part = region[axis];
    const Expr x = map.Coordinate(static_cast<int>(axis));
    const bool is_padded =
        part.is_folded && (pads.before[axis] != Dim(0) || pads.after[axis] != Dim(0));
    is_folded = is_folded || is_padded;
    const Border border(mode, pads, axis, data.shape[axis]);
    is_within = is_within && (!is_padded || border.is_once);  // nothing is within no element
    position.push_back(
        is_padded ? border.PositionOf(map, x + map.Extent(part.begin - pads.before[axis])) : x);
  }
  const auto read = [&] {
    if (!is_folded) return map.Read(data);
    return is_within ? map.ReadAtUnchecked(data, position) : map.ReadAt(data, position);
  };
  map.WriteMapTo({target}, {read()});
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
  if (mode != "constant") {
    if (const std::optional<std::vector<Region>> regions = Regions(pads, data.shape, shape)) {
      const Operand result = lowering.Temporary(data.type(), shape);
      for (const Region& region : *regions) PadRegion(lowering, mode, pads, region, result);
      lowering.Set(0, result);
      return base::Ok();
    }
  }
  StepBuilder map(lowering, shape);
  std::vector<Expr> at;
  Expr is_inside = map.Extent(0) == map.Extent(0);
  for (int axis = 0; axis < data.rank(); ++axis) {
    const Expr x = map.Coordinate(axis) - map.Extent(pads.before[axis]);
    const Dim d = data.shape[axis];
    const Border border(mode, pads, static_cast<size_t>(axis), d);
    at.push_back(mode == "constant" ? x : border.PositionOf(map, x));
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
