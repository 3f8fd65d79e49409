// SPDX-License-Identifier: Apache-2.0
//
// StepEpilogue: what a step does to its sums, as far as the products of this folder do it before
// they store them; and the same with the addresses of a run.

#ifndef ONNXIFI_BACKENDS_CPU_GEMM_STEP_EPILOGUE_H_
#define ONNXIFI_BACKENDS_CPU_GEMM_STEP_EPILOGUE_H_

#include <cstddef>
#include <optional>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/gemm/epilogue.h"

namespace onnxifi::gemm {

// A bias per channel and a tensor (each the number of a read of the step, or -1), then an
// activation.
struct StepEpilogue {
  int bias = -1;
  int addend = -1;
  Activation activation = Activation::kNone;
  float low = 0;
  float high = 0;
};

// Of a Contract whose channels are the axis `channel_axis` of its domain. UNSUPPORTED_ATTRIBUTE or
// UNSUPPORTED_SHAPE, naming the operation or the operand that is in the way.
base::Result<StepEpilogue> SelectEpilogue(const device::Facts& facts, size_t channel_axis);

class BoundEpilogue {
 public:
  BoundEpilogue(const StepEpilogue& epilogue, const device::BoundStep& step);

  // The bias and the activation; where its rows of the addend are, the caller says.
  Epilogue At(device::Addresses addresses) const;
  const std::optional<device::BoundView>& addend() const { return addend_; }

 private:
  const StepEpilogue epilogue_;
  std::optional<device::BoundView> bias_, addend_;
};

// Where a view of floats begins; at any address, as a caller's memory may.
inline float* FloatsAt(device::Addresses addresses, const device::BoundView& view) {
  return reinterpret_cast<float*>(addresses[view.buffer] +
                                  view.offset * static_cast<int64_t>(sizeof(float)));
}

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_STEP_EPILOGUE_H_
