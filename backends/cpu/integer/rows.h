// SPDX-License-Identifier: Apache-2.0
//
// RowSource: the rows of A as products of bytes take them: unsigned, their elements side by side,
// filled up to whole quads. Rows of a matrix, or the windows of a convolution, whose depth goes
// over positions of the kernel first and over channels last.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_ROWS_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_ROWS_H_

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "backends/core/tensor/tensor.h"

namespace onnxifi::integer {

using tensor::Extents;

// Rows as they lie in memory: `run` of them `stride` apart, the first at `place` of these; the next
// run begins `run_stride` after it.
struct LaidRows {
  const uint8_t* first;
  int64_t stride;
  int64_t run = std::numeric_limits<int64_t>::max();
  int64_t place = 0;
  int64_t run_stride = 0;
};

// Immutable. Strides in bytes.
class RowSource {
 public:
  // What may be written behind the last row.
  static constexpr int64_t kSlackBytes = 32;

  virtual ~RowSource() = default;
  // Rows [first, first + count) of the matrix or image at `a`, where they are, or in `memory` of
  // LaidBytes(count). Outside an image is `fill`.
  virtual LaidRows Lay(const uint8_t* a, int64_t first, int64_t count, uint8_t fill,
                       uint8_t* memory) const = 0;
  virtual int64_t LaidBytes(int64_t count) const = 0;
  // Whether rows that are laid together must belong to one plane of a volume.
  virtual bool IsOfOnePlane() const { return false; }

  int64_t depth() const { return depth_; }
  // Where the pieces of a row begin, of as many elements each. Behind a piece is something up to a
  // whole quad, which may be read.
  const std::vector<int64_t>& piece_offsets() const { return piece_offsets_; }
  int64_t pieces() const { return static_cast<int64_t>(piece_offsets_.size()); }

 protected:
  RowSource(int64_t depth, uint8_t flip) : depth_(depth), flip_(flip) {}

  const int64_t depth_;
  const uint8_t flip_;
  std::vector<int64_t> piece_offsets_ = {0};
};

// Rows of one piece.
class GatheredRows : public RowSource {
 public:
  // Rows as above, each of RowBytes(), one after the other in `rows`, which has room for
  // kSlackBytes more.
  virtual void Gather(const uint8_t* a, int64_t first, int64_t count, uint8_t fill,
                      uint8_t* rows) const = 0;
  // How far rows lie apart that may be read where they are, `RowBytes` at a time; 0: they may not.
  virtual int64_t DirectStride() const = 0;
  // Where a row begins that may be read there.
  virtual int64_t DirectOffset(int64_t row) const = 0;

  LaidRows Lay(const uint8_t* a, int64_t first, int64_t count, uint8_t fill,
               uint8_t* memory) const final;
  int64_t LaidBytes(int64_t count) const final { return count * RowBytes() + kSlackBytes; }
  int64_t RowBytes() const;

 protected:
  using RowSource::RowSource;
  // Zeros after the depth.
  void Finish(uint8_t* row) const;
};

// Rows and depth along any axes of A.
struct MatrixAxes {
  Extents row_extents, row_strides;
  Extents depth_extents, depth_strides;
};
std::unique_ptr<GatheredRows> MakeMatrixRows(const MatrixAxes& axes, uint8_t flip);

// A window per position of the result, over an image whose channels are `channel_stride` apart.
inline constexpr int kSpatialAxes = 3;
struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1;
  int64_t stride = 1, dilation = 1, pad = 0;
  int64_t image_stride = 0;
};
struct WindowAxes {
  int64_t channels;
  int64_t channel_stride;
  std::array<WindowAxis, kSpatialAxes> spatial;  // outermost first; missing ones as they are
};
std::unique_ptr<GatheredRows> MakeWindowRows(const WindowAxes& axes, uint8_t flip);

// offset of each position of some axes, in row-major order.
std::vector<int64_t> OffsetTable(const Extents& extents, const Extents& strides);
// The offset of one of them.
int64_t OffsetOf(int64_t position, const Extents& extents, const Extents& strides);

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_ROWS_H_
