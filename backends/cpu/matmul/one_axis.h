// SPDX-License-Identifier: Apache-2.0
//
// OneAxis: several axes of which at most one has more than one element.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_ONE_AXIS_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_ONE_AXIS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "backends/core/base/result.h"
#include "backends/core/program/program.h"

namespace onnxifi::matmul {

struct OneAxis {
  program::Dim extent = program::Dim(1);
  size_t position = 0;  // among the axes given

  // UNSUPPORTED_SHAPE where there are more, naming `what` they are.
  static base::Result<OneAxis> Of(std::span<const program::Dim> extents, std::string_view what);
  // UNSUPPORTED_SHAPE where the extent is less than 1 or known late.
  base::Result<int64_t> Number(std::string_view what) const;
};

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_ONE_AXIS_H_
