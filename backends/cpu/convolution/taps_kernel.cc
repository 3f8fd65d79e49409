// SPDX-License-Identifier: Apache-2.0
//
// PrefersTaps and what it binds: tap by tap, the product of the pixels that a tap meets is added to
// the results that it is for, so that nothing is multiplied with padding. Kernels with dilations of
// half an image and more, as at the ends of segmentation networks, meet padding with most taps.

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/gathered.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/grid.h"
#include "backends/cpu/gemm/vector_matrix.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/runtime/left_out.h"

namespace onnxifi::convolution {
namespace {

using base::Status;

// The results along an axis that a tap has a pixel for.
Range ResultsOf(const WindowAxis& axis, int64_t tap) {
  const int64_t before = axis.pad - tap * axis.dilation;
  const int64_t begin = before > 0 ? (before + axis.stride - 1) / axis.stride : 0;
  const int64_t last = axis.in - 1 + before;
  const int64_t end = last < 0 ? 0 : last / axis.stride + 1;
  return {std::min(begin, axis.out), std::clamp(end, std::min(begin, axis.out), axis.out)};
}

// A tap that all results have a pixel for; negative: there is none.
int64_t WholeTap(const WindowAxis& axis) {
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    if (ResultsOf(axis, tap).size() == axis.out) return tap;
  }
  return -1;
}

class BoundTaps final : public device::BoundKernel {
 public:
  BoundTaps(const device::BoundStep& step, const GatheredConvolution& convolution,
            const Windows& windows, runtime::PackedWeights weights, runtime::Runtime& runtime)
      : runtime_(runtime),
        convolution_(convolution),
        weights_(std::move(weights)),
        epilogue_(convolution.epilogue, step),
        source_(step.reads[0]),
        result_(step.writes[0]),
        batch_(step.domain[0]),
        windows_(windows) {
    block_depth_ = std::clamp<int64_t>(processor::L1Floats() / 2 / gemm::PanelColumns(), 64, 1024);
    const auto& [z, y, x] = windows_.axes;
    // The first tap gives all results their bias.
    const Tap whole = {WholeTap(z), WholeTap(y), WholeTap(x)};
    taps_.push_back(whole);
    for (int64_t tap = 0; tap < convolution_.taps; ++tap) {
      const Tap own = {tap / x.kernel / y.kernel, tap / x.kernel % y.kernel, tap % x.kernel};
      if (own.z != whole.z || own.y != whole.y || own.x != whole.x) taps_.push_back(own);
    }
    // Only the axes that the step has are along its views.
    const size_t spatial = result_.strides.size() - kFirstSpatial;
    for (size_t own = 0; own < spatial; ++own) {
      result_strides_[kMaxSpatialAxes - spatial + own] = result_.strides[kFirstSpatial + own];
      if (epilogue_.addend()) {
        addend_strides_[kMaxSpatialAxes - spatial + own] =
            epilogue_.addend()->strides[kFirstSpatial + own];
      }
    }
  }

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    if (batch_ == 0 || windows_.count() == 0) return base::Ok();
    const auto& [z, y, x] = windows_.axes;
    const gemm::Work work = {batch_ * z.out * y.out, x.out, convolution_.depth(),
                             convolution_.panels()};
    const gemm::Epilogue epilogue = epilogue_.At(addresses);
    gemm::ForParts(
        work, gemm::ChooseGrid(work, runtime_.pool().thread_count()), runtime_.pool(),
        [&](int64_t /*thread*/, const gemm::Part& part) { RunPart(addresses, epilogue, part); });
    return base::Ok();
  }

  std::string Detail() const override {
    return "tap by tap, depth " + std::to_string(windows_.channels) + " in blocks of " +
           std::to_string(block_depth_) + ", " + processor::VectorName();
  }

 private:
  struct Tap {
    int64_t z, y, x;
  };

  void RunPart(device::Addresses addresses, const gemm::Epilogue& epilogue,
               const gemm::Part& part) const {
    for (size_t tap = 0; tap < taps_.size(); ++tap) {
      for (int64_t depth = 0; depth < windows_.channels; depth += block_depth_) {
        for (int64_t panel = part.first_panel; panel < part.end_panel; ++panel) {
          AddTap(addresses, epilogue, tap, depth, panel, part);
        }
      }
    }
    gemm::Epilogue last = epilogue;
    last.bias = last.addend = nullptr;
    if (last.IsNothing()) return;
    const int64_t first = part.first_panel * gemm::PanelColumns();
    const int64_t end = std::min(part.end_panel * gemm::PanelColumns(), convolution_.out_channels);
    for (int64_t row = part.first_block; row < part.end_block; ++row) {
      const Row at = RowOf(row);
      float* const sums = gemm::FloatsAt(addresses, result_) + at.image * result_.strides[0] +
                          at.z * result_strides_[0] + at.y * result_strides_[1];
      gemm::FinishSums({sums, result_strides_[2], 0, 1}, last, windows_.axes[2].out, first, end,
                       sums, result_strides_[2]);
    }
  }

  // A row of results.
  struct Row {
    int64_t image, z, y;
  };
  Row RowOf(int64_t row) const {
    const int64_t rows = windows_.axes[1].out, frames = windows_.axes[0].out;
    return {row / rows / frames, row / rows % frames, row % rows};
  }

