// SPDX-License-Identifier: Apache-2.0
//
// SelectGathered and its kernel: a convolution along any number of axes as a product of gathered
// windows and packed weights. The depth is divided into blocks: of one, the panel of weights stays
// in the L1 cache and the windows of a chunk stay in the L2 cache, and sums are added to those of
// the block before. Along one axis, windows are read where they lie, but for those that reach into
// padding. A result whose channels are not innermost, as a caller's, is turned chunk by chunk.

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/gathered.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/grid.h"
#include "backends/cpu/gemm/step_epilogue.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/runtime/packed_weights.h"
#include "backends/cpu/runtime/plain_operand.h"
#include "backends/cpu/transpose/transpose.h"

namespace onnxifi::convolution {
namespace {

using base::Code;
using base::Status;
using program::Contract;

// Weights of every group, the depth in the order of Windows. `weights` is the first used tap's.
void PackTaps(const GatheredConvolution& convolution, const float* weights,
              const device::BoundView& view, const tensor::Extents& kernel,
              device::Parallel& parallel, float* packed) {
  parallel.For(
      convolution.group * convolution.panels(), /*grain=*/1, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          const int64_t group = k / convolution.panels();
          const int64_t panel = k % convolution.panels();
          for (int64_t tap = 0; tap < convolution.taps; ++tap) {
            const float* first = weights + group * convolution.out_channels * view.strides[0];
            int64_t rest = tap;
            for (size_t axis = kernel.size(); axis-- > 0;) {
              first += rest % kernel[axis] * view.strides[kFirstSpatial + axis];
              rest /= kernel[axis];
            }
            gemm::PackRows({first, view.strides[1], view.strides[0]}, convolution.in_channels,
                           convolution.out_channels, tap * convolution.in_channels,
                           convolution.depth(), panel, panel + 1,
                           packed + group * convolution.packed_size());
          }
        }
      });
}

// The same with the depth going over channels first.
void PackChannelsFirst(const GatheredConvolution& convolution, const float* weights,
                       const device::BoundView& view, const tensor::Extents& kernel,
                       float* packed) {
  const int64_t depth = convolution.depth();
  std::vector<float> rows(
      static_cast<size_t>(convolution.group * convolution.out_channels * depth));
  PackForPlanes(convolution, weights, view, kernel, rows.data());
  for (int64_t group = 0; group < convolution.group; ++group) {
    gemm::PackPanels({rows.data() + group * convolution.out_channels * depth, 1, depth}, depth,
                     convolution.out_channels, 0, convolution.panels(),
                     packed + group * convolution.packed_size());
  }
}

// Whether neighbours of planes are better copied together than a channel's of one position: where
// windows lie apart, so that a row of them cannot be transposed.
bool PrefersChannelsFirst(const Windows& windows) {
  const WindowAxis& last = windows.axes[kMaxSpatialAxes - 1];
  return windows.channels > 1 && windows.channel_stride != 1 && last.source_stride == 1 &&
         last.dilation == 1 && last.kernel > 1 && last.stride > 1;
}

// Windows of one pixel each, without gaps between them, as windows along a single axis; other
// windows as they are.
Windows MergePixels(const Windows& windows) {
  Windows merged = windows;
  merged.axes = {};
  WindowAxis& pixels = merged.axes.back();
  pixels.source_stride = windows.axes.back().source_stride;
  for (size_t axis = kMaxSpatialAxes; axis-- > 0;) {
    const WindowAxis& at = windows.axes[axis];
    const bool is_next =
        at.out == 1 || (at.stride == 1 && at.source_stride == pixels.in * pixels.source_stride);
    if (at.kernel != 1 || at.pad != 0 || at.in != at.out || !is_next) return windows;
    pixels.in = pixels.out = pixels.out * at.out;
  }
  return merged;
}

// Which windows are read where they lie: along one axis those inside the image, where a window's
// channels lie side by side.
Range WindowsInPlace(const Windows& windows) {
  const auto& [z, y, x] = windows.axes;
  const auto has_pixel_alone = [](const WindowAxis& axis) {
    return axis.in == 1 && axis.out == 1 && axis.kernel == 1 && axis.pad == 0;
  };
  const bool is_dense = windows.channels == 1 || windows.channel_stride == 1;
  if (!is_dense || windows.has_channels_first || !has_pixel_alone(z) || !has_pixel_alone(y)) {
    return {};
  }
  const int64_t last = x.in + x.pad - (x.kernel - 1) * x.dilation - 1;  // where a window may begin
  const int64_t begin = std::min(x.out, (std::max<int64_t>(x.pad, 0) + x.stride - 1) / x.stride);
  return {begin, std::max(begin, last < 0 ? 0 : std::min(x.out, last / x.stride + 1))};
}

