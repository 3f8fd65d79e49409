// SPDX-License-Identifier: Apache-2.0
//
// Convolution, Deconvolution: Contract of forms kConv and kConvTranspose. The weights of a
// transposed convolution are those of the convolution that it transposes, which their strides say.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "backends/cpu/onednn/recipe.h"
#include "backends/cpu/onednn/sliding.h"

namespace onnxifi::onednn {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::Contract;

// A convolution in numbers.
struct Convolution {
  Extents source, weights, result;
  DataType factor_type, result_type;
  std::optional<Desc> source_given, weights_given, result_given;
  Sliding sliding;
};

Extents Numbers(const device::BoundStep& step, const program::Dims& dims) {
  Extents numbers;
  for (const program::Dim& dim : dims) numbers.push_back(step.Number(dim));
  return numbers;
}

// B[M, C / group, kernel], transposed B[C, M / group, kernel], as oneDNN's [group, outputs, inputs,
// kernel] (no group if it is 1).
void DescribeWeights(const Task& task, bool is_transposed, int64_t inputs, int64_t outputs,
                     const Extents& kernel, Convolution& convolution) {
  const Contract& contract = *task.step.step->As<Contract>();
  const Extents& strides = task.operands[1].view.strides;
  Extents weight_strides = {strides[is_transposed ? 1 : 0], strides[is_transposed ? 0 : 1]};
  convolution.weights = {outputs, inputs};
  if (contract.group > 1) {
    convolution.weights.insert(convolution.weights.begin(), contract.group);
    weight_strides.insert(weight_strides.begin(), strides[0] * (is_transposed ? inputs : outputs));
  }
  convolution.weights.insert(convolution.weights.end(), kernel.begin(), kernel.end());
  weight_strides.insert(weight_strides.end(), strides.begin() + 2, strides.end());
  convolution.weights_given = Strided(convolution.weights, weight_strides, convolution.factor_type);
}

// oneDNN leaves the result unwritten where no tap of a window meets the input, and computes it
// wrong for some kernels that reach over both ends of the input at once or lie beside it for the
// most part, or that leave elements out between two windows. Nothing in use has such windows: the
// padding of a kernel of 3 is 1, of 7 it is 3, and only kernels of 1 step over elements.
// `in` is what the windows lie over, `out` how many there are. Drops strides that say nothing.
Status CheckWindows(Sliding& sliding, const Extents& in, const Extents& out) {
  for (size_t axis = 0; axis < in.size(); ++axis) {
    const int64_t dilation = sliding.gaps[axis] + 1;
    const int64_t reach = (sliding.kernel[axis] - 1) * dilation + 1;
    if (reach > in[axis]) {
      return Status(Code::kUnsupportedShape, "The kernel's reach along spatial axis " +
                                                 std::to_string(axis) + " (" +
                                                 std::to_string(reach) + ") exceeds the input (" +
                                                 std::to_string(in[axis]) + ").");
    }
    if (out[axis] == 1 && sliding.kernel[axis] > 1 && sliding.strides[axis] > 1) {
      // A single window has no use for a stride.
      if (in[axis] + sliding.pads_begin[axis] + sliding.pads_end[axis] != reach) {
        return Status(Code::kUnsupportedShape, "The only window along spatial axis " +
                                                   std::to_string(axis) +
                                                   " leaves out a part of the input.");
      }
      sliding.strides[axis] = 1;
    }
    if (sliding.kernel[axis] > 1 && sliding.strides[axis] > reach) {
      return Status(Code::kUnsupportedShape,
                    "The stride along spatial axis " + std::to_string(axis) + " (" +
                        std::to_string(sliding.strides[axis]) + ") exceeds the kernel's reach (" +
                        std::to_string(reach) + ").");
    }
    for (int64_t at = 0; at < out[axis]; ++at) {
      const int64_t first = at * sliding.strides[axis] - sliding.pads_begin[axis];
      const int64_t skipped = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
      const int64_t end =
          first >= in[axis] ? 0
                            : std::min(sliding.kernel[axis], (in[axis] - 1 - first) / dilation + 1);
      if (2 * (end - skipped) < sliding.kernel[axis]) {
        return Status(Code::kUnsupportedShape,
                      "A window along spatial axis " + std::to_string(axis) + " sees " +
                          std::to_string(std::max<int64_t>(0, end - skipped)) + " of the " +
                          std::to_string(sliding.kernel[axis]) + " taps, less than half.");
      }
    }
  }
  return base::Ok();
}

Result<Convolution> Describe(const Task& task) {
  const Contract& contract = *task.step.step->As<Contract>();
  const bool is_transposed = contract.form == Contract::Form::kConvTranspose;
  const Extents inner = Numbers(task.step, contract.inner);
  const Extents kernel(inner.begin() + 1, inner.end());
  const Extents in = Numbers(task.step, contract.a_spatial);
  const Extents out(task.step.domain.begin() + 2, task.step.domain.end());
  Convolution convolution;
  convolution.factor_type = DataTypeOf(task.operands[0].view.type);
  convolution.result_type = DataTypeOf(task.result.view.type);
  convolution.source = {task.step.domain[0], inner[0] * contract.group};
  convolution.source.insert(convolution.source.end(), in.begin(), in.end());
  convolution.result = task.step.domain;
  DescribeWeights(task, is_transposed, inner[0], task.step.domain[1] / contract.group, kernel,
                  convolution);
  convolution.source_given =
      Strided(convolution.source, task.operands[0].view.strides, convolution.factor_type);
  convolution.result_given =
      Strided(convolution.result, task.result.view.strides, convolution.result_type);
  if (!convolution.source_given || !convolution.weights_given || !convolution.result_given) {
    return Status(Code::kUnsupportedShape, "An operand's strides are none that oneDNN can say.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(
      convolution.sliding,
      MakeSliding({is_transposed ? out : in, is_transposed ? in : out, kernel, contract.strides,
                   contract.dilations, Numbers(task.step, contract.pads_begin)}));
  // A transposed convolution walks its windows over the result.
  ONNXIFI_RETURN_IF_ERROR(
      CheckWindows(convolution.sliding, is_transposed ? out : in, is_transposed ? in : out));
  return convolution;
}

// A first summand that differs between output channels only is oneDNN's bias.
struct Summands {
  std::optional<device::BoundView> bias;
  std::vector<epilogue::Operation> post_ops;
  std::vector<device::BoundView> operands;  // of the post-ops
};

Summands SplitBias(const Task& task) {
  Summands summands;
  for (const epilogue::Operation& post_op : task.post_ops) {
    device::BoundView view;
    if (post_op.is_binary()) view = task.step.reads[static_cast<size_t>(post_op.read)];
    bool is_bias =
        summands.post_ops.empty() && !summands.bias && post_op.kind == epilogue::Kind::kAdd;
    for (size_t axis = 0; is_bias && axis < view.strides.size(); ++axis) {
      is_bias = task.step.domain[axis] == 1 || view.strides[axis] == (axis == 1 ? 1 : 0);
    }
    if (is_bias) {
      summands.bias = std::move(view);
    } else {
      summands.post_ops.push_back(post_op);
      summands.operands.push_back(std::move(view));
    }
  }
  return summands;
}

template <typename Primitive>
typename Primitive::primitive_desc MakeDesc(const dnnl::engine& engine, dnnl::algorithm algorithm,
                                            const Convolution& convolution, const Desc& source,
                                            const Desc& bias, const Desc& result,
                                            const dnnl::primitive_attr& attributes) {
  const Sliding& sliding = convolution.sliding;
  return typename Primitive::primitive_desc(
      engine, dnnl::prop_kind::forward_inference, algorithm, source,
      Any(convolution.weights, convolution.factor_type), bias, result, sliding.strides,
      sliding.gaps, sliding.pads_begin, sliding.pads_end, attributes,
      /*allow_empty=*/true);
}

template <typename Primitive>
Status LayOut(const Task& task, SequenceBuilder& builder, dnnl::algorithm algorithm,
              std::string_view name) {
  ONNXIFI_ASSIGN_OR_RETURN(const Convolution convolution, Describe(task));
  Summands summands = SplitBias(task);
  ONNXIFI_ASSIGN_OR_RETURN(const BoundPostOps post_ops,
                           BoundPostOps::Create(std::move(summands.post_ops),
                                                std::move(summands.operands), convolution.result));
  dnnl::primitive_attr attributes = Attributes();
  post_ops.AddTo(attributes);
  const Desc bias =
      summands.bias ? Dense({convolution.result[1]}, DataTypeOf(summands.bias->type)) : Desc();

  const StoredTensor source_place = builder.At(task.operands[0], *convolution.source_given);
  const StoredTensor weights_place = builder.At(task.operands[1], *convolution.weights_given);
  const StoredTensor result_place = builder.At(task.result, *convolution.result_given);
  struct Attempt {
    Desc source, result;
  };
  // Channels-last tensors are read and written as they lie; around anything else oneDNN chooses,
  // and reorders pay for it.
  const bool is_source_ready = IsChannelsLast(convolution.source, task.operands[0].view.strides);
  const bool is_result_ready = IsChannelsLast(convolution.result, task.result.view.strides);
  const Desc any_source = Any(convolution.source, convolution.factor_type);
  const Desc any_result = Any(convolution.result, convolution.result_type);
  const Attempt attempts[] = {
      {is_source_ready ? *convolution.source_given : any_source,
       is_result_ready ? *convolution.result_given : any_result},
      {any_source, any_result},
      {ChannelsLast(convolution.source, convolution.factor_type),
       ChannelsLast(convolution.result, convolution.result_type)},
      {*convolution.source_given, *convolution.result_given},
  };
  for (const Attempt& attempt : attempts) {
    const auto desc = MakeDesc<Primitive>(builder.runtime().engine(), algorithm, convolution,
                                          attempt.source, bias, attempt.result, attributes);
    if (!IsGood(desc)) continue;
    ONNXIFI_ASSIGN_OR_RETURN(StoredTensor source, builder.As(source_place, desc.src_desc()));
    ONNXIFI_ASSIGN_OR_RETURN(StoredTensor weights, builder.As(weights_place, desc.weights_desc()));
    const StoredTensor target = builder.Target(result_place, desc.dst_desc());
    std::vector<Argument> arguments = {{DNNL_ARG_SRC, std::move(source)},
                                       {DNNL_ARG_WEIGHTS, std::move(weights)},
                                       {DNNL_ARG_DST, target}};
    if (summands.bias)
      arguments.emplace_back(DNNL_ARG_BIAS, builder.At({*summands.bias, nullptr}, bias));
    ONNXIFI_RETURN_IF_ERROR(post_ops.AddArguments(desc, builder, arguments));
    builder.Append(Primitive(desc), desc, std::move(arguments));
    return builder.Deliver(target, result_place);
  }
  return NoGoodPrimitive(name);
}

Status LayOutConvolution(const Task& task, SequenceBuilder& builder) {
  return LayOut<dnnl::convolution_forward>(task, builder, dnnl::algorithm::convolution_direct,
                                           "convolution");
}

Status LayOutDeconvolution(const Task& task, SequenceBuilder& builder) {
  return LayOut<dnnl::deconvolution_forward>(task, builder, dnnl::algorithm::deconvolution_direct,
                                             "deconvolution");
}

Status CheckForm(const device::Facts& facts, Contract::Form form, std::string_view name) {
  const Contract* contract = facts.step.As<Contract>();
  if (contract == nullptr || contract->form != form) {
    return Status(Code::kUnsupportedOperator, "The step is no " + std::string(name) + ".");
  }
  return CheckSpatialRank(contract->a_spatial.size());
}

}  // namespace

bool HasUsualWindows(const program::Step& step) {
  const Contract& contract = *step.As<Contract>();
  if (!CheckSpatialRank(contract.a_spatial.size()).ok()) return false;
  for (size_t axis = 0; axis < contract.a_spatial.size(); ++axis) {
    const program::Dim& in = contract.a_spatial[axis];
    const program::Dim& out = step.domain[2 + axis];
    const program::Dim& kernel = contract.inner[1 + axis];
    const program::Dim& pad = contract.pads_begin[axis];
    if (!in.is_constant() || !out.is_constant() || !kernel.is_constant() || !pad.is_constant()) {
      return false;
    }
    const int64_t reach = (kernel.constant() - 1) * contract.dilations[axis] + 1;
    const int64_t end = (out.constant() - 1) * contract.strides[axis] + reach;
    const int64_t pad_end = end - pad.constant() - in.constant();
    const bool has_one_window = out.constant() == 1;
    if (reach > in.constant() || pad.constant() < 0 || 2 * pad.constant() >= reach + 1 ||
        2 * pad_end >= reach + 1 || (kernel.constant() > 1 && contract.strides[axis] > reach) ||
        (has_one_window && pad_end < 0)) {
      return false;
    }
  }
  return true;
}

runtime::RecipeResult SelectConvolution(const device::Facts& facts, EdgePlacement edge_placement,
                                        std::string_view implementation) {
  ONNXIFI_RETURN_IF_ERROR(CheckForm(facts, Contract::Form::kConv, "convolution"));
  return MakeRecipe(implementation, facts, LayOutConvolution, edge_placement);
}

runtime::RecipeResult SelectDeconvolution(const device::Facts& facts, EdgePlacement edge_placement,
                                          std::string_view implementation) {
  ONNXIFI_RETURN_IF_ERROR(
      CheckForm(facts, Contract::Form::kConvTranspose, "transposed convolution"));
  return MakeRecipe(implementation, facts, LayOutDeconvolution, edge_placement);
}

}  // namespace onnxifi::onednn
