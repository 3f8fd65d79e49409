// SPDX-License-Identifier: Apache-2.0
//
// Col2Im: each pixel sums the columns whose blocks cover it, so that no two threads add to one
// pixel: of blocks of known extents a Map, of others a Reduce over all positions within a block.

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

struct Columns {
  Operand input;  // [N, C * block, L]
  Shape image, block;
  Dim channels;
  Sliding sliding;

  int rank() const { return static_cast<int>(image.size()); }
  // [N, C, image]
  Shape Result() const {
    Shape shape = {input.shape[0], channels};
    shape.insert(shape.end(), image.begin(), image.end());
    return shape;
  }
};

// Per axis the most blocks that cover a pixel, where these numbers are known, blocks are without
// gaps and a pixel is under few of them.
std::optional<Shape> CoveringBlocks(const Columns& columns) {
  constexpr int64_t kMaxBlocks = 16;
  Shape covering;
  int64_t product = 1;
  for (int axis = 0; axis < columns.rank(); ++axis) {
    const Dim& extent = columns.block[axis];
    const int64_t stride = columns.sliding.strides[axis];
    if (!extent.is_constant() || columns.sliding.dilations[axis] != 1 ||
        columns.sliding.pads_begin[axis].LowerBound() < 0) {
      return std::nullopt;
    }
    const int64_t blocks = (extent.constant() + stride - 1) / stride;
    if (blocks < 1 || blocks > kMaxBlocks / product) return std::nullopt;
    product *= blocks;
    covering.emplace_back(blocks);
  }
  return covering;
}

// Along an axis a pixel at x lies at `within` of the block that begins at or before it, number
// `block`; at within + stride of the one before that; and so on.
Operand SumCovering(Lowering& lowering, const Columns& columns, const Shape& covering) {
  const int rank = columns.rank();
  const ElementType type = columns.input.type();
  // The input by all of its axes: [N, C, block, positions].
  Shape axes = {columns.input.shape[0], columns.channels};
  axes.insert(axes.end(), columns.block.begin(), columns.block.end());
  axes.insert(axes.end(), columns.sliding.out.begin(), columns.sliding.out.end());
  const Operand input = lowering.Reshaped(columns.input, axes);
  StepBuilder map(lowering, columns.Result());
  std::vector<Expr> within, block;
  for (int axis = 0; axis < rank; ++axis) {
    const Expr x = map.Coordinate(2 + axis) + map.Extent(columns.sliding.pads_begin[axis]);
    const Expr stride = map.Extent(columns.sliding.strides[axis]);
    within.push_back(Binary(ExprOp::kMod, x, stride));
    block.push_back(x / stride);
  }
  std::optional<Expr> sum;
  std::vector<int64_t> step(static_cast<size_t>(rank), 0);
  for (bool is_done = false; !is_done;) {
    std::vector<Expr> at = {map.Coordinate(0), map.Coordinate(1)};
    for (int axis = 0; axis < rank; ++axis) {
      const int64_t stride = columns.sliding.strides[axis];
      at.push_back(within[axis] + map.Extent(step[axis] * stride));
    }
    for (int axis = 0; axis < rank; ++axis) at.push_back(block[axis] - map.Extent(step[axis]));
    // 0 where there is no such place in a block, or no such block.
    const Expr value = Cast(map.ReadAt(input, at), tensor::ArithmeticType(type));
    sum = sum ? *sum + value : value;
    is_done = true;
    for (int axis = rank; axis-- > 0 && is_done;) {
      is_done = ++step[axis] == covering[axis].constant();
      if (is_done) step[axis] = 0;
    }
  }
  return map.WriteMap(*sum, type);
}

// The general form.
Operand SumBlocks(Lowering& lowering, const Columns& columns) {
  const int rank = columns.rank();
  const ElementType type = columns.input.type();
  const Sliding& sliding = columns.sliding;
  const Shape out_shape = columns.Result();
  Shape domain = out_shape;
  domain.insert(domain.end(), columns.block.begin(), columns.block.end());
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
    row = row * step.Extent(columns.block[axis]) + within;
    column = column * step.Extent(sliding.out[axis]) + position;
  }
  const ElementType accumulator = tensor::ArithmeticType(type);
  Expr value = Cast(step.ReadAt(columns.input, {step.Coordinate(0), row, column}), accumulator);
  Expr sum = State(step.exprs(), accumulator, 0);
  program::Reduce reduce;
  reduce.axes = rank;
  reduce.reduction.states = {{accumulator, Like(value, 0).id(),
                              (sum + Select(is_covered, value, Like(value, 0))).id(),
                              (sum + Other(step.exprs(), accumulator, 0)).id()}};
  reduce.roots = {Cast(sum, type).id()};
  const Operand out = lowering.Temporary(type, out_shape);
  step.Finish(std::move(reduce), {out.view});
  return out;
}

// input[N, C * block, L] -> out[N, C, image]; L counts the block positions in the padded image,
// row-major.
Status LowerCol2Im(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
  const Operand& input = lowering.In(0);
  if (!tensor::IsFloat(input.type()) && !tensor::IsInteger(input.type())) {
    return lowering.UnsupportedType(0);
  }
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

  const Columns columns = {input, image, block, channels, std::move(sliding)};
  const std::optional<Shape> covering = CoveringBlocks(columns);
  lowering.Set(0,
               covering ? SumCovering(lowering, columns, *covering) : SumBlocks(lowering, columns));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Col2Im", 18, LowerCol2Im},
};

}  // namespace

std::span<const Operator> Col2ImOperators() { return kOperators; }

}  // namespace onnxifi::ops