class BoundGathered final : public device::BoundKernel {
 public:
  // `convolution` has the used taps alone.
  BoundGathered(const device::BoundStep& step, const GatheredConvolution& convolution,
                const Windows& windows, runtime::PackedWeights weights, runtime::Runtime& runtime)
      : runtime_(runtime),
        convolution_(convolution),
        weights_(std::move(weights)),
        epilogue_(convolution.epilogue, step),
        source_(step.reads[0]),
        result_(step.writes[0]),
        batch_(step.domain[0]),
        windows_(MergePixels(windows)),
        in_place_(WindowsInPlace(windows_)) {
    // A panel of a block takes half of the L1 cache, the windows of a chunk half of the L2 cache.
    block_depth_ = std::clamp<int64_t>(processor::L1Floats() / 2 / gemm::PanelColumns(), 64, 1024);
    block_depth_ = std::min(block_depth_, convolution.depth());
    const WindowAxis& last_axis = windows_.axes.back();
    // Weights that no L2 cache holds are not read again for the windows at the edges, nor others
    // for a few between these; and windows whole pages apart would share one set of the L1 cache.
    constexpr int64_t kPageFloats = 1024;
    const bool are_few = in_place_.size() < 2 * gemm::BlockRows() ||
                         convolution.group * convolution.packed_size() > processor::L2Floats() / 2;
    if ((!IsAllInPlace() && are_few) ||
        last_axis.stride * last_axis.source_stride % kPageFloats == 0) {
      in_place_ = {};
    }
    const int64_t tap_step = last_axis.dilation * last_axis.source_stride;
    if (in_place_.size() > 0 && last_axis.kernel > 1 && tap_step != convolution.in_channels) {
      for (int64_t tap = 0; tap < last_axis.kernel; ++tap) pieces_.push_back(tap * tap_step);
      // Whole pieces.
      block_depth_ =
          std::max<int64_t>(1, block_depth_ / convolution.in_channels) * convolution.in_channels;
    }
    const int64_t most_rows = processor::L2Floats() / 2 / block_depth_;
    chunk_rows_ = std::max<int64_t>(1, most_rows / gemm::BlockRows()) * gemm::BlockRows();
    is_direct_ = result_.strides[1] == 1;
    if (IsAllInPlace() && !is_direct_) {
      // What a chunk reads and the rows that are turned then stay in a part of the L2 cache.
      const int64_t row = convolution.depth() + convolution.out_channels;
      const int64_t blocks = processor::L2Floats() / 8 / (row * gemm::BlockRows());
      chunk_rows_ = std::min(chunk_rows_, std::max<int64_t>(4, blocks) * gemm::BlockRows());
    }
    chunk_rows_ = std::min(chunk_rows_, windows_.count());
    // Chunks of fewer windows than some blocks read the weights too often.
    const auto& [z, y, x] = windows_.axes;
    const int64_t last = (z.out - 1) * z.stride - z.pad + (z.kernel - 1) * z.dilation;
    leaves_out_frames_ = !windows_.has_channels_first && z.out > 1 &&
                         y.out * x.out >= 2 * gemm::BlockRows() && (z.pad > 0 || last >= z.in);
  }

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  Status Run(device::Addresses addresses) const override {
    if (batch_ == 0 || windows_.count() == 0) return base::Ok();
    threads::ThreadPool& pool = runtime_.pool();
    // Of a chunk, threads that have different panels gather the same windows.
    const gemm::Work work = {batch_ * windows_.count(), 1, convolution_.depth(),
                             convolution_.panels()};
    const gemm::Grid grid = gemm::ChooseGrid(work, pool.thread_count());
    const int64_t part_floats =
        chunk_rows_ * (GatheredFloats() + (is_direct_ ? 0 : convolution_.out_channels));
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(gemm::ThreadsOf(grid, pool) * part_floats *
                                                         static_cast<int64_t>(sizeof(float))));
    auto* const scratch = reinterpret_cast<float*>(lease.data());
    const gemm::Epilogue epilogue = epilogue_.At(addresses);
    gemm::ForParts(work, grid, pool, [&](int64_t thread, const gemm::Part& part) {
      for (int64_t row = part.first_block; row < part.end_block;) {
        const int64_t image = row / windows_.count();
        const int64_t first = row % windows_.count();
        // A chunk's windows see the same frames.
        const int64_t frame =
            leaves_out_frames_ ? windows_.axes[1].out * windows_.axes[2].out : windows_.count();
        const int64_t rows = std::min(
            {chunk_rows_, part.end_block - row, frame - first % frame, EndOfKind(first) - first});
        RunChunk(addresses, epilogue, image, first, rows, part, scratch + thread * part_floats);
        row += rows;
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    return std::string(leaves_out_frames_ ? "without frames of padding, " : "") +
           (in_place_.size() > 0 ? "in place, " : "") + "chunks of " + std::to_string(chunk_rows_) +
           ", depth " + std::to_string(convolution_.depth()) + " in blocks of " +
           std::to_string(block_depth_) + ", " + processor::VectorName();
  }

 private:
  // Sums of one group and chunk, a row per position, and what is added to them.
  struct Sums {
    float* data;
    int64_t row;
    const float* addend;  // null: nothing
    int64_t addend_row;
  };

  void RunChunk(device::Addresses addresses, const gemm::Epilogue& epilogue, int64_t image,
                int64_t first, int64_t rows, const gemm::Part& part, float* scratch) const {
    const int64_t columns = convolution_.out_channels;
    const Range range = {part.first_panel * gemm::PanelColumns(),
                         std::min(part.end_panel * gemm::PanelColumns(), columns)};
    for (int64_t group = 0; group < convolution_.group; ++group) {
      float* const result = At(addresses, result_, image, group * columns, first);
      Sums sums = {result, result_.strides.back(), nullptr, 0};
      if (epilogue_.addend()) {
        sums.addend = At(addresses, *epilogue_.addend(), image, group * columns, first);
        sums.addend_row = epilogue_.addend()->strides.back();
      }
      if (!is_direct_) {
        float* const turned = scratch + chunk_rows_ * GatheredFloats();
        sums.data = turned;
        sums.row = columns;
      }
      const float* const source = At(addresses, source_, image, group * windows_.channels, 0);
      RunGroup(epilogue, source, group, first, rows, part, sums, scratch);
      if (!is_direct_) {
        CopyColumns(sums.data, columns, rows, range, result, result_.strides.back(),
                    result_.strides[1]);
      }
    }
  }

  bool IsAllInPlace() const { return in_place_.size() == windows_.count(); }

  // Of a window of a chunk.
  int64_t GatheredFloats() const { return IsAllInPlace() ? 0 : block_depth_; }

  // The end of the run of windows that, as window `first`, are read in place, or are gathered.
  int64_t EndOfKind(int64_t first) const {
    if (first < in_place_.begin) return in_place_.begin;
    return first < in_place_.end ? in_place_.end : windows_.count();
  }

  // Of the depth of windows from `first` on, what is not of frames in the padding; of the first tap
  // if nothing else is.
  Range UsedDepth(int64_t first) const {
    if (!leaves_out_frames_) return {0, convolution_.depth()};
    const auto& [z, y, x] = windows_.axes;
    const int64_t before = first / (y.out * x.out) * z.stride - z.pad;
    const int64_t begin = before < 0 ? (z.dilation - 1 - before) / z.dilation : 0;
    const int64_t end =
        std::min(z.kernel, before >= z.in ? 0 : (z.in - 1 - before) / z.dilation + 1);
    const int64_t depth = convolution_.depth() / z.kernel;
    if (begin >= end) return {0, depth};
    return {begin * depth, end * depth};
  }

  void RunGroup(const gemm::Epilogue& epilogue, const float* source, int64_t group, int64_t first,
                int64_t rows, const gemm::Part& part, const Sums& sums, float* scratch) const {
    const int64_t columns = convolution_.out_channels;
    const float* const packed = runtime::Floats(weights_) + group * convolution_.packed_size();
    // Weights that no L2 cache holds come to it a block ahead.
    const bool is_far = convolution_.group * convolution_.packed_size() > processor::L2Floats() / 2;
    const auto block_at = [&](int64_t panel, int64_t depth) {
      return packed + (panel * convolution_.depth() + depth) * gemm::PanelColumns();
    };
    const Range used = UsedDepth(first);
    for (int64_t depth = used.begin; depth < used.end; depth += block_depth_) {
      const int64_t end_depth = std::min(used.end, depth + block_depth_);
      gemm::Product product = ReadWindows(source, first, rows, {depth, end_depth}, scratch);
      product.c_stride = sums.row;
      for (int64_t panel = part.first_panel; panel < part.end_panel; ++panel) {
        const int64_t column = panel * gemm::PanelColumns();
        // The summand is added to the first block, all else to the last.
        gemm::Epilogue own;
        if (end_depth == used.end) own = epilogue;
        if (own.bias != nullptr) own.bias += group * columns + column;
        if (depth > used.begin) {
          own.addend = sums.data + column;
          own.addend_stride = sums.row;
        } else if (sums.addend != nullptr) {
          own.addend = sums.addend + column;
          own.addend_stride = sums.addend_row;
        }
        product.b = block_at(panel, depth);
        product.c = sums.data + column;
        product.columns = std::min(gemm::PanelColumns(), columns - column);
        if (is_far) {
          product.next_b = panel + 1 < part.end_panel ? block_at(panel + 1, depth)
                                                      : block_at(part.first_panel, end_depth);
        }
        gemm::Multiply(product, own, 0, 1);
      }
    }
  }

  // The side of a product that is some depth of windows [first, first + rows) of the image at
  // `source`, which are all in place or all gathered.
  gemm::Product ReadWindows(const float* source, int64_t first, int64_t rows, const Range& depth,
                            float* scratch) const {
    gemm::Product product = {};
    product.rows = rows;
    product.depth = depth.size();
    if (first < in_place_.begin || first >= in_place_.end) {
      windows_.Gather(source, first, rows, depth.begin, depth.end, scratch);
      product.a = scratch;
      product.a_stride = depth.size();
      return product;
    }
    const WindowAxis& x = windows_.axes.back();
    product.a = source + (first * x.stride - x.pad) * x.source_stride;
    product.a_stride = x.stride * x.source_stride;
    if (pieces_.empty()) {
      product.a += depth.begin;
      return product;
    }
    product.depth = convolution_.in_channels;
    product.pieces = std::span(pieces_).subspan(static_cast<size_t>(depth.begin / product.depth),
                                                static_cast<size_t>(depth.size() / product.depth));
    return product;
  }

  static float* At(device::Addresses addresses, const device::BoundView& view, int64_t image,
                   int64_t channel, int64_t position) {
    return gemm::FloatsAt(addresses, view) + image * view.strides[0] + channel * view.strides[1] +
           position * view.strides.back();
  }

  runtime::Runtime& runtime_;
  const GatheredConvolution convolution_;
  const runtime::PackedWeights weights_;
  const gemm::BoundEpilogue epilogue_;
  const device::BoundView source_, result_;
  const int64_t batch_;
  const Windows windows_;
  Range in_place_;               // the windows that are read where they lie
  std::vector<int64_t> pieces_;  // of these, the taps, where a window is not one piece
  int64_t block_depth_ = 1, chunk_rows_ = 1;
  // Whether products write the result where it is: its channels lie innermost.
  bool is_direct_ = true;
  // Whether windows along the outermost of three axes differ in the frames that they see.
  bool leaves_out_frames_ = false;
};

class GatheredKernel final : public device::Kernel {
 public:
  GatheredKernel(const GatheredConvolution& convolution, runtime::Runtime& runtime)
      : convolution_(convolution), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    const device::BoundView& view = step.reads[1];
    const UsedTaps used = FindUsedTaps(step);
    GatheredConvolution convolution = convolution_;
    convolution.taps = used.total();
    int64_t first = 0;
    for (size_t axis = 0; axis < used.first.size(); ++axis) {
      first += used.first[axis] * view.strides[kFirstSpatial + axis];
    }
    Windows windows = WindowsOf(step, used);
    const bool has_planes = PrefersPlanes(step, convolution, windows);
    const bool has_taps = !has_planes && PrefersTaps(step, convolution, windows);
    const bool has_slabs = !has_planes && !has_taps && used.count.size() == kMaxSpatialAxes &&
                           PrefersSlabs(windows, convolution);
    windows.has_channels_first =
        !has_planes && !has_taps && !has_slabs && PrefersChannelsFirst(windows);
    const auto pack = [&](const float* weights, float* packed) {
      weights += first;
      if (has_planes) {
        PackForPlanes(convolution, weights, view, used.count, packed);
      } else if (windows.has_channels_first) {
        PackChannelsFirst(convolution, weights, view, used.count, packed);
      } else {
        PackTaps(convolution, weights, view, used.count, runtime_.pool(), packed);
      }
    };
    const int64_t size =
        has_planes ? convolution.out_channels * convolution.depth() : convolution.packed_size();
    constexpr int kOrders = 3;
    const int order = has_planes ? 1 : windows.has_channels_first ? 2 : 0;
    ONNXIFI_ASSIGN_OR_RETURN(runtime::PackedWeights packed,
                             runtime::FindPacked(step, 1, constants, runtime_.memory(), store_,
                                                 kOrders * layouts_.NumberOf(used) + order,
                                                 convolution.group * size, pack));
    if (has_planes) return BindPlanes(step, convolution, windows, std::move(packed), runtime_);
    if (has_taps) return BindTaps(step, convolution, windows, std::move(packed), runtime_);
    if (has_slabs) {
      return BindSlabs(step, convolution, windows, std::move(packed), runtime_);
    }
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<BoundGathered>(step, convolution, windows, std::move(packed), runtime_));
  }

