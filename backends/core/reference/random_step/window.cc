// SPDX-License-Identifier: Apache-2.0
//
// MakeWindow: pooling with every attribute, and local response normalisation.

#include <utility>

#include "backends/core/reference/random_step/epilogue.h"
#include "backends/core/reference/random_step/family.h"

namespace onnxifi::reference {

using program::Dim;
using program::Window;
using tensor::ElementType;
using tensor::Extents;

void MakeWindow(StepMaker& make) {
  Window window;
  window.kind = make.Pick({Window::Kind::kMax, Window::Kind::kMax, Window::Kind::kAverage,
                           Window::Kind::kAverage, Window::Kind::kLp, Window::Kind::kLrn});
  const bool needs_float = window.kind != Window::Kind::kMax;
  window.accumulator = needs_float || make.Chance(60)
                           ? make.Pick({kFloat32, kFloat32, kFloat32, kFloat64})
                           : make.Pick(std::span<const ElementType>(kIntegers));
  const bool is_float = tensor::IsFloat(window.accumulator);
  Extents in_spatial, domain = {make.Roll(1, 2), make.Roll(1, 6)};
  Extents in_extents = domain;
  const auto spatial = static_cast<size_t>(make.Roll(1, 3));
  const int64_t largest = spatial == 1 ? 24 : spatial == 2 ? 10 : 6;
  if (window.kind == Window::Kind::kLrn) {
    for (size_t axis = 0; axis < spatial; ++axis) in_spatial.push_back(make.Roll(1, largest));
    domain.insert(domain.end(), in_spatial.begin(), in_spatial.end());
    window.kernel = {make.Roll(1, 7)};
    window.alpha = make.Uniform(0.0001, 0.5);
    window.beta = make.Pick({0.75, 0.5, 1.0, make.Uniform(0.1, 1.5)});
    window.bias = make.Uniform(0.5, 2);
  }
  while (in_spatial.size() < spatial) {
    const StepMaker::Numbers numbers(make);
    const bool is_global = make.Chance(10);
    const int64_t extent = make.Roll(1, largest);
    const int64_t size = is_global ? extent : make.Roll(1, 4);
    const int64_t stride = is_global || make.Chance(40) ? 1 : make.Roll(1, 3);
    const int64_t dilation = is_global || make.Chance(70) ? 1 : make.Roll(1, 2);
    const int64_t reach = dilation * (size - 1) + 1;
    const int64_t before = is_global || make.Chance(50) ? 0 : make.Roll(0, reach - 1);
    const int64_t after = is_global || make.Chance(50) ? 0 : make.Roll(0, reach - 1);
    const int64_t room = extent + before + after - reach;
    if (room < 0) continue;
    // Rounded up at times; a window then starts inside the input or the padding before it.
    int64_t result = room / stride + 1;
    if (make.Chance(30) && room % stride != 0 && result * stride < extent + before) ++result;
    in_spatial.push_back(extent);
    window.kernel.push_back(make.MakeDim(size));
    window.strides.push_back(stride);
    window.dilations.push_back(dilation);
    window.pads_begin.push_back(before == 0 ? Dim(0) : make.MakeDim(before));
    window.pads_end.push_back(after == 0 ? Dim(0) : make.MakeDim(after));
    domain.push_back(result);
  }
  in_extents.insert(in_extents.end(), in_spatial.begin(), in_spatial.end());
  window.in_spatial = make.MakeShape(in_spatial);
  window.count_include_pad = make.Chance(50);
  window.p = make.Roll(1, 3);
  window.column_major = make.Chance(50);
  make.step.domain = make.MakeShape(domain);
  ElementType type = window.accumulator;
  if (type == kFloat32 && make.Chance(30)) {
    type = make.Pick({ElementType::kFloat16, ElementType::kBfloat16});
  }
  make.AddRead(type, in_extents, is_float && make.Chance(70) ? Data::kModerate : Data::kSmall);
  if (window.kind == Window::Kind::kMax && make.Chance(40)) {
    window.roots = {Cast(Accumulator(make.pool(), window.accumulator), window.accumulator).id()};
    make.AddWrite(window.accumulator, domain);
    make.AddWrite(kInt64, domain);
  } else {
    // The second write of a maximum is its indices.
    MakeEpilogue(make, window.accumulator, domain, window.kind != Window::Kind::kMax, window.roots);
  }
  if (is_float && needs_float) {
    const double unit = window.accumulator == kFloat32 ? 0x1p-24 : 0x1p-53;
    make.tolerance = 512 * unit * 16;
  }
  make.step.body = std::move(window);
}

}  // namespace onnxifi::reference
