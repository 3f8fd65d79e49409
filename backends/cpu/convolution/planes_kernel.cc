// SPDX-License-Identifier: Apache-2.0
//
// BindPlanes: gathered convolutions between planes. The product is turned over: a row of it is an
// output, a column a position. So windows are copied together without being transposed, neighbours
// side by side, and sums are stored where they belong. The depth goes over channels first and over
// taps last; as for gathered windows it is divided into blocks.

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/convolution/gathered.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/grid.h"
#include "backends/cpu/gemm/step_epilogue.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/runtime/left_out.h"
#include "backends/cpu/runtime/packed_weights.h"

namespace onnxifi::convolution {
namespace {

constexpr size_t kLast = kMaxSpatialAxes - 1;

// Positions of the result in one row of its last axis.
struct Stretch {
  std::array<int64_t, kMaxSpatialAxes> begin;
  int64_t length;
};

// Where a tap of the kernel is along each axis, and where it meets the source.
struct Tap {
  std::array<int64_t, kMaxSpatialAxes> index;
  int64_t offset;  // of what it meets, from what the first tap meets
};

class BoundPlanes final : public device::BoundKernel {
 public:
  // `convolution` has the used taps alone.
  BoundPlanes(const device::BoundStep& step, const GatheredConvolution& convolution,
              const Windows& windows, runtime::PackedWeights weights, runtime::Runtime& runtime)
      : runtime_(runtime),
        convolution_(convolution),
        weights_(std::move(weights)),
        epilogue_(convolution.epilogue, step),
        source_(step.reads[0]),
        result_(step.writes[0]),
        batch_(step.domain[0]),
        windows_(windows),
        width_(gemm::PanelColumns()) {
    constexpr int64_t kMaxBlockDepth = 512;
    block_depth_ = std::min(kMaxBlockDepth, convolution.depth());
    // Windows of a chunk take half of the L2 cache, weights that meet them a quarter.
    constexpr int64_t kMaxPanels = 8;
    const int64_t panel_floats = block_depth_ * width_;
    chunk_panels_ = std::clamp<int64_t>(processor::L2Floats() / 2 / panel_floats, 1, kMaxPanels);
    const int64_t blocks = processor::L2Floats() / 4 / block_depth_ / gemm::BlockRows();
    chunk_outputs_ = std::max<int64_t>(1, blocks) * gemm::BlockRows();
    ListTaps();
  }

  // The weights are packed.
  bool ReadsAtRun(int read) const override { return read != 1; }

  base::Status Run(device::Addresses addresses) const override {
    const int64_t panels = (windows_.count() + width_ - 1) / width_;
    if (batch_ * panels == 0) return base::Ok();
    threads::ThreadPool& pool = runtime_.pool();
    const int64_t outputs = convolution_.out_channels;
    const gemm::Work work = {batch_ * panels, width_, convolution_.depth(),
                             convolution_.group * ((outputs + width_ - 1) / width_),
                             /*are_panels_divided=*/false};
    const gemm::Grid grid = gemm::ChooseGrid(work, pool.thread_count());
    const int64_t window_floats = chunk_panels_ * block_depth_ * width_;
    const int64_t part_floats = window_floats + outputs * width_;
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(gemm::ThreadsOf(grid, pool) * part_floats *
                                                         static_cast<int64_t>(sizeof(float))));
    auto* const scratch = reinterpret_cast<float*>(lease.data());
    const gemm::Epilogue epilogue = epilogue_.At(addresses);
    gemm::ForParts(work, grid, pool, [&](int64_t thread, const gemm::Part& part) {
      float* const rooms = scratch + thread * part_floats;
      for (int64_t group = 0; group < convolution_.group; ++group) {
        const Biases biases = FillBiases(epilogue, group, rooms + window_floats);
        for (int64_t block = part.first_block; block < part.end_block;) {
          const int64_t panel = block % panels;
          const int64_t count = std::min({chunk_panels_, part.end_block - block, panels - panel});
          RunChunk(addresses, epilogue, biases, block / panels, group, panel, count, rooms);
          block += count;
        }
      }
    });
    return base::Ok();
  }

  std::string Detail() const override {
    return "planes, chunks of " + std::to_string(chunk_panels_ * width_) + ", depth " +
           std::to_string(convolution_.depth()) + " in blocks of " + std::to_string(block_depth_) +
           ", " + processor::VectorName();
  }

 private:
  // Of the outputs of a group, each as often as a panel has columns; null for none.
  using Biases = const float*;

  void ListTaps() {
    const std::array<WindowAxis, kMaxSpatialAxes>& axes = windows_.axes;
    std::array<int64_t, kMaxSpatialAxes> at{};
    for (int64_t tap = 0; tap < convolution_.taps; ++tap) {
      int64_t offset = 0;
      for (size_t axis = 0; axis < kMaxSpatialAxes; ++axis) {
        offset += at[axis] * axes[axis].dilation * axes[axis].source_stride;
      }
      taps_.push_back({at, offset});
      for (size_t axis = kMaxSpatialAxes; axis-- > 0;) {
        if (++at[axis] < axes[axis].kernel) break;
        at[axis] = 0;
      }
    }
  }

