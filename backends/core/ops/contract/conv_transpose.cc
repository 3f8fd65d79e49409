// SPDX-License-Identifier: Apache-2.0
//
// ConvTranspose: out = stride * (in - 1) + output_padding + reach - pads, or the pads that give the
// wanted output_shape.

#include "backends/core/ops/contract/product.h"
#include "backends/core/ops/registry.h"
#include "backends/core/ops/window/sliding.h"

namespace onnxifi::ops {
namespace {

// Fills `out` and, where the output's extents are given, the pads. Negative totals leave zeros at
// the end.
Status PlaceOutput(Lowering& lowering, Sliding& sliding) {
  const int rank = sliding.rank();
  ONNXIFI_ASSIGN_OR_RETURN(const std::string auto_pad, AutoPad(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<int64_t> output_padding,
                           PerSpatialAxis(lowering, "output_padding", rank, 0, 0));
  const bool is_given = lowering.HasAttribute("output_shape");
  std::vector<int64_t> output_shape;
  if (is_given) {
    // Exporters write the whole shape or its spatial part.
    const std::vector<int64_t>* given = lowering.Ints("output_shape");
    if (given && static_cast<int>(given->size()) == rank + 2) {
      output_shape.assign(given->begin() + 2, given->end());
    } else {
      ONNXIFI_ASSIGN_OR_RETURN(output_shape, PerSpatialAxis(lowering, "output_shape", rank, 0, 0));
    }
  }
  const bool is_same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  for (int axis = 0; axis < rank; ++axis) {
    const Dim stride = sliding.strides[axis];
    const Dim natural =
        stride * (sliding.in[axis] - 1) + Dim(output_padding[axis]) + sliding.Reach(axis);
    if (!is_given && !is_same) {
      sliding.out.push_back(Max(0, natural - sliding.pads_begin[axis] - sliding.pads_end[axis]));
      continue;
    }
    const Dim out = is_given ? Dim(output_shape[axis]) : sliding.in[axis] * stride;
    const Dim total = Max(0, natural - out);
    const Dim half = FloorDiv(total, 2);
    sliding.pads_begin[axis] = auto_pad == "SAME_UPPER" ? half : total - half;
    sliding.pads_end[axis] = total - sliding.pads_begin[axis];
    sliding.out.push_back(out);
  }
  return base::Ok();
}

// X[N, C, spatial], W[C, M / group, kernel]
Status LowerConvTranspose(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& x = lowering.In(0);
  const Operand& w = lowering.In(1);
  const ElementType type = x.type();
  if (!tensor::IsFloat(type)) return lowering.UnsupportedType(0);
  if (w.type() != type) return lowering.UnsupportedType(1);
  if (x.rank() < 3 || w.rank() != x.rank()) {
    return lowering.InvalidModel("X and W have " + std::to_string(x.rank()) + " and " +
                                 std::to_string(w.rank()) +
                                 " axes; they must have the same number, at least 3.");
  }
  const int64_t group = lowering.Int("group", 1);
  if (group < 1) {
    return lowering.InvalidModel("group (" + std::to_string(group) + ") is less than 1.");
  }
  ONNXIFI_RETURN_IF_ERROR(
      lowering.RequireEqual(x.shape[1], w.shape[0], "The channels of X and of W"));
  ONNXIFI_RETURN_IF_ERROR(
      lowering.Require(Equal(Mod(x.shape[1], group), 0), Code::kMismatchingShape,
                       "The input channels (" + x.shape[1].ToString() +
                           ") are not a multiple of group (" + std::to_string(group) + ").",
                       {x.shape[1]}));
  ONNXIFI_ASSIGN_OR_RETURN(
      Sliding sliding, ReadSlidingAttributes(lowering, Shape(x.shape.begin() + 2, x.shape.end()),
                                             Shape(w.shape.begin() + 2, w.shape.end())));
  ONNXIFI_RETURN_IF_ERROR(PlaceOutput(lowering, sliding));

  Shape shape = {x.shape[0], w.shape[1] * Dim(group)};
  shape.insert(shape.end(), sliding.out.begin(), sliding.out.end());
  StepBuilder step(lowering, shape);
  program::Contract contract;
  contract.form = program::Contract::Form::kConvTranspose;
  contract.inner = {FloorDiv(x.shape[1], group)};
  contract.inner.insert(contract.inner.end(), sliding.kernel.begin(), sliding.kernel.end());
  contract.a_spatial = sliding.in;
  contract.strides = sliding.strides;
  contract.dilations = sliding.dilations;
  contract.pads_begin = sliding.pads_begin;
  contract.group = group;
  Expr value = SumOfProducts(step, {x}, {w}, tensor::ArithmeticType(type), contract);
  if (lowering.Has(2)) {
    if (lowering.In(2).type() != type) return lowering.UnsupportedType(2);
    ONNXIFI_ASSIGN_OR_RETURN(const Operand bias, ChannelVector(lowering, 2, x.rank(), shape[1]));
    value = value + Cast(step.Read(bias), value.type());
  }
  FinishProduct(lowering, step, std::move(contract), Cast(value, type));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"ConvTranspose", 22, LowerConvTranspose},
};

}  // namespace

std::span<const Operator> ConvTransposeOperators() { return kOperators; }

}  // namespace onnxifi::ops
