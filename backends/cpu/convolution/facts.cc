// SPDX-License-Identifier: Apache-2.0
//
// Describe: one reason after the other, the cheapest first.

#include "backends/cpu/convolution/facts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backends/cpu/runtime/plain_operand.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;
using program::Contract;
using program::Dim;

base::Result<int64_t> Number(const Dim& dim, std::string_view what, int64_t least = 1) {
  if (dim.is_constant() && dim.constant() >= least) return dim.constant();
  if (dim.is_constant()) {
    return Status(Code::kUnsupportedShape,
                  "The " + std::string(what) + " (" + std::to_string(dim.constant()) +
                      ") is less than the kernels take (" + std::to_string(least) + ").");
  }
  return Status(Code::kUnsupportedShape,
                "The " + std::string(what) + " is known only once the inputs are.");
}

// Whether the pixels of a tensor that can be walked pixel by pixel are further apart than their
// channels need. A caller's own memory may lie at any address, and is not walked.
base::Result<bool> HasGaps(const program::Program& program, const program::View& view,
                           int64_t channels, std::string_view what) {
  if (channels != 1 && !(view.strides[1] == Dim(1))) {
    return Status(Code::kUnsupportedShape,
                  "The channels of the " + std::string(what) + " are not innermost in memory.");
  }
  const bool is_temporary =
      program.buffers[static_cast<size_t>(view.buffer)].kind == program::Buffer::Kind::kTemporary &&
      std::none_of(program.outputs.begin(), program.outputs.end(),
                   [&](const program::Port& port) { return port.buffer == view.buffer; });
  if (!is_temporary) {
    return Status(Code::kUnsupportedShape,
                  "The " + std::string(what) + " is in memory of the caller.");
  }
  return !(view.strides.back() == Dim(channels));
}

// The extents along y, of which a convolution along one axis has one each, and along x.
base::Status DescribeAxes(const program::Step& step, Convolution& convolution) {
  const Contract& contract = *step.As<Contract>();
  const size_t x = contract.a_spatial.size() - 1;
  const auto& pads = contract.pads_begin;
  ONNXIFI_ASSIGN_OR_RETURN(convolution.kernel_width,
                           Number(contract.inner[1 + x], "kernel's width"));
  ONNXIFI_ASSIGN_OR_RETURN(convolution.in_width, Number(contract.a_spatial[x], "input's width"));
  ONNXIFI_ASSIGN_OR_RETURN(convolution.out_width, Number(step.domain[2 + x], "output's width"));
  ONNXIFI_ASSIGN_OR_RETURN(convolution.pad_left, Number(pads[x], "left padding", /*least=*/0));
  convolution.stride_x = contract.strides[x];
  convolution.dilation_x = contract.dilations[x];
  convolution.kernel_height = convolution.in_height = convolution.out_height = 1;
  convolution.stride_y = convolution.dilation_y = 1;
  convolution.pad_top = 0;
  if (x == 0) return base::Ok();
  ONNXIFI_ASSIGN_OR_RETURN(convolution.kernel_height, Number(contract.inner[1], "kernel's height"));
  ONNXIFI_ASSIGN_OR_RETURN(convolution.in_height, Number(contract.a_spatial[0], "input's height"));
  ONNXIFI_ASSIGN_OR_RETURN(convolution.out_height, Number(step.domain[2], "output's height"));
  ONNXIFI_ASSIGN_OR_RETURN(convolution.pad_top, Number(pads[0], "upper padding", /*least=*/0));
  convolution.stride_y = contract.strides[0];
  convolution.dilation_y = contract.dilations[0];
  return base::Ok();
}

Status CheckAxes(const Contract& contract, size_t least) {
  const size_t axes = contract.a_spatial.size();
  if (axes >= least && axes <= 2) return base::Ok();
  return {Code::kUnsupportedShape, "The convolution has " + std::to_string(axes) +
                                       " spatial axes; the kernel has " +
                                       (least == 1 ? "1 or 2." : "2.")};
}

// All but how the input lies.
base::Result<Convolution> DescribeAroundInput(const device::Facts& facts) {
  const program::Step& step = facts.step;
  const Contract* contract = step.As<Contract>();
  if (contract == nullptr || contract->form != Contract::Form::kConv) {
    return Status(Code::kUnsupportedOperator, "The step is no convolution.");
  }
  ONNXIFI_RETURN_IF_ERROR(CheckAxes(*contract, /*least=*/1));
  if (contract->accumulator != tensor::ElementType::kFloat32 || step.writes.size() != 1 ||
      step.writes[0].type != tensor::ElementType::kFloat32) {
    return Status(Code::kUnsupportedDatatype,
                  "The convolution has something else than one float32 result.");
  }
  if (!facts.IsConstant(step.reads[1])) {
    return Status(Code::kUnsupportedAttribute, "The weights are computed at run time.");
  }
  for (int operand = 0; operand < 2; ++operand) {
    ONNXIFI_RETURN_IF_ERROR(runtime::CheckPlain(facts.program, step, operand));
  }
  Convolution convolution{};
  const Dim& batch = step.domain[0];
  convolution.batch = batch.is_constant() ? std::max<int64_t>(1, batch.constant()) : 1;
  convolution.group = contract->group;
  ONNXIFI_ASSIGN_OR_RETURN(convolution.in_channels, Number(contract->inner[0], "input's depth"));
  convolution.in_channels *= contract->group;
  ONNXIFI_ASSIGN_OR_RETURN(convolution.out_channels, Number(step.domain[1], "output's depth"));
  ONNXIFI_RETURN_IF_ERROR(DescribeAxes(step, convolution));
  ONNXIFI_ASSIGN_OR_RETURN(convolution.epilogue, gemm::SelectEpilogue(facts, /*channel_axis=*/1));
  ONNXIFI_ASSIGN_OR_RETURN(
      bool has_gaps, HasGaps(facts.program, step.writes[0], convolution.out_channels, "result"));
  convolution.has_gaps = has_gaps;
  if (const int addend = convolution.epilogue.addend; addend >= 0) {
    ONNXIFI_ASSIGN_OR_RETURN(has_gaps,
                             HasGaps(facts.program, step.reads[static_cast<size_t>(addend)],
                                     convolution.out_channels, "summand"));
    convolution.has_gaps |= has_gaps;
  }
  return convolution;
}

}  // namespace

base::Result<ConvolutionQuery> QueryConvolution(const device::Facts& facts) {
  ConvolutionQuery described;
  ONNXIFI_ASSIGN_OR_RETURN(described.convolution, DescribeAroundInput(facts));
  Convolution& convolution = described.convolution;
  described.has_fast_algorithms = facts.program.has_fast_algorithms;
  described.reads = static_cast<int>(facts.step.reads.size());
  described.axes_status = CheckAxes(*facts.step.As<Contract>(), /*least=*/2);
  const program::View& input = facts.step.reads[0];
  base::Result<bool> has_gaps = HasGaps(facts.program, input, convolution.in_channels, "input");
  if (has_gaps.ok()) {
    convolution.has_gaps |= *has_gaps;
  } else {
    described.nhwc_status = std::move(has_gaps).status();
  }
  if (convolution.in_width != 1 && !(input.strides.back() == Dim(1))) {
    described.nchw_status =
        Status(Code::kUnsupportedShape, "The input's rows do not lie contiguous in memory.");
  }
  return described;
}

}  // namespace onnxifi::convolution
