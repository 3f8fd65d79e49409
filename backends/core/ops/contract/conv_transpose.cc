// SPDX-License-Identifier: Apache-2.0
//
// ConvTranspose: out = stride * (in - 1) + output_padding + reach - pads, or the pads that give the
// wanted output_shape. Windows of one channel along one axis, as those that join the halves of a
// wavelet or filter sound that is sampled faster, are a Map.

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

// Of windows of one channel along one axis, what follows makes Maps: a sum of a few products for
// each element, which fuses with what is around it.
struct SingleAxis {
  int axis = 0;  // of the spatial ones; along the others kernels and strides are 1
  int64_t kernel = 1, stride = 1;

  // Of how many elements of X one element of the result is made, at most.
  int64_t taps() const { return (kernel + stride - 1) / stride; }
};

std::optional<SingleAxis> FindSingleAxis(const Sliding& sliding, const Dim& channels_of_group) {
  if (channels_of_group != Dim(1)) return std::nullopt;
  std::optional<SingleAxis> found;
  for (int axis = 0; axis < sliding.rank(); ++axis) {
    const Dim& kernel = sliding.kernel[axis];
    const bool is_padded = sliding.pads_begin[axis] != Dim(0) || sliding.pads_end[axis] != Dim(0);
    if (kernel == Dim(1) && sliding.strides[axis] == 1 && !is_padded) {
      if (sliding.out[axis] != sliding.in[axis]) return std::nullopt;
      continue;
    }
    if (found || !kernel.is_constant() || sliding.dilations[axis] != 1) return std::nullopt;
    found = {axis, kernel.constant(), sliding.strides[axis]};
  }
  if (!found) return SingleAxis();
  const Dim reached = Dim(found->stride) * (sliding.in[found->axis] - 1) + Dim(found->kernel);
  const Dim& before = sliding.pads_begin[found->axis];
  const Dim& after = sliding.pads_end[found->axis];
  // Nothing is asked for behind what windows reach.
  const bool is_inside = before.LowerBound() >= 0 && after.LowerBound() >= 0 &&
                         sliding.out[found->axis] == Max(0, reached - before - after);
  // A Map has a read for each element of the kernel and each tap, and a write for each remainder.
  constexpr int64_t kMaxReads = 24, kMaxWrites = 8;
  const bool is_small = found->taps() == 1 ||
                        (found->kernel + found->taps() <= kMaxReads && found->stride <= kMaxWrites);
  return is_inside && is_small && found->kernel >= found->stride ? found : std::nullopt;
}

// Whether input 1 is known and has no infinities or NaN: these times the zeros that stand for
// elements outside of X are not the nothing that the definition has there.
bool HasFiniteWeights(const Lowering& lowering) {
  const tensor::Tensor* const w = lowering.Constant(1);
  if (w == nullptr) return false;
  for (int64_t k = 0; k < w->element_count(); ++k) {
    if (!std::isfinite(w->AsDouble(k))) return false;
  }
  return true;
}

// The bias of [C, M / group, ...], where ... are axes of extent 1 up to `rank` with the batch.
Operand BiasOf(Lowering& lowering, const Operand& bias, Dim channels, Dim outputs, int rank) {
  Operand result = lowering.Reshaped(bias, {channels, outputs});
  while (result.rank() + 1 < rank) result = program::InsertAxis(result, result.rank());
  return result;
}

// out[n, c, m, ..., q * stride + r, ...] is the sum over taps t of
//   X[n, c, ..., q - t, ...] * W[c, m, ..., t * stride + r, ...],
// where X is 0 outside; for each remainder r a write of its own, [N, C, M / group, spatial] with
// the stride as an axis behind that of q.
Operand SumTaps(Lowering& lowering, const SingleAxis& single, const Operand* bias) {
  const int along = 3 + single.axis;
  const int64_t taps = single.taps();
  const Operand x = program::InsertAxis(lowering.In(0), 2);
  const Operand w = program::InsertAxis(lowering.In(1), 0);
  Shape domain = x.shape;
  domain[2] = w.shape[2];
  domain[along] = domain[along] + Dim(taps - 1);
  StepBuilder map(lowering, domain);
  std::vector<Expr> elements;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Dims before(x.shape.size(), Dim(0)), after(x.shape.size(), Dim(0));
    before[along] = tap;
    after[along] = taps - 1 - tap;
    std::optional<Operand> shifted = program::Pad(x, before, after, {});
    if (!shifted) shifted = program::Pad(lowering.Dense(x), before, after, {});
    elements.push_back(map.ReadArithmetic(*shifted));
  }
  std::optional<Expr> added;
  if (bias != nullptr) {
    added = map.ReadArithmetic(
        BiasOf(lowering, *bias, domain[1], domain[2], static_cast<int>(domain.size())));
  }
  const ElementType type = lowering.In(0).type();
  Shape extents = domain;
  extents.insert(extents.begin() + along + 1, Dim(single.stride));
  const Operand result = lowering.Temporary(type, extents);
  std::vector<Operand> targets;
  std::vector<Expr> values;
  for (int64_t remainder = 0; remainder < single.stride; ++remainder) {
    std::optional<Expr> sum;
    for (int64_t tap = 0; tap * single.stride + remainder < single.kernel; ++tap) {
      const Operand weight =
          program::Slice(w, along, tap * single.stride + remainder, Dim(1), Dim(1));
      const Expr product = elements[static_cast<size_t>(tap)] * map.ReadArithmetic(weight);
      sum = sum ? *sum + product : product;
    }
    if (added) sum = *sum + *added;
    values.push_back(Cast(*sum, type));
    targets.push_back(program::RemoveAxis(
        program::Slice(result, along + 1, remainder, Dim(1), Dim(1)), along + 1));
  }
  map.WriteMapTo(targets, values);
  return result;
}

