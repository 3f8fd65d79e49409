// SPDX-License-Identifier: Apache-2.0
//
// Step axes: a convolution along three axes as one along two: of one frame, or of the whole tensor
// where a kernel reaches along two axes at most.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_STEP_AXES_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_STEP_AXES_H_

#include <optional>

#include "backends/core/base/result.h"
#include "backends/core/program/program.h"

namespace onnxifi::convolution {

// A convolution along three axes without the outermost: of the first frame of each image, by the
// kernel's first tap along it. UNSUPPORTED_SHAPE for other steps and where views have guards.
base::Result<program::Step> FrameOf(const program::Step& step);

// The same convolution along two axes: frames become images of the batch where the kernel has one
// tap along them, and the two inner axes become one where it has one tap along both. Nothing where
// the kernel reaches along more axes, or views cannot say it.
std::optional<program::Step> MergeAxes(const program::Step& step);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_STEP_AXES_H_
