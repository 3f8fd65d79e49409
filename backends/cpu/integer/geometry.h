// SPDX-License-Identifier: Apache-2.0
//
// ProductGeometry: a Contract over bytes with numbers: which rows of A meet which columns of B.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_GEOMETRY_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_GEOMETRY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backends/cpu/integer/byte_factors.h"
#include "backends/cpu/integer/columns.h"
#include "backends/cpu/integer/grouped.h"
#include "backends/cpu/integer/rows.h"

namespace onnxifi::integer {

// The image of a convolution that is copied first, so that its channels lie side by side.
struct ImageOrder {
  int64_t images = 0, planes = 0, rows = 0, columns = 0, channels = 0;  // planes: along depth
  int64_t image_stride = 0, plane_stride = 0, row_stride = 0, channel_stride = 0;

  int64_t size_bytes() const { return images * planes * rows * columns * channels; }
};

// Per batch: an image, a plane of its result, or an element of the batch axes. A batch has one
// product per group of columns, each with its own part of A and of B.
struct ProductGeometry {
  std::vector<int> axis_order;  // of the domain: batch, rows, columns
  int batch_axes = 0, row_axes = 0;
  int64_t batches = 1, rows = 1, groups = 1;
  // Batches that are the planes of one image; 1 where a batch is all of it.
  int64_t planes = 1;
  std::unique_ptr<RowSource> row_source;  // null: depthwise
  std::vector<int64_t> batch_offsets;     // in A
  int64_t group_stride = 0;               // in A
  std::optional<ImageOrder> reordered;
  Columns columns;
  bool has_matrix_per_batch = false;  // else one per group
  // A convolution with a kernel per channel, or with small groups: one group, of which a row has
  // all channels.
  std::optional<WindowAxes> depthwise;
  std::optional<GroupSizes> small_groups;  // none: a kernel per channel

  int64_t MatrixOf(int64_t batch, int64_t group) const {
    return has_matrix_per_batch ? batch : group;
  }
  // The first row of a batch, as the source of rows counts them.
  int64_t FirstRowOf(int64_t batch) const { return batch % planes * rows; }
};

ProductGeometry MakeGeometry(const device::BoundStep& step, const ByteFactors& factors);

// Where the zero points of rows and columns are in their view.
struct ZeroPointAxes {
  Extents batch_extents, batch_strides;
  Extents extents, strides;  // of rows, or of columns

  int64_t OffsetOfBatch(int64_t batch) const {
    return OffsetOf(batch, batch_extents, batch_strides);
  }
  int64_t OffsetInBatch(int64_t position) const { return OffsetOf(position, extents, strides); }
  bool IsOne() const;
};
ZeroPointAxes MakeZeroPointAxes(const device::BoundStep& step, int operand,
                                const device::BoundView& view);

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_GEOMETRY_H_
