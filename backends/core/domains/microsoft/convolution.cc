// SPDX-License-Identifier: Apache-2.0
//
// Convolutions with what the optimizer moves into them:
//   Y = activation(conv(X, W) + B + Z)

#include <utility>

#include "backends/core/domains/microsoft/activation.h"
#include "backends/core/domains/microsoft/channels_last.h"
#include "backends/core/domains/microsoft/microsoft.h"

namespace onnxifi::microsoft {
namespace {

using base::Status;
using model::Definition;
using Value = Definition::Value;

// Which values have their channels as the last axis.
struct Layout {
  bool is_last = false;      // input and output
  bool has_filters = false;  // filters, [M, k..., C / group]
};

Status DefineConvolution(Definition& d, Layout layout) {
  const bool is_last = layout.is_last;
  Value x = d.In(0), filters = d.In(1);
  if (is_last) {
    ONNXIFI_ASSIGN_OR_RETURN(x, ChannelsFirst(d, x, 0));
  }
  if (layout.has_filters) {
    ONNXIFI_ASSIGN_OR_RETURN(filters, ChannelsFirst(d, filters, 1));
  }
  std::vector<Value> inputs = {x, filters};
  if (d.Has(2)) inputs.push_back(d.In(2));
  Value y = d.Apply("Conv", std::move(inputs),
                    d.Given({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  if (d.Has(3)) {
    Value z = d.In(3);
    if (is_last) {
      ONNXIFI_ASSIGN_OR_RETURN(z, ChannelsFirst(d, z, 0));
    }
    y = d.Add(y, z);
  }
  const std::vector<float> parameters = d.Floats("activation_params");
  ONNXIFI_ASSIGN_OR_RETURN(
      y, Activate(d, y, d.String("activation"), {parameters.begin(), parameters.end()}, d.Type(0)));
  if (is_last) {
    ONNXIFI_ASSIGN_OR_RETURN(y, ChannelsLast(d, y, 0));
  }
  d.Return(0, std::move(y));
  return base::Ok();
}

Status DefineFusedConv(Definition& d) { return DefineConvolution(d, {}); }
// The optimizer writes filters with channels as the last axis, and the kernels read them so; the
// documentation of the operator is that of ONNX's Conv.
Status DefineNhwcConv(Definition& d) {
  return DefineConvolution(d, {.is_last = true, .has_filters = true});
}
// Filters as in ONNX's Conv, as its documentation says.
Status DefineNhwcFusedConv(Definition& d) { return DefineConvolution(d, {.is_last = true}); }

// What is cut off the result of a transposed convolution stands in an input.
Status DefineConvTranspose(Definition& d) {
  const std::optional<int> rank = d.Rank(0);
  if (!rank) return d.UnsupportedShape("Input 0 has a number of axes that is not known.");
  if (*rank < 3) {
    return d.Invalid("Input 0 has " + std::to_string(*rank) + " axes; images have at least 3.");
  }
  std::vector<Value> inputs = {d.In(0), d.In(1)};
  if (d.Has(3)) inputs.push_back(d.In(3));
  const bool has_pads = d.Has(2);
  Definition::Attributes attributes =
      d.Given({"dilations", "group", "kernel_shape", "output_padding", "strides"});
  if (has_pads && d.HasAttribute("auto_pad") && d.String("auto_pad") != "NOTSET") {
    return d.Invalid("Attribute auto_pad is '" + d.String("auto_pad") +
                     "' beside pads that are given.");
  }
  if (!has_pads && d.HasAttribute("auto_pad")) {
    attributes.emplace_back("auto_pad", d.String("auto_pad"));
  }
  Value y = d.Apply("ConvTranspose", std::move(inputs), std::move(attributes));
  if (has_pads) {
    const int64_t spatial = *rank - 2;
    const Value begins = d.Slice(d.In(2), 0, 0, spatial);
    const Value ends = d.Slice(d.In(2), 0, spatial, 2 * spatial);
    const Value extents = d.Apply("Shape", {y}, {{"start", int64_t{2}}});
    std::vector<int64_t> axes;
    for (int64_t axis = 2; axis < *rank; ++axis) axes.push_back(axis);
    y = d.Apply("Slice", {y, begins, d.Sub(extents, ends), d.Ints1D(std::move(axes))});
  }
  d.Return(0, std::move(y));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(ConvTransposeWithDynamicPads(X: T, W: T, Pads?: int64, B?: T) -> (Y: T)
        auto_pad: string = NOTSET
        dilations: ints
        group: int = 1
        kernel_shape: ints
        output_padding: ints
        strides: ints
        T = float16 | float | double)",
     DefineConvTranspose},
    {R"(FusedConv(X: T, W: T, B?: T, Z?: T) -> (Y: T)
        activation: string
        activation_params: floats
        auto_pad: string = NOTSET
        dilations: ints
        group: int = 1
        kernel_shape: ints
        pads: ints
        strides: ints
        T = float16 | float | double)",
     DefineFusedConv},
    {R"(NhwcConv(X: T, W: T, B?: T) -> (Y: T)
        auto_pad: string = NOTSET
        dilations: ints
        group: int = 1
        kernel_shape: ints
        pads: ints
        strides: ints
        T = float16 | float | double)",
     DefineNhwcConv},
    {R"(NhwcFusedConv(X: T, W: T, B?: T, Z?: T) -> (Y: T)
        activation: string
        activation_params: floats
        auto_pad: string = NOTSET
        dilations: ints
        group: int = 1
        kernel_shape: ints
        pads: ints
        strides: ints
        T = float16 | float)",
     DefineNhwcFusedConv},
};

}  // namespace

std::span<const model::DomainOperator> ConvolutionOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
