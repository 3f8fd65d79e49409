// SPDX-License-Identifier: Apache-2.0
//
// Gathered convolutions: what the four ways of binding one share. Either windows are gathered; or,
// along three axes with few outputs, slabs of the padded input are copied, in which windows
// overlap; or, between planes, windows are gathered side by side; or, where at least a quarter of
// what windows see is padding, taps are multiplied one after the other.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_GATHERED_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_GATHERED_H_

#include <cstdint>
#include <memory>

#include "backends/core/device/device.h"
#include "backends/cpu/convolution/used_taps.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/step_epilogue.h"
#include "backends/cpu/runtime/packed_weights.h"
#include "backends/cpu/runtime/runtime.h"

namespace onnxifi::convolution {

// What is a number before the step is bound.
struct GatheredConvolution {
  int64_t group = 1;
  int64_t in_channels = 1, out_channels = 1;  // of one group
  int64_t taps = 1;                           // of a kernel
  gemm::StepEpilogue epilogue;

  int64_t depth() const { return taps * in_channels; }
  int64_t panels() const {
    return (out_channels + gemm::PanelColumns() - 1) / gemm::PanelColumns();
  }
  int64_t packed_size() const { return gemm::PackedSize(depth(), out_channels); }
};

// Some columns of `rows` positions, from rows of them to wherever they belong.
void CopyColumns(const float* from, int64_t from_row, int64_t rows, const Range& columns, float* to,
                 int64_t to_row, int64_t to_column);

// Whether slabs are the faster way: along three axes, where windows overlap or can be read in
// place, and the packed weights stay in the L2 cache while every row of a slab meets all of them.
// `convolution` has the used taps alone.
bool PrefersSlabs(const Windows& windows, const GatheredConvolution& convolution);
// The weights are packed as for gathered windows.
std::unique_ptr<device::BoundKernel> BindSlabs(const device::BoundStep& step,
                                               const GatheredConvolution& convolution,
                                               const Windows& windows,
                                               runtime::PackedWeights weights,
                                               runtime::Runtime& runtime);

// Whether planes are the faster way: neighbouring positions of source and result lie side by side,
// and there are many of them. `convolution` has the used taps alone.
bool PrefersPlanes(const device::BoundStep& step, const GatheredConvolution& convolution,
                   const Windows& windows);
// The weights of every output, channel by channel and then tap by tap. `weights` is the first used
// tap's.
void PackForPlanes(const GatheredConvolution& convolution, const float* weights,
                   const device::BoundView& view, const tensor::Extents& kernel, float* packed);
std::unique_ptr<device::BoundKernel> BindPlanes(const device::BoundStep& step,
                                                const GatheredConvolution& convolution,
                                                const Windows& windows,
                                                runtime::PackedWeights weights,
                                                runtime::Runtime& runtime);

// Whether single taps are the faster way: pixels with their channels side by side, many of them,
// and a kernel of which at least a quarter meets padding. `windows` has the used taps alone.
bool PrefersTaps(const device::BoundStep& step, const GatheredConvolution& convolution,
                 const Windows& windows);
// The weights are packed as for gathered windows.
std::unique_ptr<device::BoundKernel> BindTaps(const device::BoundStep& step,
                                              const GatheredConvolution& convolution,
                                              const Windows& windows,
                                              runtime::PackedWeights weights,
                                              runtime::Runtime& runtime);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_GATHERED_H_
