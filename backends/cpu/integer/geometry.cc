// SPDX-License-Identifier: Apache-2.0
//
// ProductGeometry.

#include "backends/cpu/integer/geometry.h"

#include <algorithm>
#include <numeric>

#include "backends/cpu/integer/depthwise.h"
#include "backends/cpu/integer/window_strips.h"

namespace onnxifi::integer {
namespace {

using program::Contract;

Extents Slice(const Extents& all, size_t first, size_t count) {
  return {all.begin() + static_cast<ptrdiff_t>(first),
          all.begin() + static_cast<ptrdiff_t>(first + count)};
}

Extents Numbers(const device::BoundStep& step, const program::Dims& dims) {
  Extents numbers;
  for (const program::Dim& dim : dims) numbers.push_back(step.Number(dim));
  return numbers;
}

bool AllZero(const Extents& extents, const Extents& strides) {
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] != 1 && strides[axis] != 0) return false;
  }
  return true;
}

ProductGeometry MakeMatMul(const device::BoundStep& step, const ByteFactors& factors) {
  const Contract& contract = *step.step->As<Contract>();
  const auto batch = static_cast<size_t>(contract.batch_axes);
  const auto m = static_cast<size_t>(contract.m_axes);
  const auto n = static_cast<size_t>(contract.n_axes);
  const Extents inner = Numbers(step, contract.inner);
  const Extents& a = step.reads[0].strides;
  const Extents& b = step.reads[1].strides;
  ProductGeometry geometry;
  geometry.axis_order.resize(step.domain.size());
  std::iota(geometry.axis_order.begin(), geometry.axis_order.end(), 0);
  geometry.batch_axes = static_cast<int>(batch);
  geometry.row_axes = static_cast<int>(m);
  const Extents batch_extents = Slice(step.domain, 0, batch);
  const Extents row_extents = Slice(step.domain, batch, m);
  geometry.batches = tensor::ElementCount(batch_extents);
  geometry.rows = tensor::ElementCount(row_extents);
  geometry.batch_offsets = OffsetTable(batch_extents, Slice(a, 0, batch));
  geometry.row_source =
      MakeMatrixRows({row_extents, Slice(a, batch, m), inner, Slice(a, batch + m, inner.size())},
                     RowFlip(factors.a));
  Columns& columns = geometry.columns;
  columns.flip = ColumnFlip(factors.b);
  columns.depth_offsets = OffsetTable(inner, Slice(b, batch, inner.size()));
  columns.columns = 1;
  for (size_t axis = 0; axis < n; ++axis) {
    const int64_t extent = step.domain[batch + m + axis];
    if (extent == 1) continue;
    columns.columns = extent;
    columns.column_stride = b[batch + inner.size() + axis];
  }
  geometry.has_matrix_per_batch = !AllZero(batch_extents, Slice(b, 0, batch));
  columns.matrix_offsets = geometry.has_matrix_per_batch
                               ? OffsetTable(batch_extents, Slice(b, 0, batch))
                               : std::vector<int64_t>{0};
  return geometry;
}

// Rows of an image that lie pixel by pixel, with their channels elsewhere.
bool IsPlanar(const WindowAxes& axes) {
  const WindowAxis& x = axes.spatial[2];
  return axes.channels > 1 && axes.channel_stride != 1 && (x.image_stride == 1 || x.in == 1);
}

std::unique_ptr<RowSource> MakeRowsOfWindows(const WindowAxes& axes, uint8_t flip) {
  // Rows that lie evenly are read where they are, however many there are in a row of the result.
  std::unique_ptr<GatheredRows> rows = MakeWindowRows(axes, flip);
  if (rows->DirectStride() != 0) return rows;
  std::unique_ptr<RowSource> strips = MakeWindowStrips(axes, flip);
  if (strips != nullptr) return strips;
  return rows;
}

// Each plane of the result is a batch of its own.
void SplitPlanes(int64_t planes, ProductGeometry& geometry) {
  geometry.planes = planes;
  geometry.batches *= planes;
  geometry.rows /= planes;
  ++geometry.batch_axes;
  --geometry.row_axes;
}

// Of kernels without zero points.
bool AreWalkedInGroups(const Contract& contract, const ByteFactors& factors,
                       const GroupSizes& sizes, int64_t outputs, const WindowAxes& window) {
  return contract.group > 1 && factors.b.is_signed && factors.b.zero_point_read < 0 &&
         TapCount(window) <= kMaxTaps && WalksGroups(sizes, outputs, window.spatial[2]);
}

