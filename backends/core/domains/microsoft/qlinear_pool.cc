// SPDX-License-Identifier: Apache-2.0
//
// Pooling and convolution of quantized images, and of images whose channels are the last axis.

#include <string>
#include <utility>
#include <vector>

#include "backends/core/domains/microsoft/channels_last.h"
#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/quantization.h"

namespace onnxifi::microsoft {
namespace {

// ONNX Runtime divides by the elements of whole windows also where the last ones reach past the
// padding: zeros stand there. No window does with the padding that auto_pad SAME gives; VALID is
// padding of 0.
Result<Value> AverageOfWholeWindows(Definition& d, const Value& images) {
  const std::string padding = d.String("auto_pad");
  if (padding == "SAME_UPPER" || padding == "SAME_LOWER") {
    return d.Apply("AveragePool", {images},
                   d.Given({"auto_pad", "count_include_pad", "kernel_shape", "strides"}));
  }
  const std::vector<int64_t> kernel = d.Ints("kernel_shape");
  std::vector<int64_t> pads = d.Ints("pads"), strides = d.Ints("strides");
  if (padding == "VALID") pads.clear();
  if (pads.empty()) pads.resize(2 * kernel.size());
  if (strides.empty()) strides.assign(kernel.size(), 1);
  if (pads.size() != 2 * kernel.size() || strides.size() != kernel.size()) {
    return d.Invalid("Attributes pads (" + std::to_string(pads.size()) + " numbers) and strides (" +
                     std::to_string(strides.size()) + ") do not fit a kernel of " +
                     std::to_string(kernel.size()) + " axes.");
  }
  std::vector<int64_t> around = {0, 0}, behind = {0, 0};
  for (size_t axis = 0; axis < kernel.size(); ++axis) {
    around.push_back(pads[axis]);
    behind.push_back(pads[kernel.size() + axis] + strides[axis] - 1);
  }
  around.insert(around.end(), behind.begin(), behind.end());
  const Value padded = d.Apply("Pad", {images, d.Ints1D(std::move(around))});
  return d.Apply("AveragePool", {padded}, d.Given({"kernel_shape", "strides"}));
}

Status DefineAveragePool(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(Value x, Dequantize(d, 0));
  const bool is_last = d.Int("channels_last") != 0;
  if (is_last) {
    ONNXIFI_ASSIGN_OR_RETURN(x, ChannelsFirst(d, x, 0));
  }
  Value mean;
  if (d.Int("ceil_mode") != 0 && d.Int("count_include_pad") != 0) {
    ONNXIFI_ASSIGN_OR_RETURN(mean, AverageOfWholeWindows(d, x));
  } else {
    mean = d.Apply(
        "AveragePool", {x},
        d.Given({"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"}));
  }
  if (is_last) {
    ONNXIFI_ASSIGN_OR_RETURN(mean, ChannelsLast(d, mean, 0));
  }
  ONNXIFI_ASSIGN_OR_RETURN(Value y, Quantize(d, mean, 3, 4, d.Type(0)));
  d.Return(0, std::move(y));
  return base::Ok();
}

Status DefineGlobalAveragePool(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(Value x, Dequantize(d, 0));
  const bool is_last = d.Int("channels_last") != 0;
  if (is_last) {
    ONNXIFI_ASSIGN_OR_RETURN(x, ChannelsFirst(d, x, 0));
  }
  Value mean = d.Apply("GlobalAveragePool", {std::move(x)});
  if (is_last) {
    ONNXIFI_ASSIGN_OR_RETURN(mean, ChannelsLast(d, mean, 0));
  }
  ONNXIFI_ASSIGN_OR_RETURN(Value y, Quantize(d, mean, 3, 4, d.Type(0)));
  d.Return(0, std::move(y));
  return base::Ok();
}

Status DefineMaxPool(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(Value x, ChannelsFirst(d, d.In(0), 0));
  const Value most =
      d.Apply("MaxPool", {std::move(x)},
              d.Given({"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"}));
  ONNXIFI_ASSIGN_OR_RETURN(Value y, ChannelsLast(d, most, 0));
  d.Return(0, std::move(y));
  return base::Ok();
}

Status DefineConv(Definition& d) {
  std::vector<Value> inputs;
  for (int input = 0; input < d.input_count(); ++input) {
    inputs.push_back(d.Has(input) ? d.In(input) : Value());
  }
  const bool is_last = d.Int("channels_last") != 0;
  if (is_last) {
    ONNXIFI_ASSIGN_OR_RETURN(inputs[0], ChannelsFirst(d, inputs[0], 0));
  }
  Value y = d.Apply("QLinearConv", std::move(inputs),
                    d.Given({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  if (is_last) {
    ONNXIFI_ASSIGN_OR_RETURN(y, ChannelsLast(d, y, 0));
  }
  d.Return(0, std::move(y));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(NhwcMaxPool(x: T) -> (y: T)
        auto_pad: string = NOTSET
        ceil_mode: int = 0
        dilations: ints
        kernel_shape: ints required
        pads: ints
        strides: ints
        T = int8 | uint8)",
     DefineMaxPool},
    {R"(QLinearAveragePool(X: T, x_scale: float, x_zero_point?: T, y_scale: float, y_zero_point?: T)
            -> (Y: T)
        auto_pad: string = NOTSET
        ceil_mode: int = 0
        channels_last: int = 0
        count_include_pad: int = 0
        kernel_shape: ints required
        pads: ints
        strides: ints
        T = uint8 | int8)",
     DefineAveragePool},
    {R"(QLinearConv(x: T1, x_scale: float, x_zero_point: T1, w: T2, w_scale: float,
                    w_zero_point: T2, y_scale: float, y_zero_point: T3, B?: int32) -> (y: T3)
        auto_pad: string = NOTSET
        channels_last: int = 0
        dilations: ints
        group: int = 1
        kernel_shape: ints
        pads: ints
        strides: ints
        T1 = int8 | uint8
        T2 = int8 | uint8
        T3 = int8 | uint8)",
     DefineConv},
    {R"(QLinearGlobalAveragePool(X: T, x_scale: float, x_zero_point: T, y_scale: float,
                                 y_zero_point: T) -> (Y: T)
        channels_last: int = 0
        T = uint8 | int8)",
     DefineGlobalAveragePool},
};

}  // namespace

std::span<const model::DomainOperator> QLinearPoolOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