 private:
  const GatheredConvolution convolution_;
  runtime::Runtime& runtime_;
  runtime::WeightStore store_;
  TapLayouts layouts_;
};

}  // namespace

void CopyColumns(const float* from, int64_t from_row, int64_t rows, const Range& columns, float* to,
                 int64_t to_row, int64_t to_column) {
  if (to_row == 1) {
    transpose::Transpose(reinterpret_cast<const std::byte*>(from + columns.begin), from_row,
                         reinterpret_cast<std::byte*>(to + columns.begin * to_column), to_column,
                         columns.size(), rows, sizeof(float));
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = columns.begin; column < columns.end; ++column) {
      to[row * to_row + column * to_column] = from[row * from_row + column];
    }
  }
}

bool IsCheapToGather(const program::Step& step) {
  constexpr int64_t kMaxDepth = 48;
  const Contract& contract = *step.As<Contract>();
  const program::Dim one = 1;
  if (step.reads[0].strides[1] == one && step.writes[0].strides[1] == one) return false;
  if (contract.group != 1) return false;
  int64_t depth = 1;
  for (const program::Dim& extent : contract.inner) {
    if (!extent.is_constant()) return false;
    depth = std::min(depth, kMaxDepth + 1) * std::min(extent.constant(), kMaxDepth + 1);
  }
  bool is_overlapping = false;
  for (size_t axis = 0; axis < contract.strides.size(); ++axis) {
    is_overlapping |= contract.inner[axis + 1].constant() > contract.strides[axis];
  }
  return depth <= kMaxDepth || !is_overlapping;
}

