// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft.nchwc: what ONNX Runtime's optimizer makes of convolutional networks at
// ORT_ENABLE_ALL. Between these operators it keeps channels in blocks of 8 or 16, as
//   [N, C / block, H, W, block]
// under the extents [N, C, H, W], with C rounded up to whole blocks by channels that are 0 where
// filters read them. Order in memory is a device's own matter, so images are ONNX's here, with the
// added channels; only filters, which a file holds as they lie in memory, are turned back.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "backends/core/domains/microsoft/activation.h"
#include "backends/core/domains/microsoft/channels_last.h"
#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {
namespace {

using base::Result;
using base::Status;
using model::Definition;
using Value = Definition::Value;

constexpr std::array<int64_t, 2> kBlocks = {8, 16};

// Channels of a block. A file does not say it: ONNX Runtime takes that of the processor that it
// runs on, and so does this.
int64_t BlockOfProcessor() {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_cpu_supports("avx512f") != 0 ? kBlocks[1] : kBlocks[0];
#else
  return kBlocks[1];
#endif
}

// Where extents show that the file has other blocks.
Status OtherBlocks(const Definition& d, const std::string& what) {
  return d.UnsupportedShape(
      what + " does not come in blocks of " + std::to_string(BlockOfProcessor()) +
      " channels, those of this processor. A file that ONNX Runtime saved at ORT_ENABLE_ALL is for "
      "processors like the one that saved it; at ORT_ENABLE_EXTENDED it is for all.");
}

struct Filter {
  int64_t outputs, inputs, height, width;  // `inputs`: channels of a group
  int64_t groups;

  bool is_depthwise() const { return groups > 1 && inputs == 1 && outputs == groups; }
  // Of an image in ONNX's order, which has less than a block of channels.
  bool reads_images(int64_t block) const { return groups == 1 && inputs < block; }
  bool can_have(int64_t block) const {
    if (outputs % block != 0) return false;
    if (is_depthwise() || reads_images(block)) return true;
    return inputs % block == 0 && outputs % groups == 0 && outputs / groups % block == 0;
  }
};

// Input 1 as [O, I, H, W]. Its elements lie as [O / block, I / block, H, W, block, block], with the
// outputs innermost; where input channels have no blocks, as [O / block, I, H, W, block].
Result<Value> FilterOf(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(1, 4));
  std::array<int64_t, 4> extents{};
  for (int axis = 0; axis < 4; ++axis) {
    ONNXIFI_ASSIGN_OR_RETURN(extents[static_cast<size_t>(axis)], d.NeedExtent(1, axis));
  }
  const auto [outputs, inputs, height, width] = extents;
  const Filter filter{outputs, inputs, height, width, d.Int("group")};
  if (filter.groups < 1) {
    return d.Invalid("Attribute group is " + std::to_string(filter.groups) + ", below 1.");
  }
  const int64_t block = BlockOfProcessor();
  if (!filter.can_have(block)) {
    return OtherBlocks(d, "The filter of " + std::to_string(outputs) + " outputs and " +
                              std::to_string(inputs) + " inputs in " +
                              std::to_string(filter.groups) + " groups");
  }
  Value turned;
  if (filter.is_depthwise() || filter.reads_images(block)) {
    turned = d.Reshape(d.In(1), {outputs / block, inputs, height, width, block});
    turned = d.Transpose(std::move(turned), {0, 4, 1, 2, 3});
  } else {
    turned = d.Reshape(d.In(1), {outputs / block, inputs / block, height, width, block, block});
    turned = d.Transpose(std::move(turned), {0, 5, 1, 4, 2, 3});
  }
  return d.Reshape(std::move(turned), {outputs, inputs, height, width});
}

Status DefineConv(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(Value filter, FilterOf(d));
  std::vector<Value> inputs = {d.In(0), std::move(filter)};
  if (d.Has(2)) inputs.push_back(d.In(2));
  Value y = d.Apply("Conv", std::move(inputs),
                    d.Given({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  if (d.Has(3)) y = d.Add(std::move(y), d.In(3));
  const std::vector<float> parameters = d.Floats("activation_params");
  ONNXIFI_ASSIGN_OR_RETURN(y, Activate(d, std::move(y), d.String("activation"),
                                       {parameters.begin(), parameters.end()}, d.Type(0)));
  d.Return(0, std::move(y));
  return base::Ok();
}

Status DefineReorderInput(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 4));
  const bool is_last = d.Int("channels_last") != 0;
  const std::optional<int64_t> channels = d.Extent(0, is_last ? 3 : 1);
  Value x = d.In(0);
  if (is_last) {
    ONNXIFI_ASSIGN_OR_RETURN(x, ChannelsFirst(d, std::move(x), 0));
  }
  const int64_t block = BlockOfProcessor();
  if (channels && *channels % block == 0) {
    d.Return(0, d.Apply("Identity", {std::move(x)}));
    return base::Ok();
  }
  // The remainder of a negative number is what is missing to whole blocks.
  const Value missing = d.Apply("Mod", {d.Sub(d.Ints1D({0}), d.ExtentOf(x, 1)), d.Ints1D({block})});
  const Value pads = d.Concat({d.Ints1D({0, 0, 0, 0, 0}), missing, d.Ints1D({0, 0})}, 0);
  d.Return(0, d.Apply("Pad", {std::move(x), pads}));
  return base::Ok();
}

Status DefineReorderOutput(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 4));
  const int64_t channels = d.Int("channels");
  if (channels < 1) {
    return d.Invalid("Attribute channels is " + std::to_string(channels) + ", below 1.");
  }
  if (const std::optional<int64_t> blocked = d.Extent(0, 1)) {
    const int64_t block = BlockOfProcessor();
    if (channels > *blocked) {
      return d.Invalid("Attribute channels is " + std::to_string(channels) + "; input 0 has " +
                       std::to_string(*blocked) + " channels.");
    }
    if (*blocked % block != 0 || *blocked - channels >= block) {
      return OtherBlocks(d, "An image of " + std::to_string(channels) + " channels in " +
                                std::to_string(*blocked));
    }
  }
  Value y = d.Slice(d.In(0), 1, 0, channels);
  if (d.Int("channels_last") != 0) {
    ONNXIFI_ASSIGN_OR_RETURN(y, ChannelsLast(d, std::move(y), 0));
  }
  d.Return(0, std::move(y));
  return base::Ok();
}

