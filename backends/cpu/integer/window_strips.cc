// SPDX-License-Identifier: Apache-2.0
//
// WindowStrips: a strip is what windows along one row of the result need of one row of the image.
// Those that belong to the same row of different planes lie behind one another.

#include "backends/cpu/integer/window_strips.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/integer/copy_run.h"
#include "backends/cpu/integer/panel_layout.h"

namespace onnxifi::integer {
namespace {

// Blocks of rows of the product end with a row of the result.
constexpr int64_t kMinRun = 6;

// From the first pixel that a window reads to behind the last.
int64_t Reach(const WindowAxis& axis) {
  return (axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
}

bool IsInside(const WindowAxis& axis) { return axis.pad == 0 && Reach(axis) <= axis.in; }

// Windows of the image itself.
bool CanReadImage(const WindowAxes& axes, uint8_t flip) {
  return flip == 0 && axes.channels % kQuad == 0 && IsInside(axes.spatial[1]) &&
         IsInside(axes.spatial[0]) && IsInside(axes.spatial[2]);
}

class WindowStrips final : public RowSource {
 public:
  WindowStrips(const WindowAxes& axes, uint8_t flip)
      : RowSource(axes.channels * axes.spatial[0].kernel * axes.spatial[1].kernel *
                      axes.spatial[2].kernel,
                  flip),
        axes_(axes),
        reads_image_(CanReadImage(axes, flip)) {
    const auto& [z, y, x] = axes_.spatial;
    pixel_stride_ = reads_image_ ? x.image_stride : axes_.channels;
    strip_bytes_ = Reach(x) * axes_.channels;
    row_stride_ = reads_image_ ? y.image_stride : z.kernel * strip_bytes_;
    const int64_t plane_step = reads_image_ ? z.dilation * z.image_stride : strip_bytes_;
    const bool joins_taps = x.dilation == 1 && pixel_stride_ == axes_.channels;
    piece_offsets_.clear();
    for (int64_t tap_z = 0; tap_z < z.kernel; ++tap_z) {
      for (int64_t tap_y = 0; tap_y < y.kernel; ++tap_y) {
        for (int64_t tap_x = 0; tap_x < (joins_taps ? 1 : x.kernel); ++tap_x) {
          piece_offsets_.push_back(tap_z * plane_step + tap_y * y.dilation * row_stride_ +
                                   tap_x * x.dilation * pixel_stride_);
        }
      }
    }
  }

  bool reads_image() const { return reads_image_; }

  LaidRows Lay(const uint8_t* a, int64_t first, int64_t count, uint8_t fill,
               uint8_t* memory) const override {
    const auto& [z, y, x] = axes_.spatial;
    const int64_t out_z = first / (x.out * y.out);
    const int64_t out_y = first / x.out % y.out, place = first % x.out;
    const uint8_t* strips = a + out_z * z.stride * z.image_stride + out_y * y.stride * row_stride_;
    if (!reads_image_) {
      const int64_t rows = RowCount((place + count - 1) / x.out + 1);
      uint8_t* strip = memory;
      for (int64_t k = 0; k < rows; ++k) {
        for (int64_t tap_z = 0; tap_z < z.kernel; ++tap_z, strip += strip_bytes_) {
          CopyStrip(a, out_z * z.stride - z.pad + tap_z * z.dilation, out_y * y.stride - y.pad + k,
                    fill, strip);
        }
      }
      strips = memory;
    }
    LaidRows laid{strips + place * x.stride * pixel_stride_, x.stride * pixel_stride_};
    laid.run = x.out;
    laid.place = place;
    laid.run_stride = y.stride * row_stride_;
    return laid;
  }

  int64_t LaidBytes(int64_t count) const override {
    if (reads_image_) return 0;
    const int64_t x_out = axes_.spatial[2].out;
    // Rows of the result that so many windows are of at most.
    const int64_t rows_of_result = std::min((count + x_out - 2) / x_out + 1, axes_.spatial[1].out);
    return RowCount(rows_of_result) * row_stride_ + kSlackBytes;
  }

  bool IsOfOnePlane() const override { return axes_.spatial[0].out > 1; }

 private:
  // Of one plane of the image.
  int64_t RowCount(int64_t rows_of_result) const {
    const WindowAxis& y = axes_.spatial[1];
    return (rows_of_result - 1) * y.stride + (y.kernel - 1) * y.dilation + 1;
  }

  void CopyStrip(const uint8_t* a, int64_t in_z, int64_t in_y, uint8_t fill, uint8_t* strip) const {
    const auto& [z, y, x] = axes_.spatial;
    const int64_t channels = axes_.channels;
    if (in_z < 0 || in_z >= z.in || in_y < 0 || in_y >= y.in) {
      std::memset(strip, fill, static_cast<size_t>(strip_bytes_));
      return;
    }
    const int64_t reach = Reach(x);
    const int64_t low = std::min(x.pad, reach);
    const int64_t high = std::clamp(x.in + x.pad, low, reach);
    std::memset(strip, fill, static_cast<size_t>(low * channels));
    const uint8_t* const source = a + in_z * z.image_stride + in_y * y.image_stride;
    uint8_t* target = strip + low * channels;
    if (x.image_stride == channels) {
      CopyRun(source, (high - low) * channels, flip_, target);
    } else {
      for (int64_t pixel = 0; pixel < high - low; ++pixel, target += channels) {
        CopyRun(source + pixel * x.image_stride, channels, flip_, target);
      }
    }
    std::memset(strip + high * channels, fill, static_cast<size_t>((reach - high) * channels));
  }

  const WindowAxes axes_;
  const bool reads_image_;
  // Of strips, where these are copied: from one row to the next are those of all planes.
  int64_t pixel_stride_, row_stride_, strip_bytes_;
};

}  // namespace

std::unique_ptr<RowSource> MakeWindowStrips(const WindowAxes& axes, uint8_t flip) {
  const auto& [z, y, x] = axes.spatial;
  if (axes.channel_stride != 1 || axes.channels == 0 || x.pad < 0) return nullptr;
  if (x.out < kMinRun) return nullptr;
  auto strips = std::make_unique<WindowStrips>(axes, flip);
  const bool has_one_tap = z.kernel * y.kernel * x.kernel == 1;
  if (has_one_tap && !strips->reads_image()) return nullptr;
  const int64_t quads = Quads(strips->depth());
  const int64_t in_pieces = strips->pieces() * Quads(strips->depth() / strips->pieces());
  if (in_pieces > quads + quads / 2) return nullptr;
  return strips;
}

}  // namespace onnxifi::integer
