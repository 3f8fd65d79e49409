// SPDX-License-Identifier: Apache-2.0
//
// CausalConvWithState: each channel is convolved along time with a kernel of its own, over the
// inputs and the state before them. Where the number of channels is known a convolution of as many
// groups, else a sum over windows.

#include <string>
#include <utility>
#include <vector>

#include "backends/core/ops/contract/product.h"
#include "backends/core/ops/elementwise/activation.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/reduce/reduction_geometry.h"
#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/concat.h"

namespace onnxifi::ops {
namespace {

struct CausalConv {
  Operand input;   // [B, C, L]
  Operand weight;  // [C, 1, K]
  Operand padded;  // [B, C, K - 1 + L]: the state, or zeros, before the input
  bool has_state = false;

  Dim state_length() const { return weight.shape[2] - 1; }
};

Status CheckRank(const Lowering& lowering, int input, int rank) {
  const int found = lowering.In(input).rank();
  if (found == rank) return base::Ok();
  return lowering.InvalidModel("Input " + std::to_string(input) + " has " + std::to_string(found) +
                               " axes instead of " + std::to_string(rank) + ".");
}

// The element before the first is 0, or of the state.
Result<Operand> Padded(Lowering& lowering, const CausalConv& conv) {
  if (conv.has_state) {
    Operand state = lowering.In(3);
    ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(state.shape[2], conv.state_length(),
                                                  "The length of past_state and the kernel's "
                                                  "less 1"));
    state.shape[2] = conv.state_length();
    return Concatenate(lowering, {state, conv.input}, 2);
  }
  const Dims before{0, 0, conv.state_length()};
  const Dims after(3, Dim(0));
  if (auto padded = program::Pad(conv.input, before, after, {})) return *padded;
  return *program::Pad(lowering.Dense(conv.input), before, after, {});
}

// [B, C, L] by a convolution of `channels` groups.
Operand Convolve(Lowering& lowering, const CausalConv& conv, int64_t channels,
                 ElementType compute) {
  const Operand& image = conv.has_state ? conv.padded : conv.input;
  program::Contract contract;
  contract.form = program::Contract::Form::kConv;
  contract.inner.assign(conv.weight.shape.begin() + 1, conv.weight.shape.end());
  contract.a_spatial = {image.shape[2]};
  contract.strides = {1};
  contract.dilations = {1};
  contract.pads_begin = {conv.has_state ? Dim(0) : conv.state_length()};
  contract.group = channels;
  StepBuilder step(lowering, conv.input.shape);
  const Expr sum = SumOfProducts(step, {image}, {conv.weight}, compute, contract);
  const Operand out = lowering.Temporary(compute, step.domain());
  contract.roots = {sum.id()};
  step.Finish(std::move(contract), {out.view});
  return out;
}

// [B, C, L] as sums over windows: [B, C, L, K].
Operand SumWindows(Lowering& lowering, const CausalConv& conv, ElementType compute) {
  Operand windows = conv.padded;
  windows.view.strides.push_back(windows.view.strides[2]);
  for (program::Guard& guard : windows.view.guards) {
    guard.coefficients.push_back(guard.coefficients[2]);
  }
  windows.shape = conv.input.shape;
  windows.shape.push_back(conv.weight.shape[2]);
  const ReductionGeometry geometry = ReduceAxes(windows, std::vector<int>{3}, /*keepdims=*/false);
  StepBuilder step(lowering, windows.shape);
  program::Reduction reduction;
  const Expr sum =
      AddSum(reduction, step.ReadArithmetic(windows) * step.ReadArithmetic(conv.weight));
  return WriteReduction(lowering, step, geometry, std::move(reduction), {{sum, compute}})[0];
}

// Inputs: input, weight, bias, past_state.
Status LowerCausalConv(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const ElementType type = lowering.In(0).type();
  if (!tensor::IsFloat(type)) return lowering.UnsupportedType(0);
  for (int input = 0; input < lowering.input_count(); ++input) {
    if (!lowering.Has(input)) continue;
    if (lowering.In(input).type() != type) return lowering.UnsupportedType(input);
    ONNXIFI_RETURN_IF_ERROR(CheckRank(lowering, input, input == 2 ? 1 : 3));
  }
  const std::string activation = lowering.String("activation", "none");
  const bool is_swish = activation == "silu" || activation == "swish";
  if (!is_swish && activation != "none") {
    return lowering.InvalidModel("activation '" + activation + "' is not none, silu or swish.");
  }
  CausalConv conv;
  conv.input = lowering.In(0);
  conv.weight = lowering.In(1);
  conv.has_state = lowering.Has(3);
  Dim& channels = conv.input.shape[1];
  const Dim kernel = conv.weight.shape[2];
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(channels, conv.weight.shape[0],
                                                "The channels of the input and of the weight"));
  ONNXIFI_RETURN_IF_ERROR(
      lowering.RequireEqual(conv.weight.shape[1], 1, "The middle extent of the weight and 1"));
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(
      Less(0, kernel), Code::kInvalidModel,
      "The kernel has " + kernel.ToString() + " elements and needs at least 1.", {kernel}));
  if (!channels.is_constant()) channels = conv.weight.shape[0];
  conv.weight.shape[0] = channels;
  conv.weight.shape[1] = 1;
  ONNXIFI_ASSIGN_OR_RETURN(conv.padded, Padded(lowering, conv));

  const ElementType compute = tensor::ArithmeticType(type);
  const Operand sum = channels.is_constant() && channels.constant() > 0
                          ? Convolve(lowering, conv, channels.constant(), compute)
                          : SumWindows(lowering, conv, compute);
  StepBuilder map(lowering, conv.input.shape);
  Expr value = map.Read(sum);
  if (lowering.Has(2)) {
    ONNXIFI_ASSIGN_OR_RETURN(const Operand bias, ChannelVector(lowering, 2, 3, channels));
    value = value + map.ReadArithmetic(bias);
  }
  // ONNX rounds the sums before it applies the function.
  if (is_swish) value = Swish(Cast(Cast(value, type), compute), 1);
  lowering.Set(0, map.WriteMap(value, type));
  lowering.Set(1, program::Slice(conv.padded, 2, conv.input.shape[2], 1, conv.state_length()));
  return base::Ok();
}

constexpr Operator kOperators[] = {{"CausalConvWithState", 27, LowerCausalConv}};

}  // namespace

std::span<const Operator> CausalConvOperators() { return kOperators; }

}  // namespace onnxifi::ops
