// SPDX-License-Identifier: Apache-2.0
//
// RowSource: copies as long as memory allows.

#include "backends/cpu/integer/rows.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/integer/byte_packing.h"
#include "backends/cpu/integer/copy_run.h"
#include "backends/cpu/integer/panel_layout.h"

namespace onnxifi::integer {
namespace {

// `count` elements `stride` apart.
void CopyElements(const uint8_t* source, int64_t stride, int64_t count, uint8_t flip,
                  uint8_t* target) {
  if (stride == 1) return CopyRun(source, count, flip, target);
  for (int64_t k = 0; k < count; ++k) target[k] = static_cast<uint8_t>(source[k * stride] ^ flip);
}

class MatrixRows final : public GatheredRows {
 public:
  MatrixRows(const MatrixAxes& axes, uint8_t flip)
      : GatheredRows(tensor::ElementCount(axes.depth_extents), flip),
        extents_(axes.row_extents),
        strides_(axes.row_strides) {
    Extents outer = axes.depth_extents;
    Extents outer_strides = axes.depth_strides;
    // The innermost axis of more than one element is copied at once.
    while (!outer.empty() && outer.back() == 1) {
      outer.pop_back();
      outer_strides.pop_back();
    }
    if (!outer.empty()) {
      run_ = outer.back();
      run_stride_ = outer_strides.back();
      outer.pop_back();
      outer_strides.pop_back();
    }
    runs_ = OffsetTable(outer, outer_strides);
    even_stride_ = FindEvenStride();
  }

  void Gather(const uint8_t* a, int64_t first, int64_t count, uint8_t /*fill*/,
              uint8_t* rows) const override {
    if (even_stride_ == RowBytes()) {
      return CopyBytes(a + DirectOffset(first), count * RowBytes(), flip_, rows);
    }
    for (int64_t row = first; row < first + count; ++row, rows += RowBytes()) {
      const uint8_t* source = a + OffsetOf(row, extents_, strides_);
      uint8_t* target = rows;
      for (const int64_t offset : runs_) {
        CopyElements(source + offset, run_stride_, run_, flip_, target);
        target += run_;
      }
      Finish(rows);
    }
  }

  int64_t DirectStride() const override { return flip_ == 0 ? even_stride_ : 0; }
  int64_t DirectOffset(int64_t row) const override { return OffsetOf(row, extents_, strides_); }

 private:
  // How far rows of whole quads lie apart, where that is as far everywhere; else 0.
  int64_t FindEvenStride() const {
    const bool is_plain =
        runs_.size() == 1 && run_stride_ == 1 && depth_ % kQuad == 0 && depth_ > 0;
    if (!is_plain) return 0;
    int64_t stride = 0, expected = 0;
    for (size_t axis = extents_.size(); axis-- > 0;) {
      if (extents_[axis] == 1) continue;
      if (stride == 0) {
        stride = strides_[axis];
      } else if (strides_[axis] != expected) {
        return 0;
      }
      expected = strides_[axis] * extents_[axis];
    }
    return stride == 0 ? depth_ : stride;
  }

  const Extents extents_, strides_;
  int64_t run_ = 1;
  int64_t run_stride_ = 1;
  std::vector<int64_t> runs_;  // offsets
  int64_t even_stride_ = 0;
};

class WindowRows final : public GatheredRows {
 public:
  WindowRows(const WindowAxes& axes, uint8_t flip)
      : GatheredRows(axes.channels * axes.spatial[0].kernel * axes.spatial[1].kernel *
                         axes.spatial[2].kernel,
                     flip),
        axes_(axes),
        // The channels of neighbouring taps lie behind one another.
        joins_taps_(axes.channel_stride == 1 && axes.spatial[2].dilation == 1 &&
                    axes.spatial[2].image_stride == axes.channels),
        copies_whole_rows_(joins_taps_ && axes.spatial[0].kernel == 1 &&
                           axes.channels * axes.spatial[2].kernel <= kSlackBytes) {
    for (const WindowAxis& axis : axes.spatial) image_bytes_ += (axis.in - 1) * axis.image_stride;
    image_bytes_ += axes.channels;
    even_stride_ = FindEvenStride();
  }

  void Gather(const uint8_t* a, int64_t first, int64_t count, uint8_t fill,
              uint8_t* rows) const override {
    if (even_stride_ == RowBytes()) {
      return CopyBytes(a + DirectOffset(first), count * RowBytes(), flip_, rows);
    }
    const auto& [z, y, x] = axes_.spatial;
    int64_t at[kSpatialAxes] = {first / (x.out * y.out), first / x.out % y.out, first % x.out};
    const int64_t row_taps = axes_.channels * x.kernel;
    for (int64_t row = 0; row < count; ++row, rows += RowBytes()) {
      uint8_t* target = rows;
      const bool is_copied = copies_whole_rows_ && CopyRowsOfTaps(a, at, rows);
      for (int64_t tap_z = is_copied ? z.kernel : 0; tap_z < z.kernel; ++tap_z) {
        const int64_t in_z = at[0] * z.stride + tap_z * z.dilation - z.pad;
        for (int64_t tap_y = 0; tap_y < y.kernel; ++tap_y, target += row_taps) {
          const int64_t in_y = at[1] * y.stride + tap_y * y.dilation - y.pad;
          if (in_z < 0 || in_z >= z.in || in_y < 0 || in_y >= y.in) {
            std::memset(target, fill, static_cast<size_t>(row_taps));
          } else {
            CopyTaps(a + in_z * z.image_stride + in_y * y.image_stride, at[2] * x.stride - x.pad,
                     fill, target);
          }
        }
      }
      Finish(rows);
      for (int axis = kSpatialAxes; axis-- > 0;) {
        if (++at[axis] < axes_.spatial[static_cast<size_t>(axis)].out) break;
        at[axis] = 0;
      }
    }
  }

