// SPDX-License-Identifier: Apache-2.0
//
// OneAxis.

#include "backends/cpu/matmul/one_axis.h"

#include <string>

namespace onnxifi::matmul {

using base::Code;
using base::Status;
using program::Dim;

base::Result<OneAxis> OneAxis::Of(std::span<const Dim> extents, std::string_view what) {
  OneAxis axis;
  for (size_t k = 0; k < extents.size(); ++k) {
    if (extents[k] == Dim(1)) continue;
    if (axis.extent != Dim(1)) {
      return Status(Code::kUnsupportedShape,
                    "The " + std::string(what) + " have more than one axis.");
    }
    axis = {extents[k], k};
  }
  return axis;
}

base::Result<int64_t> OneAxis::Number(std::string_view what) const {
  if (extent.is_constant() && extent.constant() >= 1) return extent.constant();
  return Status(
      Code::kUnsupportedShape,
      "The number of " + std::string(what) +
          (extent.is_constant() ? " is less than 1." : " is known only once the inputs are."));
}

}  // namespace onnxifi::matmul
