// SPDX-License-Identifier: Apache-2.0
//
// Epilogue: what a step does to its sums, as far as this backend's own kernels can do it before
// they store them.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_EPILOGUE_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_EPILOGUE_H_

#include <cstddef>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/gemm/epilogue.h"

namespace onnxifi::convolution {

// A bias per channel and a tensor (each the number of a read of the step, or -1), then an
// activation.
struct Epilogue {
  int bias = -1;
  int addend = -1;
  gemm::Activation activation = gemm::Activation::kNone;
  float low = 0;
  float high = 0;
};

// Of a Contract whose channels are the axis `channel_axis` of its domain. UNSUPPORTED_ATTRIBUTE or
// UNSUPPORTED_SHAPE, naming the operation or the operand that is in the way.
base::Result<Epilogue> TranslateEpilogue(const device::Facts& facts, size_t channel_axis);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_EPILOGUE_H_
