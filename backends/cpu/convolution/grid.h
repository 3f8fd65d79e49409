// SPDX-License-Identifier: Apache-2.0
//
// Grid: how the threads divide the rows and the columns of a product between them.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_GRID_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_GRID_H_

#include <cstdint>

namespace onnxifi::convolution {

struct Grid {
  int64_t row_parts;
  int64_t panel_parts;
};

// `blocks` of `rows` rows each, which are not divided, times `panels` of columns.
struct Work {
  int64_t blocks;
  int64_t rows;
  int64_t depth;
  int64_t panels;
};

// The division whose largest part costs least; one part where another thread would begin only when
// all is done.
Grid ChooseGrid(const Work& work, int64_t threads);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_GRID_H_