ProductGeometry MakeConvolution(const device::BoundStep& step, const ByteFactors& factors) {
  const Contract& contract = *step.step->As<Contract>();
  const Extents& a = step.reads[0].strides;
  const Extents& b = step.reads[1].strides;
  const Extents inner = Numbers(step, contract.inner);
  const Extents in = Numbers(step, contract.a_spatial);
  const Extents pads = Numbers(step, contract.pads_begin);
  const size_t spatial = in.size();
  ProductGeometry geometry;
  geometry.axis_order = {0};
  for (size_t axis = 0; axis < spatial; ++axis) {
    geometry.axis_order.push_back(static_cast<int>(axis) + 2);
  }
  geometry.axis_order.push_back(1);
  geometry.batch_axes = 1;
  geometry.row_axes = static_cast<int>(spatial);
  geometry.batches = step.domain[0];
  geometry.groups = contract.group;
  WindowAxes window;
  window.channels = inner[0];
  window.channel_stride = a[1];
  for (size_t axis = 0; axis < spatial; ++axis) {
    window.spatial[kSpatialAxes - spatial + axis] = {in[axis],
                                                     step.domain[axis + 2],
                                                     inner[axis + 1],
                                                     contract.strides[axis],
                                                     contract.dilations[axis],
                                                     pads[axis],
                                                     a[axis + 2]};
    geometry.rows *= step.domain[axis + 2];
  }
  WindowAxes of_all = window;
  of_all.channels = window.channels * contract.group;
  const bool is_depthwise = contract.group > 1 && window.channels == 1 &&
                            step.domain[1] == contract.group && TapCount(window) <= kMaxTaps &&
                            (window.channel_stride == 1 || IsPlanar(of_all));
  const GroupSizes sizes{window.channels, step.domain[1] / contract.group};
  const bool is_walked = !is_depthwise &&
                         AreWalkedInGroups(contract, factors, sizes, step.domain[1], of_all) &&
                         (window.channel_stride == 1 || IsPlanar(of_all));
  if (is_depthwise || is_walked) {
    geometry.groups = 1;
    window = of_all;
  }
  int64_t image_stride = a[0];
  if (IsPlanar(window)) {
    auto& [z, y, x] = window.spatial;
    ImageOrder& order = geometry.reordered.emplace();
    order = {geometry.batches, z.in,           y.in, x.in, inner[0] * contract.group, a[0],
             z.image_stride,   y.image_stride, a[1]};
    window.channel_stride = 1;
    x.image_stride = order.channels;
    y.image_stride = x.image_stride * x.in;
    z.image_stride = y.image_stride * y.in;
    image_stride = z.image_stride * z.in;
  }
  geometry.group_stride = window.channels * window.channel_stride;
  Columns& columns = geometry.columns;
  if (is_depthwise || is_walked) {
    geometry.depthwise = window;
    if (is_walked) geometry.small_groups = sizes;
  } else {
    geometry.row_source = MakeRowsOfWindows(window, RowFlip(factors.a));
    columns.pieces = geometry.row_source->pieces();
    if (geometry.row_source->IsOfOnePlane()) SplitPlanes(window.spatial[0].out, geometry);
  }
  for (int64_t n = 0; n < geometry.batches; ++n) {
    geometry.batch_offsets.push_back(n / geometry.planes * image_stride);
  }
  columns.flip = ColumnFlip(factors.b);
  columns.columns = step.domain[1] / geometry.groups;
  columns.column_stride = b[0];
  // Positions of the kernel first, channels last.
  Extents depth = Slice(inner, 1, spatial);
  Extents depth_strides = Slice(b, 2, spatial);
  depth.push_back(inner[0]);
  depth_strides.push_back(b[1]);
  columns.depth_offsets = OffsetTable(depth, depth_strides);
  for (int64_t group = 0; group < geometry.groups; ++group) {
    columns.matrix_offsets.push_back(group * columns.columns * b[0]);
  }
  return geometry;
}

}  // namespace

ProductGeometry MakeGeometry(const device::BoundStep& step, const ByteFactors& factors) {
  const bool is_matmul = step.step->As<Contract>()->form == Contract::Form::kMatMul;
  return is_matmul ? MakeMatMul(step, factors) : MakeConvolution(step, factors);
}

bool ZeroPointAxes::IsOne() const {
  return AllZero(batch_extents, batch_strides) && AllZero(extents, strides);
}

ZeroPointAxes MakeZeroPointAxes(const device::BoundStep& step, int operand,
                                const device::BoundView& view) {
  const Contract& contract = *step.step->As<Contract>();
  ZeroPointAxes axes;
  if (contract.form == Contract::Form::kConv) {
    // One number for all of an image; one per output of the kernels, counted through all groups.
    if (operand == 1) {
      axes.extents = {step.domain[1]};
      axes.strides = {view.strides[0]};
    }
    return axes;
  }
  const auto batch = static_cast<size_t>(contract.batch_axes);
  const auto m = static_cast<size_t>(contract.m_axes);
  axes.batch_extents = Slice(step.domain, 0, batch);
  axes.batch_strides = Slice(view.strides, 0, batch);
  const size_t count = operand == 0 ? m : static_cast<size_t>(contract.n_axes);
  axes.extents = Slice(step.domain, operand == 0 ? batch : batch + m, count);
  axes.strides = Slice(view.strides, operand == 0 ? batch : batch + contract.inner.size(), count);
  return axes;
}

}  // namespace onnxifi::integer
