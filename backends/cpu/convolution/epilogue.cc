// SPDX-License-Identifier: Apache-2.0
//
// Epilogue: oneDNN's list of appended operations, of which some lists fit.

#include "backends/cpu/convolution/epilogue.h"

#include <limits>
#include <string>

#include "backends/cpu/onednn/post_ops.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;
using onednn::PostOp;

// A view over the result that differs between channels only.
bool IsPerChannel(const program::View& view, const program::Shape& domain, size_t channel_axis) {
  for (size_t axis = 0; axis < view.strides.size(); ++axis) {
    const program::Dim expected(axis == channel_axis ? 1 : 0);
    if (domain[axis] != program::Dim(1) && view.strides[axis] != expected) return false;
  }
  return true;
}

base::Result<Epilogue> WithActivation(Epilogue epilogue, const PostOp& post_op) {
  switch (post_op.algorithm) {
    case dnnl::algorithm::eltwise_relu:
      epilogue.activation = post_op.alpha == 0 ? gemm::Activation::kClip : gemm::Activation::kLeaky;
      epilogue.low = post_op.alpha;
      epilogue.high = std::numeric_limits<float>::infinity();
      return epilogue;
    case dnnl::algorithm::eltwise_clip:
      epilogue.activation = gemm::Activation::kClip;
      epilogue.low = post_op.alpha;
      epilogue.high = post_op.beta;
      return epilogue;
    default:
      return Status(Code::kUnsupportedAttribute,
                    "The epilogue is none of bias, sum, bounds and leaky bounds.");
  }
}

}  // namespace

base::Result<Epilogue> TranslateEpilogue(const device::Facts& facts, size_t channel_axis) {
  const auto& contract = *facts.step.As<program::Contract>();
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<PostOp> post_ops,
                           onednn::TranslatePostOps(facts.program, facts.step, contract.roots[0]));
  Epilogue epilogue;
  for (const PostOp& post_op : post_ops) {
    if (epilogue.activation != gemm::Activation::kNone) {
      return Status(Code::kUnsupportedAttribute, "The epilogue goes on after its activation.");
    }
    if (!post_op.is_binary()) {
      ONNXIFI_ASSIGN_OR_RETURN(epilogue, WithActivation(epilogue, post_op));
      continue;
    }
    if (post_op.algorithm != dnnl::algorithm::binary_add) {
      return Status(Code::kUnsupportedAttribute,
                    "The epilogue combines sums with a tensor other than by adding it.");
    }
    const program::View& view = facts.step.reads[static_cast<size_t>(post_op.read)];
    if (epilogue.bias < 0 && IsPerChannel(view, facts.step.domain, channel_axis)) {
      epilogue.bias = post_op.read;
    } else if (epilogue.addend < 0 && view.strides[channel_axis] == program::Dim(1)) {
      epilogue.addend = post_op.read;
    } else {
      return Status(Code::kUnsupportedShape,
                    "The epilogue adds more than a bias and a tensor with its channels innermost.");
    }
  }
  return epilogue;
}

}  // namespace onnxifi::convolution