Status DefineMaxPool(Definition& d) {
  d.Return(0, d.Apply("MaxPool", {d.In(0)},
                      d.Given({"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads",
                               "storage_order", "strides"})));
  return base::Ok();
}

Status DefineAveragePool(Definition& d) {
  d.Return(0, d.Apply("AveragePool", {d.In(0)},
                      d.Given({"auto_pad", "ceil_mode", "count_include_pad", "dilations",
                               "kernel_shape", "pads", "strides"})));
  return base::Ok();
}

Status DefineGlobalMaxPool(Definition& d) {
  d.Return(0, d.Apply("GlobalMaxPool", {d.In(0)}));
  return base::Ok();
}

Status DefineGlobalAveragePool(Definition& d) {
  d.Return(0, d.Apply("GlobalAveragePool", {d.In(0)}));
  return base::Ok();
}

Status DefineUpsample(Definition& d) {
  const std::vector<int64_t> factors = d.Ints("scales");
  if (factors.size() != 4) {
    return d.Invalid("Attribute scales has " + std::to_string(factors.size()) +
                     " numbers instead of 4.");
  }
  const std::string mode = d.String("mode");
  if (mode != "nearest" && mode != "linear") {
    return d.Unsupported("Attribute mode is '" + mode + "' instead of 'nearest' or 'linear'.");
  }
  const std::string coordinates = d.String("coordinate_transformation_mode");
  if (mode == "nearest" && coordinates != "asymmetric") {
    return d.Unsupported("Attribute coordinate_transformation_mode is '" + coordinates +
                         "'; pixels that are repeated take 'asymmetric'.");
  }
  Definition::Attributes attributes = {{"mode", mode},
                                       {"coordinate_transformation_mode", coordinates}};
  if (mode == "nearest") attributes.emplace_back("nearest_mode", "floor");
  const Value scales = d.Apply(
      "Constant", {}, {{"value_floats", std::vector<float>(factors.begin(), factors.end())}});
  d.Return(0, d.Apply("Resize", {d.In(0), Value(), scales}, std::move(attributes)));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(AveragePool(X: T) -> (Y: T)
        auto_pad: string = NOTSET
        ceil_mode: int = 0
        count_include_pad: int = 0
        dilations: ints
        kernel_shape: ints required
        pads: ints
        strides: ints
        T = float)",
     DefineAveragePool},
    {R"(Conv(X: T, W: T, B?: T, Sum?: T) -> (Y: T)
        activation: string
        activation_params: floats
        auto_pad: string = NOTSET
        dilations: ints
        group: int = 1
        kernel_shape: ints
        pads: ints
        strides: ints
        T = float)",
     DefineConv},
    {R"(GlobalAveragePool(X: T) -> (Y: T)
        T = float)",
     DefineGlobalAveragePool},
    {R"(GlobalMaxPool(X: T) -> (Y: T)
        T = float)",
     DefineGlobalMaxPool},
    {R"(MaxPool(X: T) -> (Y: T)
        auto_pad: string = NOTSET
        ceil_mode: int = 0
        dilations: ints
        kernel_shape: ints required
        pads: ints
        storage_order: int = 0
        strides: ints
        T = float)",
     DefineMaxPool},
    {R"(ReorderInput(X: T) -> (Y: T)
        channels_last: int = 0
        T = float)",
     DefineReorderInput},
    {R"(ReorderOutput(X: T) -> (Y: T)
        channels: int = 0
        channels_last: int = 0
        T = float)",
     DefineReorderOutput},
    {R"(Upsample(X: T) -> (Y: T)
        coordinate_transformation_mode: string = asymmetric
        mode: string = nearest
        scales: ints
        T = float)",
     DefineUpsample},
};

}  // namespace

std::string_view BlockedChannelsNote() {
  if (BlockOfProcessor() == kBlocks[0]) {
    return "Operators of com.microsoft.nchwc are taken to have blocks of 8 channels, as on this "
           "processor. If ONNX Runtime saved the model on a processor with blocks of 16, results "
           "are wrong.";
  }
  return "Operators of com.microsoft.nchwc are taken to have blocks of 16 channels, as on this "
         "processor. If ONNX Runtime saved the model on a processor with blocks of 8, results are "
         "wrong.";
}

std::span<const model::DomainOperator> BlockedChannelsOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