  Biases FillBiases(const gemm::Epilogue& epilogue, int64_t group, float* room) const {
    if (epilogue.bias == nullptr) return nullptr;
    const int64_t outputs = convolution_.out_channels;
    for (int64_t output = 0; output < outputs; ++output) {
      float bias;
      std::memcpy(&bias, epilogue.bias + group * outputs + output, sizeof(bias));
      std::fill_n(room + output * width_, width_, bias);
    }
    return room;
  }

  // Panels [first, first + count) of one image's positions.
  void RunChunk(device::Addresses addresses, const gemm::Epilogue& epilogue, Biases biases,
                int64_t image, int64_t group, int64_t first, int64_t count, float* rooms) const {
    const int64_t outputs = convolution_.out_channels;
    const int64_t depth = convolution_.depth();
    const float* const source = gemm::FloatsAt(addresses, source_) + image * source_.strides[0] +
                                group * windows_.channels * windows_.channel_stride;
    float* const result = gemm::FloatsAt(addresses, result_) + image * result_.strides[0] +
                          group * outputs * result_.strides[1];
    const float* const weights = runtime::Floats(weights_) + group * outputs * depth;
    for (int64_t begin = 0; begin < depth; begin += block_depth_) {
      const int64_t end = std::min(depth, begin + block_depth_);
      for (int64_t panel = 0; panel < count; ++panel) {
        Gather(source, (first + panel) * width_, begin, end, rooms + panel * block_depth_ * width_);
      }
      gemm::Epilogue own;
      if (end == depth) own = epilogue;
      own.bias = nullptr;
      for (int64_t output = 0; output < outputs; output += chunk_outputs_) {
        const int64_t rows = std::min(chunk_outputs_, outputs - output);
        for (int64_t panel = 0; panel < count; ++panel) {
          const int64_t position = (first + panel) * width_;
          float* const sums = result + output * result_.strides[1] + position;
          if (begin > 0) {
            own.addend = sums;
            own.addend_stride = result_.strides[1];
          } else if (biases != nullptr) {
            own.addend = biases + output * width_;
            own.addend_stride = width_;
          }
          gemm::Multiply({weights + output * depth + begin,
                          depth,
                          rooms + panel * block_depth_ * width_,
                          sums,
                          result_.strides[1],
                          rows,
                          end - begin,
                          std::min(width_, windows_.count() - position),
                          {}},
                         own, 0, 1);
        }
      }
    }
  }

  // The elements [begin, end) of the windows of a panel's positions, from `first` on, as rows of
  // `width_` neighbours.
  void Gather(const float* source, int64_t first, int64_t begin, int64_t end, float* rows) const {
    const std::array<WindowAxis, kMaxSpatialAxes>& axes = windows_.axes;
    const int64_t count = std::min(width_, windows_.count() - first);
    if (count < width_) std::fill_n(rows, (end - begin) * width_, 0.0F);
    for (int64_t done = 0; done < count;) {
      Stretch stretch;
      int64_t position = first + done;
      for (size_t axis = kMaxSpatialAxes; axis-- > 0;) {
        stretch.begin[axis] = position % axes[axis].out;
        position /= axes[axis].out;
      }
      stretch.length = std::min(count - done, axes[kLast].out - stretch.begin[kLast]);
      if (IsInside(stretch)) {
        CopyInside(source, stretch, begin, end, rows + done);
      } else {
        CopyAtBorder(source, stretch, begin, end, rows + done);
      }
      done += stretch.length;
    }
  }

  // Whether no tap meets padding.
  bool IsInside(const Stretch& stretch) const {
    for (size_t axis = 0; axis < kMaxSpatialAxes; ++axis) {
      const WindowAxis& along = windows_.axes[axis];
      const int64_t length = axis == kLast ? stretch.length : 1;
      const int64_t first = stretch.begin[axis] * along.stride - along.pad;
      const int64_t last =
          first + (length - 1) * along.stride + (along.kernel - 1) * along.dilation;
      if (first < 0 || last >= along.in) return false;
    }
    return true;
  }

  void CopyInside(const float* source, const Stretch& stretch, int64_t begin, int64_t end,
                  float* rows) const {
    const float* first = source;
    for (size_t axis = 0; axis < kMaxSpatialAxes; ++axis) {
      const WindowAxis& along = windows_.axes[axis];
      first += (stretch.begin[axis] * along.stride - along.pad) * along.source_stride;
    }
    int64_t channel = begin / convolution_.taps;
    int64_t tap = begin % convolution_.taps;
    const int64_t step = windows_.axes[kLast].stride;
    for (int64_t k = begin; k < end; ++k, rows += width_) {
      const float* const from =
          first + channel * windows_.channel_stride + taps_[static_cast<size_t>(tap)].offset;
      Copy(from, step, stretch.length, rows);
      if (++tap == convolution_.taps) {
        tap = 0;
        ++channel;
      }
    }
  }

