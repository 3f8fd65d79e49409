// SPDX-License-Identifier: Apache-2.0
//
// Rows of windows against the definition of a window, element by element: few channels and many,
// near the ends of an image and within it, gathered and in pieces.

#include "backends/cpu/integer/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "backends/cpu/integer/panel_layout.h"
#include "backends/cpu/integer/window_strips.h"

namespace onnxifi::integer {
namespace {

class RandomWindows {
 public:
  explicit RandomWindows(uint32_t seed) : random_(seed) {
    axes_.channels = Roll(1, Roll(0, 2) == 0 ? 40 : 5);
    // Channels side by side, or each a plane of its own; between pixels may be others.
    const bool is_planar = Roll(0, 3) == 0;
    int64_t stride = is_planar ? 1 : axes_.channels + (Roll(0, 3) == 0 ? 2 : 0);
    for (size_t axis = kSpatialAxes; axis-- > 0;) {
      WindowAxis& along = axes_.spatial[axis];
      const bool is_used = axis > 0 || Roll(0, 3) == 0;
      along.in = is_used ? Roll(1, 13) : 1;
      along.dilation = Roll(0, 3) == 0 ? 2 : 1;
      along.stride = Roll(1, 3);
      const int64_t pad = is_used ? Roll(0, 2) : 0;
      const int64_t most = (along.in + 2 * pad - 1) / along.dilation + 1;
      along.kernel = Roll(1, std::min<int64_t>(most, 5));
      along.pad = pad;
      along.out = (along.in + 2 * pad - (along.kernel - 1) * along.dilation - 1) / along.stride + 1;
      along.image_stride = stride;
      stride *= along.in;
    }
    axes_.channel_stride = is_planar ? stride : 1;
    int64_t bytes = (axes_.channels - 1) * axes_.channel_stride + 1;
    for (const WindowAxis& along : axes_.spatial) bytes += (along.in - 1) * along.image_stride;
    // As large as it has to be: what reads behind it is found with AddressSanitizer.
    image_.resize(static_cast<size_t>(bytes));
    for (uint8_t& byte : image_) byte = static_cast<uint8_t>(Roll(0, 255));
    flip_ = Roll(0, 1) == 0 ? 0 : 0x80;
    fill_ = static_cast<uint8_t>(Roll(0, 255));
  }

  // Whether they are read in strips.
  bool CheckStrips() {
    const std::unique_ptr<RowSource> source = MakeWindowStrips(axes_, flip_);
    if (source == nullptr) return false;
    CheckLaid(*source);
    return true;
  }
  bool IsOfPlanes() const { return axes_.spatial[0].out > 1 && axes_.spatial[0].kernel > 1; }

  void CheckLaid(const RowSource& source) {
    const auto& [z, y, x] = axes_.spatial;
    // Of one plane.
    const int64_t out_z = Roll(0, z.out - 1);
    const int64_t first = Roll(0, y.out * x.out - 1);
    const int64_t count = Roll(1, y.out * x.out - first);
    constexpr uint8_t kBehind = 0x5A;
    std::vector<uint8_t> memory(static_cast<size_t>(source.LaidBytes(count) + 1), kBehind);
    const LaidRows laid =
        source.Lay(image_.data(), out_z * y.out * x.out + first, count, fill_, memory.data());
    ASSERT_EQ(laid.place, first % laid.run);
    const uint8_t* const first_run = laid.first - laid.place * laid.stride;
    const int64_t length = source.depth() / source.pieces();
    for (int64_t at = first; at < first + count; ++at) {
      const uint8_t* row = first_run + (at / laid.run - first / laid.run) * laid.run_stride +
                           at % laid.run * laid.stride;
      for (int64_t k = 0; k < source.depth(); ++k) {
        const int64_t tap = k / axes_.channels;
        const int64_t tap_z = tap / (x.kernel * y.kernel), tap_y = tap / x.kernel % y.kernel;
        const int64_t in_z = out_z * z.stride + tap_z * z.dilation - z.pad;
        const int64_t in_y = at / x.out * y.stride + tap_y * y.dilation - y.pad;
        const int64_t in_x = at % x.out * x.stride + tap % x.kernel * x.dilation - x.pad;
        const int64_t piece = source.piece_offsets()[static_cast<size_t>(k / length)];
        ASSERT_EQ(row[piece + k % length], Element(in_z, in_y, in_x, k % axes_.channels))
            << "row " << at << ", element " << k;
      }
      // What fills a piece up is read, too.
      for (const int64_t piece : source.piece_offsets()) {
        const uint8_t* const end = row + piece + Quads(length) * kQuad;
        const bool is_laid = end > memory.data() && end <= memory.data() + memory.size() - 1;
        const bool is_image = end > image_.data() && end <= image_.data() + image_.size();
        ASSERT_TRUE(is_laid || is_image) << "row " << at;
      }
    }
    ASSERT_EQ(memory.back(), kBehind);
  }

