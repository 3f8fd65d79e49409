// SPDX-License-Identifier: Apache-2.0
//
// MaxUnpool: the values scattered to flat positions of a tensor of zeros, then cropped or padded to
// a wanted output shape.

#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"
#include "backends/core/ops/window/sliding.h"

namespace onnxifi::ops {
namespace {

Status LowerMaxUnpool(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& x = lowering.In(0);
  const Operand& positions = lowering.In(1);
  if (!tensor::IsInteger(positions.type())) return lowering.UnsupportedType(1);
  if (positions.rank() != x.rank()) {
    return lowering.InvalidModel("X and I have " + std::to_string(x.rank()) + " and " +
                                 std::to_string(positions.rank()) + " axes; they must agree.");
  }
  for (int axis = 0; axis < x.rank(); ++axis) {
    ONNXIFI_RETURN_IF_ERROR(
        lowering.RequireEqual(x.shape[axis], positions.shape[axis],
                              "Extents of axis " + std::to_string(axis) + " of X and I"));
  }
  ONNXIFI_ASSIGN_OR_RETURN(Shape in, SpatialExtents(lowering, /*lead=*/2));
  ONNXIFI_ASSIGN_OR_RETURN(Shape kernel, KernelShape(lowering, static_cast<int>(in.size())));
  ONNXIFI_ASSIGN_OR_RETURN(const Sliding sliding, ReadSlidingAttributes(lowering, in, kernel));

  // (in - 1) * stride - pads + kernel, per spatial axis.
  Shape shape = {x.shape[0], x.shape[1]};
  for (int axis = 0; axis < sliding.rank(); ++axis) {
    shape.push_back(Max(0, (in[axis] - 1) * Dim(sliding.strides[axis]) + kernel[axis] -
                               sliding.pads_begin[axis] - sliding.pads_end[axis]));
  }
  const Operand result = lowering.Temporary(x.type(), shape);
  StepBuilder zeros(lowering, shape);
  zeros.WriteMapTo({result}, {Constant(zeros.exprs(), x.type(), 0)});
  program::Index index;
  index.kind = program::Index::Kind::kScatter;
  index.target = {Product(shape)};
  StepBuilder scatter(lowering, x.shape);
  scatter.AddRead(x.view);
  scatter.AddRead(lowering.CastTo(positions, ElementType::kInt64).view);
  scatter.Finish(std::move(index),
                 {program::DenseView(result.view.buffer, x.type(), {Product(shape)})});
  if (!lowering.Has(2)) {
    lowering.Set(0, result);
    return base::Ok();
  }

  ONNXIFI_ASSIGN_OR_RETURN(Dims wanted, lowering.IntegersOrRuntime(2, lowering.In(0).rank()));
  if (static_cast<int>(wanted.size()) != x.rank()) {
    return lowering.InvalidModel("output_shape has " + std::to_string(wanted.size()) +
                                 " elements for " + std::to_string(x.rank()) + " axes.");
  }
  Dims after;
  for (int axis = 0; axis < x.rank(); ++axis) {
    ONNXIFI_ASSIGN_OR_RETURN(wanted[axis], AsExtent(lowering, wanted[axis]));
    after.push_back(wanted[axis] - shape[axis]);
  }
  const Dims before(x.rank(), Dim(0));
  lowering.Set(0, {program::Pad(result, before, after, {.u = 0})->view, wanted});
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"MaxUnpool", 22, LowerMaxUnpool},
};

}  // namespace

std::span<const Operator> MaxUnpoolOperators() { return kOperators; }

}  // namespace onnxifi::ops
