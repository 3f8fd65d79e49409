// SPDX-License-Identifier: Apache-2.0
//
// Col2Im: each pixel sums the columns whose blocks cover it, so that no two threads add to one
// pixel: of blocks of known extents a Map for each remainder of the strides, or one for all
// where these are many; of others a Reduce over all positions within a block.

#include <optional>

#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"
#include "backends/core/ops/window/sliding.h"

namespace onnxifi::ops {
namespace {

// The declared rank of the result, [N, C, image], tells how many extents there are.
Result<Shape> ExtentsFrom(Lowering& lowering, int input) {
  std::optional<int64_t> count = lowering.DeclaredRank(0);
  if (count) *count -= 2;
  ONNXIFI_ASSIGN_OR_RETURN(Shape extents, lowering.IntegersOrRuntime(input, count));
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
  // The input by all of its axes: [N, C, block, positions].
  Shape Axes() const {
    Shape axes = {input.shape[0], channels};
    axes.insert(axes.end(), block.begin(), block.end());
    axes.insert(axes.end(), sliding.out.begin(), sliding.out.end());
    return axes;
  }
  // [N, C, image]
  Shape Result() const {
    Shape shape = {input.shape[0], channels};
    shape.insert(shape.end(), image.begin(), image.end());
    return shape;
  }
};

// Whether it is known that blocks are without gaps and a pixel is under few of them.
bool HasFewTerms(const Columns& columns) {
  constexpr int64_t kMaxTerms = 16;
  int64_t product = 1;
  for (int axis = 0; axis < columns.rank(); ++axis) {
    const Dim& extent = columns.block[axis];
    const int64_t stride = columns.sliding.strides[axis];
    if (!extent.is_constant() || columns.sliding.dilations[axis] != 1 ||
        columns.sliding.pads_begin[axis].LowerBound() < 0) {
      return false;
    }
    const int64_t blocks = (extent.constant() + stride - 1) / stride;
    if (blocks < 1 || blocks > kMaxTerms / product) return false;
    product *= blocks;
  }
  return true;
}

// The pixels along one axis that leave the same remainder by the stride: the first, and each a
// stride behind. The first one is element `within` of block number `block`.
struct Remainder {
  int64_t within = 0, first = 0, block = 0;
  Dim count;
};

std::vector<Remainder> RemaindersAlong(const Columns& columns, int axis) {
  const int64_t stride = columns.sliding.strides[axis];
  const int64_t pad = columns.sliding.pads_begin[axis].constant();
  std::vector<Remainder> remainders;
  for (int64_t within = 0; within < stride; ++within) {
    Remainder remainder;
    remainder.within = within;
    remainder.block = std::max<int64_t>(0, (pad - within + stride - 1) / stride);
    remainder.first = remainder.block * stride + within - pad;
    remainder.count = Max(0, CeilDiv(columns.image[axis] - remainder.first, stride));
    remainders.push_back(remainder);
  }
  return remainders;
}

// Few Maps, each from a pixel that is known.
bool HasFewRemainders(const Columns& columns) {
  constexpr int64_t kMaxRemainders = 16;
  int64_t product = 1;
  for (int axis = 0; axis < columns.rank(); ++axis) {
    const int64_t stride = columns.sliding.strides[axis];
    if (!columns.sliding.pads_begin[axis].is_constant() || stride > kMaxRemainders / product) {
      return false;
    }
    product *= stride;
  }
  return true;
}

// Calls visit(numbers) for each list of numbers below `ends`, in row-major order.
template <typename Visit>
void ForEachBelow(const std::vector<int64_t>& ends, Visit visit) {
  if (std::ranges::any_of(ends, [](int64_t end) { return end <= 0; })) return;
  std::vector<int64_t> at(ends.size(), 0);
  while (true) {
    visit(at);
    size_t axis = ends.size();
    while (axis > 0 && ++at[axis - 1] == ends[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

// The pixels of one remainder per axis: element w + j * stride of block b - j is added to pixel w
// of block b, for every j.
void SumRemainder(Lowering& lowering, const Columns& columns, const Operand& input,
                  const std::vector<Remainder>& remainders, Operand target) {
  const int rank = columns.rank();
  const ElementType type = columns.input.type();
  std::vector<int64_t> terms;
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t stride = columns.sliding.strides[axis];
    const int64_t left = columns.block[axis].constant() - remainders[axis].within;
    terms.push_back(left <= 0 ? 0 : (left + stride - 1) / stride);
    target =
        program::Slice(target, 2 + axis, remainders[axis].first, stride, remainders[axis].count);
  }
  StepBuilder map(lowering, target.shape);
  std::optional<Expr> sum;
  ForEachBelow(terms, [&](const std::vector<int64_t>& term) {
    Operand part = input;
    for (int axis = 0; axis < rank; ++axis) {
      const int64_t element = remainders[axis].within + term[axis] * columns.sliding.strides[axis];
      part = program::RemoveAxis(program::Slice(part, 2, element, 1, 1), 2);
    }
    // 0 where there is no such block.
    Dims before(2, Dim(0)), after(2, Dim(0));
    for (int axis = 0; axis < rank; ++axis) {
      const int64_t begin = remainders[axis].block - term[axis];
      before.push_back(std::max<int64_t>(0, -begin));
      after.push_back(Max(0, Dim(begin) + remainders[axis].count - part.shape[2 + axis]));
    }
    part = *program::Pad(part, before, after, {});
    for (int axis = 0; axis < rank; ++axis) {
      const int64_t begin = remainders[axis].block - term[axis];
      part = program::Slice(part, 2 + axis, std::max<int64_t>(0, begin), 1, remainders[axis].count);
    }
    const Expr value = Cast(map.ReadView(part.view), tensor::ArithmeticType(type));
    sum = sum ? *sum + value : value;
  });
  if (!sum) sum = Constant(map.exprs(), tensor::ArithmeticType(type), 0);
  map.WriteMapTo({target}, {Cast(*sum, type)});
}

Operand SumRemainders(Lowering& lowering, const Columns& columns) {
  const Operand& given = columns.input;
  // Without guards, since its own are those of another fill, maybe.
  const Operand input =
      lowering.Reshaped(given.view.guards.empty() ? given : lowering.Dense(given), columns.Axes());
  std::vector<std::vector<Remainder>> remainders;
  std::vector<int64_t> counts;
  for (int axis = 0; axis < columns.rank(); ++axis) {
    remainders.push_back(RemaindersAlong(columns, axis));
    counts.push_back(static_cast<int64_t>(remainders.back().size()));
  }
  const Operand result = lowering.Temporary(given.type(), columns.Result());
  ForEachBelow(counts, [&](const std::vector<int64_t>& number) {
    std::vector<Remainder> of_axes;
    for (size_t axis = 0; axis < remainders.size(); ++axis) {
      of_axes.push_back(remainders[axis][static_cast<size_t>(number[axis])]);
    }
    SumRemainder(lowering, columns, input, of_axes, result);
  });
  return result;
}

// Where strides have many remainders: along an axis a pixel at x lies at `within` of the block that
// begins at or before it, number `block`; at within + stride of the one before that; and so on.
Operand SumCovering(Lowering& lowering, const Columns& columns) {
  const int rank = columns.rank();
  const ElementType type = columns.input.type();
  const Operand input = lowering.Reshaped(columns.input, columns.Axes());
  StepBuilder map(lowering, columns.Result());
  std::vector<Expr> within, block;
  for (int axis = 0; axis < rank; ++axis) {
    const Expr x = map.Coordinate(2 + axis) + map.Extent(columns.sliding.pads_begin[axis]);
    const Expr stride = map.Extent(columns.sliding.strides[axis]);
    within.push_back(Binary(ExprOp::kMod, x, stride));
    block.push_back(x / stride);
  }
  std::vector<int64_t> terms;
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t stride = columns.sliding.strides[axis];
    terms.push_back((columns.block[axis].constant() + stride - 1) / stride);
  }
  std::optional<Expr> sum;
  ForEachBelow(terms, [&](const std::vector<int64_t>& term) {
    std::vector<Expr> at = {map.Coordinate(0), map.Coordinate(1)};
    for (int axis = 0; axis < rank; ++axis) {
      const int64_t stride = columns.sliding.strides[axis];
      at.push_back(within[axis] + map.Extent(term[axis] * stride));
    }
    for (int axis = 0; axis < rank; ++axis) at.push_back(block[axis] - map.Extent(term[axis]));
    // 0 where there is no such place in a block, or no such block.
    const Expr value = Cast(map.ReadAt(input, at), tensor::ArithmeticType(type));
    sum = sum ? *sum + value : value;
  });
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
  if (!HasFewTerms(columns)) {
    lowering.Set(0, SumBlocks(lowering, columns));
  } else if (HasFewRemainders(columns)) {
    lowering.Set(0, SumRemainders(lowering, columns));
  } else {
    lowering.Set(0, SumCovering(lowering, columns));
  }
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Col2Im", 18, LowerCol2Im},
};

}  // namespace

std::span<const Operator> Col2ImOperators() { return kOperators; }

}  // namespace onnxifi::ops