  void Check() {
    const auto& [z, y, x] = axes_.spatial;
    const std::unique_ptr<GatheredRows> source = MakeWindowRows(axes_, flip_);
    const int64_t all = z.out * y.out * x.out;
    const int64_t first = Roll(0, all - 1);
    const int64_t count = Roll(1, all - first);
    constexpr uint8_t kBehind = 0x5A;
    std::vector<uint8_t> rows(
        static_cast<size_t>(count * source->RowBytes() + RowSource::kSlackBytes + 1), kBehind);
    source->Gather(image_.data(), first, count, fill_, rows.data());
    const uint8_t* row = rows.data();
    for (int64_t at = first; at < first + count; ++at, row += source->RowBytes()) {
      int64_t k = 0;
      for (int64_t tap_z = 0; tap_z < z.kernel; ++tap_z) {
        for (int64_t tap_y = 0; tap_y < y.kernel; ++tap_y) {
          for (int64_t tap_x = 0; tap_x < x.kernel; ++tap_x) {
            for (int64_t channel = 0; channel < axes_.channels; ++channel, ++k) {
              const int64_t in_z = at / (x.out * y.out) * z.stride + tap_z * z.dilation - z.pad;
              const int64_t in_y = at / x.out % y.out * y.stride + tap_y * y.dilation - y.pad;
              const int64_t in_x = at % x.out * x.stride + tap_x * x.dilation - x.pad;
              ASSERT_EQ(row[k], Element(in_z, in_y, in_x, channel))
                  << "row " << at << ", element " << k;
            }
          }
        }
      }
      ASSERT_EQ(k, source->depth());
      for (; k < source->RowBytes(); ++k) ASSERT_EQ(row[k], 0) << "row " << at;
    }
    ASSERT_EQ(rows.back(), kBehind);
  }

 private:
  int64_t Roll(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }

  uint8_t Element(int64_t in_z, int64_t in_y, int64_t in_x, int64_t channel) const {
    const auto& [z, y, x] = axes_.spatial;
    const bool is_inside =
        in_z >= 0 && in_z < z.in && in_y >= 0 && in_y < y.in && in_x >= 0 && in_x < x.in;
    if (!is_inside) return fill_;
    const int64_t offset = in_z * z.image_stride + in_y * y.image_stride + in_x * x.image_stride +
                           channel * axes_.channel_stride;
    return static_cast<uint8_t>(image_[static_cast<size_t>(offset)] ^ flip_);
  }

  std::mt19937 random_;
  WindowAxes axes_;
  std::vector<uint8_t> image_;
  uint8_t flip_, fill_;
};

TEST(RowsTest, AreTheWindowsOfAnImage) {
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE(seed);
    RandomWindows(seed).Check();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(RowsTest, AreTheWindowsOfAnImageInPieces) {
  int in_strips = 0, of_planes = 0;
  for (uint32_t seed = 0; seed < 8000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomWindows windows(seed);
    if (!windows.CheckStrips()) continue;
    ++in_strips;
    if (windows.IsOfPlanes()) ++of_planes;
  }
  EXPECT_GT(in_strips, 500);
  EXPECT_GT(of_planes, 100);
}

}  // namespace
}  // namespace onnxifi::integer