  int64_t DirectStride() const override { return flip_ == 0 ? even_stride_ : 0; }
  int64_t DirectOffset(int64_t row) const override { return row * even_stride_; }

 private:
  // As that of MatrixRows.
  int64_t FindEvenStride() const {
    const auto& [z, y, x] = axes_.spatial;
    const bool is_plain =
        axes_.channel_stride == 1 && depth_ == axes_.channels && depth_ % kQuad == 0 && z.out == 1;
    for (const WindowAxis& axis : axes_.spatial) {
      if (axis.pad != 0 || (axis.out - 1) * axis.stride >= axis.in) return 0;
    }
    if (!is_plain) return 0;
    const int64_t stride = x.stride * x.image_stride;
    if (y.out == 1) return x.out == 1 ? depth_ : stride;
    return y.stride * y.image_stride == stride * x.out ? stride : 0;
  }

  // The window at `at`, of few channels, with a whole line per row of taps: what comes with them is
  // overwritten by the next. False, and nothing is written, near the ends of the image.
  bool CopyRowsOfTaps(const uint8_t* a, const int64_t* at, uint8_t* target) const {
    const auto& [z, y, x] = axes_.spatial;
    const int64_t in_y = at[1] * y.stride - y.pad, in_x = at[2] * x.stride - x.pad;
    const int64_t in_z = at[0] * z.stride - z.pad;
    const int64_t last_y = in_y + (y.kernel - 1) * y.dilation;
    const int64_t first = in_z * z.image_stride + in_y * y.image_stride + in_x * x.image_stride;
    const int64_t last = first + (y.kernel - 1) * y.dilation * y.image_stride;
    if (in_z < 0 || in_z >= z.in || in_y < 0 || last_y >= y.in || in_x < 0 ||
        in_x + x.kernel > x.in || std::max(first, last) + kSlackBytes > image_bytes_) {
      return false;
    }
    const uint64_t flips = flip_ * uint64_t{0x0101010101010101};
    const int64_t row_taps = axes_.channels * x.kernel;
    const int64_t step = y.dilation * y.image_stride;
    const uint8_t* source = a + first;
    if (row_taps <= kSlackBytes / 2) {
      for (int64_t tap = 0; tap < y.kernel; ++tap, source += step, target += row_taps) {
        Line<2>().Copy(source, flips, target);
      }
    } else {
      for (int64_t tap = 0; tap < y.kernel; ++tap, source += step, target += row_taps) {
        Line<4>().Copy(source, flips, target);
      }
    }
    return true;
  }

  // A row of taps that begins at `begin` in the row of the image at `source`.
  void CopyTaps(const uint8_t* source, int64_t begin, uint8_t fill, uint8_t* target) const {
    const WindowAxis& x = axes_.spatial[2];
    const int64_t channels = axes_.channels;
    if (joins_taps_) {
      const int64_t low = std::clamp<int64_t>(-begin, 0, x.kernel);
      const int64_t high = std::clamp<int64_t>(x.in - begin, low, x.kernel);
      if (low > 0) std::memset(target, fill, static_cast<size_t>(low * channels));
      if (low < high) {
        CopyElements(source + (begin + low) * channels, 1, (high - low) * channels, flip_,
                     target + low * channels);
      }
      if (high < x.kernel) {
        std::memset(target + high * channels, fill,
                    static_cast<size_t>((x.kernel - high) * channels));
      }
      return;
    }
    for (int64_t tap = 0; tap < x.kernel; ++tap, target += channels) {
      const int64_t in_x = begin + tap * x.dilation;
      if (in_x < 0 || in_x >= x.in) {
        std::memset(target, fill, static_cast<size_t>(channels));
      } else {
        CopyElements(source + in_x * x.image_stride, axes_.channel_stride, channels, flip_, target);
      }
    }
  }

  const WindowAxes axes_;
  const bool joins_taps_;
  const bool copies_whole_rows_;
  int64_t image_bytes_ = 0;  // from the first to the last
  int64_t even_stride_ = 0;
};

}  // namespace

int64_t GatheredRows::RowBytes() const { return Quads(depth_) * kQuad; }

LaidRows GatheredRows::Lay(const uint8_t* a, int64_t first, int64_t count, uint8_t fill,
                           uint8_t* memory) const {
  if (DirectStride() != 0) return {a + DirectOffset(first), DirectStride()};
  Gather(a, first, count, fill, memory);
  return {memory, RowBytes()};
}

void GatheredRows::Finish(uint8_t* row) const {
  for (int64_t k = depth_; k < RowBytes(); ++k) row[k] = 0;
}

std::unique_ptr<GatheredRows> MakeMatrixRows(const MatrixAxes& axes, uint8_t flip) {
  return std::make_unique<MatrixRows>(axes, flip);
}

std::unique_ptr<GatheredRows> MakeWindowRows(const WindowAxes& axes, uint8_t flip) {
  return std::make_unique<WindowRows>(axes, flip);
}

std::vector<int64_t> OffsetTable(const Extents& extents, const Extents& strides) {
  std::vector<int64_t> table(static_cast<size_t>(tensor::ElementCount(extents)));
  for (size_t position = 0; position < table.size(); ++position) {
    table[position] = OffsetOf(static_cast<int64_t>(position), extents, strides);
  }
  return table;
}

int64_t OffsetOf(int64_t position, const Extents& extents, const Extents& strides) {
  int64_t offset = 0;
  for (size_t axis = extents.size(); axis-- > 0;) {
    offset += position % extents[axis] * strides[axis];
    position /= extents[axis];
  }
  return offset;
}

}  // namespace onnxifi::integer
