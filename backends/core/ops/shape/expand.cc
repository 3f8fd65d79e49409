// SPDX-License-Identifier: Apache-2.0
//
// Expand, Tile: repetition along axes as views of stride 0; Tile copies only to merge a repetition
// with its axis.

#include <optional>
#include <string>

#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"

namespace onnxifi::ops {
namespace {

// Where only a run tells how many extents there are, the declared rank of the result does: it is
// their number, or that of the input's axes, of which they are the last ones then.
Result<Dims> GivenExtents(Lowering& lowering) {
  const int rank = lowering.In(0).rank();
  const Operand& given = lowering.In(1);
  std::optional<int64_t> declared = lowering.DeclaredRank(0);
  const bool is_open = given.rank() == 1 && !given.shape[0].is_constant();
  if (!is_open || declared != rank || !tensor::IsSigned(given.type())) {
    if (declared && *declared <= rank) declared.reset();
    return lowering.IntegersOrRuntime(1, declared);
  }
  const Dim count = given.shape[0];
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(Less(count, rank + 1), Code::kMismatchingShape,
                                           "The output is declared with " + std::to_string(rank) +
                                               " axes and has " + count.ToString() + " extents.",
                                           {count}));
  const std::optional<Operand> all =
      program::Pad(lowering.Dense(given), {Max(rank - count, 0)}, {0}, {.i = 1});
  return lowering.ReadAtRunTime(lowering.Dense({all->view, {Dim(rank)}}), rank);
}

Status LowerExpand(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  ONNXIFI_ASSIGN_OR_RETURN(Dims extents, GivenExtents(lowering));
  for (Dim& extent : extents) {
    ONNXIFI_ASSIGN_OR_RETURN(extent, AsExtent(lowering, extent));
  }
  const Operand& input = lowering.In(0);
  ONNXIFI_ASSIGN_OR_RETURN(Shape shape, lowering.Broadcast(input.shape, extents));

  lowering.Set(0, {program::BroadcastTo(input, shape), shape});
  return base::Ok();
}

// Opset 1 repeats one axis: inputs `tiles` and `axis`. Since opset 6, `repeats` has a number for
// each axis.
Result<Dims> Repeats(Lowering& lowering) {
  const int rank = lowering.In(0).rank();
  if (lowering.version() < 6) {
    ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
    ONNXIFI_ASSIGN_OR_RETURN(Dims tiles, WholeNumbers(lowering, 1));
    ONNXIFI_ASSIGN_OR_RETURN(Dims named, WholeNumbers(lowering, 2));
    ONNXIFI_ASSIGN_OR_RETURN(AxisList axes, AxisList::Make(lowering, std::move(named), rank));
    if (tiles.size() != 1 || axes.size() != 1) {
      return lowering.InvalidModel("tiles and axis have " + std::to_string(tiles.size()) + " and " +
                                   std::to_string(axes.size()) + " elements instead of one each.");
    }
    Dims repeats;
    for (int axis = 0; axis < rank; ++axis) repeats.push_back(axes.ValueAt(axis, tiles, 1));
    return repeats;
  }
  ONNXIFI_ASSIGN_OR_RETURN(Dims repeats, lowering.IntegersOrRuntime(1, rank));
  if (static_cast<int>(repeats.size()) != rank) {
    return lowering.InvalidModel("repeats has " + std::to_string(repeats.size()) +
                                 " elements and the input " + std::to_string(rank) + " axes.");
  }
  return repeats;
}

Status LowerTile(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  ONNXIFI_ASSIGN_OR_RETURN(Dims repeats, Repeats(lowering));
  const Operand& input = lowering.In(0);

  // Each axis becomes two, (repeat, extent), where the repeat has stride 0.
  Operand repeated = input;
  Shape shape = input.shape;
  for (int axis = input.rank() - 1; axis >= 0; --axis) {
    ONNXIFI_ASSIGN_OR_RETURN(Dim repeat, AsExtent(lowering, repeats[axis]));
    repeated = program::InsertAxis(repeated, axis);
    repeated.shape[axis] = repeat;
    shape[axis] = shape[axis] * repeat;
  }
  lowering.Set(0, lowering.Reshaped(repeated, shape));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Expand", 13, LowerExpand, "", InputKinds::kStrings},
    {"Tile", 13, LowerTile, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> ExpandOperators() { return kOperators; }

}  // namespace onnxifi::ops