// The same where there is one tap: X[n, c, ..., q, ...] * W[c, m, ..., r, ...].
Operand MultiplyTap(Lowering& lowering, const SingleAxis& single, const Operand* bias) {
  const int along = 3 + single.axis;
  const Operand x = program::InsertAxis(program::InsertAxis(lowering.In(0), 2), along + 1);
  const Operand w = program::InsertAxis(program::InsertAxis(lowering.In(1), 0), along);
  Shape domain = x.shape;
  domain[2] = w.shape[2];
  domain[along + 1] = single.stride;
  StepBuilder map(lowering, domain);
  Expr value = map.ReadArithmetic(x) * map.ReadArithmetic(w);
  if (bias != nullptr) {
    value = value + map.ReadArithmetic(BiasOf(lowering, *bias, domain[1], domain[2],
                                              static_cast<int>(domain.size())));
  }
  const ElementType type = lowering.In(0).type();
  return map.WriteMap(Cast(value, type), type);
}

// The result, of `shape`, of what these two make.
Operand JoinRemainders(Lowering& lowering, const Operand& parts, const Sliding& sliding,
                       const SingleAxis& single, Shape shape) {
  Dim& extent = shape[2 + single.axis];
  const Dim out = extent;
  extent = parts.shape[3 + single.axis] * Dim(single.stride);
  const bool is_whole = extent == out;
  const Operand whole = lowering.Reshaped(parts, shape);
  if (is_whole) return whole;
  return program::Slice(whole, 2 + single.axis, sliding.pads_begin[single.axis], Dim(1), out);
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
  std::optional<Operand> bias;
  if (lowering.Has(2)) {
    if (lowering.In(2).type() != type) return lowering.UnsupportedType(2);
    ONNXIFI_ASSIGN_OR_RETURN(bias, ChannelVector(lowering, 2, x.rank(), shape[1]));
  }
  const Dim channels_of_group = FloorDiv(x.shape[1], group);
  const std::optional<SingleAxis> single = FindSingleAxis(sliding, channels_of_group);
  if (single && (single->taps() == 1 || HasFiniteWeights(lowering))) {
    const Operand* const given = bias ? &lowering.In(2) : nullptr;
    const Operand parts = single->taps() == 1 ? MultiplyTap(lowering, *single, given)
                                              : SumTaps(lowering, *single, given);
    lowering.Set(0, JoinRemainders(lowering, parts, sliding, *single, shape));
    return base::Ok();
  }
  StepBuilder step(lowering, shape);
  program::Contract contract;
  contract.form = program::Contract::Form::kConvTranspose;
  contract.inner = {channels_of_group};
  contract.inner.insert(contract.inner.end(), sliding.kernel.begin(), sliding.kernel.end());
  contract.a_spatial = sliding.in;
  contract.strides = sliding.strides;
  contract.dilations = sliding.dilations;
  contract.pads_begin = sliding.pads_begin;
  contract.group = group;
  Expr value = SumOfProducts(step, {x}, {w}, tensor::ArithmeticType(type), contract);
  if (bias) value = value + Cast(step.Read(*bias), value.type());
  FinishProduct(lowering, step, std::move(contract), Cast(value, type));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"ConvTranspose", 22, LowerConvTranspose},
};

}  // namespace

std::span<const Operator> ConvTransposeOperators() { return kOperators; }

}  // namespace onnxifi::ops
