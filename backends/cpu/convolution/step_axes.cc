// SPDX-License-Identifier: Apache-2.0
//
// Step axes: extents and strides of an axis leave every view, or go to a neighbour.

#include "backends/cpu/convolution/step_axes.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace onnxifi::convolution {
namespace {

using program::Contract;
using program::Dim;
using program::Step;
using program::View;

constexpr size_t kAxes = 3;
constexpr size_t kFirst = 2;  // axes of images are N, C and the spatial ones
constexpr size_t kRank = kFirst + kAxes;

// Views are [N, C, spatial]; that of the weights is [M, C, kernel].
bool IsAlongThreeAxes(const Step& step) {
  const auto* contract = step.As<Contract>();
  if (contract == nullptr || contract->form != Contract::Form::kConv ||
      contract->a_spatial.size() != kAxes) {
    return false;
  }
  const auto is_plain = [](const View& view) {
    return view.guards.empty() && view.strides.size() == kRank;
  };
  return std::ranges::all_of(step.reads, is_plain) && std::ranges::all_of(step.writes, is_plain);
}

// The step, which is a Contract. Those of other families cannot be copied.
Step CopyOf(const Step& step) {
  Step copy;
  copy.domain = step.domain;
  copy.reads = step.reads;
  copy.writes = step.writes;
  copy.body = *step.As<Contract>();
  copy.node = step.node;
  return copy;
}

// Takes spatial axis `axis` from the step and all of its views.
void EraseAxis(Step& step, size_t axis) {
  const auto erase = [](auto& values, size_t at) {
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(at));
  };
  Contract& contract = *step.As<Contract>();
  erase(contract.inner, 1 + axis);
  erase(contract.a_spatial, axis);
  erase(contract.strides, axis);
  erase(contract.dilations, axis);
  erase(contract.pads_begin, axis);
  erase(step.domain, kFirst + axis);
  for (View& view : step.reads) erase(view.strides, kFirst + axis);
  for (View& view : step.writes) erase(view.strides, kFirst + axis);
}

// Whether each position along the axis sees that of the input alone.
bool HasOneTap(const Step& step, size_t axis) {
  const Contract& contract = *step.As<Contract>();
  return contract.inner[1 + axis] == Dim(1) && contract.strides[axis] == 1 &&
         contract.pads_begin[axis] == Dim(0) &&
         contract.a_spatial[axis] == step.domain[kFirst + axis];
}

// Moves `inner`, an axis of the domain, into `outer`: where all views but the weights' step along
// the outer axis by as much as along all of the inner one.
bool MergeDomainAxes(Step& step, size_t outer, size_t inner) {
  const bool is_alone = step.domain[outer] == Dim(1);
  const auto merges = [&](const View& view) {
    return is_alone || view.strides[outer] == view.strides[inner] * step.domain[inner];
  };
  for (size_t read = 0; read < step.reads.size(); ++read) {
    if (read != 1 && !merges(step.reads[read])) return false;
  }
  if (!std::ranges::all_of(step.writes, merges)) return false;
  for (size_t read = 0; read < step.reads.size(); ++read) {
    if (read != 1) step.reads[read].strides[outer] = step.reads[read].strides[inner];
  }
  for (View& view : step.writes) view.strides[outer] = view.strides[inner];
  step.domain[outer] = step.domain[outer] * step.domain[inner];
  return true;
}

}  // namespace

base::Result<Step> FrameOf(const Step& step) {
  if (!IsAlongThreeAxes(step)) {
    return base::Status(base::Code::kUnsupportedShape, "The step is no convolution along " +
                                                           std::to_string(kAxes) +
                                                           " axes of tensors without guards.");
  }
  Step frame = CopyOf(step);
  EraseAxis(frame, 0);
  return frame;
}

std::optional<Step> MergeAxes(const Step& step) {
  if (!IsAlongThreeAxes(step)) return std::nullopt;
  Step merged = CopyOf(step);
  if (HasOneTap(step, 0) && MergeDomainAxes(merged, /*outer=*/0, /*inner=*/kFirst)) {
    EraseAxis(merged, 0);
    return merged;
  }
  if (HasOneTap(step, 1) && HasOneTap(step, 2) &&
      MergeDomainAxes(merged, /*outer=*/kFirst + 1, /*inner=*/kFirst + 2)) {
    merged.As<Contract>()->a_spatial[1] = merged.domain[kFirst + 1];
    EraseAxis(merged, 2);
    return merged;
  }
  return std::nullopt;
}

}  // namespace onnxifi::convolution
