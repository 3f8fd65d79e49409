// SPDX-License-Identifier: Apache-2.0
//
// Resampling along axes, for Resize and Upsample. Source positions and weights are worked out once
// per position along an axis into small tables; the passes over the data only look them up.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_SHAPE_RESAMPLE_H_
#define ONNXIFI_BACKENDS_CORE_OPS_SHAPE_RESAMPLE_H_

#include <string>
#include <vector>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// One axis that changes: scale is numerator / denominator, or an element that is known only when
// the program runs.
struct ResizedAxis {
  int axis = 0;
  Dim in;
  Dim out;
  Dim numerator = 1;
  Dim denominator = 1;
  std::optional<Operand> scale;               // a scalar
  bool is_float_scale = false;                // given as a float32, not as a ratio of extents
  std::optional<Operand> roi_start, roi_end;  // scalars; tf_crop_and_resize only
};

struct Resampling {
  enum class Kernel : uint8_t { kNearest, kLinear, kCubic };
  Kernel kernel = Kernel::kNearest;
  std::string coordinates;  // coordinate_transformation_mode
  std::string nearest;      // nearest_mode, or "simple": opset 10's floor, but ceil where shrinking
  double cubic_a = -0.75;
  bool antialias = false;
  bool exclude_outside = false;
  double extrapolation = 0;

  bool crops() const { return coordinates == "tf_crop_and_resize"; }
};

// The operand with the extents that `axes` say; of the same element type, integers rounded to
// nearest even.
Operand Resample(Lowering& lowering, const Operand& x, const std::vector<ResizedAxis>& axes,
                 const Resampling& how);

// The scale as float64 within `step`.
Expr ScaleOf(StepBuilder& step, const ResizedAxis& axis);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_SHAPE_RESAMPLE_H_