  const float* BlockAt(size_t tap, int64_t depth, int64_t panel) const {
    const auto& [z, y, x] = windows_.axes;
    const int64_t number = (taps_[tap].z * y.kernel + taps_[tap].y) * x.kernel + taps_[tap].x;
    return runtime::Floats(weights_) +
           (panel * convolution_.depth() + number * windows_.channels + depth) *
               gemm::PanelColumns();
  }

  // What a block of a tap's depth adds to a panel of the part's rows.
  void AddTap(device::Addresses addresses, const gemm::Epilogue& epilogue, size_t tap,
              int64_t depth, int64_t panel, const gemm::Part& part) const {
    const auto& [z, y, x] = windows_.axes;
    const Tap& own = taps_[tap];
    const Range in_z = ResultsOf(z, own.z), in_y = ResultsOf(y, own.y), in_x = ResultsOf(x, own.x);
    if (in_x.size() == 0) return;
    const int64_t column = panel * gemm::PanelColumns();
    gemm::Product product{};
    product.a_stride = x.stride * x.source_stride;
    product.b = BlockAt(tap, depth, panel);
    product.c_stride = result_strides_[2];
    product.rows = in_x.size();
    product.depth = std::min(block_depth_, windows_.channels - depth);
    product.columns = std::min(gemm::PanelColumns(), convolution_.out_channels - column);
    // The first row brings the next block of weights to the L2 cache.
    product.next_b = panel + 1 < part.end_panel ? BlockAt(tap, depth, panel + 1)
                     : depth + block_depth_ < windows_.channels
                         ? BlockAt(tap, depth + block_depth_, part.first_panel)
                     : tap + 1 < taps_.size() ? BlockAt(tap + 1, 0, part.first_panel)
                                              : nullptr;
    for (int64_t row = part.first_block; row < part.end_block; ++row) {
      const Row at = RowOf(row);
      if (at.z < in_z.begin || at.z >= in_z.end) continue;
      if (at.y < in_y.begin || at.y >= in_y.end) continue;
      product.a = gemm::FloatsAt(addresses, source_) + at.image * source_.strides[0] +
                  (at.z * z.stride - z.pad + own.z * z.dilation) * z.source_stride +
                  (at.y * y.stride - y.pad + own.y * y.dilation) * y.source_stride +
                  (in_x.begin * x.stride - x.pad + own.x * x.dilation) * x.source_stride + depth;
      product.c = gemm::FloatsAt(addresses, result_) + at.image * result_.strides[0] +
                  OffsetOf(at, in_x.begin, result_strides_) + column;
      gemm::Epilogue sums;
      if (tap > 0 || depth > 0) {
        sums.addend = product.c;
        sums.addend_stride = product.c_stride;
      } else {
        if (epilogue.bias != nullptr) sums.bias = epilogue.bias + column;
        if (epilogue_.addend()) {
          const device::BoundView& addend = *epilogue_.addend();
          sums.addend = gemm::FloatsAt(addresses, addend) + at.image * addend.strides[0] +
                        OffsetOf(at, in_x.begin, addend_strides_) + column;
          sums.addend_stride = addend_strides_[2];
        }
      }
      gemm::Multiply(product, sums, 0, 1);
      product.next_b = nullptr;
    }
  }

  using Strides = std::array<int64_t, kMaxSpatialAxes>;
  static int64_t OffsetOf(const Row& at, int64_t x, const Strides& strides) {
    return at.z * strides[0] + at.y * strides[1] + x * strides[2];
  }

  runtime::Runtime& runtime_;
  const GatheredConvolution convolution_;
  const runtime::PackedWeights weights_;
  const gemm::BoundEpilogue epilogue_;
  const device::BoundView source_, result_;
  const int64_t batch_;
  const Windows windows_;
  Strides result_strides_{}, addend_strides_{};
  int64_t block_depth_ = 1;
  std::vector<Tap> taps_;  // in the order in which they are added
};

}  // namespace

bool PrefersTaps(const device::BoundStep& step, const GatheredConvolution& convolution,
                 const Windows& windows) {
  if (runtime::IsLeftOut(kTaps)) return false;
  // Shorter sums are read and written again too often.
  constexpr int64_t kMinChannels = 64;
  constexpr double kMaxUsedShare = 0.75;
  if (convolution.group != 1 || windows.channels < kMinChannels || convolution.taps == 1) {
    return false;
  }
  if (windows.channel_stride != 1 || step.writes[0].strides[1] != 1) return false;
  double used_share = 1;
  for (const WindowAxis& axis : windows.axes) {
    if (axis.out == 0 || WholeTap(axis) < 0) return false;
    int64_t used = 0;
    for (int64_t tap = 0; tap < axis.kernel; ++tap) used += ResultsOf(axis, tap).size();
    used_share *= static_cast<double>(used) / static_cast<double>(axis.out * axis.kernel);
  }
  return used_share <= kMaxUsedShare;
}

std::unique_ptr<device::BoundKernel> BindTaps(const device::BoundStep& step,
                                              const GatheredConvolution& convolution,
                                              const Windows& windows,
                                              runtime::PackedWeights weights,
                                              runtime::Runtime& runtime) {
  return std::make_unique<BoundTaps>(step, convolution, windows, std::move(weights), runtime);
}

}  // namespace onnxifi::convolution
