// SPDX-License-Identifier: Apache-2.0
//
// Col2Im: each pixel sums the columns whose blocks cover it: a Reduce over the positions within a
// block, so that no two threads add to one pixel.

#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"
#include "backends/core/ops/window/sliding.h"

namespace onnxifi::ops {
namespace {

Result<Shape> ExtentsFrom(Lowering& lowering, int input) {
  ONNXIFI_ASSIGN_OR_RETURN(Shape extents, lowering.IntegersOrRuntime(input));
  for (Dim& extent : extents) {
    ONNXIFI_ASSIGN_OR_RETURN(extent, AsExtent(lowering, extent));
  }
  return extents;
}

// input[N, C * block, L] -> out[N, C, image]; L counts the block positions in the padded image,
// row-major.
Status LowerCol2Im(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
  const Operand& input = lowering.In(0);
  const ElementType type = input.type();
  if (!tensor::IsFloat(type) && !tensor::IsInteger(type)) return lowering.UnsupportedType(0);
  if (input.rank() != 3) {
    return lowering.InvalidModel("The input has " + std::to_string(input.rank()) +
                                 " axes instead of 3.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Shape image, ExtentsFrom(lowering, 1));
  ONNXIFI_ASSIGN_OR_RETURN(const Shape block, ExtentsFrom(lowering, 2));
  if (image.empty() || image.size() != block.size()) {
    return lowering.InvalidModel("image_shape and block_shape have " +
                                 std::to_string(image.size()) + " and " +
                                 std::to_string(block.size()) + " elements; they must agree.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(Sliding sliding, MakeSliding(lowering, image, block));
  const Dim block_size = Product(block);
  const Dim channels = FloorDiv(input.shape[1], block_size);
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(channels * block_size, input.shape[1],
                                                "The channels and the multiple of the block"));
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(Product(sliding.out), input.shape[2],
                                                "The block positions and the last extent"));

  const int rank = static_cast<int>(image.size());
  Shape domain = {input.shape[0], channels};
  domain.insert(domain.end(), image.begin(), image.end());
  const Shape out_shape = domain;
  domain.insert(domain.end(), block.begin(), block.end());
  StepBuilder step(lowering, domain);
  const Expr zero = step.Extent(0);
  Expr row = step.Coordinate(1);
  Expr column = zero;
  Expr is_covered = zero == zero;
  for (int axis = 0; axis < rank; ++axis) {
    const Expr within = step.Coordinate(2 + rank + axis);
    const Expr stride = step.Extent(sliding.strides[axis]);
    const Expr from = step.Coordinate(2 + axis) + step.Extent(sliding.pads_begin[axis]) -
                      within * step.Extent(sliding.dilations[axis]);
    const Expr position = from / stride;
    is_covered = is_covered && zero <= from && position * stride == from &&
                 position < step.Extent(sliding.out[axis]);
    row = row * step.Extent(block[axis]) + within;
    column = column * step.Extent(sliding.out[axis]) + position;
  }
  const ElementType accumulator = tensor::ArithmeticType(type);
  Expr value = Cast(step.ReadAt(input, {step.Coordinate(0), row, column}), accumulator);
  Expr sum = State(step.exprs(), accumulator, 0);
  program::Reduce reduce;
  reduce.axes = rank;
  reduce.reduction.states = {{accumulator, Like(value, 0).id(),
                              (sum + Select(is_covered, value, Like(value, 0))).id(),
                              (sum + Other(step.exprs(), accumulator, 0)).id()}};
  reduce.roots = {Cast(sum, type).id()};
  const Operand out = lowering.Temporary(type, out_shape);
  step.Finish(std::move(reduce), {out.view});
  lowering.Set(0, out);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Col2Im", 18, LowerCol2Im},
};

}  // namespace

std::span<const Operator> Col2ImOperators() { return kOperators; }

}  // namespace onnxifi::ops
