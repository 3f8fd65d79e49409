// SPDX-License-Identifier: Apache-2.0
//
// Pooling, Lrn: Window steps. Where oneDNN's rule for what counts differs from ONNX's, the step is
// left to the reference.

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
using program::Window;

Extents Numbers(const device::BoundStep& step, const program::Dims& dims) {
  Extents numbers;
  for (const program::Dim& dim : dims) numbers.push_back(step.Number(dim));
  return numbers;
}

// The tensors of a Window step, of which both kinds have one in and one out.
struct Tensors {
  Extents source_extents;
  StoredTensor source, result;
  BoundPostOps post_ops;
};

Result<Tensors> Describe(const Task& task, const SequenceBuilder& builder) {
  const Window& window = *task.step.step->As<Window>();
  Tensors tensors;
  tensors.source_extents = {task.step.domain[0], task.step.domain[1]};
  const Extents in = Numbers(task.step, window.in_spatial);
  tensors.source_extents.insert(tensors.source_extents.end(), in.begin(), in.end());
  const std::optional<Desc> source = Strided(tensors.source_extents, task.operands[0].view.strides);
  const std::optional<Desc> result = Strided(task.step.domain, task.result.view.strides);
  if (!source || !result) {
    return Status(Code::kUnsupportedShape, "An operand's strides are none that oneDNN can say.");
  }
  tensors.source = builder.At(task.operands[0], *source);
  tensors.result = builder.At(task.result, *result);
  std::vector<device::BoundView> operands;
  for (const epilogue::Operation& post_op : task.post_ops) {
    operands.push_back(post_op.is_binary() ? task.step.reads[static_cast<size_t>(post_op.read)]
                                           : device::BoundView());
  }
  ONNXIFI_ASSIGN_OR_RETURN(tensors.post_ops,
                           BoundPostOps::Create({task.post_ops.begin(), task.post_ops.end()},
                                                std::move(operands), task.step.domain));
  return tensors;
}

// Tries `make(source, result, attributes)`, which makes a descriptor, on the tensors as they lie,
// then dense, then channels last.
template <typename Primitive, typename Make>
Status LayOutWindow(const Task& task, SequenceBuilder& builder, const Tensors& tensors,
                    const Make& make, std::string_view name) {
  dnnl::primitive_attr attributes = Attributes();
  tensors.post_ops.AddTo(attributes);
  const std::pair<Desc, Desc> attempts[] = {
      {tensors.source.desc, tensors.result.desc},
      {Dense(tensors.source_extents), Dense(task.step.domain)},
      {ChannelsLast(tensors.source_extents), ChannelsLast(task.step.domain)},
  };
  for (const auto& [source_wanted, result_wanted] : attempts) {
    const typename Primitive::primitive_desc desc = make(source_wanted, result_wanted, attributes);
    if (!IsGood(desc)) continue;
    ONNXIFI_ASSIGN_OR_RETURN(StoredTensor source, builder.As(tensors.source, desc.src_desc()));
    const StoredTensor target = builder.Target(tensors.result, desc.dst_desc());
    std::vector<Argument> arguments = {{DNNL_ARG_SRC, std::move(source)}, {DNNL_ARG_DST, target}};
    ONNXIFI_RETURN_IF_ERROR(tensors.post_ops.AddArguments(desc, builder, arguments));
    builder.Append(Primitive(desc), desc, std::move(arguments));
    return builder.Deliver(target, tensors.result);
  }
  return NoGoodPrimitive(name);
}

// oneDNN has no result for a window that sees padding alone, and divides an average that counts
// padding by the whole window, where ONNX leaves out what lies beyond the padding.
Status CheckWindows(const Window& window, const Task& task, const Extents& in,
                    const Sliding& sliding, const Extents& pads_end) {
  for (size_t axis = 0; axis < in.size(); ++axis) {
    const int64_t out = task.step.domain[axis + 2];
    const int64_t dilation = sliding.gaps[axis] + 1;
    // Without gaps a window in the middle sees no less than those at the ends.
    const int64_t stride = dilation > 1 ? 1 : std::max<int64_t>(1, out - 1);
    for (int64_t at = 0; at < out; at += stride) {
      const int64_t first = at * sliding.strides[axis] - sliding.pads_begin[axis];
      // The first tap at or after the input's beginning.
      const int64_t skipped = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
      if (skipped >= sliding.kernel[axis] || first + skipped * dilation >= in[axis]) {
        return Status(Code::kUnsupportedShape, "A window along spatial axis " +
                                                   std::to_string(axis) + " sees padding alone.");
      }
      const int64_t last = first + (sliding.kernel[axis] - 1) * dilation;
      if (window.count_include_pad && last >= in[axis] + pads_end[axis]) {
        return Status(Code::kUnsupportedShape,
                      "A window that counts padding reaches beyond it along spatial axis " +
                          std::to_string(axis) + ".");
      }
    }
  }
  return base::Ok();
}