runtime::RecipeResult SelectGathered(const device::Facts& facts, bool takes_few_outputs) {
  const program::Step& step = facts.step;
  const Contract& contract = *step.As<Contract>();
  ONNXIFI_RETURN_IF_ERROR(CheckGathered(facts));
  GatheredConvolution convolution;
  convolution.group = contract.group;
  convolution.in_channels = contract.inner[0].constant();
  convolution.out_channels = step.domain[1].constant() / contract.group;
  for (size_t axis = 1; axis < contract.inner.size(); ++axis) {
    convolution.taps *= contract.inner[axis].constant();
  }
  constexpr int64_t kMinColumns = 8;
  if (convolution.out_channels < kMinColumns && !takes_few_outputs) {
    return Status(Code::kUnsupportedShape,
                  "A group has " + std::to_string(convolution.out_channels) + " outputs; below " +
                      std::to_string(kMinColumns) + " most of a vector would stay empty.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(convolution.epilogue, gemm::SelectEpilogue(facts, /*channel_axis=*/1));
  ONNXIFI_RETURN_IF_ERROR(CheckEvenPositions(step.writes[0], step.domain, "result"));
  if (const int addend = convolution.epilogue.addend; addend >= 0) {
    ONNXIFI_RETURN_IF_ERROR(
        CheckEvenPositions(step.reads[static_cast<size_t>(addend)], step.domain, "summand"));
  }
  return MakePackingRecipe<GatheredKernel>("gathered", convolution);
}

}  // namespace onnxifi::convolution
