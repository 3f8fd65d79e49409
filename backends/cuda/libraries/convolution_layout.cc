// SPDX-License-Identifier: Apache-2.0
//
// ConvolutionLayout: strides are compared with those of both packed orders.

#include "backends/cuda/libraries/convolution_layout.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "backends/core/program/step.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;
using device::BoundView;
using program::Contract;
using Numbers = std::vector<int64_t>;
using Tensor = ConvolutionLayout::Tensor;

Status Refuse(std::string sentence) {
  return Status(Code::kUnsupportedOperator, std::move(sentence));
}

// Axes of one element lie in any order.
bool IsPacked(const Numbers& extents, std::span<const int64_t> strides, bool is_channels_last) {
  const Numbers packed = PackedStrides(extents, is_channels_last);
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] > 1 && strides[axis] != packed[axis]) return false;
  }
  return true;
}

// With a first spatial axis of one element where there is but one.
Numbers WithTwoAxes(Numbers numbers, size_t first_spatial, int64_t of_one) {
  if (numbers.size() == first_spatial + 1) {
    numbers.insert(numbers.begin() + static_cast<int64_t>(first_spatial), of_one);
  }
  return numbers;
}

Tensor MakeTensor(const Numbers& extents, bool is_channels_last, int64_t offset) {
  constexpr size_t kFirstSpatial = 2;
  Tensor tensor;
  tensor.extents = WithTwoAxes(extents, kFirstSpatial, /*of_one=*/1);
  tensor.strides = PackedStrides(tensor.extents, is_channels_last);
  tensor.offset = offset;
  return tensor;
}

Numbers ImageExtents(const device::BoundStep& step, const Contract& contract) {
  Numbers extents = {step.domain[0], step.Number(contract.inner[0]) * contract.group};
  for (const program::Dim& dim : contract.a_spatial) extents.push_back(step.Number(dim));
  return extents;
}

Numbers WeightExtents(const device::BoundStep& step, const Contract& contract) {
  Numbers extents = {step.domain[1]};
  for (const program::Dim& dim : contract.inner) extents.push_back(step.Number(dim));
  return extents;
}

// Pads behind each axis, of those with which it has as many outputs: the nearest to the ones before
// it, as fewer engines take two numbers.
Status SetPads(const device::BoundStep& step, const Contract& contract, const Numbers& image,
               const Numbers& weights, ConvolutionLayout& layout) {
  for (size_t axis = 0; axis < contract.a_spatial.size(); ++axis) {
    const int64_t before = step.Number(contract.pads_begin[axis]);
    const int64_t stride = contract.strides[axis];
    const int64_t reach = (weights[axis + 2] - 1) * contract.dilations[axis] + 1;
    const int64_t least = (step.domain[axis + 2] - 1) * stride + reach - image[axis + 2] - before;
    const int64_t after = std::max<int64_t>(std::clamp(before, least, least + stride - 1), 0);
    if (before < 0 || after > least + stride - 1) {
      return Refuse("cuDNN cuts nothing off an image.");
    }
    layout.pads_before.push_back(before);
    layout.pads_after.push_back(after);
  }
  return base::Ok();
}

}  // namespace

Numbers PackedStrides(const Numbers& extents, bool is_channels_last) {
  Numbers strides(extents.size(), 1);
  int64_t stride = 1;
  const auto lay = [&](size_t axis) {
    strides[axis] = stride;
    stride *= extents[axis];
  };
  if (is_channels_last) lay(1);
  for (size_t axis = extents.size(); axis-- > 0;) {
    if (axis != 1 || !is_channels_last) lay(axis);
  }
  return strides;
}

Result<ConvolutionLayout> LayOutConvolution(const device::BoundStep& step,
                                            const LibraryResults& results) {
  const auto& contract = *step.step->As<Contract>();
  const Numbers image = ImageExtents(step, contract);
  const Numbers weights = WeightExtents(step, contract);
  const Numbers out(step.domain.begin(), step.domain.end());
  for (const Numbers* const extents : {&image, &weights, &out}) {
    if (std::ranges::find(*extents, 0) != extents->end()) {
      return Refuse("There is nothing to multiply.");
    }
  }
  ConvolutionLayout layout;
  layout.extents = {out[1] / contract.group, out[0], weights[1]};
  for (size_t axis = 2; axis < out.size(); ++axis) {
    layout.extents.columns *= out[axis];
    layout.extents.depth *= weights[axis];
  }
  const auto fits = [&](bool is_channels_last) {
    return IsPacked(image, step.reads[0].strides, is_channels_last) &&
           std::ranges::all_of(std::array{results.out, results.addend}, [&](const BoundView* view) {
             return view == nullptr || IsPacked(out, view->strides, is_channels_last);
           });
  };
  if (!fits(false) && !fits(true)) {
    return Refuse("Image and output are not packed with their channels in one place.");
  }
  // Where both would do, that of the weights.
  const auto are_weights = [&](bool is_channels_last) {
    return IsPacked(weights, step.reads[1].strides, is_channels_last);
  };
  layout.is_channels_last = !fits(false) || (fits(true) && !are_weights(false));
  layout.are_weights_reordered = !are_weights(layout.is_channels_last);

  layout.image = MakeTensor(image, layout.is_channels_last, step.reads[0].offset);
  layout.weights = MakeTensor(weights, layout.is_channels_last,
                              layout.are_weights_reordered ? 0 : step.reads[1].offset);
  layout.output =
      MakeTensor(out, layout.is_channels_last, results.out == nullptr ? 0 : results.out->offset);
  if (results.bias != nullptr) {
    for (size_t axis = 0; axis < out.size(); ++axis) {
      if (out[axis] > 1 && results.bias->strides[axis] != (axis == 1 ? 1 : 0)) {
        return Refuse("The bias is not one element for each channel.");
      }
    }
    Numbers extents(out.size(), 1);
    extents[1] = out[1];
    layout.bias = MakeTensor(extents, layout.is_channels_last, results.bias->offset);
  }
  if (results.addend != nullptr) {
    layout.addend = MakeTensor(out, layout.is_channels_last, results.addend->offset);
  }
  ONNXIFI_RETURN_IF_ERROR(SetPads(step, contract, image, weights, layout));
  layout.strides = WithTwoAxes(contract.strides, 0, 1);
  layout.dilations = WithTwoAxes(contract.dilations, 0, 1);
  layout.pads_before = WithTwoAxes(std::move(layout.pads_before), 0, 0);
  layout.pads_after = WithTwoAxes(std::move(layout.pads_after), 0, 0);
  return layout;
}

}  // namespace onnxifi::cuda