Status LayOutPooling(const Task& task, SequenceBuilder& builder) {
  const Window& window = *task.step.step->As<Window>();
  ONNXIFI_ASSIGN_OR_RETURN(const Tensors tensors, Describe(task, builder));
  const Extents in = Numbers(task.step, window.in_spatial);
  const Extents out(task.step.domain.begin() + 2, task.step.domain.end());
  ONNXIFI_ASSIGN_OR_RETURN(const Sliding sliding,
                           MakeSliding({in, out, Numbers(task.step, window.kernel), window.strides,
                                        window.dilations, Numbers(task.step, window.pads_begin)}));
  ONNXIFI_RETURN_IF_ERROR(
      CheckWindows(window, task, in, sliding, Numbers(task.step, window.pads_end)));
  const dnnl::algorithm algorithm = window.kind == Window::Kind::kMax ? dnnl::algorithm::pooling_max
                                    : window.count_include_pad
                                        ? dnnl::algorithm::pooling_avg_include_padding
                                        : dnnl::algorithm::pooling_avg_exclude_padding;
  auto make = [&](const Desc& source, const Desc& result, const dnnl::primitive_attr& attributes) {
    return dnnl::pooling_forward::primitive_desc(
        builder.runtime().engine(), dnnl::prop_kind::forward_inference, algorithm, source, result,
        sliding.strides, sliding.kernel, sliding.gaps, sliding.pads_begin, sliding.pads_end,
        attributes, /*allow_empty=*/true);
  };
  return LayOutWindow<dnnl::pooling_forward>(task, builder, tensors, make, "pooling");
}

Status LayOutLrn(const Task& task, SequenceBuilder& builder) {
  const Window& window = *task.step.step->As<Window>();
  ONNXIFI_ASSIGN_OR_RETURN(const Tensors tensors, Describe(task, builder));
  const int64_t size = task.step.Number(window.kernel[0]);
  if (size % 2 == 0) {
    return Status(Code::kUnsupportedShape, "The window of " + std::to_string(size) +
                                               " channels is even; oneDNN places it differently.");
  }
  auto make = [&](const Desc& source, const Desc& result, const dnnl::primitive_attr& attributes) {
    return dnnl::lrn_forward::primitive_desc(
        builder.runtime().engine(), dnnl::prop_kind::forward_inference,
        dnnl::algorithm::lrn_across_channels, source, result, size,
        static_cast<float>(window.alpha), static_cast<float>(window.beta),
        static_cast<float>(window.bias), attributes, /*allow_empty=*/true);
  };
  return LayOutWindow<dnnl::lrn_forward>(task, builder, tensors, make, "normalisation");
}

}  // namespace

runtime::RecipeResult SelectPooling(const device::Facts& facts, EdgePlacement edge_placement,
                                    std::string_view implementation) {
  const Window* window = facts.step.As<Window>();
  if (window == nullptr ||
      (window->kind != Window::Kind::kMax && window->kind != Window::Kind::kAverage)) {
    return Status(Code::kUnsupportedOperator, "The step is no maximum and no average.");
  }
  if (facts.step.writes.size() != 1) {
    return Status(Code::kUnsupportedAttribute,
                  "The positions of the maxima are wanted; a primitive gives their values.");
  }
  ONNXIFI_RETURN_IF_ERROR(CheckSpatialRank(window->in_spatial.size()));
  return MakeRecipe(implementation, facts, LayOutPooling, edge_placement);
}

runtime::RecipeResult SelectLrn(const device::Facts& facts, EdgePlacement edge_placement,
                                std::string_view implementation) {
  const Window* window = facts.step.As<Window>();
  if (window == nullptr || window->kind != Window::Kind::kLrn) {
    return Status(Code::kUnsupportedOperator, "The step is no local response normalisation.");
  }
  return MakeRecipe(implementation, facts, LayOutLrn, edge_placement);
}

}  // namespace onnxifi::onednn
