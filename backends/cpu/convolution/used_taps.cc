// SPDX-License-Identifier: Apache-2.0
//
// UsedTaps.

#include "backends/cpu/convolution/used_taps.h"

#include <algorithm>
#include <string>

#include "backends/cpu/runtime/plain_operand.h"

namespace onnxifi::convolution {

using base::Code;
using base::Status;
using program::Contract;
using program::Dim;

namespace {

base::Result<int64_t> Number(const Dim& dim, std::string_view what) {
  if (dim.is_constant() && dim.constant() >= 1) return dim.constant();
  if (!dim.is_constant()) {
    return Status(Code::kUnsupportedShape,
                  "The " + std::string(what) + " is known only once the inputs are.");
  }
  return Status(Code::kUnsupportedShape, "The " + std::string(what) + " is " +
                                             std::to_string(dim.constant()) + ", less than 1.");
}

}  // namespace

UsedTaps FindUsedTaps(const device::BoundStep& step) {
  const Contract& contract = *step.step->As<Contract>();
  UsedTaps used;
  for (size_t axis = 0; axis < contract.a_spatial.size(); ++axis) {
    const int64_t in = step.Number(contract.a_spatial[axis]);
    const int64_t out = step.domain[kFirstSpatial + axis];
    const int64_t pad = step.Number(contract.pads_begin[axis]);
    const int64_t dilation = contract.dilations[axis];
    const int64_t last_window = std::max<int64_t>(out - 1, 0) * contract.strides[axis] - pad;
    int64_t first = 0, end = step.Number(contract.inner[1 + axis]);
    while (first + 1 < end && last_window + first * dilation < 0) ++first;
    while (end - 1 > first && (end - 1) * dilation - pad >= in) --end;
    used.first.push_back(first);
    used.count.push_back(end - first);
  }
  return used;
}

Windows WindowsOf(const device::BoundStep& step, const UsedTaps& used) {
  const Contract& contract = *step.step->As<Contract>();
  const device::BoundView& source = step.reads[0];
  Windows windows;
  windows.channels = step.Number(contract.inner[0]);
  windows.channel_stride = source.strides[1];
  const size_t spatial = contract.a_spatial.size();
  for (size_t axis = 0; axis < spatial; ++axis) {
    windows.axes[kMaxSpatialAxes - spatial + axis] = {
        step.Number(contract.a_spatial[axis]),
        step.domain[kFirstSpatial + axis],
        used.count[axis],
        contract.strides[axis],
        contract.dilations[axis],
        step.Number(contract.pads_begin[axis]) - used.first[axis] * contract.dilations[axis],
        source.strides[kFirstSpatial + axis]};
  }
  return windows;
}

int TapLayouts::NumberOf(const UsedTaps& used) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(layouts_.begin(), layouts_.end(), used);
  const auto number = static_cast<int>(found - layouts_.begin());
  if (found == layouts_.end()) layouts_.push_back(used);
  return number;
}

Status CheckGathered(const device::Facts& facts) {
  const program::Step& step = facts.step;
  const Contract& contract = *step.As<Contract>();
  const size_t spatial = contract.a_spatial.size();
  if (spatial == 0 || spatial > kMaxSpatialAxes) {
    return Status(Code::kUnsupportedShape, "The convolution has " + std::to_string(spatial) +
                                               " spatial axes; the kernel has 1 to " +
                                               std::to_string(kMaxSpatialAxes) + ".");
  }
  if (contract.accumulator != tensor::ElementType::kFloat32 || step.writes.size() != 1 ||
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
  ONNXIFI_RETURN_IF_ERROR(Number(contract.inner[0], "input's depth").status());
  ONNXIFI_RETURN_IF_ERROR(Number(step.domain[1], "output's depth").status());
  for (size_t axis = 1; axis < contract.inner.size(); ++axis) {
    ONNXIFI_RETURN_IF_ERROR(Number(contract.inner[axis], "kernel's extent").status());
  }
  return base::Ok();
}

Status CheckEvenPositions(const program::View& view, const program::Shape& domain,
                          std::string_view what) {
  for (size_t axis = domain.size() - 1; axis > kFirstSpatial; --axis) {
    if (domain[axis - 1] == Dim(1)) continue;
    if (!(view.strides[axis - 1] == view.strides[axis] * domain[axis])) {
      return Status(Code::kUnsupportedShape,
                    "The pixels of the " + std::string(what) + " do not lie evenly in memory.");
    }
  }
  return base::Ok();
}

}  // namespace onnxifi::convolution