  void CopyAtBorder(const float* source, const Stretch& stretch, int64_t begin, int64_t end,
                    float* rows) const {
    for (int64_t k = begin; k < end; ++k, rows += width_) {
      const Tap& tap = taps_[static_cast<size_t>(k % convolution_.taps)];
      const float* from = source + k / convolution_.taps * windows_.channel_stride;
      bool is_padding = false;
      for (size_t axis = 0; axis < kLast; ++axis) {
        const WindowAxis& along = windows_.axes[axis];
        const int64_t at =
            stretch.begin[axis] * along.stride - along.pad + tap.index[axis] * along.dilation;
        is_padding = is_padding || at < 0 || at >= along.in;
        from += at * along.source_stride;
      }
      const WindowAxis& along = windows_.axes[kLast];
      const int64_t at =
          stretch.begin[kLast] * along.stride - along.pad + tap.index[kLast] * along.dilation;
      // Positions [low, high) of the stretch meet the source.
      const auto first_from = [&](int64_t element) {
        const int64_t steps = element <= at ? 0 : (element - at + along.stride - 1) / along.stride;
        return std::min(stretch.length, steps);
      };
      const int64_t low = is_padding ? stretch.length : first_from(0);
      const int64_t high = is_padding ? stretch.length : first_from(along.in);
      std::fill_n(rows, low, 0.0F);
      if (high > low) Copy(from + at + low * along.stride, along.stride, high - low, rows + low);
      std::fill_n(rows + std::max(low, high), stretch.length - std::max(low, high), 0.0F);
    }
  }

  static void Copy(const float* from, int64_t step, int64_t count, float* to) {
    constexpr int64_t kWidest = 32;
    if (step == 1 && count == kWidest) {
      std::memcpy(to, from, kWidest * sizeof(float));
    } else if (step == 1) {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
    } else {
      for (int64_t k = 0; k < count; ++k) std::memcpy(to + k, from + k * step, sizeof(float));
    }
  }

  runtime::Runtime& runtime_;
  const GatheredConvolution convolution_;
  const runtime::PackedWeights weights_;
  const gemm::BoundEpilogue epilogue_;
  const device::BoundView source_, result_;
  const int64_t batch_;
  const Windows windows_;
  const int64_t width_;  // of a panel
  int64_t block_depth_ = 1, chunk_panels_ = 1, chunk_outputs_ = 1;
  std::vector<Tap> taps_;
};

}  // namespace

bool PrefersPlanes(const device::BoundStep& step, const GatheredConvolution& convolution,
                   const Windows& windows) {
  if (runtime::IsLeftOut(kPlanes)) return false;
  const WindowAxis& last = windows.axes[kLast];
  const bool are_planes = last.source_stride == 1 && step.reads[0].strides[1] != 1 &&
                          step.writes[0].strides[1] != 1 && step.writes[0].strides.back() == 1 &&
                          convolution.epilogue.addend < 0;
  // Panels of positions, of which the last may not be full.
  constexpr int64_t kMinPanels = 8;
  const bool has_panels = windows.count() >= kMinPanels * gemm::PanelColumns();
  // Neighbours that lie apart in the source are copied one by one.
  constexpr int64_t kMinOutputsOfStrided = 64;
  return are_planes && has_panels &&
         (last.stride == 1 || convolution.out_channels >= kMinOutputsOfStrided);
}

void PackForPlanes(const GatheredConvolution& convolution, const float* weights,
                   const device::BoundView& view, const tensor::Extents& kernel, float* packed) {
  for (int64_t output = 0; output < convolution.group * convolution.out_channels; ++output) {
    for (int64_t channel = 0; channel < convolution.in_channels; ++channel) {
      const float* const first = weights + output * view.strides[0] + channel * view.strides[1];
      for (int64_t tap = 0; tap < convolution.taps; ++tap) {
        int64_t rest = tap, offset = 0;
        for (size_t axis = kernel.size(); axis-- > 0;) {
          offset += rest % kernel[axis] * view.strides[kFirstSpatial + axis];
          rest /= kernel[axis];
        }
        *packed++ = first[offset];
      }
    }
  }
}

std::unique_ptr<device::BoundKernel> BindPlanes(const device::BoundStep& step,
                                                const GatheredConvolution& convolution,
                                                const Windows& windows,
                                                runtime::PackedWeights weights,
                                                runtime::Runtime& runtime) {
  return std::make_unique<BoundPlanes>(step, convolution, windows, std::move(weights), runtime);
}

}  // namespace onnxifi::convolution
