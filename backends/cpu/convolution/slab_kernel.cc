// SPDX-License-Identifier: Apache-2.0
//
// Slabs: a convolution along three axes whose windows overlap. What some rows of the result see is
// copied with its padding to memory of the thread, channels innermost; the windows of a row are
// then rows of a product that lie one pixel apart, and no element is copied once per tap. Taps of
// the outermost axis that meet padding alone are left out. Where windows reach into padding along
// that axis alone, nothing is copied.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/gathered.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/gemm/grid.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/runtime/left_out.h"
#include "backends/cpu/transpose/transpose.h"

namespace onnxifi::convolution {
namespace {

using base::Status;

// What the windows of `out` positions along an axis reach over.
int64_t Reach(const WindowAxis& axis, int64_t out) {
  return (out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
}

int64_t RowFloats(const Windows& windows) {
  return Reach(windows.axes[2], windows.axes[2].out) * windows.channels;
}

// The taps of a kernel along an axis that see something of the input at position `out`.
Range UsedTapsAt(const WindowAxis& axis, int64_t out) {
  const int64_t at = out * axis.stride - axis.pad;
  Range taps = {0, axis.kernel};
  while (taps.size() > 0 && at + taps.begin * axis.dilation < 0) ++taps.begin;
  while (taps.size() > 0 && at + (taps.end - 1) * axis.dilation >= axis.in) --taps.end;
  return taps;
}

// Whether windows can be read where they lie.
bool AreInPlace(const Windows& windows) {
  const auto& [z, y, x] = windows.axes;
  for (int64_t out = 0; out < z.out; ++out) {
    const Range taps = UsedTapsAt(z, out);
    if (taps.size() == 0) return false;
  }
  return windows.channel_stride == 1 && y.pad == 0 && x.pad == 0 && Reach(y, y.out) <= y.in &&
         Reach(x, x.out) <= x.in;
}

// A slab takes half of the L2 cache, which it shares with the weights.
int64_t SlabFloats() { return processor::L2Floats() / 2; }

class BoundSlabs final : public device::BoundKernel {
 public:
  BoundSlabs(const device::BoundStep& step, const GatheredConvolution& convolution,
             const Windows& windows, runtime::PackedWeights weights, runtime::Runtime& runtime)
      : runtime_(runtime),
        convolution_(convolution),
        weights_(std::move(weights)),
        epilogue_(convolution.epilogue, step),
        source_(step.reads[0]),
        result_(step.writes[0]),
        batch_(step.domain[0]),
        windows_(windows),
        is_in_place_(AreInPlace(windows)),
        is_direct_(result_.strides[1] == 1) {
    const auto& [z, y, x] = windows_.axes;
    if (is_in_place_) {
      slab_rows_ = y.out;
      frame_step_ = z.dilation * z.source_stride;
      row_step_ = y.source_stride;
      pixel_step_ = x.source_stride;
    } else {
      row_step_ = RowFloats(windows_);
      const int64_t most_rows = SlabFloats() / (z.kernel * row_step_) - (y.kernel - 1) * y.dilation;
      slab_rows_ = std::clamp<int64_t>((most_rows - 1) / y.stride + 1, 1, y.out);
      frame_step_ = Reach(y, slab_rows_) * row_step_;
      pixel_step_ = windows_.channels;
    }
    const bool is_row_whole =
        x.kernel == 1 || (x.dilation == 1 && pixel_step_ == windows_.channels);
    piece_floats_ = is_row_whole ? x.kernel * windows_.channels : windows_.channels;
    for (int64_t tap_z = 0; tap_z < z.kernel; ++tap_z) {
      for (int64_t tap_y = 0; tap_y < y.kernel; ++tap_y) {
        for (int64_t tap_x = 0; tap_x < (is_row_whole ? 1 : x.kernel); ++tap_x) {
          pieces_.push_back(tap_z * frame_step_ + tap_y * y.dilation * row_step_ +
                            tap_x * x.dilation * pixel_step_);
        }
      }
    }
  }

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    if (batch_ == 0 || windows_.count() == 0) return base::Ok();
    const auto& [z, y, x] = windows_.axes;
    threads::ThreadPool& pool = runtime_.pool();
    const gemm::Work work = {batch_ * z.out * y.out, x.out, convolution_.depth(),
                             convolution_.panels(), /*are_panels_divided=*/false};
    const gemm::Grid grid = gemm::ChooseGrid(work, pool.thread_count());
    const int64_t part_floats = SlabSize() + (is_direct_ ? 0 : x.out * convolution_.out_channels);
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(gemm::ThreadsOf(grid, pool) * part_floats *
                                                         static_cast<int64_t>(sizeof(float))));
    auto* const scratch = reinterpret_cast<float*>(lease.data());
    const gemm::Epilogue epilogue = epilogue_.At(addresses);
    gemm::ForParts(work, grid, pool, [&](int64_t thread, const gemm::Part& part) {
      for (int64_t row = part.first_block; row < part.end_block;) {
        const Slab slab = {row / y.out / windows_.axes[0].out, row / y.out % windows_.axes[0].out,
                           row % y.out,
                           std::min({slab_rows_, part.end_block - row, y.out - row % y.out})};
        for (int64_t group = 0; group < convolution_.group; ++group) {
          RunSlab(addresses, epilogue, slab, group, scratch + thread * part_floats);
        }
        row += slab.rows;
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    return (is_in_place_ ? "in place, " : "slabs of " + std::to_string(slab_rows_) + " rows, ") +
           std::to_string(pieces_.size()) + " pieces of " + std::to_string(piece_floats_) + ", " +
           processor::VectorName();
  }

 private:
  // Rows [y, y + rows) of frame z of an image of the result.
  struct Slab {
    int64_t image, z, y, rows;
  };

  void RunSlab(device::Addresses addresses, const gemm::Epilogue& epilogue, const Slab& slab,
               int64_t group, float* scratch) const {
    const auto& [z, y, x] = windows_.axes;
    const float* const image = gemm::FloatsAt(addresses, source_) +
                               slab.image * source_.strides[0] +
                               group * windows_.channels * source_.strides[1];
    Range taps = UsedTapsAt(z, slab.z);
    const int64_t before = slab.z * z.stride - z.pad;
    const float* window = scratch;
    if (is_in_place_) {
      window = image + before * z.source_stride + slab.y * y.stride * y.source_stride;
    } else {
      // With no tap one is computed from zeros: the epilogue has sums to work on.
      const bool is_padding = taps.size() == 0;
      if (is_padding) taps = {0, 1};
      for (int64_t tap = taps.begin; tap < taps.end; ++tap) {
        const float* const frame = image + (before + tap * z.dilation) * z.source_stride;
        for (int64_t row = 0; row < Reach(y, slab.rows); ++row) {
          const int64_t in_y = slab.y * y.stride - y.pad + row;
          float* const to = scratch + tap * frame_step_ + row * row_step_;
          if (is_padding || in_y < 0 || in_y >= y.in) {
            std::fill_n(to, row_step_, 0.0F);
          } else {
            CopyRow(frame + in_y * y.source_stride, to);
          }
        }
      }
    }
    for (int64_t row = 0; row < slab.rows; ++row) {
      MultiplyRow(addresses, epilogue, {slab.image, slab.z, slab.y + row, 1}, group, taps,
                  window + row * y.stride * row_step_, scratch + SlabSize());
    }
  }

  // In floats.
  int64_t SlabSize() const { return is_in_place_ ? 0 : windows_.axes[0].kernel * frame_step_; }

  // A row of the image between its padding.
  void CopyRow(const float* from, float* to) const {
    const WindowAxis& x = windows_.axes[2];
    const int64_t channels = windows_.channels;
    const int64_t width = row_step_ / channels;
    const int64_t left = std::min(x.pad, width);
    const int64_t count = std::clamp<int64_t>(width - left, 0, x.in);
    std::fill_n(to, left * channels, 0.0F);
    std::fill(to + (left + count) * channels, to + row_step_, 0.0F);
    to += left * channels;
    if (windows_.channel_stride == 1 && x.source_stride == channels) {
      std::copy_n(from, count * channels, to);
    } else if (windows_.channel_stride == 1) {
      for (int64_t k = 0; k < count; ++k) {
        std::copy_n(from + k * x.source_stride, channels, to + k * channels);
      }
    } else if (x.source_stride == 1) {
      transpose::Transpose(reinterpret_cast<const std::byte*>(from), windows_.channel_stride,
                           reinterpret_cast<std::byte*>(to), channels, count, channels,
                           sizeof(float));
    } else {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t k = 0; k < count; ++k) {
          to[k * channels + c] = from[c * windows_.channel_stride + k * x.source_stride];
        }
      }
    }
  }

  static float* At(device::Addresses addresses, const device::BoundView& view, const Slab& row,
                   int64_t channel) {
    return gemm::FloatsAt(addresses, view) + row.image * view.strides[0] +
           channel * view.strides[1] + row.z * view.strides[2] + row.y * view.strides[3];
  }

  // One row of the result from `window`, the first of its windows, over some taps along the frames.
  void MultiplyRow(device::Addresses addresses, const gemm::Epilogue& epilogue, const Slab& row,
                   int64_t group, const Range& taps, const float* window, float* turned) const {
    const auto& [z, y, x] = windows_.axes;
    const int64_t columns = convolution_.out_channels;
    const int64_t panel_columns = gemm::PanelColumns();
    const int64_t pieces = static_cast<int64_t>(pieces_.size()) / z.kernel;  // of a tap along z
    const std::span<const int64_t> used = std::span(pieces_).subspan(
        static_cast<size_t>(taps.begin * pieces), static_cast<size_t>(taps.size() * pieces));
    const int64_t skipped = taps.begin * pieces * piece_floats_;
    float* const result = At(addresses, result_, row, group * columns);
    gemm::Product product = {window,
                             x.stride * pixel_step_,
                             runtime::Floats(weights_) + group * convolution_.packed_size(),
                             is_direct_ ? result : turned,
                             is_direct_ ? result_.strides.back() : columns,
                             x.out,
                             piece_floats_,
                             columns,
                             used};
    gemm::Epilogue own = epilogue;
    if (own.bias != nullptr) own.bias += group * columns;
    if (epilogue_.addend()) {
      own.addend = At(addresses, *epilogue_.addend(), row, group * columns);
      own.addend_stride = epilogue_.addend()->strides.back();
    }
    if (taps.begin == 0 && taps.end == z.kernel) {
      gemm::Multiply(product, own, 0, convolution_.panels());
    } else {
      // A panel's weights are those of all taps.
      const float* const weights = product.b;
      for (int64_t panel = 0; panel < convolution_.panels(); ++panel) {
        product.b = weights + (panel * convolution_.depth() + skipped) * panel_columns;
        product.columns = std::min(panel_columns, columns - panel * panel_columns);
        gemm::Multiply(product, own, 0, 1);
        product.c += panel_columns;
        if (own.bias != nullptr) own.bias += panel_columns;
        if (own.addend != nullptr) own.addend += panel_columns;
      }
    }
    if (!is_direct_) {
      CopyColumns(turned, columns, x.out, {0, columns}, result, result_.strides.back(),
                  result_.strides[1]);
    }
  }

  runtime::Runtime& runtime_;
  const GatheredConvolution convolution_;
  const runtime::PackedWeights weights_;
  const gemm::BoundEpilogue epilogue_;
  const device::BoundView source_, result_;
  const int64_t batch_;
  const Windows windows_;
  const bool is_in_place_;
  const bool is_direct_;   // whether products write the result where it is
  int64_t slab_rows_ = 1;  // of the result
  // Floats between the frames of neighbouring taps, and between rows and pixels, of what products
  // read.
  int64_t frame_step_ = 0, row_step_ = 0, pixel_step_ = 0;
  int64_t piece_floats_ = 0;     // of a window
  std::vector<int64_t> pieces_;  // of a window, tap by tap
};

}  // namespace

bool PrefersSlabs(const Windows& windows, const GatheredConvolution& convolution) {
  if (runtime::IsLeftOut(kSlabs)) return false;
  // Below that, rows of the result fill no block of a product.
  constexpr int64_t kMinRow = 7;
  const auto& [z, y, x] = windows.axes;
  if (x.out < kMinRow || x.pad < 0 || windows.count() == 0) return false;
  if (convolution.packed_size() > processor::L2Floats() / 2) return false;
  if (AreInPlace(windows)) return true;
  // Within a slab; along the outermost axis both ways copy a frame for each tap.
  const bool is_overlapping = y.kernel * x.kernel > y.stride * x.stride;
  return is_overlapping && z.kernel * Reach(y, 1) * RowFloats(windows) <= SlabFloats();
}

std::unique_ptr<device::BoundKernel> BindSlabs(const device::BoundStep& step,
                                               const GatheredConvolution& convolution,
                                               const Windows& windows,
                                               runtime::PackedWeights weights,
                                               runtime::Runtime& runtime) {
  return std::make_unique<BoundSlabs>(step, convolution, windows, std::move(weights), runtime);
}

}  // namespace onnxifi::convolution
